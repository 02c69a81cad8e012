"""Streams driven and watched with back-pressure, and a simulated board to put a driver on."""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from amaranth.sim import Simulator

from rocetap_hdl.link import HostLink

PRESSURES = [(1.0, 1.0), (1.0, 0.4), (0.4, 1.0), (0.5, 0.5)]
"""How likely a source offers and a sink takes in a clock."""


def as_value(payload: Any) -> Any:
    """A payload to compare: fields of a structure, or the number itself."""
    if hasattr(payload, "shape"):
        return {name: payload[name] for name in payload.shape().members}
    return payload


async def offer(ctx: Any, stream: Any, payload: Any) -> None:
    """Offers one payload until it is taken. May be left waiting at the simulation's end."""
    ctx.set(stream.payload, payload)
    ctx.set(stream.valid, 1)
    ready = False
    while not ready:
        _, _, ready = await ctx.tick().sample(stream.ready)
    ctx.set(stream.valid, 0)


def source(stream: Any, payloads: Iterable[Any], seed: int, likely: float) -> Callable[..., Any]:
    """Offers the payloads; once offered a payload stays until it is taken."""
    async def drive(ctx: Any) -> None:
        dice = random.Random(seed)
        for payload in payloads:
            while dice.random() >= likely:
                await ctx.tick()
            await offer(ctx, stream, payload)
    return drive


def sink(stream: Any, taken: list[Any], seed: int, likely: float) -> Callable[..., Any]:
    """Takes payloads, and checks that what is offered and not taken stays as it is."""
    async def drive(ctx: Any) -> None:
        dice = random.Random(seed)
        waiting = None
        while True:
            ready = dice.random() < likely
            ctx.set(stream.ready, ready)
            _, _, valid, payload = await ctx.tick().sample(stream.valid, stream.payload)
            value = as_value(payload)
            if waiting is not None:
                assert valid, "valid fell before the payload was taken"
                assert value == waiting, "payload changed before it was taken"
            waiting = value if valid and not ready else None
            if valid and ready:
                taken.append(value)
    return drive


def run_streams(dut: Any, inputs: list[tuple[Any, Iterable[Any]]], outputs: list[Any], *,
                pressure: tuple[float, float] = (1.0, 1.0), seed: int = 1, quiet: int = 400,
                extra: Iterable[Callable[..., Any]] = ()) -> list[list[Any]]:
    """Feeds the inputs and gives what each output gave, until all were quiet for some clocks."""
    sim = Simulator(dut)
    sim.add_clock(1e-6)
    taken: list[list[Any]] = [[] for _ in outputs]
    for number, (stream, payloads) in enumerate(inputs):
        sim.add_testbench(source(stream, payloads, seed + number, pressure[0]))
    for number, stream in enumerate(outputs):
        sim.add_testbench(sink(stream, taken[number], seed + 100 + number, pressure[1]),
                          background=True)
    for process in extra:
        sim.add_testbench(process, background=True)

    async def until_quiet(ctx: Any) -> None:
        idle, seen = 0, -1
        while idle < quiet:
            await ctx.tick()
            now = sum(map(len, taken))
            busy = any(ctx.get(stream.valid) for stream, _ in inputs)
            idle = 0 if busy or now != seen else idle + 1
            seen = now

    sim.add_testbench(until_quiet)
    sim.run()
    return taken


class RegisterModel:
    """A register bus's target: a dict of registers, a log, and a latency in clocks."""

    def __init__(self, values: dict[int, int], *, read_only: Iterable[int] = (),
                 refuses: Iterable[int] = (), latency: int = 1) -> None:
        self.values = dict(values)
        self.read_only = set(read_only)
        self.refuses = set(refuses)
        self.latency = latency
        self.log: list[tuple[Any, ...]] = []

    def access(self, write: int, address: int, data: int) -> tuple[int, int]:
        """(status, read data)."""
        self.log.append(("write", address, data) if write else ("read", address))
        if address not in self.values or (write and address in self.read_only):
            return 1, 0
        if write:
            if address in self.refuses:
                return 2, 0
            self.values[address] = data
            return 0, 0
        return 0, self.values[address]

    def target(self, bus: Any) -> Callable[..., Any]:
        """Answers on the bus, and checks that the initiator holds its request."""
        async def drive(ctx: Any) -> None:
            sample = (bus.request, bus.write, bus.address, bus.write_data)
            while True:
                _, _, request, *first = await ctx.tick().sample(*sample)
                if not request:
                    continue
                for _ in range(self.latency):
                    _, _, request, *again = await ctx.tick().sample(*sample)
                    assert request, "request fell before done"
                    assert again == first, "request changed before done"
                status, data = self.access(*first)
                ctx.set(bus.status, status)
                ctx.set(bus.read_data, data)
                ctx.set(bus.done, 1)
                await ctx.tick()
                ctx.set(bus.done, 0)
                _, _, request = await ctx.tick().sample(bus.request)
                assert not request, "request did not fall after done"
        return drive


class SimulatedLink:
    """HostLink in the simulator, a RegisterModel on its bus, as a driver's transport.

    Simulated time is the time: `clock` goes on only while `read` waits, a microsecond a clock.
    `garble(octets)`, when set, may change or drop what the board sends.
    """

    PERIOD = 1e-6

    def __init__(self, registers: RegisterModel) -> None:
        self.registers = registers
        self.records: deque[dict[str, int]] = deque()
        self.garble: Callable[[bytes], bytes] = lambda octets: octets
        self.clocks = 0
        self._to_board: deque[int] = deque()
        self._from_board = bytearray()
        self.link = link = HostLink()
        self._simulator = simulator = Simulator(link)
        simulator.add_clock(self.PERIOD)
        simulator.add_testbench(self._count, background=True)
        simulator.add_testbench(self._feed, background=True)
        simulator.add_testbench(self._collect, background=True)
        simulator.add_testbench(self._offer, background=True)
        simulator.add_testbench(registers.target(link.bus), background=True)

    async def _count(self, ctx: Any) -> None:
        async for _ in ctx.tick():
            self.clocks += 1
            self.crc_errors = ctx.get(self.link.crc_errors)
            self.format_errors = ctx.get(self.link.format_errors)

    async def _feed(self, ctx: Any) -> None:
        while True:
            if not self._to_board:
                await ctx.tick()
                continue
            await offer(ctx, self.link.rx, self._to_board.popleft())

    async def _collect(self, ctx: Any) -> None:
        tx = self.link.tx
        ctx.set(tx.ready, 1)
        async for _, _, valid, octet in ctx.tick().sample(tx.valid, tx.payload):
            if valid:
                self._from_board.append(octet)

    async def _offer(self, ctx: Any) -> None:
        records = self.link.records
        while True:
            if not self.records:
                await ctx.tick()
                continue
            await offer(ctx, records, self.records[0])
            self.records.popleft()

    def run(self, clocks: int) -> None:
        """Lets that many clocks pass."""
        end = self.clocks + clocks
        while self.clocks < end:
            self._simulator.advance()

    def clock(self) -> float:
        """Simulated seconds."""
        return self.clocks * self.PERIOD

    def write(self, data: bytes, /) -> None:
        self._to_board.extend(data)

    def read(self, max_octets: int, timeout_s: float, /) -> bytes:
        end = self.clocks + math.ceil(timeout_s / self.PERIOD)
        while not self._from_board and self.clocks < end:
            self.run(1)
        data = bytes(self._from_board[:max_octets])
        del self._from_board[:max_octets]
        return self.garble(data)

    def close(self) -> None:
        pass
