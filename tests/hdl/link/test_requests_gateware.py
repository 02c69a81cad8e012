"""RequestProcessor: each request's effect and reply, and no effect without a good request."""

import pytest

from rocetap.link.messages import Credit, Read, Reply, Write, decode_from_board
from rocetap.spec.wire import Status
from rocetap_hdl.link.requests import RequestProcessor
from support.link_bench import PRESSURES, RegisterModel, run_streams

VALUES = {address: 0x0123_4567_89AB_0000 + address for address in range(0x10, 0x40)}
VALUES[0xFFFF] = 7
VALUES[0] = 9


def run(messages, *, pressure=(1.0, 1.0), latency=1):
    """(replies, register model, credit grants, format strobes)."""
    dut = RequestProcessor()
    registers = RegisterModel(VALUES, read_only=[0x20], refuses=[0x21], latency=latency)
    grants, strobes = [], []

    async def watch(ctx):
        sample = ctx.tick().sample(dut.credit_grant, dut.credit_amount, dut.stat_format)
        async for _, _, grant, amount, form in sample:
            if grant:
                grants.append(amount)
            if form:
                strobes.append(form)

    octets = [message if isinstance(message, bytes) else message.encode() for message in messages]
    payloads = [{"data": octet, "first": index == 0, "last": index == len(message) - 1,
                 "length": len(message)}
                for message in octets for index, octet in enumerate(message)]
    (beats,) = run_streams(dut, [(dut.i, payloads)], [dut.o], pressure=pressure,
                           extra=[watch, registers.target(dut.bus)])
    replies, current = [], bytearray()
    for beat in beats:
        current.append(beat["data"])
        if beat["last"]:
            replies.append(decode_from_board(bytes(current)))
            current.clear()
    assert not current
    return replies, registers, grants, len(strobes)


@pytest.mark.parametrize("latency", [1, 7])
@pytest.mark.parametrize("pressure", PRESSURES)
def test_requests_in_a_row(pressure, latency):
    full = tuple(VALUES[address] for address in range(0x10, 0x30))
    replies, registers, grants, strobes = run([
        Read(1, 0x10, 1), Read(2, 0x10, 32), Write(3, 0x10, (5,)), Write(4, 0x11, (6, 7, 8)),
        Read(5, 0x10, 4), Credit(6, 0xABCD), Read(0xFFFE, 0x13, 2),
    ], pressure=pressure, latency=latency)
    assert replies == [
        Reply(1, Status.OK, (VALUES[0x10],)), Reply(2, Status.OK, full), Reply(3, Status.OK),
        Reply(4, Status.OK), Reply(5, Status.OK, (5, 6, 7, 8)), Reply(6, Status.OK),
        Reply(0xFFFE, Status.OK, (8, VALUES[0x14]))]
    assert [entry for entry in registers.log if entry[0] == "write"] == [
        ("write", 0x10, 5), ("write", 0x11, 6), ("write", 0x12, 7), ("write", 0x13, 8)]
    assert grants == [0xABCD]
    assert strobes == 0


def test_write_burst_of_the_most_registers():
    values = tuple(2**64 - 1 - number for number in range(16))
    replies, registers, _, strobes = run([Write(1, 0x30, values), Read(2, 0x30, 16)])
    assert replies == [Reply(1, Status.OK), Reply(2, Status.OK, values)]
    assert registers.log[:16] == [("write", 0x30 + n, value) for n, value in enumerate(values)]
    assert strobes == 0


def test_a_burst_stops_at_the_first_that_fails():
    replies, registers, _, strobes = run([
        Read(1, 0x3E, 4), Write(2, 0x1F, (1, 2, 3)), Write(3, 0x21, (4, 5)), Read(4, 0x9, 1),
        Read(5, 0x10, 1)])
    assert replies == [
        Reply(1, Status.NO_REGISTER), Reply(2, Status.NO_REGISTER), Reply(3, Status.REFUSED),
        Reply(4, Status.NO_REGISTER), Reply(5, Status.OK, (VALUES[0x10],))]
    assert registers.log == [
        ("read", 0x3E), ("read", 0x3F), ("read", 0x40), ("write", 0x1F, 1), ("write", 0x20, 2),
        ("write", 0x21, 4), ("read", 0x9), ("read", 0x10)]
    assert strobes == 0


