"""Sweeps, samples and closures of one board, over the very driver."""

import time
from ipaddress import ip_address

import pytest

from rocetap.export.board import Board
from rocetap.export.clock import BoardClock
from rocetap.link.driver import Driver
from rocetap.link.errors import LinkTimeout
from rocetap.provisioning import Connection, Port, Provisioning
from rocetap.spec.flags import SequenceFlag
from support.fake_board import FakeBoard

FINAL = SequenceFlag.finalEpoch


def provisioning(count=3, ports=1):
    return Provisioning(
        observation_point=5, ports=[Port(f"p{index}", 10 + index) for index in range(ports)],
        connections=[Connection(
            source=ip_address("192.0.2.1"), destination=ip_address("198.51.100.2"),
            destination_qp=number, partition_key=0xFFFF, window=64) for number in range(count)])


def make(fake, plan=None, **settings):
    board = Board(Driver(fake.transport(), clock=time.monotonic), plan or provisioning(),
                  BoardClock.identity(), monotonic=time.monotonic, **settings)
    board.start()
    return board


@pytest.fixture
def fake():
    return FakeBoard(contexts=4, ports=2)


def seen(records):
    return [(int(r["context"]), int(r["requests"]), bool(r["flags"] & FINAL)) for r in records]


def test_a_sample_reports_every_open_epoch_and_no_other(fake):
    board = make(fake)
    fake.request(0, 3)
    fake.request(2)
    assert seen(board.sample().records) == [(0, 3, False), (2, 1, False)]
    fake.request(0)
    assert seen(board.sample().records) == [(0, 4, False), (2, 1, False)]


def test_close_epochs_gives_the_final_records(fake):
    board = make(fake)
    fake.request(1, 7)
    assert seen(board.close_epochs()) == [(1, 7, True)]
    assert seen(board.close_epochs()) == []


def test_restart_epochs_throws_away_what_was_before(fake):
    board = make(fake)
    fake.request(0, 5)
    fake.request(1, 5)
    assert board.restart_epochs() == 2
    fake.request(0)
    records = board.sample().records
    assert seen(records) == [(0, 1, False)]
    assert records["epoch"].tolist() == [2]


def test_close_contexts_closes_those_alone(fake):
    board = make(fake)
    fake.request(0)
    fake.request(1)
    board.close_contexts([1])
    assert seen(board.sample().records) == [(1, 1, True), (0, 1, False)]


def test_pushed_records_come_with_a_poll(fake):
    board = make(fake)
    board.poll(0)
    fake.request(0)
    fake.operate(4, 0)
    assert seen(board.poll(1.0)) == [(0, 1, True)]


def test_a_record_behind_the_marker_is_kept_for_the_next_call(fake):
    board = make(fake)
    fake.request(0)
    fake.request(1)
    write = fake._write

    def write_and_more(address, value):
        write(address, value)
        if address == 0x12:
            fake.operate(4, 1)

    fake._write = write_and_more
    assert seen(board.sample().records) == [(0, 1, False), (1, 1, False)]
    fake._write = write
    assert seen(board.poll(0)) == [(1, 1, True)]


def test_readings_name_point_interface_and_priority(fake):
    fake.pfc[1][3] = 17
    fake.pfc[0][11] = 99        # XOFF frames: not the profile's counter
    board = make(fake, provisioning(ports=2))
    readings = board.sample().readings
    assert len(readings) == 16
    assert set(readings["observation_point"].tolist()) == {5}
    assert [(int(r["interface"]), int(r["priority"])) for r in readings] == [
        (interface, priority) for interface in (10, 11) for priority in range(8)]
    assert not readings["transmitted"].any()
    assert readings["total"].tolist() == [0] * 11 + [17] + [0] * 4
    assert len(set(readings["time_ms"].tolist())) == 1


def test_transmitted_counters_are_read_only_where_something_counts_them(fake):
    board = make(fake, provisioning(ports=1))
    assert not board.sample().readings["transmitted"].any()
    fake.transmitted = True
    board = make(fake, provisioning(ports=1))
    assert board.sample().readings["transmitted"].tolist() == [False] * 8 + [True] * 8


def test_time_is_mapped_when_there_is_a_wall_clock(fake):
    wall = 1_700_000_000_000_000_000
    board = Board(Driver(fake.transport(), clock=time.monotonic), provisioning(), BoardClock(),
                  monotonic=time.monotonic, wall=lambda: wall + time.monotonic_ns())
    board.start()
    ours = (wall + time.monotonic_ns()) // 1_000_000
    assert abs(int(board.sample().readings["time_ms"][0]) - ours) < 1000


def test_start_takes_over_a_board_that_was_in_use(fake):
    make(fake)
    fake.request(0, 9)
    fake.request(2, 9)
    board = make(fake, provisioning(1))
    assert fake.open == [None] * 4
    assert list(fake.slots.values()) == [0]
    assert seen(board.close_epochs()) == []


def test_a_fresh_board_is_not_emptied_first(fake):
    board = Board(Driver(fake.transport(), clock=time.monotonic), provisioning(),
                  BoardClock.identity(), monotonic=time.monotonic)
    board.start(fresh=True)
    assert fake.commits == 3


def test_a_sweep_that_does_not_end_is_one_line(fake):
    board = make(fake, answer_s=0.2)
    fake._push = lambda *_, **__: None
    with pytest.raises(LinkTimeout) as caught:
        board.sample()
    assert str(caught.value) == (
        "the board did not end a sweep in 0.2 s: check cable, baud rate and power")
