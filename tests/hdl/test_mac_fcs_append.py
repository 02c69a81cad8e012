"""FcsAppend against zlib."""

import random

import pytest

from rocetap_hdl.mac.fcs_append import FcsAppend
from support.frames import with_fcs
from support.simulate import simulate


@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_every_frame_gets_its_fcs(stall):
    rng = random.Random(f"append {stall}")
    frames = [rng.randbytes(rng.choice((1, 2, 60, 61, 90))) for _ in range(12)]
    wrong = [number % 3 == 1 for number in range(12)]
    errors = [number % 4 == 2 for number in range(12)]
    dut, out = FcsAppend(), []

    async def drive(ctx):
        queue = [(number, {"data": octet, "first": at == 0, "last": at == len(frame) - 1,
                           "error": errors[number] and at == len(frame) - 1})
                 for number, frame in enumerate(frames) for at, octet in enumerate(frame)]
        offering = False
        while queue or len(out) < sum(map(len, frames)) + 4 * len(frames):
            offering = bool(queue) and (offering or rng.random() >= stall)
            ctx.set(dut.i.valid, offering)
            if queue:
                ctx.set(dut.i.payload, queue[0][1])
                ctx.set(dut.wrong, wrong[queue[0][0]])
            ctx.set(dut.o.ready, rng.random() >= stall)
            taken = ctx.get(dut.i.valid) and ctx.get(dut.i.ready)
            if ctx.get(dut.o.valid) and ctx.get(dut.o.ready):
                out.append({name: ctx.get(dut.o.payload[name])
                            for name in ("data", "first", "last", "error")})
            await ctx.tick()
            if taken:
                queue.pop(0)
                offering = False
    simulate(dut, drive)
    for number, frame in enumerate(frames):
        size = len(frame) + 4
        seen, out[:] = out[:size], out[size:]
        assert bytes(one["data"] for one in seen) == with_fcs(frame, wrong=wrong[number])
        assert [one["first"] for one in seen] == [1, *[0] * (size - 1)]
        assert [one["last"] for one in seen] == [*[0] * (size - 1), 1]
        assert [one["error"] for one in seen] == [*[0] * (size - 1), int(errors[number])]
    assert out == []
