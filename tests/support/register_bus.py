"""A responder on the register bus that remembers, for tests of what sits before it."""

from __future__ import annotations

import random
from typing import Any

from rocetap.spec.wire import Status

__all__ = ["RegisterMemory"]


class RegisterMemory:
    """Registers 0 to 0x3FF; 0x300 to 0x37F are REFUSED, those from 0x380 on do not exist.

    `run` answers after a random number of clocks and checks the initiator: all that goes with a
    request is steady, and a request falls after it is done. `accesses`: (write, address, data).
    """

    def __init__(self, bus: Any, rng: random.Random, slowest: int = 5) -> None:
        self.bus = bus
        self.words: dict[int, int] = {}
        self.accesses: list[tuple[bool, int, int]] = []
        self._rng = rng
        self._slowest = slowest

    async def run(self, ctx: Any) -> None:
        bus = self.bus
        sampled = (bus.request, bus.write, bus.address, bus.write_data)
        asked = None
        wait = 0
        async for _, _, request, *access in ctx.tick().sample(*sampled):
            ctx.set(bus.done, 0)
            if not request:
                asked = None
                continue
            if asked is None:
                asked, wait = access, self._rng.randrange(self._slowest + 1)
            assert asked == access, "an access changed while it was requested"
            if wait == 0:
                self._answer(ctx, *access)
            assert wait > -2, "a request went on after it was done"
            wait -= 1

    def _answer(self, ctx: Any, write: int, address: int, data: int) -> None:
        self.accesses.append((bool(write), address, data))
        status = (Status.NO_REGISTER if address >= 0x380 else
                  Status.REFUSED if address >= 0x300 else Status.OK)
        if status == Status.OK and write:
            self.words[address] = data
        ctx.set(self.bus.done, 1)
        ctx.set(self.bus.status, status)
        ctx.set(self.bus.read_data, self.words.get(address, address << 32 | 0xABCD))
