"""FrameSealer and FrameChecker: the CRC at the end of each frame."""

import random
import zlib

import pytest

from rocetap_hdl.link.frame import FrameChecker, FrameSealer
from support.link_bench import PRESSURES, run_streams

LONGEST = 262


def sealed(message):
    return message + zlib.crc32(message).to_bytes(4, "little")


def raw(frames):
    """[(octets, abort)] as the decoder gives them."""
    return [{"data": octet, "first": index == 0, "last": index == len(octets) - 1,
             "abort": abort and index == len(octets) - 1}
            for octets, abort in frames for index, octet in enumerate(octets)]


def check(frames, pressure=(1.0, 1.0)):
    """The messages delivered, and the strobes seen: [crc, format]."""
    dut = FrameChecker()
    strobes = [0, 0]

    async def count(ctx):
        async for _, _, crc, form in ctx.tick().sample(dut.stat_crc, dut.stat_format):
            strobes[0] += crc
            strobes[1] += form

    (beats,) = run_streams(dut, [(dut.i, raw(frames))], [dut.o], pressure=pressure, extra=[count])
    messages, current = [], bytearray()
    for beat in beats:
        assert beat["first"] == (not current)
        current.append(beat["data"])
        if beat["last"]:
            assert beat["length"] == len(current)
            messages.append(bytes(current))
            current.clear()
    assert not current
    return messages, strobes


@pytest.mark.parametrize("pressure", PRESSURES)
def test_sealer_appends_the_crc(pressure):
    dice = random.Random(21)
    messages = [dice.randbytes(size) for size in (1, 2, 3, 5, 91, 262)]
    dut = FrameSealer()
    payloads = [{"data": octet, "last": index == len(message) - 1}
                for message in messages for index, octet in enumerate(message)]
    (beats,) = run_streams(dut, [(dut.i, payloads)], [dut.o], pressure=pressure)
    assert bytes(beat["data"] for beat in beats) == b"".join(map(sealed, messages))
    ends = [index for index, beat in enumerate(beats) if beat["last"]]
    sizes = [len(message) + 4 for message in messages]
    assert ends == [sum(sizes[:count + 1]) - 1 for count in range(len(sizes))]


@pytest.mark.parametrize("pressure", PRESSURES)
def test_checker_delivers_good_frames_only(pressure):
    dice = random.Random(22)
    good = [dice.randbytes(size) for size in (1, 2, 6, 95, LONGEST - 1, LONGEST)]
    frames = []
    for message in good:
        wrong = bytearray(sealed(message))
        wrong[dice.randrange(len(wrong))] ^= 1 << dice.randrange(8)
        frames += [(sealed(message), False), (bytes(wrong), False)]
    assert check(frames, pressure) == (good, [len(good), 0])


@pytest.mark.parametrize(("octets", "abort"), [
    (sealed(bytes(10)), True),
    (sealed(b""), False),
    (b"abc", False),
    (b"a", False),
    (sealed(bytes(LONGEST + 1)), False),
    (sealed(bytes(LONGEST + 2)), False),
    (sealed(bytes(1000)), False),
])
def test_checker_counts_a_wrong_form(octets, abort):
    good = b"good"
    frames = [(sealed(good), False), (octets, abort), (sealed(good), False)]
    assert check(frames) == ([good, good], [0, 1])


def test_each_octet_missing_is_noticed():
    """A frame cut after any octet but before its end is dropped, and counted once."""
    frame = sealed(b"a message of some octets")
    frames = [(frame[:size], False) for size in range(1, len(frame))] + [(frame, False)]
    messages, strobes = check(frames)
    assert messages == [b"a message of some octets"]
    assert strobes == [len(frame) - 5, 4]
