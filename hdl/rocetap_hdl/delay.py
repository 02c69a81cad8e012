"""A delay of a fixed number of clocks for wide values."""

from amaranth.hdl import *
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Delay", "later"]


class Delay(wiring.Component):
    """``o`` is what ``i`` was ``clocks`` clocks ago.

    From three clocks on the values go round a small memory (LUT RAM: read without a clock), at a
    fraction of a chain of registers. A reset does not clear it: what says that a value counts
    travels elsewhere.
    """

    def __init__(self, shape, clocks):
        if clocks < 1:
            raise ValueError(f"delay is {clocks} clocks, must be 1 or more")
        self._shape = shape
        self._clocks = clocks
        super().__init__({"i": In(shape), "o": Out(shape)})

    def elaborate(self, platform):
        m = Module()
        if self._clocks < 3:
            value = self.i
            for clock in range(self._clocks - 1):
                held = Signal(self._shape, name=f"held_{clock}")
                m.d.sync += held.eq(value)
                value = held
            m.d.sync += self.o.eq(value)
            return m

        # What is read was written `back` clocks ago; the output register is the last clock. The
        # place just goes round, so that there is no state from which it could be wrong.
        back = self._clocks - 1
        depth = 1 << (back - 1).bit_length()
        m.submodules.ring = ring = memory.Memory(shape=self._shape, depth=depth, init=[])
        write, read = ring.write_port(), ring.read_port(domain="comb")
        place = Signal(range(depth))
        m.d.sync += place.eq(place + 1)
        m.d.comb += [
            write.addr.eq(place), write.en.eq(1), write.data.eq(self.i),
            read.addr.eq(place - back)]
        m.d.sync += self.o.eq(read.data)
        return m


def later(m, name, clocks, **fields):
    """A view with the values of ``fields`` as they were ``clocks`` clocks ago, through one
    :class:`Delay`, which becomes the submodule ``name`` of ``m``."""
    layout = data.StructLayout({key: value.shape() for key, value in fields.items()})
    m.submodules[name] = delay = Delay(layout, clocks)
    m.d.comb += [delay.i[key].eq(value) for key, value in fields.items()]
    return delay.o
