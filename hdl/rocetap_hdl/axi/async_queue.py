"""An asynchronous FIFO that outlives resets."""

from amaranth.hdl import *
from amaranth.lib import memory, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

__all__ = ["AsyncQueue"]


class AsyncQueue(wiring.Component):
    """``depth`` words of ``width`` bits from clock domain ``i_domain`` to ``sync``.

    Gray-coded counters cross, each through two flip-flops. No reset of either domain touches
    anything in here: a reset that cleared one counter would move several bits of its Gray code at
    once, and the other side would see words that nobody wrote. What a reset means has to be said in
    words that are written.

    ``i_valid`` counts where ``i_ready`` is up; ``i_roomy``: at least half of the places are free,
    and were two clocks ago. ``o_valid`` follows a write by 2 to 3 clocks of
    ``sync``; ``o_data`` goes to the next word in every clock with ``o_valid & o_ready``.
    """

    def __init__(self, width, *, depth, i_domain):
        if depth < 8 or depth & (depth - 1):
            raise ValueError(f"depth is {depth}, must be a power of two from 8")
        self._width = width
        self._depth = depth
        self._i_domain = i_domain
        super().__init__({
            "i_data": In(width), "i_valid": In(1), "i_ready": Out(1),
            "i_roomy": Out(1),
            "o_data": Out(width), "o_valid": Out(1), "o_ready": In(1),
        })

    def elaborate(self, platform):
        m = Module()
        bits = self._depth.bit_length()      # one more than an address has
        near = self._i_domain

        def counter(name, domain, step):
            """(value, value from the next clock on, Gray code of the value)"""
            now = Signal(bits, name=name, reset_less=True)
            following = Signal(bits, name=f"{name}_next")
            gray = Signal(bits, name=f"{name}_gray", reset_less=True)
            m.d.comb += following.eq(now + step)
            m.d[domain] += [now.eq(following), gray.eq(following ^ (following >> 1))]
            return now, following, gray

        written, _, written_gray = counter("written", near, self.i_valid & self.i_ready)
        _, to_read, read_gray = counter("read", "sync", self.o_valid & self.o_ready)
        written_seen, read_seen = Signal(bits), Signal(bits)
        m.submodules.written_cdc = FFSynchronizer(written_gray, written_seen, o_domain="sync")
        m.submodules.read_cdc = FFSynchronizer(read_gray, read_seen, o_domain=near)

        # Full: a whole turn ahead, which is the two high bits of the Gray code inverted.
        m.d.comb += [
            self.i_ready.eq(written_gray != (read_seen ^ (0b11 << (bits - 2)))),
            self.o_valid.eq(written_seen != read_gray),
        ]
        read_then = Signal(bits)
        m.d[near] += [
            read_then.eq(Cat(read_seen[i:].xor() for i in range(bits))),
            self.i_roomy.eq((written - read_then)[:bits] < self._depth // 2),
        ]
        m.submodules.words = words = memory.Memory(shape=self._width, depth=self._depth, init=[])
        store = words.write_port(domain=near)
        fetch = words.read_port()
        m.d.comb += [
            store.addr.eq(written[:-1]), store.data.eq(self.i_data),
            store.en.eq(self.i_valid & self.i_ready),
            fetch.addr.eq(to_read[:-1]), self.o_data.eq(fetch.data),
        ]
        return m
