"""The exporter's TLS session against a bare TLS peer: identity, acceptance, dead peers."""

import asyncio
import contextlib
import ssl
from dataclasses import replace

import pytest

from rocetap import pki
from rocetap.export.endpoint import Endpoint
from rocetap.export.tls import (
    IdentityError,
    Limits,
    RefusedError,
    SessionEndedError,
    UnreachableError,
    client_context,
    connect,
)

QUICK = Limits(connect=2.0, dead_peer=1.0, grace=0.3, settle=0.1, close=1.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    directory = tmp_path_factory.mktemp("pki")
    pki.init(directory, "probe", "collector.example")
    pki.issue(directory, "expired", days=-1)
    return directory


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    directory = tmp_path_factory.mktemp("foreign")
    pki.init(directory, "probe", "collector.example")
    return directory


def server_context(folder, name=pki.COLLECTOR, *, tickets=2):
    files = pki.credentials(folder, name)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    context.load_verify_locations(files.authority)
    context.verify_mode = ssl.CERT_REQUIRED
    context.num_tickets = tickets
    return context


async def reads_all(reader, writer, received):
    while octets := await reader.read(1 << 16):
        received += octets


@contextlib.asynccontextmanager
async def peer(context, handler=reads_all, host="127.0.0.1"):
    """A TLS server; yields its endpoint and what it has read."""
    received = bytearray()

    async def serve(reader, writer):
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await handler(reader, writer, received)
        writer.close()

    server = await asyncio.start_server(serve, host, 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    try:
        yield Endpoint(host, port), received
    finally:
        server.close()


def client(folder, name=pki.EXPORTER):
    return client_context(pki.credentials(folder, name))


@pytest.mark.parametrize(("tickets", "proof"), [(2, "ticket"), (0, "grace")])
def test_an_accepted_session_says_how_it_was_proved_and_delivers(folder, tickets, proof):
    async def run():
        async with peer(server_context(folder, tickets=tickets)) as (endpoint, received):
            session = await connect(endpoint, "collector.example", client(folder), QUICK)
            assert await session.prove_acceptance() == proof
            await session.send([b"one", b"two"])
            assert await session.close()
            assert received == b"onetwo"
    asyncio.run(run())


@pytest.mark.parametrize("tickets", [2, 0])
@pytest.mark.parametrize("name", ["expired", "foreign"])
def test_a_refused_client_certificate_is_never_taken_for_accepted(folder, foreign, name, tickets):
    ours, theirs = (folder, foreign) if name == "foreign" else (folder, folder)
    file = pki.EXPORTER if name == "foreign" else name
    context = client_context(pki.Credentials(
        ours / "ca.pem", theirs / f"{file}.pem", theirs / f"{file}.key"))

    async def run():
        async with peer(server_context(folder, tickets=tickets)) as (endpoint, received):
            session = await connect(endpoint, "collector.example", context, QUICK)
            with pytest.raises(RefusedError) as caught:
                await session.prove_acceptance()
            message = str(caught.value)
            assert message.startswith(
                f"collector {endpoint} closed the session before accepting it")
            assert message.endswith("; it refuses this exporter's certificate or name, "
                                    "or it is stopping")
            assert received == b""
            await session.abort()
    asyncio.run(run())


def test_a_collector_that_refuses_the_name_after_the_handshake_is_noticed(folder):
    async def hangs_up(reader, writer, received):
        await asyncio.sleep(0.1)  # long after its tickets

    async def run():
        async with peer(server_context(folder), hangs_up) as (endpoint, _):
            session = await connect(endpoint, "collector.example", client(folder),
                                    replace(QUICK, settle=2.0))
            with pytest.raises(RefusedError):
                await session.prove_acceptance()
            assert session._has_ticket()
            await session.abort()
    asyncio.run(run())


@pytest.mark.parametrize(("name", "good"), [
    ("collector.example", True), ("127.0.0.1", True), ("::1", True), ("localhost", True),
    ("probe", False), ("192.0.2.1", False), ("example", False), ("x.collector.example", False)])
def test_the_collectors_name_is_checked_as_given_not_as_dialled(folder, name, good):
    async def run():
        async with peer(server_context(folder)) as (endpoint, _):
            if good:
                session = await connect(endpoint, name, client(folder), QUICK)
                await session.prove_acceptance()
                await session.close()
            else:
                with pytest.raises(IdentityError) as caught:
                    await connect(endpoint, name, client(folder), QUICK)
                assert str(caught.value).startswith(
                    f"collector {endpoint} has no valid certificate for {name!r}: ")
                assert "mismatch" in str(caught.value)
    asyncio.run(run())


def test_a_collector_of_another_authority_is_no_collector(folder, foreign):
    async def run():
        async with peer(server_context(foreign)) as (endpoint, _):
            with pytest.raises(IdentityError) as caught:
                await connect(endpoint, "collector.example", client(folder), QUICK)
            assert str(caught.value) == (
                f"collector {endpoint} has no valid certificate for 'collector.example': "
                "self-signed certificate in certificate chain")
    asyncio.run(run())


def test_a_collector_with_an_expired_certificate_is_no_collector(folder):
    async def run():
        async with peer(server_context(folder, "expired")) as (endpoint, _):
            with pytest.raises(IdentityError) as caught:
                await connect(endpoint, "expired", client(folder), QUICK)
            assert str(caught.value) == (f"collector {endpoint} has no valid certificate for "
                                         "'expired': certificate has expired")
    asyncio.run(run())


def test_tls_1_2_is_not_spoken(folder):
    context = server_context(folder)
    context.maximum_version = ssl.TLSVersion.TLSv1_2

    async def run():
        async with peer(context) as (endpoint, _):
            with pytest.raises(UnreachableError) as caught:
                await connect(endpoint, "collector.example", client(folder), QUICK)
            assert str(caught.value) == (
                f"collector {endpoint}: no TLS 1.3 handshake: closed by the peer")
    asyncio.run(run())


def test_a_closed_port_is_one_line(folder, unused_port):
    async def run():
        with pytest.raises(UnreachableError) as caught:
            await connect(Endpoint("127.0.0.1", unused_port), "c", client(folder), QUICK)
        assert str(caught.value) == (
            f"collector 127.0.0.1:{unused_port} cannot be reached: 127.0.0.1: Connection refused")
    asyncio.run(run())


def test_a_name_that_does_not_resolve_is_one_line(folder):
    async def run():
        with pytest.raises(UnreachableError) as caught:
            await connect(Endpoint("no-such-host.invalid", 4740), "c", client(folder), QUICK)
        assert str(caught.value).startswith(
            "collector no-such-host.invalid:4740: the name cannot be resolved: ")
    asyncio.run(run())


def test_every_address_of_a_name_is_tried(folder, monkeypatch):
    async def run():
        async with peer(server_context(folder)) as (endpoint, _):
            loop = asyncio.get_running_loop()
            calls = []

            async def two_addresses(host, port, **_):
                calls.append(host)
                return [(2, 1, 6, "", ("127.0.0.2", 1)), (2, 1, 6, "", (endpoint.host, port))]

            monkeypatch.setattr(loop, "getaddrinfo", two_addresses)
            for _ in range(2):
                session = await connect(Endpoint("collector.test", endpoint.port),
                                        "collector.example", client(folder), QUICK)
                await session.prove_acceptance()
                await session.close()
            assert calls == ["collector.test"] * 2
    asyncio.run(run())


def test_ipv6_literal(folder):
    async def run():
        async with peer(server_context(folder), host="::1") as (endpoint, received):
            session = await connect(endpoint, "::1", client(folder), QUICK)
            await session.prove_acceptance()
            await session.send([b"x"])
            assert await session.close()
            assert received == b"x"
    asyncio.run(run())


def test_a_collector_that_reads_nothing_is_dead_within_the_bound(folder):
    release = asyncio.Event()

    async def reads_nothing(reader, writer, received):
        await release.wait()

    async def run():
        async with peer(server_context(folder), reads_nothing) as (endpoint, _):
            session = await connect(endpoint, "collector.example", client(folder), QUICK)
            await session.prove_acceptance()
            loop = asyncio.get_running_loop()
            start = loop.time()

            async def send_for_ever():
                while True:
                    await session.send([bytes(1 << 20)])

            with pytest.raises(SessionEndedError) as caught:
                await send_for_ever()
            assert loop.time() - start < 5 * QUICK.dead_peer
            assert str(caught.value).startswith(f"collector {endpoint} ")
            await session.abort()
            release.set()
    asyncio.run(run())


def test_a_collector_that_goes_away_ends_the_session(folder):
    async def reads_once(reader, writer, received):
        received += await reader.read(1)

    async def run():
        async with peer(server_context(folder), reads_once) as (endpoint, _):
            session = await connect(endpoint, "collector.example", client(folder), QUICK)
            await session.prove_acceptance()
            await session.send([b"x"])
            error = await asyncio.wait_for(session.wait_ended(), 2)
            assert isinstance(error, SessionEndedError)
            assert str(error) == f"collector {endpoint} ended the session"
            with pytest.raises(SessionEndedError):
                await session.send([b"y"])
            assert session.ended
            assert not await session.close()
    asyncio.run(run())


def test_files_that_openssl_does_not_take(folder, tmp_path):
    (tmp_path / "ca.pem").write_bytes((folder / "ca.pem").read_bytes())
    (tmp_path / "exporter.pem").write_bytes((folder / "exporter.pem").read_bytes())
    (tmp_path / "exporter.key").write_bytes((folder / "collector.key").read_bytes())
    with pytest.raises(pki.PkiError) as caught:
        client(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}/exporter.pem with {tmp_path}/exporter.key and {tmp_path}/ca.pem: "
        "key values mismatch")