def test_a_burst_does_not_run_round_the_address_space():
    replies, registers, _, _ = run([Read(1, 0xFFFF, 1), Read(2, 0xFFFF, 2),
                                    Write(3, 0xFFFF, (1, 2))])
    assert replies == [Reply(1, Status.OK, (7,)), Reply(2, Status.NO_REGISTER),
                       Reply(3, Status.NO_REGISTER)]
    assert registers.values[0] == 9


def test_the_last_write_or_credit_is_not_done_twice():
    replies, registers, grants, _ = run([
        Write(7, 0x10, (1,)), Write(7, 0x10, (1,)), Write(8, 0x21, (2,)), Write(8, 0x21, (2,)),
        Credit(9, 3), Credit(9, 3), Write(9, 0x10, (4,)), Write(7, 0x11, (5,))])
    assert replies == [
        Reply(7, Status.OK), Reply(7, Status.OK), Reply(8, Status.REFUSED),
        Reply(8, Status.REFUSED), Reply(9, Status.OK), Reply(9, Status.OK), Reply(9, Status.OK),
        Reply(7, Status.OK)]
    assert registers.log == [("write", 0x10, 1), ("write", 0x21, 2), ("write", 0x11, 5)]
    assert grants == [3]


def test_a_read_forgets_the_number():
    replies, registers, grants, _ = run([
        Write(7, 0x10, (1,)), Read(7, 0x10, 1), Write(7, 0x10, (2,)), Read(7, 0x10, 1),
        Credit(7, 3), Read(8, 0x10, 1), Credit(7, 4)])
    assert [reply.values for reply in replies] == [(), (1,), (), (2,), (), (2,), ()]
    assert grants == [3, 4]
    assert [entry for entry in registers.log if entry[0] == "write"] == [
        ("write", 0x10, 1), ("write", 0x10, 2)]


def test_number_zero_after_reset_is_done():
    _, registers, grants, _ = run([Write(0, 0x10, (1,)), Credit(1, 2)])
    assert registers.log == [("write", 0x10, 1)]
    assert grants == [2]


BAD = [
    b"\x00", b"\x04\x01\x00", b"\x81\x01\x00\x00\x00", b"\xff" * 262, b"\x01", b"\x02", b"\x03",
    Read(1, 0x10, 1).encode()[:-1], Read(1, 0x10, 1).encode() + b"\0",
    b"\x01\x01\x00\x10\x00\x00", b"\x01\x01\x00\x10\x00\x21", b"\x01\x01\x00\x10\x00\xff",
    b"\x02\x01\x00\x10\x00\x00", b"\x02\x01\x00\x10\x00\x01",
    b"\x02\x01\x00\x10\x00\x00" + bytes(8), b"\x02\x01\x00\x10\x00\x21" + bytes(256),
    Write(1, 0x10, (5,)).encode()[:-1], Write(1, 0x10, (5,)).encode() + b"\0",
    Write(1, 0x10, (5, 6)).encode()[:-8], Write(1, 0x10, (5,)).encode() + bytes(8),
    Credit(1, 5).encode()[:-1], Credit(1, 5).encode() + b"\0",
]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad[:7].hex())
def test_a_wrong_message_has_no_effect(bad):
    """No access, no credit, no reply, one count; what was done before is still not done twice."""
    replies, registers, grants, strobes = run([
        Write(9, 0x11, (3,)), bad, Write(9, 0x11, (3,)), Read(2, 0x12, 1)])
    assert replies == [Reply(9, Status.OK), Reply(9, Status.OK),
                       Reply(2, Status.OK, (VALUES[0x12],))]
    assert registers.log == [("write", 0x11, 3), ("read", 0x12)]
    assert grants == []
    assert strobes == 1
