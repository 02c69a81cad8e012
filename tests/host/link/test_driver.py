"""Driver on a line in virtual time: names, retries, slow and cut replies, credit, restarts."""

import random
import re

import pytest

from rocetap.link.driver import BoardInfo, Driver
from rocetap.link.errors import (
    BoardRestarted,
    LayoutMismatch,
    LinkLocalError,
    LinkRemoteError,
    LinkTimeout,
    NotABoard,
    RequestFailed,
)
from rocetap.link.framing import encode_frame
from rocetap.link.messages import Reply
from rocetap.link.poll import read_counters
from rocetap.spec.fingerprint import layout_hash
from rocetap.spec.registers import BANKS, REGISTERS, OperationKind, bank_address
from rocetap.spec.wire import Status
from support.link_fake import FakeBoard, FakeLine, in_pieces, whole

BOOT = REGISTERS["boot_id"].address
LEVEL = REGISTERS["snapshot_level"].address


def make(deliver=None, *, seed=61, **options):
    board = FakeBoard()
    line = FakeLine(board, deliver)
    driver = Driver(line, clock=line.clock, random_bits=random.Random(seed).getrandbits, **options)
    return driver, line, board


def exactly(text):
    return f"^{re.escape(text)}$"


def record(number):
    return bytes([1]) + number.to_bytes(87, "little")


# Names

def test_registers_by_name():
    driver, _, board = make()
    board.registers[REGISTERS["time"].address] = 2**63 + 5
    board.registers[REGISTERS["link_errors"].address] = 7 << 32 | 3
    assert driver.read("time") == 2**63 + 5
    assert driver.read_fields("link_errors") == {"crc": 3, "format": 7}
    driver.write("control", check_icrc=1)
    driver.write("boot_id", value=99)
    assert board.writes == [(0x5, 1), (0x2, 99)]


def test_banks_by_name_and_port():
    driver, _, board = make()
    count = BANKS["frame_class"].count
    for index in range(count):
        board.registers[bank_address("frame_class", 1, index)] = 1000 + index
    assert driver.read_bank("frame_class", 1) == tuple(1000 + index for index in range(count))
    driver.write_bank("table_key", range(BANKS["table_key"].count))
    assert board.writes == [(0x20 + index, index) for index in range(BANKS["table_key"].count)]


def test_many_reads_go_in_the_fewest_bursts():
    driver, _, board = make()
    board.registers[0x9] = 4
    values = driver.read_many(["link_errors", "time", ("pfc_received", 0), "magic",
                               "records_dropped", "snapshot_level"])
    assert values["link_errors"] == (4,)
    assert len(values[("pfc_received", 0)]) == 16
    assert [(request.address, request.count) for request in board.requests] == [
        (0, 1), (4, 1), (7, 3), (0x200, 16)]


