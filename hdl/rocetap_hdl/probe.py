"""The probe: frames of every port in, link octets out, or a register bus and records."""

from amaranth.hdl import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .counters import Counters
from .fifo import SnapshotFifo
from .layouts import RegisterBus, frame_stream, record_stream
from .link.link import HostLink
from .mac.gate import FrameGate
from .merge import VerdictMerge
from .operations import OperationArbiter, Sweep
from .parser import Parser
from .player import FramePlayer
from .registers import RegisterFile
from .sent import SentPfc
from .table import ConnectionTable
from .wide import WideWindowEngine
from .window import WindowEngine

__all__ = ["Probe"]


class Probe(wiring.Component):
    """The whole core, without MACs and without a UART.

    Parameters: ``bus_bytes`` N, octets a beat (1, 8, 64); ``ports``; ``connections``, contexts of
    the table; ``word`` and ``words``, whose product is the largest window W (with one word any
    traffic passes at line rate, with more see :mod:`.wide`); ``records``, depth of the snapshot
    FIFO; ``has_fcs``, whether frames end with their FCS; ``link``, whether the host comes over the
    link; ``vxlan``, whether frames in VXLAN are parsed (:class:`.parser.Parser`); ``transmit``,
    whether transmitted PFC frames are counted; ``selftest``, whether the host may play frames into
    a port in place of its own (:class:`.player.FramePlayer`); what comes on that port meanwhile is
    kept back, and a capture discontinuity if there was anything.

    Ports: ``frames``: one stream a port, always taken. ``time``: ns, the arrival time of a frame's
    first beat and the board's clock. ``link_rx`` and ``link_tx``: octets from and to the host; in
    their place without link ``bus``, the registers, and ``records``, the snapshot FIFO's head.
    ``sent``, with ``transmit``: for each port the frames that its MAC has emitted, of which good
    PFC frames are counted and nothing else is (:class:`.sent.SentPfc`).
    ``snapshot_level`` and ``snapshot_room``: records waiting, and places left. ``port_state``: the
    register of that name, from the MACs.
    """

    def __init__(self, *, bus_bytes=8, ports=1, connections=1024, word=256, words=1, records=512,
                 has_fcs=True, link=True, vxlan=False, transmit=False, selftest=None):
        self.bus_bytes = bus_bytes
        self.ports = ports
        self.connections = connections
        self.word = word
        self.words = words
        self.depth = records
        self.has_fcs = has_fcs
        self.link = link
        self.vxlan = vxlan
        self.transmit = transmit
        self.selftest = has_fcs and link if selftest is None else selftest
        if self.selftest and not has_fcs:
            raise ValueError("selftest is True and has_fcs False: the frames it plays have an FCS")
        host = {
            "link_rx": In(stream.Signature(8)),
            "link_tx": Out(stream.Signature(8)),
        } if link else {
            "bus": In(RegisterBus()),
            "records": Out(record_stream()),
        }
        super().__init__({
            "frames": In(frame_stream(bus_bytes)).array(ports),
            "time": In(64),
            "port_state": In(64),
            **({"sent": In(frame_stream(bus_bytes)).array(ports)} if transmit else {}),
            **host,
            "snapshot_level": Out(16),
            "snapshot_room": Out(16),
        })

    def elaborate(self, platform):
        m = Module()
        n, c = self.bus_bytes, self.connections
        m.submodules.merge = merge = VerdictMerge(ports=self.ports)
        m.submodules.table = table = ConnectionTable(connections=c)
        m.submodules.arbiter = arbiter = OperationArbiter(connections=c)
        m.submodules.sweep = sweep = Sweep(connections=c)
        m.submodules.engine = engine = (
            WindowEngine(connections=c, word=self.word) if self.words == 1 else
            WideWindowEngine(connections=c, word=self.word, words=self.words))
        m.submodules.fifo = fifo = SnapshotFifo(depth=self.depth)
        m.submodules.counters = counters = Counters(self.ports)
        m.submodules.registers = registers = RegisterFile(
            connections=c, word=self.word * self.words, ports=self.ports, bus_bytes=n,
            counter_latency=Counters.latency, vxlan=self.vxlan, transmitted=self.transmit,
            selftest=self.selftest)
        inputs, time = self._with_selftest(m, registers) if self.selftest else (
            [flipped(frames) for frames in self.frames], self.time)

        # Frames to verdicts to operations to records to the link.
        for port in range(self.ports):
            m.submodules[f"parser{port}"] = parser = Parser(
                n, has_fcs=self.has_fcs, vxlan=self.vxlan)
            connect(m, inputs[port], parser.frames)
            m.d.comb += [
                parser.time.eq(time),
                parser.cfg_check_icrc.eq(registers.cfg_check_icrc),
                merge.inputs[port].valid.eq(parser.verdicts.valid),
                merge.inputs[port].payload.eq(parser.verdicts.payload),
            ]
            m.d.comb += [
                counters.classes[port].valid.eq(parser.verdicts.valid),
                counters.classes[port].payload.eq(parser.verdicts.payload.frame_class),
                counters.received[port].valid.eq(parser.pfc.valid),
                counters.received[port].payload.eq(parser.pfc.payload),
            ]
            if self.transmit:
                m.submodules[f"sent{port}"] = sent = SentPfc(n, has_fcs=self.has_fcs)
                connect(m, flipped(self.sent[port]), sent.frames)
                connect(m, sent.pfc, counters.transmitted[port])
        connect(m, merge.output, table.verdicts)
        connect(m, table.lookups, arbiter.lookups)
        connect(m, arbiter.operations, engine.operations)
        connect(m, engine.records, fifo.input)

        # The host's side.
        if self.link:
            m.submodules.link = link = HostLink()
            connect(m, fifo.output, link.records)
            connect(m, flipped(self.link_rx), link.rx)
            connect(m, link.tx, flipped(self.link_tx))
            connect(m, link.bus, registers.bus)
            m.d.comb += [
                registers.crc_errors.eq(link.crc_errors),
                registers.format_errors.eq(link.format_errors),
            ]
        else:
            connect(m, fifo.output, flipped(self.records))
            connect(m, flipped(self.bus), registers.bus)
        connect(m, registers.operation, arbiter.host)
        connect(m, sweep.operations, arbiter.sweep)
        m.d.comb += [
            arbiter.busy.eq(engine.busy),
            arbiter.exhausted.eq(engine.exhausted),
            arbiter.exhausted_context.eq(engine.exhausted_context),
            sweep.room.eq(fifo.room),
            sweep.start.eq(registers.sweep_start),
            registers.sweep_busy.eq(sweep.busy),
            *(getattr(sweep, name).eq(getattr(registers, f"sweep_{name}"))
              for name in ("kind", "first", "last", "reasons", "cookie")),
            *(getattr(table, name).eq(getattr(registers, name))
              for name in ("commit", "commit_way", "commit_slot", "commit_valid",
                           "commit_context", "commit_key")),
            *(getattr(counters, name).eq(getattr(registers, f"counter_{name}"))
              for name in ("bank", "port", "index")),
            registers.counter_value.eq(counters.value),
            registers.time.eq(self.time),
            registers.generation.eq(engine.generation),
            registers.records_dropped.eq(fifo.dropped),
            registers.snapshot_level.eq(fifo.level),
            registers.missed.eq(table.missed),
            registers.port_state.eq(self.port_state),
            self.snapshot_level.eq(fifo.level),
            self.snapshot_room.eq(self.depth - fifo.level),
        ]
        return m

    def _with_selftest(self, m, registers):
        """The ports' frames, or what is played in their place, and the time that goes with them."""
        m.submodules.player = player = FramePlayer(self.bus_bytes)
        m.d.comb += [
            *(getattr(player, name).eq(getattr(registers, f"selftest_{name}"))
              for name in ("write", "index", "word", "start", "octets", "times", "wrong_fcs",
                           "mac_error")),
            registers.selftest_busy.eq(player.busy),
        ]
        inputs = []
        for port in range(self.ports):
            m.submodules[f"gate{port}"] = gate = FrameGate(self.bus_bytes, announces=False)
            chosen = frame_stream(self.bus_bytes).create(path=(f"chosen{port}",))
            plays, shown = Signal(name=f"plays{port}"), Signal(name=f"shown{port}")
            connect(m, flipped(self.frames[port]), gate.i)
            m.d.sync += [plays.eq(player.busy & (registers.selftest_port == port)), shown.eq(plays)]
            m.d.comb += [
                gate.open.eq(~plays),
                chosen.valid.eq(Mux(shown, player.frames.valid, gate.o.valid)),
                chosen.payload.eq(Mux(shown, player.frames.payload, gate.o.payload)),
            ]
            inputs.append(chosen)
        time = Signal(64)
        assert FrameGate.LATENCY == 1
        m.d.sync += time.eq(self.time)
        return inputs, time
