"""SentPfc: good PFC frames and no others, at every width."""

import random

import pytest

from rocetap.spec.classes import FrameClass
from rocetap_hdl.parser import MAX_OCTETS
from rocetap_hdl.sent import SentPfc
from support.classify import Arrival, classify
from support.frames import DESTINATION_MAC, mac_control, pad, pfc, roce, with_fcs
from support.parser_bench import beats
from support.simulate import fields, simulate

WIDTHS = (1, 8, 64)
XOFF = pfc({3: 0xFFFF})

CASES = {  # and whether they count
    "XOFF": (Arrival(with_fcs(XOFF)), True),
    "XON": (Arrival(with_fcs(pfc({3: 0}))), True),
    "all priorities": (Arrival(with_fcs(pfc({n: n for n in range(8)}))), True),
    "empty vector": (Arrival(with_fcs(pfc({}, others=9))), True),
    "source address zero": (Arrival(with_fcs(pfc({3: 1}, source=bytes(6)))), True),
    "65 octets": (Arrival(with_fcs(XOFF + b"\0")), True),
    "wrong address": (Arrival(with_fcs(pfc({3: 1}, destination=DESTINATION_MAC))), False),
    "wrong opcode": (Arrival(with_fcs(mac_control(0x0102, bytes.fromhex("0008ffffffff")))), False),
    "PAUSE": (Arrival(with_fcs(mac_control(0x0001, bytes.fromhex("ffff")))), False),
    "tagged": (Arrival(with_fcs(pfc({3: 1}, tags=((0x8100, 0x6000),)))), False),
    "63 octets": (Arrival(with_fcs(XOFF[:59])), False),
    "46 octets": (Arrival(with_fcs(XOFF[:42])), False),
    "wrong FCS": (Arrival(with_fcs(XOFF, wrong=True)), False),
    "given up by the MAC": (Arrival(with_fcs(XOFF), error=True), False),
    "given up early": (Arrival(XOFF[:30], error=True), False),
    "cut by the tap": (Arrival(XOFF[:40] + bytes(4), sliced=True), False),
    "cut by the tap late": (Arrival(XOFF + bytes(60), sliced=True), False),
    "lost": (Arrival(b"\0", lost=True), False),
    "RoCEv2": (Arrival(with_fcs(pad(roce(psn=3)))), False),
}
BETWEEN = Arrival(with_fcs(pfc({1: 2, 6: 0})))


def strobes(arrivals, width, *, gap=0.0, has_fcs=True):
    """(vector, xoff) of each strobe, or None, one an arrival; asserts the latency."""
    dut = SentPfc(width, has_fcs=has_fcs)
    rng = random.Random(f"sent {width} {gap}")
    due, seen = [], {}

    async def drive(ctx):
        clock = 0

        async def step():
            nonlocal clock
            await ctx.tick()
            clock += 1
            if ctx.get(dut.pfc.valid):
                seen[clock] = tuple(fields(ctx.get(dut.pfc.payload)).values())
        for arrival in arrivals:
            for beat in beats(arrival, width, rng):
                while rng.random() < gap:
                    ctx.set(dut.frames.valid, 0)
                    await step()
                ctx.set(dut.frames.valid, 1)
                ctx.set(dut.frames.payload, beat)
                if beat["last"]:
                    due.append(clock + SentPfc.latency)
                await step()
        ctx.set(dut.frames.valid, 0)
        for _ in range(SentPfc.latency + 2):
            await step()
    simulate(dut, drive)
    assert seen.keys() <= set(due)
    return [seen.get(clock) for clock in due]


@pytest.mark.parametrize("gap", [0.0, 0.4])
@pytest.mark.parametrize("width", WIDTHS)
def test_cases(width, gap):
    """Each between two good frames."""
    arrivals = [BETWEEN]
    for arrival, _ in CASES.values():
        arrivals += [arrival, BETWEEN]
    found = strobes(arrivals, width, gap=gap)
    assert found[::2] == [(0x42, 0x02)] * (len(CASES) + 1)
    assert dict(zip(CASES, found[1::2], strict=True)) == {
        name: classify(arrival).pfc for name, (arrival, _) in CASES.items()}
    assert [one is not None for one in found[1::2]] == [counts for _, counts in CASES.values()]


def test_longest_frame():
    sizes = [MAX_OCTETS, MAX_OCTETS + 1]
    found = strobes([Arrival(with_fcs(XOFF.ljust(size - 4, b"\0"))) for size in sizes], 64)
    assert found == [(8, 8), None]


@pytest.mark.parametrize("width", WIDTHS)
def test_frames_without_fcs(width):
    short, bad = XOFF[:59], Arrival(XOFF, error=True)
    assert strobes([Arrival(XOFF), Arrival(short), bad, Arrival(XOFF)], width, has_fcs=False) == [
        (8, 8), None, None, (8, 8)]


def test_random_frames_are_judged_as_received_ones():
    rng = random.Random("sent")
    arrivals = []
    for _ in range(300):
        octets = pfc({n: rng.choice((0, 1, 0xFFFF)) for n in range(8) if rng.random() < 0.5})
        if rng.random() < 0.5:
            place = rng.choice((*range(6), 12, 13, 14, 15, rng.randrange(60)))
            octets = octets[:place] + bytes([octets[place] ^ 1 << rng.randrange(8)]) + (
                octets[place + 1:])
        arrivals.append(Arrival(with_fcs(octets, wrong=rng.random() < 0.1)))
    expected = [classify(arrival) for arrival in arrivals]
    assert {FrameClass.PFC, FrameClass.BAD_PFC, FrameClass.MAC_CONTROL, FrameClass.BAD_FCS} <= {
        one.frame_class for one in expected}
    assert strobes(arrivals, 64) == [one.pfc for one in expected]
