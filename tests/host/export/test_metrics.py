"""The daemon's metrics and health, scraped from a running one."""

import asyncio
import re

from rocetap import pki
from rocetap.export.identity import ClientIdentity
from rocetap.export.metrics import exporter_health, exporter_registry
from rocetap.spec.records import RecordKind
from support.daemon_bench import all_accounted, make, running, until
from support.tls_collector import collector_context, listening


def scrape(daemon, expires):
    from prometheus_client import generate_latest
    text = generate_latest(exporter_registry(daemon.hub, lambda: expires)).decode()
    return {name.removeprefix("rocetap_exporter_"): float(value) for name, value in
            re.findall(r"^(\S+) (\S+)$", text, re.MULTILINE)}


def test_before_anything(folder, board):
    async def run():
        daemon = make(board, None, pki.credentials(folder, pki.EXPORTER))
        numbers = scrape(daemon, {})
        assert numbers["board_up"] == numbers["session_up"] == 0
        assert numbers["board_last_sample_age_seconds"] != numbers["board_last_sample_age_seconds"]
        assert numbers['records_dropped_total{reason="snapshot"}'] == 0
        assert numbers['epochs_closed_total{flag="captureDiscontinuity"}'] == 0
        health = exporter_health(daemon.hub)
        assert (health.healthy, health.details) == (False, {
            "board": "down", "last_sample_age_seconds": None, "session": "down"})
    asyncio.run(run())


def test_while_it_runs(folder, board):
    async def run():
        async with listening(collector_context(folder)) as (endpoint, heard):
            identity = ClientIdentity(pki.credentials(folder, pki.EXPORTER))
            daemon = make(board, endpoint, identity.context)
            board.pfc[0][3], board.pfc[0][11] = 5, 4
            async with running(daemon) as task:
                await until(lambda: daemon.hub.statistics.sessions, task)
                board.request(0, 3)
                board.request(1, 3)
                await until(lambda: len(heard[0].reports) > 4, task)
                board.operate(4, 0, 0x14)  # CLOSE: captureDiscontinuity, serialDiscontinuity
                board._push(RecordKind.DISABLED, 1, 2)
                await until(lambda: daemon.hub.statistics.closed and
                            daemon.hub.statistics.violations, task)
                numbers = scrape(daemon, identity.expires)
                assert numbers["board_up"] == numbers["session_up"] == 1
                assert numbers["board_last_sample_age_seconds"] < 2
                assert 0 < numbers["board_sample_seconds"] < 2
                assert 0 < numbers["clock_error_seconds"] < 0.5
                assert numbers['board_pfc_frames_total{port="0",priority="3"}'] == 5
                assert numbers['board_pfc_xoff_frames_total{port="0",priority="3"}'] == 4
                assert numbers['board_frames_total{class="cnp",port="0"}'] == 0
                assert numbers['epochs_closed_total{flag="captureDiscontinuity"}'] == 1
                assert numbers['epochs_closed_total{flag="serialDiscontinuity"}'] == 1
                assert numbers['epochs_closed_total{flag="ordinary"}'] == 0
                assert numbers["epochs_opened_total"] == 2
                assert numbers["connections_disabled_total"] == 1
                assert numbers["board_starts_total"] == 1
                assert numbers['certificate_expiry_timestamp_seconds{file="certificate"}'] == (
                    identity.expires["certificate"])
                dropped = sum(value for name, value in numbers.items()
                              if name.startswith("records_dropped"))
                assert numbers["records_produced_total"] == (
                    numbers["records_exported_total"] + dropped + numbers["records_waiting"])
                assert exporter_health(daemon.hub).healthy
                board.plugged = False
                await until(lambda: not daemon.hub.board.up, task)
                assert scrape(daemon, {})["board_up"] == 0
                assert not exporter_health(daemon.hub).healthy
            assert all_accounted(daemon)
    asyncio.run(run())


def test_an_old_sample_is_not_healthy(folder, board):
    async def run():
        now = [100.0]
        daemon = make(board, None, pki.credentials(folder, pki.EXPORTER), interval=1.0,
                      clocks={"monotonic": lambda: now[0]})
        daemon.hub.board.up, daemon.hub.board.sampled_at = True, 100.0
        daemon.hub.book = object()
        assert exporter_health(daemon.hub).healthy
        now[0] = 108.1
        assert not exporter_health(daemon.hub).healthy
    asyncio.run(run())
