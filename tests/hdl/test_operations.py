"""What goes down the pipe, and in which order when several want to."""

import pytest

from rocetap.spec.classes import FrameClass
from rocetap.spec.registers import OperationKind
from rocetap_hdl.operations import OperationArbiter, Sweep
from support.simulate import fields, simulate


def test_a_packet_goes_first_then_exhaustion_then_host_then_sweep():
    dut = OperationArbiter(connections=16)

    async def drive(ctx):
        ctx.set(dut.host.payload, {"kind": int(OperationKind.SNAPSHOT), "context": 3})
        ctx.set(dut.host.valid, 1)
        ctx.set(dut.sweep.payload, {"kind": int(OperationKind.SNAPSHOT), "context": 4})
        ctx.set(dut.sweep.valid, 1)
        ctx.set(dut.exhausted, 1)
        ctx.set(dut.exhausted_context, 5)
        ctx.set(dut.lookups.payload, {"frame_class": 0, "hit": 1, "context": 6, "psn": 7,
                                      "time": 8})
        ctx.set(dut.lookups.valid, 1)
        await ctx.tick()
        ctx.set(dut.exhausted, 0)
        assert ctx.get(dut.host.ready) == 0
        await ctx.tick()
        ctx.set(dut.lookups.valid, 0)
        for source in (None, dut.host, dut.sweep):
            assert ctx.get(dut.host.ready) == (source is dut.host)
            assert ctx.get(dut.sweep.ready) == (source is dut.sweep)
            await ctx.tick()
            if source is not None:
                ctx.set(source.valid, 0)
        await ctx.tick().repeat(2)

    (operations,) = simulate(dut, drive, dut.operations)
    assert [(item.kind, item.context) for item in operations] == [
        (OperationKind.REQUEST, 6), (OperationKind.REQUEST, 6), (OperationKind.CLOSE, 5),
        (OperationKind.SNAPSHOT, 3), (OperationKind.SNAPSHOT, 4)]
    assert (operations[0].psn, operations[0].time, operations[2].reasons) == (7, 8, 0)


@pytest.mark.parametrize(("frame_class", "kind", "raises"), [
    (FrameClass.ELIGIBLE_REQUEST, OperationKind.REQUEST, 0),
    (FrameClass.UNSUPPORTED_REQUEST, OperationKind.VIOLATION, 0),
    (FrameClass.MALFORMED_ROCE, OperationKind.VIOLATION, 0),
    (FrameClass.BAD_ICRC, OperationKind.VIOLATION, 0),
    (FrameClass.SLICED_SHORT, OperationKind.NOTHING, 1),
    (FrameClass.LOST, OperationKind.NOTHING, 1),
])
def test_what_a_frame_class_does(frame_class, kind, raises):
    """Applicability and Provisioning: violations close, capture faults affect all contexts."""
    dut = OperationArbiter(connections=16)

    async def drive(ctx):
        ctx.set(dut.lookups.payload, {"frame_class": int(frame_class), "hit": 1, "context": 1})
        ctx.set(dut.lookups.valid, 1)
        await ctx.tick()
        ctx.set(dut.lookups.valid, 0)
        await ctx.tick().repeat(3)

    (operations,) = simulate(dut, drive, dut.operations)
    assert [(item.kind, item.raise_generation) for item in operations] == [(kind, raises)]


def test_sweep_is_one_operation_each_then_a_marker():
    dut = Sweep(connections=16)

    async def drive(ctx):
        ctx.set(dut.start, 1)
        ctx.set(dut.kind, OperationKind.CLOSE)
        ctx.set(dut.first, 3)
        ctx.set(dut.last, 6)
        ctx.set(dut.reasons, 8)
        ctx.set(dut.cookie, 0xBEEF)
        ctx.set(dut.room, 1)
        await ctx.tick()
        ctx.set(dut.start, 0)
        assert ctx.get(dut.busy) == 1
        for clock in range(60):
            ctx.set(dut.operations.ready, clock % 3 == 0)
            ctx.set(dut.room, clock % 5 != 0)
            await ctx.tick()
        assert ctx.get(dut.busy) == 0

    (operations,) = simulate(dut, drive, dut.operations)
    got = [fields(item) for item in operations]
    assert [(item["kind"], item["context"], item["reasons"]) for item in got[:-1]] == [
        (OperationKind.CLOSE, context, 8) for context in range(3, 7)]
    assert (got[-1]["kind"], got[-1]["tag"]) == (OperationKind.MARKER, 0xBEEF)


def test_sweep_waits_while_records_have_no_room():
    dut = Sweep(connections=4)

    async def drive(ctx):
        ctx.set(dut.start, 1)
        ctx.set(dut.kind, OperationKind.SNAPSHOT)
        ctx.set(dut.last, 3)
        ctx.set(dut.operations.ready, 1)
        await ctx.tick()
        ctx.set(dut.start, 0)
        for _ in range(20):
            assert ctx.get(dut.operations.valid) == 0
            await ctx.tick()
        ctx.set(dut.room, 1)
        await ctx.tick().repeat(20)

    (operations,) = simulate(dut, drive, dut.operations)
    assert len(operations) == 5
