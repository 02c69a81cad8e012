"""The board without its pads where the MAC is a vendor's: AXI4-Streams in, a host on a UART."""

from fractions import Fraction

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out, connect, flipped

from rocetap.spec.registers import PORT_STATE

from ..axi.frame_crossing import FrameCrossing
from ..axi.free_time import FreeTime
from ..axi.pins import axi_stream_tap
from ..axi.tap import StreamTap
from ..probe import Probe
from .gate import FrameGate
from .lamps import LAMPS, Lamps
from .node import rx_domain
from .uart import UartReceive, UartTransmit, bit_clocks

__all__ = ["StreamNode"]


class StreamNode(wiring.Component):
    """Ports that receive from the AXI4-Stream of a MAC, FCS included, ``bus_bytes`` a beat.

    ``clock_hz`` of the core, which must not be slower than the MAC's (Fraction or int); ``baud`` of
    the UART. The rest goes to :class:`..probe.Probe`. A frame that the MAC marks bad, be it for its
    FCS, counts as MAC_ERROR.

    Clock domains: ``sync``, the core's; `rx_domain` of each port, the MAC's.

    Ports: ``taps``, in the ports' clocks; ``up``: whether each port's MAC has a link, from any
    clock; ``uart_rx``, ``uart_tx``; ``lamps`` as `LAMPS`. `port_state` says the link alone: its
    speed and duplex are what the MAC was built for, and read as 3 (none of those known).
    """

    def __init__(self, *, bus_bytes, ports=1, clock_hz, baud=3_000_000, connections=1024, word=256,
                 records=512):
        self.ports = ports
        self._bus_bytes = bus_bytes
        self._clock_hz = Fraction(clock_hz)
        self._bit_clocks = bit_clocks(float(clock_hz), baud)
        self._probe = Probe(bus_bytes=bus_bytes, ports=ports, connections=connections, word=word,
                            records=records)
        super().__init__({
            "taps": In(axi_stream_tap(bus_bytes)).array(ports),
            "up": In(ports),
            "uart_rx": In(1, init=1),
            "uart_tx": Out(1, init=1),
            "lamps": Out(len(LAMPS)),
        })

    def elaborate(self, platform):
        m = Module()
        n = self._bus_bytes
        m.submodules.probe = probe = self._probe
        m.submodules.time = time = FreeTime(1_000_000_000 / self._clock_hz)
        m.d.comb += probe.time.eq(time.time)

        up = Signal(self.ports)
        m.submodules.up_cdc = FFSynchronizer(self.up, up)
        activity, lost = Signal(self.ports), Signal(self.ports)
        state = {"link": PORT_STATE["link"], "found": PORT_STATE["found"],
                 "full_duplex": PORT_STATE["full_duplex"]}
        for port in range(self.ports):
            tap = StreamTap(n)
            m.submodules[f"tap{port}"] = DomainRenamer(rx_domain(port))(tap)
            m.submodules[f"crossing{port}"] = crossing = FrameCrossing(
                n, i_domain=rx_domain(port))
            m.submodules[f"gate{port}"] = gate = FrameGate(n, announces=True)
            connect(m, flipped(self.taps[port]), tap.axis)
            connect(m, tap.frames, crossing.i)
            connect(m, crossing.o, gate.i)
            connect(m, gate.o, probe.frames[port])
            end = gate.o.valid & gate.o.p.last
            octet = probe.port_state[8 * port:8 * port + 8]
            speed = PORT_STATE["speed"]
            m.d.comb += [
                gate.open.eq(up[port]),
                activity[port].eq(end & ~gate.o.p.lost),
                lost[port].eq(end & gate.o.p.lost),
                octet[state["link"].low].eq(up[port]),
                octet[state["found"].low].eq(1),
                octet[state["full_duplex"].low].eq(1),
                octet[speed.low:speed.low + speed.bits].eq(3),
            ]

        m.submodules.uart_in = uart_in = UartReceive(clocks=self._bit_clocks)
        m.submodules.uart_out = uart_out = UartTransmit(clocks=self._bit_clocks)
        connect(m, uart_in.octets, probe.link_rx)
        connect(m, probe.link_tx, uart_out.octets)
        m.d.comb += [uart_in.line.eq(self.uart_rx), self.uart_tx.eq(uart_out.line)]

        m.submodules.lamps = lamps = Lamps(tick_clocks=int(self._clock_hz) // 16)
        m.d.comb += [
            self.lamps.eq(lamps.o), lamps.host.eq(uart_in.octets.valid), lamps.lost.eq(lost.any()),
            lamps.full.eq(probe.snapshot_room < probe.snapshot_level),
            lamps.usable.eq(up), lamps.activity.eq(activity),
        ]
        return m
