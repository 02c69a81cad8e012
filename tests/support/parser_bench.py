"""Runs frames through the parser in Amaranth's simulator and holds it to its contract."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from amaranth.sim import Simulator
from rocetap_hdl.parser import MAX_OCTETS, Parser

from rocetap.spec.classes import FrameClass

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


def parse(arrivals: Sequence[Arrival], bus_bytes: int, *, gap: float = 0.0, seed: int = 0,
          check_icrc: bool = True, max_octets: int = MAX_OCTETS) -> list[Finding]:
    """The verdicts. Before each beat idle clocks come with probability `gap` each.

    Asserts: one verdict a frame, `latency` clocks after its last beat, with the time of its first;
    ``pfc`` valid with the verdict of a PFC frame and at no other time.
    """
    dut = Parser(bus_bytes)
    rng = random.Random(seed)
    due: list[tuple[int, int]] = []
    seen: list[tuple[int, Any, int, Any]] = []
    clock = 0

    async def drive(ctx: Any) -> None:
        nonlocal clock
        ctx.set(dut.cfg_check_icrc, check_icrc)
        ctx.set(dut.cfg_max_octets, max_octets)

        async def step(beat: dict[str, int] | None) -> None:
            nonlocal clock
            ctx.set(dut.frames.valid, beat is not None)
            if beat is not None:
                ctx.set(dut.frames.payload, beat)
            ctx.set(dut.time, clock)
            if ctx.get(dut.verdicts.valid) or ctx.get(dut.pfc.valid):
                seen.append((clock, ctx.get(dut.verdicts.payload), ctx.get(dut.verdicts.valid),
                             fields(ctx.get(dut.pfc.payload)) if ctx.get(dut.pfc.valid) else None))
            await ctx.tick()
            clock += 1

        for arrival in arrivals:
            for beat in beats(arrival, bus_bytes, rng):
                while rng.random() < gap:
                    await step(None)
                if beat["first"]:
                    start = clock
                if beat["last"]:
                    due.append((clock + Parser.latency, start))
                await step(beat)
        for _ in range(Parser.latency + 2):
            await step(None)

    sim = Simulator(dut)
    sim.add_clock(1e-8)
    sim.add_testbench(drive)
    sim.run()

    assert all(valid for _, _, valid, _ in seen)
    assert [(at, verdict["time"]) for at, verdict, _, _ in seen] == due
    findings = []
    for _, verdict, _, event in seen:
        found = Finding(FrameClass(verdict["frame_class"]))
        assert (event is not None) == (found.frame_class is FrameClass.PFC)
        if event is not None:
            found.pfc = (event["vector"], event["xoff"])
        if found.frame_class in KEYED:
            found.psn, found.opcode = verdict["psn"], verdict["opcode"]
            found.key = fields(verdict["key"])
            assert found.key.pop("vni") == found.key.pop("tunnelled") == 0
        findings.append(found)
    return findings
