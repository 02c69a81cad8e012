"""Content and Judge: which class wins, for every pair."""

import itertools

import pytest

from rocetap.spec.classes import FrameClass as C
from rocetap_hdl.pfc import ControlKind
from rocetap_hdl.verdict import Content, Judge
from support.simulate import fields, simulate

CONTENT = [  # in the order in which they win
    ({"short": 1, "sliced": 1}, C.SLICED_SHORT),
    ({"short": 1}, C.MALFORMED_IP),
    ({"too_deep": 1}, C.TAGS_TOO_DEEP),
    ({"control": {"kind": ControlKind.PFC}}, C.PFC),
    ({"control": {"kind": ControlKind.BAD}}, C.BAD_PFC),
    ({"control": {"kind": ControlKind.TAGGED}}, C.TAGGED_PFC),
    ({"control": {"kind": ControlKind.PAUSE}}, C.PAUSE),
    ({"control": {"kind": ControlKind.OTHER}}, C.MAC_CONTROL),
    ({"rocev1": 1}, C.ROCEV1),
    ({"is_ip": 1, "ip_class": C.CNP}, C.CNP),
    ({"ip_class": C.CNP}, C.NOT_ROCE),
]

STATE = [
    ("lost", C.LOST), ("error", C.MAC_ERROR), ("oversize", C.OVERSIZE), ("runt", C.RUNT),
    ("bad_fcs", C.BAD_FCS)]


def test_content_in_order():
    dut = Content()
    pairs = list(itertools.combinations_with_replacement(CONTENT, 2))

    async def drive(ctx):
        ctx.set(dut.i.valid, 1)
        for (first, _), (second, _) in pairs:
            ctx.set(dut.i.payload, {**second, **first})
            await ctx.tick()
        ctx.set(dut.i.valid, 0)
        await ctx.tick().repeat(2)
    found = simulate(dut, drive, dut.o)[0]
    assert [C(one["frame_class"]) for one in found] == [first for (_, first), _ in pairs]


def judge(*cases):
    """(class, PFC event or None) of each (content class, state names)."""
    dut = Judge()
    events = []

    async def drive(ctx):
        ctx.set(dut.i.valid, 1)
        for content, names in cases:
            ctx.set(dut.i.payload, {"frame_class": content, "psn": 0xABCDEF})
            ctx.set(dut.event, {"vector": 0x81, "xoff": 0x80})
            ctx.set(dut.state, dict.fromkeys(names, 1))
            await ctx.tick()
            events.append(ctx.get(dut.pfc.valid) and fields(ctx.get(dut.pfc.payload)))
        ctx.set(dut.i.valid, 0)
        await ctx.tick().repeat(2)
    found = simulate(dut, drive, dut.o)[0]
    assert all(one["psn"] == 0xABCDEF for one in found)
    return [(C(one["frame_class"]), event or None)
            for one, event in zip(found, events, strict=True)]


@pytest.mark.parametrize("content", [C.PFC, C.ELIGIBLE_REQUEST, C.SLICED_SHORT])
def test_state_before_content_and_in_order(content):
    """Each state alone and with all that come after it."""
    names = [name for name, _ in STATE] + ["bad_icrc"]
    cases = [(content, names[i:end]) for i in range(len(STATE)) for end in (i + 1, len(names))]
    assert judge(*cases) == [(frame_class, None) for _, frame_class in STATE for _ in range(2)]


def test_wrong_icrc_counts_for_requests_only():
    requests = {C.ELIGIBLE_REQUEST, C.UNSUPPORTED_REQUEST}
    found = judge(*((content, ["bad_icrc"]) for content in C))
    assert [frame_class for frame_class, _ in found] == [
        C.BAD_ICRC if content in requests else content for content in C]


def test_good_pfc_frame_is_strobed():
    assert judge((C.PFC, []), (C.BAD_PFC, []), (C.NOT_ROCE, [])) == [
        (C.PFC, {"vector": 0x81, "xoff": 0x80}), (C.BAD_PFC, None), (C.NOT_ROCE, None)]
