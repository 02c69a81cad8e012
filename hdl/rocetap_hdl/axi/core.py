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


def tap_domain(port):
    """Clock domain of a tap that has one of its own."""
    return f"tap_{port}"


class AxiCore(wiring.Component):
    """A probe with AXI at its edges and no link.

    Parameters: ``bus_bytes``, ``ports``, ``connections``, ``word``, ``records`` as
    :class:`..probe.Probe` has them; ``has_fcs``: whether the taps' frames end with their FCS;
    ``tap_clocks``: whether each tap has a clock domain of its own, else all are in the core's;
    ``period``: of the core's clock in ns (a Fraction), to count time from, or None for a port.

    Clock domains: ``sync``, the core's; AXIL_DOMAIN, always apart; with ``tap_clocks`` a
    `tap_domain` for each port. All resets are synchronous to their clocks.

    Ports: ``taps``; ``axil``; without ``period`` ``time``, in ns and in the core's clock domain. A
    frame's time is that at which its first beat has come to the core's clock.
    """

    def __init__(self, *, bus_bytes=64, ports=1, connections=1024, word=256, records=512,
                 has_fcs=False, tap_clocks=False, period=None):
        if not 1 <= ports <= 8:
            raise ValueError(f"ports is {ports}, must be 1 to 8")
        self.bus_bytes = bus_bytes
        self.ports = ports
        self.tap_clocks = tap_clocks
        self.period = period
        self._probe = Probe(bus_bytes=bus_bytes, ports=ports, connections=connections, word=word,
                            records=records, has_fcs=has_fcs, link=False)
        self._crossings = [FrameCrossing(bus_bytes, i_domain=tap_domain(port))
                           for port in range(ports)] if tap_clocks else []
        self._free_time = None if period is None else FreeTime(period)
        super().__init__({
            "taps": In(axi_stream_tap(bus_bytes)).array(ports),
            "axil": In(axi_lite()),
            **({"time": In(64)} if period is None else {}),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.probe = probe = self._probe
        for port in range(self.ports):
            domain = tap_domain(port) if self.tap_clocks else "sync"
            tap = StreamTap(self.bus_bytes)
            m.submodules[f"tap{port}"] = DomainRenamer(domain)(tap)
            connect(m, flipped(self.taps[port]), tap.axis)
            frames = tap.frames
            if self.tap_clocks:
                m.submodules[f"crossing{port}"] = crossing = self._crossings[port]
                connect(m, frames, crossing.i)
                frames = crossing.o
            connect(m, frames, probe.frames[port])

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
