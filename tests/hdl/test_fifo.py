"""SnapshotFifo: whole records in order, and what finds no room is counted."""

import pytest

from rocetap_hdl.fifo import SnapshotFifo
from support.simulate import simulate


@pytest.mark.parametrize("offered", [10, 64, 65, 100])
def test_full_fifo_drops_and_counts(offered):
    dut = SnapshotFifo(depth=64)

    async def drive(ctx):
        for number in range(offered):
            ctx.set(dut.input.payload, {"kind": 1, "late": number})
            ctx.set(dut.input.valid, 1)
            await ctx.tick()
        ctx.set(dut.input.valid, 0)
        await ctx.tick().repeat(2)
        kept = min(offered, 64)
        assert ctx.get(dut.level) == kept
        assert ctx.get(dut.dropped) == offered - kept
        assert ctx.get(dut.room) == (kept < 32)
        ctx.set(dut.output.ready, 1)
        await ctx.tick().repeat(2 * kept + 2)
        assert ctx.get(dut.level) == 0
        assert ctx.get(dut.room) == 1

    (records,) = simulate(dut, drive, dut.output)
    assert [record.late for record in records] == list(range(min(offered, 64)))


def test_depth_that_cannot_hold_a_pipe():
    message = ("depth is 32, must be 64 or more: a whole pipe of operations has to fit in half "
               "of it")
    with pytest.raises(ValueError, match=f"^{message}$"):
        SnapshotFifo(depth=32)
