"""Runs frames through the parser in Amaranth's simulator and holds it to its contract."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from amaranth.hdl import Cat, Value
from amaranth.sim import Simulator

from rocetap.spec.classes import FrameClass
from rocetap_hdl.parser import MAX_OCTETS, Parser

from .classify import KEYED, Arrival, Finding
from .simulate import fields

__all__ = ["beats", "parse"]


def beats(arrival: Arrival, bus_bytes: int, junk: random.Random | None = None
          ) -> Iterator[dict[str, int]]:
    """The arrival's beats; octets behind the last one are `junk`."""
    octets = arrival.octets or b"\0"
    for at in range(0, len(octets), bus_bytes):
        part = octets[at:at + bus_bytes]
        last = at + bus_bytes >= len(octets)
        rest = junk.randbytes(bus_bytes - len(part)) if junk else bytes(bus_bytes - len(part))
        yield {
            "data": int.from_bytes(part + rest, "little"), "first": at == 0, "last": last,
            "end": len(part) - 1, "error": last and arrival.error,
            "sliced": last and arrival.sliced, "lost": arrival.lost,
        }


class _Bench:
    """One width's parser in one simulator, which takes longer to make than most runs."""

    def __init__(self, bus_bytes: int, has_fcs: bool, vxlan: bool):
        self.dut = dut = Parser(bus_bytes, has_fcs=has_fcs, vxlan=vxlan)
        self.steps: list[int | None] = []
        self.settings = (1, MAX_OCTETS)
        self.seen: list[tuple[Any, ...]] = []
        inputs = Cat(dut.frames.valid, dut.frames.payload, dut.time)
        width = 1 + len(Value.cast(dut.frames.payload))

        async def drive(ctx: Any) -> None:
            ctx.set(dut.cfg_check_icrc, self.settings[0])
            ctx.set(dut.cfg_max_octets, self.settings[1])
            for clock, beat in enumerate(self.steps):
                ctx.set(inputs, clock << width | (0 if beat is None else beat << 1 | 1))
                outputs = await ctx.tick().sample(
                    dut.verdicts.valid, dut.pfc.valid, dut.verdicts.payload, dut.pfc.payload)
                if outputs[2] or outputs[3]:
                    self.seen.append((clock, *outputs[2:]))

        self.sim = Simulator(dut)
        self.sim.add_clock(1e-8)
        self.sim.add_testbench(drive)

    def run(self, steps: list[int | None], settings: tuple[int, int]) -> list[tuple[Any, ...]]:
        if self.seen:
            self.sim.reset()
        self.steps, self.settings, self.seen = steps, settings, []
        self.sim.run()
        return self.seen


_bench = cache(_Bench)


def parse(arrivals: Sequence[Arrival], bus_bytes: int, *, gap: float = 0.0, seed: int = 0,
          check_icrc: bool = True, max_octets: int = MAX_OCTETS, has_fcs: bool = True,
          vxlan: bool = False) -> list[Finding]:
    """The verdicts. Before each beat idle clocks come with probability `gap` each.

    `vni` is in the key of a tunnelled frame only. Asserts: one verdict a frame, `latency` clocks
    after its last beat, with the time of its first; ``pfc`` valid with the verdict of a PFC frame
    and at no other time.
    """
    bench = _bench(bus_bytes, has_fcs, vxlan)
    layout = bench.dut.frames.payload.shape()
    rng = random.Random(seed)
    steps: list[int | None] = []
    due: list[tuple[int, int]] = []
    for arrival in arrivals:
        for beat in beats(arrival, bus_bytes, rng):
            while rng.random() < gap:
                steps.append(None)
            if beat["first"]:
                start = len(steps)
            if beat["last"]:
                due.append((len(steps) + bench.dut.latency, start))
            steps.append(layout.const(beat).as_bits())
    seen = bench.run(steps + [None] * (bench.dut.latency + 2), (check_icrc, max_octets))

    assert all(valid for _, valid, *_ in seen)
    assert [(at, verdict["time"]) for at, _, _, verdict, _ in seen] == due
    findings = []
    for _, _, has_event, verdict, event in seen:
        found = Finding(FrameClass(verdict["frame_class"]))
        assert has_event == (found.frame_class is FrameClass.PFC)
        if has_event:
            found.pfc = (event["vector"], event["xoff"])
        if found.frame_class in KEYED:
            found.psn, found.opcode = verdict["psn"], verdict["opcode"]
            found.key = fields(verdict["key"])
            vni = found.key.pop("vni")
            if found.key.pop("tunnelled"):
                found.key["vni"] = vni
            else:
                assert vni == 0
        findings.append(found)
    return findings
