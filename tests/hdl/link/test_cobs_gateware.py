"""CobsDecoder and CobsEncoder against the host's codec, with back-pressure on both sides."""

import random

import pytest

from rocetap.link import cobs
from rocetap_hdl.link.cobs import CobsDecoder, CobsEncoder
from support.link_bench import PRESSURES, run_streams


def packets(seed):
    dice = random.Random(seed)
    chosen = [b"\0", b"\1", b"\0\0", b"\1\0", b"\0\1", bytes(60), bytes([7]) * 253,
              bytes([7]) * 254, bytes([7]) * 255, bytes([7]) * 253 + b"\0",
              bytes([7]) * 254 + b"\0",
              bytes([7]) * 254 + b"\0\0", bytes([7]) * 508, bytes(100), bytes([7]) * 254 + b"\1"]
    for _ in range(5):
        zeros = dice.choice([0, 0.1, 0.9])
        chosen.append(bytes(0 if dice.random() < zeros else dice.randrange(1, 256)
                            for _ in range(dice.randrange(1, 270))))
    dice.shuffle(chosen)
    return chosen


def split(octets):
    """Decoder output as [(packet, aborted)], the marks checked."""
    frames, current = [], None
    for octet in octets:
        assert octet["first"] == (current is None)
        current = bytearray() if current is None else current
        current.append(octet["data"])
        if octet["last"]:
            frames.append((bytes(current), bool(octet["abort"])))
            current = None
        else:
            assert not octet["abort"]
    assert current is None
    return frames


@pytest.mark.parametrize("pressure", PRESSURES)
def test_encoder_gives_the_hosts_octets(pressure):
    dut = CobsEncoder()
    sent = packets(seed=11)
    payloads = [{"data": octet, "last": index == len(packet) - 1}
                for packet in sent for index, octet in enumerate(packet)]
    (octets,) = run_streams(dut, [(dut.i, payloads)], [dut.o], pressure=pressure)
    assert bytes(octets) == b"".join(cobs.encode(packet) + b"\0" for packet in sent)


@pytest.mark.parametrize("pressure", PRESSURES)
def test_decoder_gives_the_packets(pressure):
    dut = CobsDecoder()
    sent = packets(seed=12)
    wire = b"".join(cobs.encode(packet) + b"\0" for packet in sent)
    (octets,) = run_streams(dut, [(dut.i, wire)], [dut.o], pressure=pressure)
    assert split(octets) == [(packet, False) for packet in sent]


def test_decoder_takes_an_empty_group_behind_a_full_one():
    dut = CobsDecoder()
    wire = b"\xff" + bytes([9]) * 254 + b"\1\0"
    (octets,) = run_streams(dut, [(dut.i, wire)], [dut.o])
    assert split(octets) == [(bytes([9]) * 254, False)]


def test_decoder_aborts_what_is_cut_or_empty_and_nothing_else():
    dut = CobsDecoder()
    good = cobs.encode(b"good") + b"\0"
    wire = b"\0\0" + good + b"\5abc\0" + good + b"\1\0" + good + b"\3\0" + b"\2x\3\0" + good
    (octets,) = run_streams(dut, [(dut.i, wire)], [dut.o])
    frames = split(octets)
    assert [aborted for _, aborted in frames] == [
        False, True, False, True, False, True, True, False]
    assert [packet for packet, aborted in frames if not aborted] == [b"good"] * 4


def test_decoder_against_the_hosts_decoder_on_noise():
    dice = random.Random(13)
    wire = bytes(dice.choice([0, 1, 2, 3, 5, 255, dice.randrange(256)]) for _ in range(4000))
    wire += b"\0"
    dut = CobsDecoder()
    (octets,) = run_streams(dut, [(dut.i, wire)], [dut.o])
    expected = []
    for piece in wire.split(b"\0"):
        if piece:
            try:
                packet = cobs.decode(piece)
            except cobs.CobsError:
                packet = b""
            expected.append(packet)
    frames = split(octets)
    assert [b"" if aborted else packet for packet, aborted in frames] == expected
    assert sum(not aborted for _, aborted in frames) > 40


def test_decoder_and_encoder_keep_up():
    """One octet a clock through the decoder; the encoder fills every clock of its output."""
    packet = bytes(range(1, 96))
    wire = (cobs.encode(packet) + b"\0") * 10
    for dut, payloads in (
            (CobsDecoder(), wire),
            (CobsEncoder(), [{"data": octet, "last": index == 94}
                             for _ in range(10) for index, octet in enumerate(packet)])):
        clocks = []

        async def watch(ctx, dut=dut, clocks=clocks):
            clock = 0
            async for _, _, valid, ready in ctx.tick().sample(dut.o.valid, dut.o.ready):
                clock += 1
                if valid and ready:
                    clocks.append(clock)

        run_streams(dut, [(dut.i, payloads)], [dut.o], extra=[watch])
        expected = len(wire) if isinstance(dut, CobsEncoder) else 950
        assert len(clocks) == expected
        # Without the wait for the first group, no clock of the output is empty.
        limit = len(wire) + 3
        assert clocks[-1] - clocks[0] + 1 <= limit
