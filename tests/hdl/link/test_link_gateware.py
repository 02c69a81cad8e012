"""HostLink whole: bytes of the host's codec in, its decoder on what comes out."""

import random

import pytest

from rocetap.link.cobs import encode
from rocetap.link.framing import FrameDecoder, encode_frame
from rocetap.link.messages import Credit, Read, RecordMessage, Reply, Write, decode_from_board
from rocetap.spec.records import RECORD_FIELDS
from rocetap.spec.wire import Status
from rocetap_hdl.link import HostLink
from support.link_bench import PRESSURES, RegisterModel, offer, run_streams

VALUES = {address: 0xFEDC_BA98_7654_0000 + address for address in range(0x10, 0x30)}
QUESTION = encode_frame(Read(77, 0x10, 2).encode())
ANSWER = Reply(77, Status.OK, (VALUES[0x10], VALUES[0x11]))


def run(octets, *, pressure=(1.0, 1.0), records=(), extra=(), quiet=500):
    """(messages from the board, crc_errors, format_errors, register log, raw octets)."""
    dut = HostLink()
    registers = RegisterModel(VALUES)
    counts = {}

    async def count(ctx):
        async for _, _, crc, form in ctx.tick().sample(dut.crc_errors, dut.format_errors):
            counts.update(crc=crc, form=form)

    async def feed(ctx):
        for record in records:
            await offer(ctx, dut.records, record)

    (out,) = run_streams(
        dut, [(dut.rx, octets)], [dut.tx], pressure=pressure, quiet=quiet,
        extra=[count, feed, registers.target(dut.bus), *(make(dut) for make in extra)])
    decoder = FrameDecoder()
    messages = [decode_from_board(message) for message in decoder.receive(bytes(out))]
    assert (decoder.crc_errors, decoder.format_errors, decoder.oversize_errors) == (0, 0, 0)
    assert decoder.partial_octets == 0
    return messages, counts["crc"], counts["form"], registers.log, bytes(out)


def some_records(count, seed):
    dice = random.Random(seed)
    return [{name: dice.choice([0, dice.getrandbits(bits)]) for name, bits in RECORD_FIELDS.items()}
            for _ in range(count)]


def packed(record):
    return b"".join(record[name].to_bytes(bits // 8, "little")
                    for name, bits in RECORD_FIELDS.items())


@pytest.mark.parametrize("pressure", PRESSURES)
def test_requests_and_records_together(pressure):
    records = some_records(5, seed=41)
    requests = [Credit(1, 5), Read(2, 0x10, 32), Write(3, 0x10, tuple(range(1, 33))),
                Read(4, 0x10, 32), Write(4, 0x10, (0,)), Read(5, 0x10, 1)]
    messages, crc, form, _, _ = run(
        b"".join(encode_frame(request.encode()) for request in requests),
        pressure=pressure, records=records)
    assert [message for message in messages if isinstance(message, RecordMessage)] == [
        RecordMessage(serial, packed(record)) for serial, record in enumerate(records)]
    assert [message for message in messages if isinstance(message, Reply)] == [
        Reply(1, Status.OK), Reply(2, Status.OK, tuple(VALUES[a] for a in range(0x10, 0x30))),
        Reply(3, Status.OK), Reply(4, Status.OK, tuple(range(1, 33))), Reply(4, Status.OK),
        Reply(5, Status.OK, (0,))]
    assert (crc, form) == (0, 0)


GARBAGE = {
    "nothing": (b"", 0, 0),
    "delimiters": (b"\0\0\0", 0, 0),
    "one octet cut": (QUESTION[:-2] + b"\0", 0, 1),
    "empty packet": (b"\1\0", 0, 1),
    "shorter than a CRC": (b"\2a\0", 0, 1),
    "only a CRC": (encode(bytes(4)) + b"\0", 0, 1),
    "one bit": (bytes([QUESTION[0], QUESTION[1] ^ 4]) + QUESTION[2:], 1, 0),
    "no delimiter between": (QUESTION[:-1] + QUESTION, 1, 0),
    "oversize": (encode(bytes(range(1, 200)) * 2) + b"\0", 0, 1),
    "far oversize": (b"\xff" * 1000 + b"\0", 0, 1),
    "unknown type": (encode_frame(b"\x55abc"), 0, 1),
    "a record": (encode_frame(b"\x82" + bytes(90)), 0, 1),
    "wrong length": (encode_frame(Read(1, 0x10, 1).encode() + b"x"), 0, 1),
    "count 0": (encode_frame(b"\x01\x01\0\x10\0\0"), 0, 1),
}


@pytest.mark.parametrize("name", GARBAGE)
def test_a_good_frame_right_after_garbage_is_answered(name):
    octets, crc, form = GARBAGE[name]
    messages, crc_errors, format_errors, log, _ = run(QUESTION + octets + QUESTION)
    assert messages == [ANSWER, ANSWER]
    assert (crc_errors, format_errors) == (crc, form)
    assert log == [("read", 0x10), ("read", 0x11)] * 2


def test_noise_between_questions():
    """Seeded noise, each piece ended by a delimiter: every question is answered, nothing else."""
    dice = random.Random(42)
    octets = bytearray()
    for _ in range(15):
        octets += dice.randbytes(dice.randrange(40)) + b"\0" + QUESTION
        cut = dice.randrange(1, len(QUESTION) - 1)
        octets += QUESTION[:cut] + b"\0" + QUESTION
    messages, crc, form, log, _ = run(bytes(octets))
    assert messages == [ANSWER] * 30
    assert log == [("read", 0x10), ("read", 0x11)] * 30
    assert crc + form >= 22


def test_a_write_cut_anywhere_has_no_effect():
    frame = encode_frame(Write(5, 0x12, (0x0101_0101_0101_0101,)).encode())
    octets = b"".join(frame[:cut] + b"\0" + QUESTION for cut in range(1, len(frame) - 1))
    messages, crc, form, log, _ = run(octets)
    assert messages == [ANSWER] * (len(frame) - 2)
    assert not [entry for entry in log if entry[0] == "write"]
    assert crc + form == len(frame) - 2


def test_a_record_costs_its_frame():
    """While records wait, each clock carries an octet, whatever the record's octets are."""
    full = {name: (1 << bits) - 1 for name, bits in RECORD_FIELDS.items()}
    empty = dict.fromkeys(RECORD_FIELDS, 0)
    records = [*([full] * 6), *([empty] * 6), *some_records(12, seed=43)]
    clocks = []

    def watch(dut):
        async def drive(ctx):
            clock = 0
            async for _, _, valid, ready in ctx.tick().sample(dut.tx.valid, dut.tx.ready):
                clock += 1
                if valid and ready:
                    clocks.append(clock)
        return drive

    *_, out = run(encode_frame(Credit(1, 100).encode()), records=records, extra=[watch])
    reply = len(encode_frame(Reply(1, Status.OK).encode()))
    octets = len(out) - reply
    assert octets > 24 * 96
    spent = clocks[-1] - clocks[reply] + 1
    # The first record's long group is waited for once, with nothing ahead of it.
    assert spent <= octets + 92


def test_replies_go_before_records_that_wait():
    records = some_records(20, seed=44)
    octets = encode_frame(Credit(1, 20).encode()) + QUESTION
    messages, *_ = run(octets, records=records)
    position = messages.index(ANSWER)
    assert position <= 4, "a reply waits for what is in the encoder, not for all records"
    assert len(messages) == 22
