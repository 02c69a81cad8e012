"""A provisioning that is read again: what changed closes its epoch, the rest goes on."""

import asyncio
import shutil
from dataclasses import replace

import pytest

from rocetap import pki
from rocetap.export import reloading
from rocetap.export.identity import ClientIdentity
from rocetap.export.watch import FileWatch
from rocetap.provisioning import provisioning_text, read_provisioning
from rocetap.spec.registers import OperationKind
from support.daemon_bench import all_accounted, make, provisioning, running, until
from support.tls_collector import collector_context, listening

FINAL, UNVERIFIED = 0x01, 0x20


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "probe.toml"
    path.write_text(provisioning_text(provisioning(2)))
    return path


def of(reports, qp):
    return [row for row in reports if row["rdmaDestinationQP"] == qp]


def finals(reports):
    return [row for row in reports if row["rdmaSequenceFlags"] & FINAL]


def run_with(file, folder, board, use, **settings):
    """`use(daemon, task, heard)` while the daemon has a session and both contexts have traffic."""
    async def run():
        async with listening(collector_context(folder)) as (endpoint, heard):
            daemon = make(board, endpoint, pki.credentials(folder, pki.EXPORTER),
                          plan=read_provisioning(str(file)), interval=0.05,
                          reread=lambda: read_provisioning(str(file)), watch=FileWatch(file),
                          **settings)
            async with running(daemon) as task:
                await until(lambda: daemon.hub.statistics.sessions, task)
                for context in range(2):
                    board.request(context, 5)
                await until(lambda: of(heard[0].reports, 0) and of(heard[0].reports, 1), task)
                await use(daemon, task, heard)
            await until(lambda: all(one.ended for one in heard))
            assert all(one.error is None for one in heard)
            assert all_accounted(daemon)
        return heard
    return asyncio.run(run())


def change(file, *changes):
    """Writes the provisioning with its connections changed: index -> new values, None: without."""
    plan = read_provisioning(str(file))
    connections = list(plan.connections)
    for index, values in changes:
        connections[index] = replace(connections[index], **values) if values is not None else None
    file.write_text(provisioning_text(replace(
        plan, connections=[one for one in connections if one is not None])))


@pytest.mark.parametrize("values", [
    {"window": 8}, {"generation": 2}, {"observation_point": 9}, {"generation_verified": True}])
def test_a_changed_connection_closes_its_epoch_and_the_other_goes_on(
        folder, board, file, values):
    async def use(daemon, task, heard):
        board.operations.clear()
        change(file, (1, values))
        assert await daemon.reload()
        board.request(0)
        board.request(1, 2)
        await until(lambda: of(heard[0].reports, 1)[-1]["requestPacketTotalCount"] == 2, task)
        await until(lambda: of(heard[0].reports, 0)[-1]["requestPacketTotalCount"] == 6, task)
        assert [one for one in board.operations if one[0] == OperationKind.PROVISION] == [
            (OperationKind.PROVISION, 1)]

    [heard] = run_with(file, folder, board, use)
    first, second = of(finals(heard.reports), 1)
    assert (first["requestPacketTotalCount"], second["requestPacketTotalCount"]) == (5, 2)
    assert second["rdmaSequenceEpochId"] > first["rdmaSequenceEpochId"]
    assert first["rdmaSequenceFlags"] == FINAL | UNVERIFIED
    verified = values.get("generation_verified", False)
    assert second["rdmaSequenceFlags"] == FINAL | (0 if verified else UNVERIFIED)
    assert second["rdmaSequenceWindow"] == values.get("window", 64)
    assert second["observationPointId"] == values.get("observation_point", 1)
    assert {row["rdmaSequenceEpochId"] for row in of(heard.reports, 0)} == {
        of(heard.reports, 0)[0]["rdmaSequenceEpochId"]}


def test_a_connection_that_went_away_gets_its_final_report(folder, board, file):
    async def use(daemon, task, heard):
        change(file, (0, None))
        assert await daemon.reload()
        await until(lambda: of(finals(heard[0].reports), 0), task)
        assert board.enabled[:2] == [False, True]

    [heard] = run_with(file, folder, board, use)
    assert [row["requestPacketTotalCount"] for row in of(finals(heard.reports), 0)] == [5]


def test_a_changed_file_is_taken_without_being_told(folder, board, file, monkeypatch):
    monkeypatch.setattr(reloading, "LOOK_S", 0.05)

    async def use(daemon, task, heard):
        change(file, (0, None))
        await until(lambda: of(finals(heard[0].reports), 0), task)
        assert daemon.hub.statistics.reloads == {"taken": 1}

    run_with(file, folder, board, use)


