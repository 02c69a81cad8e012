"""The core for other designs: taps, probe, registers over AXI4-Lite."""

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, connect, flipped

from ..probe import Probe
from .bus_crossing import BusCrossing
from .frame_crossing import FrameCrossing
from .free_time import FreeTime
from .lite import LiteResponder
from .pins import axi_lite, axi_stream_tap
from .record_window import RecordWindow
from .tap import StreamTap

__all__ = ["AXIL_DOMAIN", "AxiCore", "tap_domain"]

AXIL_DOMAIN = "axil"
"""Clock domain of the AXI4-Lite interface."""


def tap_domain(name):
    """Clock domain of the tap of that name, where taps have domains of their own."""
    return name


class AxiCore(wiring.Component):
    """A probe with AXI at its edges and no link.

    Parameters: ``bus_bytes``, ``ports``, ``connections``, ``word``, ``words``, ``records``,
    ``vxlan``, ``transmit`` as :class:`..probe.Probe` has them; ``has_fcs``: whether the taps'
    frames end with their FCS; ``tap_clocks``: whether each tap has a clock domain of its own, else
    all are in the core's; ``period``: of the core's clock in ns (a Fraction), to count time from,
    or None for a port.

    Clock domains: ``sync``, the core's; AXIL_DOMAIN, always apart; with ``tap_clocks`` a
    `tap_domain` for each port. All resets are synchronous to their clocks.

    Ports: ``taps`` and, with ``transmit``, ``sent``, the streams of frames that the MACs have
    emitted (`names` of both: ``tap_0``, ``sent_0``, ...); ``axil``; without ``period`` ``time``, in
    ns and in the core's clock domain. A frame's time is that at which its first beat has come to
    the core's clock.
    """

    def __init__(self, *, bus_bytes=64, ports=1, connections=1024, word=256, words=1, records=512,
                 has_fcs=False, vxlan=False, transmit=False, tap_clocks=False, period=None):
        if not 1 <= ports <= 8:
            raise ValueError(f"ports is {ports}, must be 1 to 8")
        self.bus_bytes = bus_bytes
        self.ports = ports
        self.tap_clocks = tap_clocks
        self.period = period
        self.transmit = transmit
        self._probe = Probe(bus_bytes=bus_bytes, ports=ports, connections=connections, word=word,
                            words=words, records=records, has_fcs=has_fcs, link=False, vxlan=vxlan,
                            transmit=transmit)
        self._crossings = {name: FrameCrossing(bus_bytes, i_domain=tap_domain(name))
                           for name in self.names} if tap_clocks else {}
        self._free_time = None if period is None else FreeTime(period)
        super().__init__({
            "taps": In(axi_stream_tap(bus_bytes)).array(ports),
            **({"sent": In(axi_stream_tap(bus_bytes)).array(ports)} if transmit else {}),
            "axil": In(axi_lite()),
            **({"time": In(64)} if period is None else {}),
        })

    @property
    def names(self):
        """Of the streams that are watched."""
        return [f"{kind}_{port}" for kind in ("tap", "sent")[:1 + self.transmit]
                for port in range(self.ports)]

    def stream(self, name):
        """The AXI4-Stream of that name."""
        kind, port = name.split("_")
        return (self.taps if kind == "tap" else self.sent)[int(port)]

    def elaborate(self, platform):
        m = Module()
        m.submodules.probe = probe = self._probe
        inputs = [*probe.frames, *(probe.sent if self.transmit else ())]
        for name, frames in zip(self.names, inputs, strict=True):
            tap = StreamTap(self.bus_bytes)
            m.submodules[name] = DomainRenamer(
                tap_domain(name) if self.tap_clocks else "sync")(tap)
            connect(m, flipped(self.stream(name)), tap.axis)
            source = tap.frames
            if self.tap_clocks:
                m.submodules[f"crossing_{name}"] = crossing = self._crossings[name]
                connect(m, source, crossing.i)
                source = crossing.o
            connect(m, source, frames)

        lite = LiteResponder()
        m.submodules.lite = DomainRenamer(AXIL_DOMAIN)(lite)
        m.submodules.bus_crossing = bus_crossing = BusCrossing(i_domain=AXIL_DOMAIN)
        m.submodules.window = window = RecordWindow()
        connect(m, flipped(self.axil), lite.axi)
        connect(m, lite.bus, bus_crossing.i)
        connect(m, bus_crossing.o, window.bus)
        connect(m, window.registers, probe.bus)
        connect(m, probe.records, window.records)
        m.d.comb += window.level.eq(probe.snapshot_level)

        if self._free_time is None:
            m.d.comb += probe.time.eq(self.time)
        else:
            m.submodules.free_time = self._free_time
            m.d.comb += probe.time.eq(self._free_time.time)
        return m
