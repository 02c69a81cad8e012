"""What operators see of a running collector: each number of a session that has everything."""

import asyncio
import json
import logging
from contextlib import closing

import pytest
from prometheus_client.parser import text_string_to_metric_families

from rocetap.collect.server import CollectorServer, ServerSettings
from rocetap.collect.store import SqliteStore
from rocetap.collect.telemetry import collector_health, collector_registry
from rocetap.collect.tls import ServerIdentity
from rocetap.export.endpoint import Endpoint
from rocetap.pki import credentials
from rocetap.telemetry.server import serve_metrics
from support.collector_bench import connect, until
from support.ipfix_tools import opened, reports


async def _get(endpoint, path):
    reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
    writer.write(f"GET {path} HTTP/1.1\r\nAccept: text/plain; version=0.0.4\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    head, _, body = answer.decode().partition("\r\n\r\n")
    return int(head.split()[1]), body


def _numbers(text):
    return {(sample.name.removeprefix("rocetap_collector_"), *sample.labels.values()): sample.value
            for family in text_string_to_metric_families(text) for sample in family.samples}


@pytest.fixture
def store(tmp_path):
    with closing(SqliteStore(tmp_path / "store.db")) as store:
        yield store


def _server(authority, store, **settings):
    files = credentials(authority.folder, "collector")
    return CollectorServer(
        ServerIdentity(files.authority, files.certificate, files.key), ["probe-1.example"], store,
        ServerSettings(**({"retry_s": 0.02} | settings)))


def test_metrics_and_health_over_http(shared_authority, store):
    async def run():
        server = _server(shared_authority, store)
        port = await server.start("127.0.0.1", 0)
        served = await serve_metrics(Endpoint("127.0.0.1", 0), collector_registry(server),
                                     lambda: collector_health(server))
        session, start = opened()
        rows = reports(5, flags=[0x21, 0x21, 0x20, 0x20, 0x21], report_id=[1, 1, 1, 1, 3])
        octets = start + b"".join(session.sequence(rows, 1))
        octets += b"".join(session.sequence(
            reports(1, first_epoch=4, report_id=2, requests=1), 1))
        writer = await connect(shared_authority, port)
        writer.write(octets)
        await until(lambda: server.reports_written == 6)
        live = _numbers((await _get(served.endpoint, "/metrics"))[1])
        status, body = await _get(served.endpoint, "/healthz")
        writer.close()
        await until(lambda: not server.peers)
        stranger = await connect(shared_authority, port, shared_authority.issue("x.example"))
        await until(lambda: server.counters["refused_name"])
        stranger.close()
        await until(lambda: server.writer.outcomes["incomplete"] == 2)
        after = _numbers((await _get(served.endpoint, "/metrics"))[1])
        await served.close()
        await server.stop()
        return server, live, after, status, json.loads(body)

    server, live, after, status, health = asyncio.run(run())
    assert (status, health["healthy"], health["peers"], health["store"]) == (200, True, 1, "well")
    assert {name: live[name,] for name in (
        "peers", "contexts", "queued_batches", "store_failing", "sessions_total",
        "reports_written_total")} == {
        "peers": 1, "contexts": 5, "queued_batches": 0, "store_failing": 0, "sessions_total": 1,
        "reports_written_total": 6}
    assert [live["epochs_total", name] for name in ("complete", "incomplete", "invalid")] == [
        2, 1, 1]
    assert [after["epochs_total", name] for name in ("complete", "incomplete", "invalid")] == [
        2, 2, 1]
    assert after["contexts",] == 0
    assert {key[1]: value for key, value in live.items() if key[0] == "dropped_total"} == {
        "epoch.invalid": 1}
    assert after["refused_total", "refused_name"] == 1
    assert [after["store_errors_total", name] for name in ("store_failed", "batches_not_stored")
            ] == [0, 0]
    assert live["certificate_expiry_timestamp_seconds",] == server.certificate_expires_ms / 1000
    assert {key[1]: value for key, value in live.items() if key[0] == "limit"} == (
        server.settings.limits())


def test_a_store_that_fails_is_unwell_until_it_is_written_again(shared_authority, store):
    async def run():
        server = _server(shared_authority, store)
        port = await server.start("127.0.0.1", 0)
        writer = await connect(shared_authority, port)
        await until(lambda: server.sessions_begun == 1)
        pages = store._db.execute("PRAGMA page_count").fetchone()[0]
        store._db.execute(f"PRAGMA max_page_count = {pages}")
        session, start = opened()
        writer.write(start + b"".join(session.sequence(reports(3000, flags=0x21), 1)))
        await until(lambda: server.writer.failing)
        unwell = collector_health(server)
        numbers = {sample.name: sample.value
                   for family in collector_registry(server).collect() for sample in family.samples
                   if not sample.labels}
        store._db.execute("PRAGMA max_page_count = 1000000")
        await until(lambda: server.reports_written == 3000)
        writer.close()
        well = collector_health(server)
        await server.stop(drain_s=2)
        return unwell, numbers, well, server

    unwell, numbers, well, server = asyncio.run(run())
    assert (unwell.healthy, unwell.details["store"]) == (False, "failing")
    assert numbers["rocetap_collector_store_failing"] == 1
    assert (well.healthy, well.details["store"]) == (True, "well")
    assert server.counters["store_failed"] > 0
    assert server.counters["batches_not_stored"] == 0


def test_log_lines_carry_their_fields(shared_authority, store, caplog):
    async def run():
        server = _server(shared_authority, store)
        port = await server.start("127.0.0.1", 0)
        (await connect(shared_authority, port)).close()
        await until(lambda: server.sessions_begun and not server.peers)
        await server.stop(drain_s=2)

    with caplog.at_level(logging.INFO):
        asyncio.run(run())
    fields = [record.fields for record in caplog.records if hasattr(record, "fields")]
    assert [one.get("session") for one in fields] == [1, 1]
    assert fields[0]["exporter"] == "probe-1.example"
    assert fields[1]["reason"] == "closed by the exporter"
