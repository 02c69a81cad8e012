"""What tshark sees of our TLS session when it has the session's keys: TLS 1.3, a client
certificate, and IPFIX inside; and nothing of it without the keys."""

import asyncio
import re
from contextlib import closing

import pytest

from rocetap.collect.server import CollectorServer
from rocetap.collect.store import SqliteStore
from rocetap.collect.tls import ServerIdentity
from rocetap.ipfix.exporting import ExportingSession
from rocetap.pki import credentials
from support.collector_bench import until
from support.ipfix_tools import reports, run, tool
from support.relay import Relay

pytestmark = pytest.mark.independent
PORT = 4740


@pytest.fixture(scope="module")
def session(shared_authority, tmp_path_factory):
    """One real session through a relay: its capture and its key log."""
    folder = tmp_path_factory.mktemp("decrypted")

    async def talk(store):
        files = credentials(shared_authority.folder, "collector")
        server = CollectorServer(
            ServerIdentity(files.authority, files.certificate, files.key), ["probe-1.example"],
            store)
        async with Relay(await server.start("127.0.0.1", 0)) as relay:
            context = shared_authority.client()
            context.keylog_filename = str(folder / "keys.log")
            _, writer = await asyncio.open_connection(
                "127.0.0.1", relay.port, ssl=context, server_hostname="collector.example",
                ssl_shutdown_timeout=1.0)
            # tshark puts no message together from several TLS records: one message in each.
            exporter = ExportingSession(1, max_message=16_000)
            for message in [*exporter.start(1), *exporter.sequence(
                    reports(1200, flags=0x21), 1)]:
                writer.write(message)
                await writer.drain()
            writer.close()
            await until(lambda: server.sessions_begun and not server.peers)
        await server.stop(drain_s=2)
        return server.reports_written, relay

    with closing(SqliteStore(folder / "store.db")) as store:
        written, relay = asyncio.run(talk(store))
    assert written == 1200
    return relay.capture(folder / "tls.pcap", PORT), folder / "keys.log"


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    """tshark has no preference for IPFIX in TLS on a port; a line of Lua says it."""
    path = tmp_path_factory.mktemp("lua") / "ipfix_in_tls.lua"
    path.write_text(f'DissectorTable.get("tls.port"):add({PORT}, Dissector.get("cflow"))\n')
    return path


def _tshark(capture, script, *options):
    return run(tool("tshark"), "-r", str(capture), "-X", f"lua_script:{script}", *options)


def test_with_the_keys_every_record_is_there(session, script):
    capture, keys = session
    text = _tshark(capture, script, "-o", f"tls.keylog_file:{keys}", "-V")
    assert "Malformed" not in text
    assert "Expert Info (Error" not in text
    epochs = re.findall(r"Type 1: Value \(hex bytes\): ([0-9a-f ]+)", text)
    assert [int(epoch.replace(" ", ""), 16) for epoch in epochs] == list(range(1, 1201))


def test_the_handshake_is_tls_1_3_with_a_client_certificate(session, script):
    capture, keys = session
    fields = _tshark(capture, script, "-o", f"tls.keylog_file:{keys}", "-T", "fields", "-e",
                     "tls.handshake.extensions.supported_version", "-e", "tls.handshake.type")
    versions = {version for line in fields.splitlines()
                for version in line.split("\t")[0].split(",") if version}
    assert versions == {"0x0304"}
    types = [kind for line in fields.splitlines() for kind in line.split("\t")[1].split(",")]
    # Certificate of either side (11), one CertificateRequest (13), proofs of either (15).
    assert (types.count("11"), types.count("13"), types.count("15")) == (2, 1, 2)


def test_without_the_keys_nothing_is(session, script):
    capture, _ = session
    text = _tshark(capture, script, "-V")
    assert "Encrypted Application Data" in text
    assert "FlowSequence" not in text
    assert b"probe-1.example" not in capture.read_bytes()