@pytest.mark.parametrize(("call", "text"), [
    (lambda driver: driver.read("clock"),
     f"unknown register 'clock', known are {', '.join(REGISTERS)}"),
    (lambda driver: driver.read("operation"), "register operation cannot be read"),
    (lambda driver: driver.write("time", value=1), "register time cannot be written"),
    (lambda driver: driver.write("boot_id", value=2**64),
     "register boot_id takes value= of 64 bits, got {'value': 18446744073709551616}"),
    (lambda driver: driver.write("control", icrc=1),
     "register control has no field icrc, it has check_icrc"),
    (lambda driver: driver.write("control", check_icrc=2),
     "control: register field check_icrc is 2, must fit 1 bits"),
    (lambda driver: driver.read_bank("pfc", 0),
     f"unknown bank 'pfc', known are {', '.join(BANKS)}"),
    (lambda driver: driver.read_bank("table_key", 0), "bank table_key cannot be read"),
    (lambda driver: driver.read_bank("frame_class", 8), "port of frame_class is 8, must be 0 to 7"),
    (lambda driver: driver.write_bank("table_key", [1]), "1 values for bank table_key, must be 6"),
    (lambda driver: driver.operate(OperationKind.REQUEST, 0),
     "operation kind is REQUEST, must be SNAPSHOT, CLOSE, PROVISION, REMOVE, "
     "MARKER"),
    (lambda driver: driver.operate(OperationKind.PROVISION, 0), "window is None, must be 1 to 256"),
    (lambda driver: driver.operate(OperationKind.PROVISION, 0, window=257),
     "window is 257, must be 1 to 256"),
    (lambda driver: driver.operate(OperationKind.CLOSE, 0, window=4),
     "window is 4, only PROVISION takes one"),
    (lambda driver: driver.operate(OperationKind.CLOSE, 64), "context is 64, must be 0 to 63"),
    (lambda driver: driver.operate(OperationKind.CLOSE, 0, 1 << 16),
     "operation: register field reasons is 65536, must fit 16 bits"),
    (lambda driver: driver.sweep(OperationKind.REMOVE, 0, 1),
     "operation kind is REMOVE, must be SNAPSHOT, CLOSE"),
    (lambda driver: driver.sweep(OperationKind.CLOSE, 2, 1),
     "first context is 2, last is 1: nothing between"),
    (lambda driver: driver.sweep(OperationKind.CLOSE, 0, 64),
     "last context is 64, must be 0 to 63"),
    (lambda driver: driver.credit(0), "credit is 0, must be 1 to 65535"),
])
def test_the_callers_mistakes_send_nothing(call, text):
    driver, line, _ = make()
    driver.handshake()
    before = line.writes
    with pytest.raises(LinkLocalError, match=exactly(text)):
        call(driver)
    assert line.writes == before


def test_options_out_of_range():
    line = FakeLine(FakeBoard())
    with pytest.raises(LinkLocalError, match=exactly(
            "timeout_s is 0, tries is 3, patience is 8.0, must be above 0, at least 1 and at "
            "least 1")):
        Driver(line, clock=line.clock, timeout_s=0)
    with pytest.raises(LinkLocalError, match=exactly("credit_window is 65536, must be 0 to 65535")):
        Driver(line, clock=line.clock, credit_window=65536)


# Operations

def test_operations_are_one_write():
    driver, _, board = make()
    driver.operate(OperationKind.PROVISION, 5, window=100, tag=0xABCD)
    driver.operate(OperationKind.CLOSE, 6, 0x21)
    driver.operate(OperationKind.MARKER, 0, tag=7)
    driver.sweep(OperationKind.SNAPSHOT, 1, 9, 3, cookie=0x1234)
    assert board.writes == [
        (0x10, 100 | 0xABCD << 32), (0x11, 5 | 5 << 16), (0x11, 4 | 6 << 16 | 0x21 << 32),
        (0x10, 7 << 32), (0x11, 7), (0x12, 3 | 1 << 4 | 9 << 18 | 3 << 32 | 0x1234 << 48)]
    assert len(board.requests) == 4


def test_a_refusal_names_the_register():
    driver, _, board = make()
    board.refused.add(0x12)
    with pytest.raises(RequestFailed, match=exactly(
            "WRITE of sweep at 0x0012 refused: value out of range, or busy")) as caught:
        driver.sweep(OperationKind.SNAPSHOT, 0, 1)
    assert caught.value.status is Status.REFUSED
    del board.registers[0x4]
    with pytest.raises(RequestFailed, match=exactly(
            "READ of time at 0x0004 failed: the board has no such register")) as caught:
        driver.read("time")
    assert caught.value.status is Status.NO_REGISTER


# The line

def test_a_reply_in_single_octets():
    """5 ms between octets: a burst takes 0.7 s, longer than the line may be quiet."""
    driver, line, board = make(in_pieces(0.005))
    count = BANKS["frame_class"].count
    for index in range(count):
        board.registers[bank_address("frame_class", 0, index)] = 2**56 + index
    assert driver.read_bank("frame_class", 0) == tuple(2**56 + index for index in range(count))
    assert line.now > 0.25
    assert driver.retries == 0


