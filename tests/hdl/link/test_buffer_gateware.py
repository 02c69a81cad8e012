"""StreamBuffer: everything passes, in order, and no path leads through it."""

import pytest

from rocetap_hdl.link.buffer import StreamBuffer
from support.formal import combinational_path
from support.link_bench import PRESSURES, run_streams
from support.simulate import simulate


@pytest.mark.parametrize("pressure", PRESSURES)
@pytest.mark.parametrize("seed", [1, 2])
def test_everything_passes_in_order(pressure, seed):
    dut = StreamBuffer(8)
    payloads = [(7 * number + seed) % 256 for number in range(300)]
    (taken,) = run_streams(dut, [(dut.i, payloads)], [dut.o], pressure=pressure, seed=seed)
    assert taken == payloads


def test_an_item_a_clock_one_clock_later():
    dut = StreamBuffer(8)

    async def drive(ctx):
        ctx.set(dut.o.ready, 1)
        for number in range(50):
            ctx.set(dut.i.payload, number)
            ctx.set(dut.i.valid, 1)
            assert ctx.get(dut.i.ready)
            await ctx.tick()
            assert ctx.get(dut.o.valid)
            assert ctx.get(dut.o.payload) == number
        assert dut.latency == 1

    simulate(dut, drive)


def test_no_way_through_in_one_clock():
    dut = StreamBuffer(8)
    inputs, outputs = [dut.i.valid, dut.i.payload, dut.o.ready], [
        dut.o.valid, dut.o.payload, dut.i.ready]
    assert not any(combinational_path(dut, start, outputs) for start in inputs)
