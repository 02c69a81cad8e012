"""Every ready/valid stream of the gateware keeps the rules of StreamRules.

By induction, so for any length of time: what comes in keeps the rules, what takes the output is
ready whenever it likes.
"""

from amaranth.hdl import Array, Assert, Assume, Cat, Elaboratable, Module, Mux, Signal

from rocetap.spec.registers import REGISTERS, OperationKind
from rocetap.spec.wire import MessageType
from rocetap_hdl import fifo, operations, queue, registers
from rocetap_hdl.link import buffer, cobs, frame, link, records, requests
from support.formal import combinational_path, free, mutant, prove, refute
from support.stream_rules import holds_payload, keeps_valid, never_waits, watch

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
    "buffer": (buffer, lambda module: module.StreamBuffer(4), ["i"], "o"),
    "fifo": (fifo, lambda module: module.SnapshotFifo(depth=64), [], "output"),
    "queue": (queue, lambda module: module.BlockQueue(4, 8), ["i"], "o"),
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
    "encoder_loses_data": (
        "encoder", ("data.o.ready.eq(self.o.ready)", "data.o.ready.eq(1)"), KEEPS),
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
    "buffer_goes_on": ("buffer", ("with m.If(self.o.ready | ~self.o.valid):", "with m.If(1):"),
                       KEEPS),
    "queue_reads_on": ("queue", ("(~out.valid | follows)", "1"), HOLDS),
    "queue_forgets": ("queue", ("(out.valid & ~out.ready)", "0"), KEEPS),
    "sweep_goes_on": ("sweep", ("with m.Elif(out.ready):", "with m.Else():"), KEEPS),
    "registers_forget": ("registers", ("with m.If(~out.ready):", "with m.If(0):"), KEEPS),
}


def test_broken_streams_are_found():
    """To 14 clocks from power-on: the longest way is that of a request to its reply."""
    refute({label: (Watched([name], **{name: mutant(STREAMS[name][0], change)}), rule(name))
            for label, (name, change, rule) in BROKEN.items()}, depth=14)


def test_nothing_depends_on_ready_within_a_clock():
    """Neither valid nor the payload of any stream: looked up in the netlist."""
    for name, (module, make, _, output) in STREAMS.items():
        dut = make(module)
        out = getattr(dut, output)
        assert not combinational_path(dut, out.ready, [out.valid, out.payload]), name


def test_a_path_from_ready_is_found():
    changed = mutant(frame, ("self.o.valid.eq(self.i.valid),",
                             "self.o.valid.eq(self.i.valid & self.o.ready),"))
    dut = changed.FrameSealer()
    assert combinational_path(dut, dut.o.ready, [dut.o.valid, dut.o.payload])


CREDIT = (MessageType.CREDIT, 0, 0, 1, 0)
OFFERS = {
    # name: what keeps the component busy, and the clocks until its stream is valid, ready or not
    "decoder": (lambda m, dut: [dut.i.valid.eq(1), dut.i.payload.eq(2)], 6),
    "encoder": (lambda m, dut: [dut.i.valid.eq(1), dut.i.payload.last.eq(1)], 6),
    "sealer": (lambda m, dut: [dut.i.valid.eq(1)], 1),
    "arbiter": (lambda m, dut: [dut.replies.valid.eq(1)], 2),
    "requests": (lambda m, dut: message(m, dut.i, CREDIT), 10),
    "records": (lambda m, dut: [dut.records.valid.eq(1), dut.credit_grant.eq(1),
                                dut.credit_amount.eq(1)], 4),
    "buffer": (lambda m, dut: [dut.i.valid.eq(1)], 2),
    "fifo": (lambda m, dut: [dut.input.valid.eq(1)], 5),
    "queue": (lambda m, dut: [dut.i.valid.eq(1)], 5),
    "sweep": (lambda m, dut: [dut.start.eq(1), dut.room.eq(1)], 4),
    "registers": (lambda m, dut: [
        dut.bus.request.eq(1), dut.bus.write.eq(1),
        dut.bus.address.eq(REGISTERS["operation"].address),
        dut.bus.write_data.eq(REGISTERS["operation"].pack(kind=OperationKind.SNAPSHOT))], 8),
}
"""FrameChecker is not here: CheckedFrames says of every clock whether its valid must be high."""


def message(m, stream, octets):
    """The same message again and again."""
    at = Signal(range(len(octets)))
    with m.If(stream.ready):
        m.d.sync += at.eq(Mux(at == len(octets) - 1, 0, at + 1))
    return [stream.valid.eq(1), stream.payload.data.eq(Array(octets)[at]),
            stream.payload.first.eq(at == 0), stream.payload.last.eq(at == len(octets) - 1),
            stream.payload.length.eq(len(octets))]


class NeverReady(Elaboratable):
    """A component that has something to send, and nobody who takes it."""

    def __init__(self, name, module=None):
        own, make, _, output = STREAMS[name]
        self._name = name
        self._dut = make(module or own)
        self._output = output

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self._dut
        offers, clocks = OFFERS[self._name]
        m.d.comb += offers(m, dut)
        watch(m, self._name, getattr(dut, self._output), due=1, patience=clocks)
        return m


def test_valid_never_waits_for_ready():
    """To 14 clocks from power-on, every stream with its own number of clocks at the most."""
    together = Module()
    for name in OFFERS:
        together.submodules[name] = NeverReady(name)
    prove(together, depth=14)


def test_a_stream_that_waits_for_ready_is_found():
    """To 14 clocks. The sweep's valid waits in a register, so no path in the netlist shows it."""
    broken = {
        "sealer": ("self.o.valid.eq(self.i.valid),",
                   "self.o.valid.eq(self.i.valid & self.o.ready),"),
        "sweep": ("out.valid.eq(self.room)", "out.valid.eq(self.room & out.ready)"),
        "records": ("with m.If(self.records.valid & (credit != 0)):",
                    "with m.If(self.records.valid & (credit != 0) & self.o.ready):"),
    }
    refute({name: (NeverReady(name, mutant(STREAMS[name][0], change)),
                   never_waits(name, OFFERS[name][1]))
            for name, change in broken.items()}, depth=14)