def test_a_reply_that_stops_halfway_names_register_and_octets_and_the_next_command_works():
    driver, line, _ = make(timeout_s=0.25)
    frame_octets = 19
    line.deliver = lambda frame: [(0.001, frame[:frame_octets // 2])]
    with pytest.raises(LinkTimeout, match=exactly(
            "no whole reply to READ of capacity at 0x0003: 3 tries of 0.25 s, 27 octets got; "
            "check cable, baud rate and power")):
        driver.read("capacity")
    assert line.now == pytest.approx(3 * 0.251)
    line.deliver = whole(0.001)
    assert driver.read_fields("capacity")["connections"] == 64
    assert driver.retries == 2
    assert driver.session.frames.format_errors == 3


def test_no_reply_at_all():
    driver, line, _ = make(timeout_s=0.1, tries=2)
    line.drop_requests = 2
    with pytest.raises(LinkTimeout, match=exactly(
            "no whole reply to WRITE of operation_argument at 0x0010 and 1 more: 2 tries of "
            "0.1 s, 0 octets got; check cable, baud rate and power")):
        driver.operate(OperationKind.PROVISION, 0, window=1)
    assert line.now == pytest.approx(0.2)
    assert driver.read("time") == 0


def test_a_write_whose_reply_is_gone_is_done_once():
    driver, line, board = make()
    restore = iter([lambda frame: [], whole(0.001)])
    original = line.write

    def write(data):
        line.deliver = next(restore)
        original(data)

    line.write = write
    driver.write("control", check_icrc=1)
    assert board.writes == [(0x5, 1)]
    assert len(board.requests) == 2
    assert board.requests[0] == board.requests[1]
    assert driver.retries == 1


def test_a_late_reply_is_taken_and_its_repetition_ignored():
    driver, _, board = make(whole(0.3), timeout_s=0.25)
    board.registers[0x4] = 11
    assert driver.read("time") == 11
    board.registers[0x4] = 12
    assert driver.read("time") == 12
    assert driver.stale_replies >= 1


def test_a_reply_of_another_length_is_the_boards_fault():
    driver, line, board = make()
    original = board.receive
    board.receive = lambda octets: [
        Reply(reply.sequence, Status.OK, (1, 2)) for reply in original(octets)]
    with pytest.raises(LinkRemoteError, match=exactly(
            "READ of time at 0x0004 got 2 registers, must be 1")):
        driver.read("time")
    assert line.writes == 1


def test_noise_around_replies():
    dice = random.Random(62)
    driver, line, _ = make()
    line.deliver = lambda frame: [
        (0.001, dice.randbytes(dice.randrange(30)) + b"\0" + frame + dice.randbytes(5) + b"\0")]
    for _ in range(200):
        assert driver.read_fields("capacity")["ports"] == 2
    assert driver.retries == 0
    assert driver.session.frames.crc_errors + driver.session.frames.format_errors > 200


def test_sequence_numbers_go_round():
    driver, _, board = make()
    driver._sequence = 0xFFFE
    for _ in range(3):
        driver.write("control", check_icrc=1)
    assert [request.sequence for request in board.requests] == [0xFFFF, 0, 1]
    assert len(board.writes) == 3


def test_a_poll_of_all_counters_with_16_ms_to_each_reply():
    """An FTDI adapter holds small replies for 16 ms: 7 round trips for two ports."""
    driver, line, board = make(whole(0.016))
    driver.handshake()
    board.registers[bank_address("pfc_transmitted", 1, 15)] = 2**64 - 1
    start, before = line.now, line.writes
    counters = read_counters(driver)
    assert line.writes - before == 1 + 3 * 2
    assert line.now - start == pytest.approx(7 * 0.016)
    assert counters.pfc_transmitted[1][15] == 2**64 - 1
    assert len(counters.frame_class) == 2
    assert counters.state["capacity"] == board.capacity
    assert counters.boot_id == driver.board.boot_id


# Identity

def test_handshake_with_a_fresh_board():
    driver, line, board = make()
    info = driver.handshake()
    assert info == BoardInfo(connections=64, ports=2, bus_bytes=8, max_window=256, version=1,
                             vxlan=0, transmitted=0,
                             boot_id=board.registers[BOOT], restarted=False)
    assert info.boot_id != 0
    assert line.writes == 2, "one burst to read all, one write"


def test_handshake_with_a_running_board_changes_nothing():
    driver, _, board = make()
    board.registers[BOOT] = 5
    assert driver.handshake().boot_id == 5
    assert not driver.handshake().restarted
    assert board.writes == []


@pytest.mark.parametrize("boot_id", [0, 77])
def test_handshake_reports_a_restart(boot_id):
    driver, _, board = make()
    driver.handshake()
    board.reset()
    board.registers[BOOT] = boot_id
    info = driver.handshake()
    assert info.restarted
    assert info.boot_id == board.registers[BOOT] != 0
    assert not driver.handshake().restarted


def test_a_restart_since_an_earlier_process():
    driver, _, board = make(known_boot_id=5)
    board.registers[BOOT] = 6
    assert driver.handshake().restarted


def test_another_layout():
    driver, _, board = make()
    board.registers[0x1] = 0x1234
    with pytest.raises(LayoutMismatch, match=exactly(
            f"board has layout 0x0000000000001234 (version 1), this software "
            f"0x{layout_hash():016x} (version 1): load the bitstream of this release, or install "
            "the release of that bitstream")):
        driver.handshake()
    assert board.writes == []


def test_no_rocetap_board():
    driver, _, board = make()
    board.registers[0x0] = 1
    with pytest.raises(NotABoard, match=exactly(
            "no rocetap board: magic is 0x0000000000000001, must be 0x0070617465636f72")):
        driver.handshake()
    board.registers.clear()
    with pytest.raises(NotABoard, match=exactly(
            "no rocetap board: READ of magic at 0x0000 and 3 more failed: the board has no such "
            "register")):
        driver.handshake()


def test_counters_of_two_boots_never_mix():
    driver, line, board = make()
    driver.handshake()
    original, done = line.write, []

    def write(data):
        done.append(data)
        if len(done) == 4:
            board.reset()
        original(data)

    line.write = write
    with pytest.raises(BoardRestarted, match=r"^board restarted: its boot id is 0x0{16}, was "
                                             r"0x[0-9a-f]{16}$"):
        read_counters(driver)
    assert driver.board is None
    with pytest.raises(LinkLocalError, match=exactly(
            "no handshake yet: the number of ports is not known")):
        read_counters(driver)
    assert driver.handshake().restarted
    assert read_counters(driver).boot_id == driver.board.boot_id


# Records

def test_records_come_with_automatic_credit():
    driver, _, board = make(credit_window=16)
    driver.handshake()
    board.records = [record(number) for number in range(100)]
    taken = []
    for _ in range(40):
        held = driver.poll(0.01)
        assert held <= 16
        assert board.credit <= 16
        taken += [bytes(row.tobytes()) for row in driver.take_records()]
    assert taken == [record(number) for number in range(100)]
    assert driver.records_missed == 0


def test_the_first_poll_gives_credit_before_it_waits():
    """Nothing can come without credit: waiting for it first would be waiting in vain."""
    driver, line, board = make(credit_window=16)
    driver.handshake()
    board.records = [record(1)]
    begin = line.clock()
    assert driver.poll(100.0) == 1
    assert line.clock() - begin < 1.0


def test_no_credit_while_records_are_not_taken():
    driver, line, board = make(credit_window=16)
    driver.handshake()
    board.records = [record(number) for number in range(100)]
    for _ in range(20):
        driver.poll(0.01)
        line.push()
    assert driver.session.records_held == 16
    assert len(board.records) == 84


def test_without_a_window_only_credit_gives_any():
    driver, line, board = make(credit_window=0)
    driver.handshake()
    board.records = [record(number) for number in range(9)]
    assert driver.poll(0.01) == 0
    assert line.now == pytest.approx(0.012)
    driver.credit(4)
    assert driver.poll(0.01) == 4
    assert driver.session.credit_outstanding == 0
    records = driver.take_records()
    assert list(records["kind"]) == [1] * 4
    assert driver.take_records().shape == (0,)


def test_records_between_replies_are_kept():
    driver, line, board = make(credit_window=0)
    driver.credit(50)
    board.records = [record(number) for number in range(20)]
    line.push()
    for _ in range(5):
        driver.read("time")
    driver.poll(0)
    assert driver.session.records_held == 20


def test_missing_numbers_are_counted_and_their_credit_is_given_again():
    driver, line, board = make(credit_window=8)
    driver.handshake()
    gone = {3, 4, 17, 30}
    board.records = [record(number) for number in range(60)]

    def deliver(frame):
        if len(frame) > 90:
            numbers.append(len(numbers))
            if numbers[-1] in gone:
                return [(0.001, frame[:20] + b"\0")]
        return [(0.001, frame)]

    numbers = []
    line.deliver = deliver
    taken = []
    for _ in range(60):
        driver.poll(0.01)
        taken += [bytes(row.tobytes()) for row in driver.take_records()]
    assert taken == [record(number) for number in range(60) if number not in gone]
    assert driver.records_missed == len(gone)
    frames = driver.session.frames
    assert frames.crc_errors + frames.format_errors == len(gone)


def test_credit_whose_records_all_went_missing_is_given_again():
    """Without a record behind them nothing shows the gap: the board's FIFO level does."""
    driver, line, board = make(credit_window=4, stall_s=1.0)
    driver.handshake()
    board.records = [record(number) for number in range(8)]
    line.deliver = lambda frame: [(0.001, frame)] if len(frame) < 80 else []
    driver.poll(0.01)
    line.deliver = whole(0.001)
    start = line.now
    while not driver.session.records_received and line.now - start < 10:
        driver.poll(0.1)
    assert line.now - start < 1.5
    assert driver.records_missed == 4
    driver.poll(0.01)
    assert [bytes(row.tobytes()) for row in driver.take_records()] == [
        record(number) for number in range(4, 8)]


def test_an_idle_line_with_an_empty_fifo_gets_no_more_credit():
    driver, _, board = make(credit_window=4, stall_s=1.0)
    driver.handshake()
    for _ in range(100):
        driver.poll(0.1)
    assert board.credit == 4


def test_poll_finds_a_restart_on_a_quiet_line():
    driver, line, board = make(credit_window=4, stall_s=1.0)
    driver.handshake()
    driver.poll(0.01)
    board.reset()
    start = line.now
    poll_until_restart = (driver.poll(0.1) for _ in range(100))
    with pytest.raises(BoardRestarted):
        list(poll_until_restart)
    assert line.now - start < 1.5
    assert driver.handshake().restarted
    board.records = [record(1)]
    driver.poll(0.01)
    assert driver.poll(0.01) == 1
    assert driver.records_missed == 0


def test_a_restart_is_found_before_credit_is_topped_up():
    driver, _, board = make(credit_window=4, stall_s=1000)
    driver.handshake()
    board.records = [record(number) for number in range(4)]
    driver.poll(0.01)
    driver.poll(0.01)
    board.reset()
    driver.take_records()
    with pytest.raises(BoardRestarted):
        driver.poll(0.01)
    assert board.credit == 0


def test_reconnecting_finds_what_the_broken_line_swallowed():
    driver, line, board = make(credit_window=8)
    driver.handshake()
    board.records = [record(number) for number in range(6)]
    driver.poll(0.01)
    driver.poll(0.01)
    line.deliver = lambda frame: []
    board.records = [record(number) for number in range(6, 8)]
    line.push()
    fresh = FakeLine(board)
    fresh.now = line.now
    driver._clock = fresh.clock
    assert not driver.reconnect(fresh).restarted
    assert line.closed
    assert len(driver.take_records()) == 6
    board.records = [record(8)]
    driver.poll(0.01)
    assert driver.poll(0.01) == 1
    assert driver.records_missed == 2


def test_close_closes_the_line():
    driver, line, _ = make()
    driver.close()
    assert line.closed


def test_frames_that_are_no_message_are_counted():
    driver, line, _ = make()
    line.send(encode_frame(b"\x55"))
    assert driver.read("time") == 0
    assert driver.session.message_errors == 1
