"""VerdictMerge: every port's order is kept, and what finds no place is a capture discontinuity."""

import random

import pytest
from amaranth.sim import Simulator

from rocetap.spec.classes import FrameClass
from rocetap_hdl.merge import VerdictMerge
from support.simulate import simulate


def test_one_port_is_a_wire():
    dut = VerdictMerge(ports=1)

    sim = Simulator(dut)

    async def drive(ctx):
        ctx.set(dut.inputs[0].payload, {"frame_class": int(FrameClass.NOT_ROCE), "psn": 5})
        ctx.set(dut.inputs[0].valid, 1)
        assert ctx.get(dut.output.valid) == 1
        assert ctx.get(dut.output.payload.psn) == 5

    sim.add_testbench(drive)
    sim.run()


@pytest.mark.parametrize("ports", [2, 3])
def test_ports_at_their_fastest(ports):
    """A verdict that matters every seven clocks of each port: none is missed, order is kept."""
    rng = random.Random(ports)
    dut = VerdictMerge(ports=ports)
    sent = [[] for _ in range(ports)]

    async def drive(ctx):
        for clock in range(700):
            for port in range(ports):
                matters = clock % 7 == port % 7
                psn = rng.randrange(1 << 20) << 2 | port
                ctx.set(dut.inputs[port].payload, {
                    "frame_class": int(rng.choice([FrameClass.ELIGIBLE_REQUEST,
                                                   FrameClass.SLICED_SHORT]) if matters
                                       else FrameClass.RESPONSE), "psn": psn})
                ctx.set(dut.inputs[port].valid, 1)
                if matters:
                    sent[port].append(psn)
            await ctx.tick()
        for port in range(ports):
            ctx.set(dut.inputs[port].valid, 0)
        await ctx.tick().repeat(40)

    (verdicts,) = simulate(dut, drive, dut.output)
    for port in range(ports):
        assert [v.psn for v in verdicts if v.psn & 3 == port] == sent[port]


def test_a_full_queue_is_a_capture_discontinuity():
    """Frames of one port every clock: what is missing lies between its neighbours as LOST."""
    dut = VerdictMerge(ports=2, depth=4)

    async def drive(ctx):
        for number in range(100):
            ctx.set(dut.inputs[0].payload, {"frame_class": 0, "psn": number})
            ctx.set(dut.inputs[0].valid, 1)
            await ctx.tick()
        ctx.set(dut.inputs[0].valid, 0)
        await ctx.tick().repeat(40)

    (verdicts,) = simulate(dut, drive, dut.output)
    before, gaps = None, 0
    for verdict in verdicts:
        if verdict.frame_class == FrameClass.LOST:
            before = None
            gaps += 1
            continue
        assert before is None or verdict.psn == before + 1
        before = verdict.psn
    assert gaps > 5
    assert verdicts[-1].frame_class == FrameClass.LOST or before == 99
