"""Counter banks: many 64-bit counters, each of which may count in every clock."""

from amaranth.hdl import *
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from rocetap.spec.classes import FRAME_CLASSES

from .pfc import PRIORITIES, pfc_event

__all__ = ["CounterBank", "Counters"]


class CounterBank(wiring.Component):
    """``count`` counters of ``bits`` bits from zero, modulo 2^bits.

    ``increment``: bit i counts counter i; all of them in every clock if need be.

    ``value`` is the counter of ``index``: from `latency` clocks after ``index`` last changed, the
    exact count at one moment, not before that change and not longer than `latency` clocks ago. It
    is never torn, and reading changes nothing.

    Each counter is a few bits of flip-flops and a word of memory. Visits of `VISIT_CLOCKS` go on
    for ever: one moves the few bits of the next counter into its word, one adds those of ``index``
    to its word for ``value``, in turn. A word comes from memory through a register, the few bits
    are chosen in two steps, and a word's two halves are added in different clocks, so no carry
    chain is longer than half of it. After a reset the first round takes words as zero.
    """

    VISIT_CLOCKS = 6
    latency = 3 * VISIT_CLOCKS

    GROUP = 8
    """Counters whose few bits one is chosen from at once, a power of two."""

    def __init__(self, count, *, bits=64):
        if count < 2 or bits < 2:
            raise ValueError(f"count is {count} and bits is {bits}, both must be 2 or more")
        self._count = count
        self._bits = bits
        super().__init__({
            "increment": In(count),
            "index": In(range(count)),
            "value": Out(bits),
        })

    def elaborate(self, platform):
        m = Module()
        half = self._bits // 2
        m.submodules.words = words = memory.Memory(    # read and written in different phases
            shape=self._bits, depth=self._count, init=[], attrs={"no_rw_check": 1})
        fetch, store = words.read_port(), words.write_port()

        phase = Signal(self.VISIT_CLOCKS, init=1)
        m.d.sync += phase.eq(phase.rotate_left(1))
        choose, load, take, low, high, write = phase

        # The visit: to the next counter in turn, then to the one that is asked for.
        place = Signal(range(self._count))
        scan = Signal(range(self._count))
        first_round = Signal(init=1)
        asked = Signal(init=1)
        as_zero = Signal()
        with m.If(choose):
            m.d.sync += asked.eq(~asked)
            with m.If(asked):
                m.d.sync += [place.eq(scan), as_zero.eq(first_round)]
                with m.If(scan == self._count - 1):
                    m.d.sync += [scan.eq(0), first_round.eq(0)]
                with m.Else():
                    m.d.sync += scan.eq(scan + 1)
            with m.Else():
                m.d.sync += [
                    place.eq(self.index), as_zero.eq(first_round & (self.index >= scan))]

        # What has come since a counter's last visit.
        longest = 2 * self.VISIT_CLOCKS * self._count
        since = Array(Signal(range(longest + 1), name=f"since_{i}") for i in range(self._count))
        for i, few in enumerate(since):
            moved = load & ~asked & (place == i)
            m.d.sync += few.eq(Mux(moved, 0, few) + self.increment[i])

        few = Signal.like(since[0])
        word = Signal(self._bits)
        low_sum = Signal(max(half, len(few)) + 1)
        high_sum = Signal(self._bits - half)
        m.d.comb += [
            fetch.addr.eq(place), fetch.en.eq(load), store.addr.eq(place),
            store.en.eq(write & ~asked), store.data.eq(Cat(low_sum[:half], high_sum)),
        ]
        groups = [Array(since[at:at + self.GROUP]) for at in range(0, self._count, self.GROUP)]
        of_group = Array(Signal.like(few, name=f"of_group_{i}") for i in range(len(groups)))
        with m.If(load):
            m.d.sync += [chosen.eq(group[place % self.GROUP])
                         for chosen, group in zip(of_group, groups, strict=True)]
        with m.If(take):
            m.d.sync += [few.eq(of_group[place // self.GROUP]), word.eq(fetch.data)]
        before = Mux(as_zero, 0, word)
        with m.If(low):
            m.d.sync += low_sum.eq(before[:half] + few)
        with m.If(high):
            m.d.sync += high_sum.eq(before[half:] + low_sum[half:])
        with m.If(write & asked):
            m.d.sync += self.value.eq(store.data)
        return m


class Counters(wiring.Component):
    """The counters of all ports, as the register map's banks have them.

    For each of ``ports``: ``classes``, one item for every frame, its class; ``received`` and
    ``transmitted``, one item for every good PFC frame of a direction, which moves the total of each
    priority in its vector once, and its XOFF count where the pause time is above zero.

    ``value`` is the counter ``index`` of ``port`` in ``bank`` (0 frame_class, 1 pfc_received,
    2 pfc_transmitted), `latency` clocks after these three last changed; how exact it is says
    :class:`CounterBank`. A selection that does not exist gives any counter.
    """

    latency = 1 + CounterBank.latency + 1

    BASES = (0, len(FRAME_CLASSES), len(FRAME_CLASSES) + 2 * PRIORITIES)
    COUNT = BASES[-1] + 2 * PRIORITIES

    def __init__(self, ports, *, bits=64):
        self._ports = ports
        self._bits = bits
        super().__init__({
            "classes": In(stream.Signature(5, always_ready=True)).array(ports),
            "received": In(stream.Signature(pfc_event, always_ready=True)).array(ports),
            "transmitted": In(stream.Signature(pfc_event, always_ready=True)).array(ports),
            "bank": In(2),
            "port": In(3),
            "index": In(5),
            "value": Out(bits),
        })

    def elaborate(self, platform):
        m = Module()
        place = Signal(range(self.COUNT))
        port_held = Signal(3)
        m.d.sync += [place.eq(Array(self.BASES)[self.bank] + self.index), port_held.eq(self.port)]

        banks = []
        for port in range(self._ports):
            m.submodules[f"port{port}"] = bank = CounterBank(self.COUNT, bits=self._bits)
            banks.append(bank)
            m.d.comb += bank.index.eq(place)
            classes = self.classes[port]
            for i in range(len(FRAME_CLASSES)):
                m.d.sync += bank.increment[i].eq(classes.valid & (classes.payload == i))
            for base, event in zip(
                    self.BASES[1:], (self.received[port], self.transmitted[port]), strict=True):
                counted = Cat(event.p.vector, event.p.vector & event.p.xoff)
                m.d.sync += bank.increment[base:base + 2 * PRIORITIES].eq(
                    Mux(event.valid, counted, 0))
        m.d.sync += self.value.eq(Array(bank.value for bank in banks)[port_held])
        return m
