"""Certificates replaced on disk (case 23): the next handshake uses them, once they fit together."""

import asyncio
import datetime
import shutil

import pytest

from rocetap import pki
from rocetap.export.endpoint import Endpoint
from rocetap.export.identity import ClientIdentity
from rocetap.export.tls import connect
from support.tls_collector import collector_context, listening

DAY = datetime.timedelta(days=1)


@pytest.fixture
def folder(tmp_path):
    pki.init(tmp_path, "probe", "collector.example", days=30)
    pki.issue(tmp_path, "next", days=60)
    return tmp_path


def identity(folder, **settings):
    return ClientIdentity(pki.credentials(folder, pki.EXPORTER), **settings)


def replace(folder, suffix, name="next"):
    shutil.copy(folder / f"{name}.{suffix}", folder / f"exporter.{suffix}")


def warnings(caplog):
    return [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]


def test_nothing_changed_nothing_read(folder):
    one = identity(folder)
    assert one.context() is one.context()
    assert (one.reloads, one.failed_reloads) == (0, 0)


def test_a_pair_replaced_in_two_steps_warns_once_and_is_then_used(folder, caplog):
    one = identity(folder)
    before, expires = one.context(), dict(one.expires)
    replace(folder, "pem")
    assert [one.context() is before for _ in range(5)] == [True] * 5
    assert warnings(caplog) == [
        "the certificate in use stays, what is on disk cannot be used: "
        f"{folder}/exporter.key is not the key of {folder}/exporter.pem"]
    assert one.expires == expires
    replace(folder, "key")
    assert one.context() is not before
    assert len(warnings(caplog)) == 1
    assert one.expires["certificate"] - expires["certificate"] == pytest.approx(
        30 * 86_400, abs=60)
    assert (one.reloads, one.failed_reloads) == (1, 1)


def test_a_file_that_is_away_or_broken_leaves_what_is_in_use(folder, caplog):
    one = identity(folder)
    before = one.context()
    text = (folder / "exporter.key").read_bytes()
    (folder / "exporter.key").unlink()
    assert one.context() is before
    (folder / "exporter.key").write_bytes(text[:40])
    assert one.context() is before
    assert warnings(caplog) == [
        f"the certificate in use stays, what is on disk cannot be used: cannot read "
        f"{folder}/exporter.key: No such file or directory",
        f"the certificate in use stays, what is on disk cannot be used: {folder}/exporter.key "
        "holds no unencrypted PEM private key"]
    (folder / "exporter.key").write_bytes(text)
    assert one.context() is not before


def test_an_expired_one_on_disk_is_not_taken(folder, caplog):
    one = identity(folder)
    before = one.context()
    pki.issue(folder, "exporter", days=-1, force=True)
    assert one.context() is before
    assert f"{folder}/exporter.pem expired on " in warnings(caplog)[0]


def test_at_first_it_must_fit(folder):
    now = datetime.datetime.now(datetime.UTC) + 31 * DAY
    with pytest.raises(pki.PkiError, match=r"exporter.pem expired on "):
        identity(folder, now=lambda: now)


def test_the_next_handshake_uses_the_new_pair_and_the_open_session_goes_on(folder):
    seen = []

    async def run():
        context = collector_context(folder)
        one = identity(folder)

        async def open_one(endpoint):
            session = await connect(endpoint, "collector.example", one.context())
            await session.prove_acceptance()
            return session

        async def serve(reader, writer):
            seen.append(writer.get_extra_info("peercert")["serialNumber"])
            while await reader.read(100):
                pass
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
        endpoint = Endpoint("127.0.0.1", server.sockets[0].getsockname()[1])
        first = await open_one(endpoint)
        replace(folder, "pem")
        middle = await open_one(endpoint)
        replace(folder, "key")
        last = await open_one(endpoint)
        await first.send([b"still open"])
        assert not first.ended
        for session in (first, middle, last):
            await session.close()
        server.close()

    asyncio.run(run())
    assert seen[0] == seen[1] != seen[2]


def test_an_authority_replaced_on_disk_judges_the_next_handshake(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    pki.init(other, "probe", "collector.example")

    async def run():
        one = identity(folder)
        async with listening(collector_context(other)) as (endpoint, heard):
            with pytest.raises(Exception, match="has no valid certificate"):
                await connect(endpoint, "collector.example", one.context())
            both = (folder / "ca.pem").read_bytes() + (other / "ca.pem").read_bytes()
            (folder / "ca.pem").write_bytes(both)
            session = await connect(endpoint, "collector.example", one.context())
            await session.abort()
            del heard
        assert one.reloads == 1
        assert one.expires["authority"] > one.expires["certificate"]

    asyncio.run(run())
