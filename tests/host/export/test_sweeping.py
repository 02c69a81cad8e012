"""Sweeps on a line that damages what the board sends: nothing of an interval is missing unseen."""

import itertools
import time

import pytest

from rocetap.export.sweeping import Sweeper
from rocetap.link.driver import Driver
from rocetap.link.errors import LinkTimeout
from rocetap.link.messages import Reply, Write
from rocetap.link.records import decode_records
from rocetap.spec.flags import SequenceFlag
from rocetap.spec.records import RecordKind
from rocetap.spec.registers import REGISTERS, OperationKind
from rocetap.spec.wire import Status
from support.fake_board import FakeBoard

CONTEXTS = 4


class NoisyBoard(FakeBoard):
    """`damage`: of the records pushed, in their order, these come with a wrong octet."""

    def __init__(self):
        super().__init__(contexts=CONTEXTS)
        self.damage = set()
        self.pushed = itertools.count()

    def push_records(self):
        octets = bytearray(super().push_records())
        with self.lock:
            begin = 0
            while begin < len(octets):
                end = octets.index(0, begin) + 1
                if next(self.pushed) in self.damage:
                    octets[end - 5] ^= 0x55 if octets[end - 5] != 0x55 else 0x56
                begin = end
        return bytes(octets)


@pytest.fixture
def board():
    one = NoisyBoard()
    one.enabled = [True] * CONTEXTS
    return one


def make(board, **settings):
    driver = Driver(board.transport(), clock=time.monotonic, timeout_s=0.1)
    driver.handshake()
    return driver, Sweeper(driver, time.monotonic, **{"quiet_s": 0.1, "answer_s": 10.0, **settings})


def sweeps(board):
    return [context for kind, context in board.operations if kind is OperationKind.SNAPSHOT]


def contexts(records):
    assert set(records["kind"].tolist()) <= {RecordKind.SEQUENCE}
    return records["context"].tolist()


def snapshot(sweeper):
    return sweeper.sweep(OperationKind.SNAPSHOT, CONTEXTS - 1)


def test_a_whole_sweep_is_made_once(board):
    driver, sweeper = make(board)
    for context in range(3):
        board.request(context)
    assert contexts(snapshot(sweeper)) == [0, 1, 2]
    assert sweeps(board) == [0, 1, 2, 3]
    assert (sweeper.repeated, driver.records_missed) == (0, 0)


def test_a_damaged_marker_is_asked_for_again_over_what_did_not_answer(board):
    driver, sweeper = make(board)
    for context in (0, 1, 3):
        board.request(context)
    board.damage = {3}
    began = time.monotonic()
    assert contexts(snapshot(sweeper)) == [0, 1, 3]
    assert time.monotonic() - began < 5
    assert sweeps(board) == [0, 1, 2, 3, 2], "2 has no epoch; the others were there"
    assert (sweeper.repeated, driver.records_missed) == (1, 1)
    assert contexts(snapshot(sweeper)) == [0, 1, 3]
    assert sweeper.repeated == 1


def test_a_damaged_marker_when_all_have_answered(board):
    driver, sweeper = make(board)
    for context in range(4):
        board.request(context)
    board.damage = {4}
    assert contexts(snapshot(sweeper)) == [0, 1, 2, 3, 3]
    assert (sweeper.repeated, driver.records_missed) == (1, 1)


@pytest.mark.parametrize("damaged", range(4))
def test_a_damaged_snapshot_is_asked_for_again(board, damaged):
    driver, sweeper = make(board)
    for context in range(4):
        board.request(context, context + 1)
    board.damage = {damaged}
    records = snapshot(sweeper)
    assert contexts(records) == [*(c for c in range(4) if c != damaged), damaged]
    assert dict(zip(contexts(records), records["requests"].tolist(), strict=True)) == {
        0: 1, 1: 2, 2: 3, 3: 4}
    assert sweeps(board) == [0, 1, 2, 3, damaged]
    assert (sweeper.repeated, driver.records_missed) == (1, 1)


def test_a_damaged_snapshot_and_the_marker_behind_it(board):
    """The numbers tell of both only with what comes next, so it is asked a third time."""
    driver, sweeper = make(board)
    for context in range(4):
        board.request(context)
    board.damage = {3, 4}
    assert set(contexts(snapshot(sweeper))) == {0, 1, 2, 3}
    assert driver.records_missed == 2
    assert sweeper.repeated == 2


def test_everything_of_three_sweeps_is_damaged(board):
    driver, sweeper = make(board)
    for context in range(4):
        board.request(context)
    board.damage = set(range(15))
    assert set(contexts(snapshot(sweeper))) == {0, 1, 2, 3}
    assert driver.records_missed == 15