def test_a_bad_file_leaves_the_old_one_and_says_every_line(folder, board, file, caplog):
    async def use(daemon, task, heard):
        board.operations.clear()
        file.write_text(file.read_text().replace("window = 64", "window = 0") + "windou = 3\n")
        assert not await daemon.reload()
        assert not {OperationKind.PROVISION, OperationKind.REMOVE} & {
            kind for kind, _ in board.operations}
        board.request(0)
        await until(lambda: of(heard[0].reports, 0)[-1]["requestPacketTotalCount"] == 6, task)
        assert daemon.hub.statistics.reloads == {"refused": 1}

    run_with(file, folder, board, use)
    [line] = [one.getMessage() for one in caplog.records if "not taken" in one.getMessage()]
    assert line == (
        f"provisioning not taken, the one in use stays: {file}:13: window is 0, must be a whole "
        f"number from 1 to 4194304; {file}:21: unknown setting 'windou'; is window meant?; "
        f"{file}:20: window is 0, must be a whole number from 1 to 4194304")


def test_more_than_the_board_has_is_refused(folder, board, file, caplog):
    async def use(daemon, task, heard):
        file.write_text(provisioning_text(provisioning(5)))
        assert not await daemon.reload()
        assert len(daemon._board._board.placements) == 2

    run_with(file, folder, board, use)
    assert any(one.getMessage().startswith(
        "provisioning not taken, the one in use stays: 5 connections, but the board has")
        for one in caplog.records)


def test_another_domain_ends_the_session_in_order(folder, board, file):
    async def use(daemon, task, heard):
        file.write_text(file.read_text().replace("observation_domain = 1",
                                                 "observation_domain = 77"))
        assert await daemon.reload()
        await until(lambda: daemon.hub.statistics.sessions == 2, task)
        board.request(0)
        await until(lambda: len(heard) == 2 and heard[1].reports, task)
        assert daemon.hub.statistics.in_doubt == 0

    first, second = run_with(file, folder, board, use)
    assert [int.from_bytes(one.octets[12:16], "big") for one in (first, second)] == [1, 77]
    assert len(finals(first.reports)) == 2


def test_a_change_while_the_board_is_away_holds_when_it_is_back(folder, board, file):
    async def use(daemon, task, heard):
        board.plugged = False
        await until(lambda: not daemon.hub.board.up, task)
        change(file, (0, None))
        assert await daemon.reload()
        file.write_text(provisioning_text(provisioning(5)))
        assert not await daemon.reload()
        board.plugged = True
        await until(lambda: daemon.hub.board.up, task)
        assert [one.connection.destination_qp for one in daemon._board._board.placements] == [1]

    run_with(file, folder, board, use)


def test_the_line_that_breaks_during_a_change_keeps_the_new_one(folder, board, file):
    async def use(daemon, task, heard):
        change(file, (0, None))
        board.plugged = False
        assert await daemon.reload()
        board.plugged = True
        await until(lambda: daemon.hub.board.up, task)
        assert [one.connection.destination_qp for one in daemon._board._board.placements] == [1]

    run_with(file, folder, board, use)


def test_without_a_file_there_is_nothing_to_read(folder, board, file, caplog):
    async def use(daemon, task, heard):
        daemon._reloader._reread = None
        assert not await daemon.reload()

    run_with(file, folder, board, use)
    assert "the provisioning did not come from a file: nothing to read again" in caplog.text


def test_case_23_renewed_certificates_serve_the_next_session_and_the_open_one_goes_on(
        folder, board, unused_port, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(reloading, "LOOK_S", 0.05)
    keys = tmp_path / "keys"
    shutil.copytree(folder, keys)
    pki.issue(keys, "next", days=60)

    async def run():
        context = collector_context(folder)
        identity = ClientIdentity(pki.credentials(keys, pki.EXPORTER))
        before = dict(identity.expires)
        async with listening(context, port=unused_port) as (endpoint, heard):
            daemon = make(board, endpoint, identity.context)
            task = asyncio.create_task(daemon.run())
            await until(lambda: daemon.hub.statistics.sessions, task)
            shutil.copy(keys / "next.pem", keys / "exporter.pem")
            await until(lambda: identity.failed_reloads, task)
            await asyncio.sleep(0.3)
            assert identity.expires == before
            shutil.copy(keys / "next.key", keys / "exporter.key")
            await until(lambda: identity.reloads, task)
            assert identity.expires["certificate"] < before["certificate"]
            board.request(0)
            await until(lambda: heard[0].reports, task)
            assert (daemon.hub.statistics.sessions, len(heard)) == (1, 1)
            first = heard[0].client_serial
        async with listening(context, port=unused_port) as (_, heard):
            await until(lambda: daemon.hub.statistics.sessions == 2, task)
            assert heard[-1].client_serial != first
            daemon.stop()
            await asyncio.wait_for(task, 60)
    asyncio.run(run())
    assert sum("the certificate in use stays" in one.getMessage()
               for one in caplog.records) == 1
