"""Runs a component in Amaranth's simulator: one driver, and what came out of its streams."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from amaranth.sim import Simulator

__all__ = ["fields", "simulate"]


def fields(constant: Any) -> dict[str, int]:
    """A structured constant as a dict of its fields."""
    return {name: constant[name] for name in constant.shape().members}


def simulate(dut: Any, drive: Callable[[Any], Awaitable[None]], *streams: Any) -> list[list[Any]]:
    """Runs ``drive(ctx)`` to its end; returns, for each stream, every payload it gave.

    A stream gives a payload in each clock in which it is valid and ready.
    """
    sim = Simulator(dut)
    sim.add_clock(1e-8)
    outputs: list[list[Any]] = [[] for _ in streams]

    def watcher(stream: Any, output: list[Any]) -> Callable[[Any], Awaitable[None]]:
        async def watch(ctx: Any) -> None:
            sampled = ctx.tick().sample(stream.valid, stream.ready, stream.payload)
            async for _, _, valid, ready, payload in sampled:
                if valid and ready:
                    output.append(payload)
        return watch

    sim.add_testbench(drive)
    for stream, output in zip(streams, outputs, strict=True):
        sim.add_testbench(watcher(stream, output), background=True)
    sim.run()
    return outputs