def test_a_final_record_that_is_missing_stays_counted_and_no_sweep_can_bring_it(board):
    driver, sweeper = make(board)
    board.request(0)
    board.request(1)
    board.damage = {0}
    records = sweeper.sweep(OperationKind.CLOSE, CONTEXTS - 1)
    assert contexts(records) == [1]
    assert (records["flags"] & SequenceFlag.finalEpoch).all()
    assert (sweeper.repeated, driver.records_missed) == (0, 1)
    assert board.open == [None] * 4


def test_the_damaged_marker_of_a_closure(board):
    driver, sweeper = make(board)
    board.request(0)
    board.damage = {1}
    assert contexts(sweeper.sweep(OperationKind.CLOSE, CONTEXTS - 1)) == [0]
    assert (sweeper.repeated, driver.records_missed) == (1, 1)


def test_a_line_that_brings_no_record_whole_gives_up_in_its_time(board):
    _, sweeper = make(board, answer_s=1.5)
    board.damage = set(range(1000))
    board.request(0)
    began = time.monotonic()
    with pytest.raises(LinkTimeout) as caught:
        snapshot(sweeper)
    assert str(caught.value) == (
        "the board did not end a sweep in 1.5 s: check cable, baud rate and power")
    assert 1.5 <= time.monotonic() - began < 6


def test_snapshots_that_never_come_whole_end_it_too(board):
    """Markers do: what has come is given after the fifth sweep, and the rest stays counted."""
    driver, sweeper = make(board)
    board.request(0)
    board.damage = set(range(0, 20, 2))
    assert contexts(snapshot(sweeper)) == []
    assert (sweeper.repeated, driver.records_missed) == (4, 5)


def test_while_an_earlier_sweep_runs_it_waits(board):
    """As after a program that was killed: the board refuses a second one until then."""
    _, sweeper = make(board)
    board.request(1)
    refusals = iter([True] * 3)
    answer = board.answer

    def busy(message):
        if (isinstance(message, Write) and message.address == REGISTERS["sweep"].address
                and next(refusals, False)):
            return Reply(message.sequence, Status.REFUSED)
        return answer(message)

    board.answer = busy
    assert contexts(snapshot(sweeper)) == [1]
    assert sweeper.repeated == 0


def test_a_slow_sweep_is_not_taken_for_a_damaged_one(board):
    """Line rate holds a sweep back: it is quiet, and the board refuses to begin another."""
    _, sweeper = make(board)
    board.request(1)
    held = []
    write, answer = board._write, board.answer

    def hold(address, value):
        if address == REGISTERS["sweep"].address:
            held.append((time.monotonic() + 0.6, address, value))
        else:
            write(address, value)

    def release(message):
        if held and time.monotonic() >= held[0][0]:
            write(*held.pop()[1:])
        if held and isinstance(message, Write) and message.address == REGISTERS["sweep"].address:
            return Reply(message.sequence, Status.REFUSED)
        return answer(message)

    board._write, board.answer = hold, release
    assert contexts(snapshot(sweeper)) in ([1], [1, 1])
    assert sweeps(board)[:4] == [0, 1, 2, 3]


def test_a_timeout_keeps_what_came(board):
    _, sweeper = make(board, answer_s=0.3, quiet_s=10.0)
    board.request(2)
    board.damage = {1}
    with pytest.raises(LinkTimeout):
        snapshot(sweeper)
    assert contexts(sweeper.take()) == [2]
    sweeper.forget()
    assert contexts(sweeper.take()) == []


def test_another_program_s_marker_ends_nothing(board):
    _, sweeper = make(board)
    board.request(0)
    for cookie in range(1, 50):
        board._push(RecordKind.MARKER, 0, cookie)
    sweeper._cookie = 100
    assert contexts(snapshot(sweeper)) == [0]


def test_cookies_begin_anywhere_and_go_round(board):
    driver = make(board)[0]
    assert len({Sweeper(driver, time.monotonic)._cookie for _ in range(20)}) > 10
    sweeper = make(board)[1]
    sweeper._cookie = 0xFFFF
    snapshot(sweeper)
    assert sweeper._cookie == 1


def test_the_noise_of_these_tests_is_noise(board):
    """A record that is damaged does not arrive, and its neighbours do."""
    driver, _ = make(board)
    board.damage = {1}
    for tag in range(3):
        board._push(RecordKind.MARKER, 0, tag)
    driver.poll(0.5)
    driver.poll(0.1)
    assert driver.take_records()["tag"].tolist() == [0, 2]
    assert decode_records(b"").size == 0
