"""Every ready/valid stream of the gateware keeps the rules of StreamRules.

By induction, so for any length of time: what comes in keeps the rules, what takes the output is
ready whenever it likes.
"""

from amaranth.hdl import Assert, Assume, Cat, Elaboratable, Module, Signal

from rocetap_hdl import fifo, operations, registers
from rocetap_hdl.link import cobs, frame, link, records, requests
from support.formal import free, mutant, prove, refute
from support.stream_rules import holds_payload, keeps_valid, watch

DEPTH = 4


def sweep(module):
    return module.Sweep(connections=4)


def register_file(module):
    return module.RegisterFile(connections=4, word=4, ports=1, bus_bytes=8, counter_latency=2)


STREAMS = {
    # name: module, its component, streams in, stream out
    "decoder": (cobs, lambda module: module.CobsDecoder(), ["i"], "o"),
    "encoder": (cobs, lambda module: module.CobsEncoder(), ["i"], "o"),
    "sealer": (frame, lambda module: module.FrameSealer(), ["i"], "o"),
    "checker": (frame, lambda module: module.FrameChecker(), ["i"], "o"),
    "arbiter": (link, lambda module: module.PacketArbiter(), ["replies", "records"], "o"),
    "requests": (requests, lambda module: module.RequestProcessor(), ["i"], "o"),
    "records": (records, lambda module: module.RecordSender(), ["records"], "o"),
    "fifo": (fifo, lambda module: module.SnapshotFifo(depth=64), [], "output"),
    "sweep": (operations, sweep, [], "operations"),
    "registers": (registers, register_file, [], "operation"),
}


class Watched(Elaboratable):
    """Components side by side, with free inputs and the rules on their streams."""

    def __init__(self, names, **modules):
        self._duts = {name: STREAMS[name][1](modules.get(name, STREAMS[name][0]))
                      for name in names}

    def elaborate(self, platform):
        m = Module()
        for name, dut in self._duts.items():
            _, _, inputs, output = STREAMS[name]
            m.submodules[name] = dut
            free(m, dut)
            for source in inputs:
                watch(m, f"{name}_{source}", getattr(dut, source), assume=True)
            watch(m, name, getattr(dut, output))
            if name == "registers":
                held_steady(m, dut.bus)
            if name == "sweep":
                m.d.comb += Assert(dut.busy | ~dut.operations.valid, "a sweep that offers is busy")
        return m


def held_steady(m, bus):
    """The initiator's side of RegisterBus."""
    asked = Signal(Cat(bus.address, bus.write, bus.write_data).shape())
    waits, done = Signal(), Signal()
    now = Cat(bus.address, bus.write, bus.write_data)
    m.d.sync += [asked.eq(now), waits.eq(bus.request & ~bus.done), done.eq(bus.done)]
    m.d.comb += [Assume(~waits | (bus.request & (asked == now))), Assume(~done | ~bus.request)]


def test_rules_hold():
    """All streams, by induction over 4 clocks."""
    prove(Watched(STREAMS), depth=DEPTH, induction=True)


KEEPS, HOLDS = keeps_valid, holds_payload
BROKEN = {
    "decoder_takes_always": (
        "decoder", ("self.i.ready.eq(~self.o.valid | self.o.ready)", "self.i.ready.eq(1)"), HOLDS),
    "decoder_drops": (
        "decoder", ("with m.If(self.o.ready):\n            m.d.sync += self.o.valid.eq(0)",
                    "with m.If(1):\n            m.d.sync += self.o.valid.eq(0)"), KEEPS),
    "encoder_loses_codes": ("encoder", ("codes.r_en.eq(self.o.ready)", "codes.r_en.eq(1)"), KEEPS),
    "encoder_loses_data": ("encoder", ("data.r_en.eq(self.o.ready)", "data.r_en.eq(1)"), KEEPS),
    "sealer_goes_on": (
        "sealer", ("with m.If(self.o.ready):\n                    m.d.sync += index",
                   "with m.If(1):\n                    m.d.sync += index"), HOLDS),
    "checker_reads_on": (
        "checker", ("with m.If(self.o.ready):\n                    m.d.comb += read.addr",
                    "with m.If(1):\n                    m.d.comb += read.addr"), HOLDS),
    "arbiter_leaves": (
        "arbiter", ("with m.If(source.valid & source.ready &", "with m.If(source.valid &"), KEEPS),
    "requests_go_on": (
        "requests", ("with m.If(self.o.ready):\n                    m.d.sync += out_at",
                     "with m.If(1):\n                    m.d.sync += out_at"), HOLDS),
    "records_go_on": (
        "records", ("with m.If(self.o.ready):\n                    m.d.sync += header_at",
                    "with m.If(1):\n                    m.d.sync += header_at"), HOLDS),
    "fifo_reads_on": ("fifo", ("fifo.r_en.eq(self.output.ready)", "fifo.r_en.eq(1)"), KEEPS),
    "sweep_goes_on": ("sweep", ("with m.Elif(out.ready):", "with m.Else():"), KEEPS),
    "registers_forget": ("registers", ("with m.If(~out.ready):", "with m.If(0):"), KEEPS),
}


def test_broken_streams_are_found():
    """To 14 clocks from power-on: the longest way is that of a request to its reply."""
    refute({label: (Watched([name], **{name: mutant(STREAMS[name][0], change)}), message(name))
            for label, (name, change, message) in BROKEN.items()}, depth=14)
