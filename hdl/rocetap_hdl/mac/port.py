"""One Ethernet port: from the receiver's DDR flip-flops to frames in the core's clock."""

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out, connect, flipped

from ..axi.frame_crossing import FrameCrossing
from ..layouts import frame_stream
from .gate import FrameGate
from .receive import GmiiReceive
from .rgmii import RgmiiReceive
from .signals import LINK_STATE, Speed, rgmii_rx

__all__ = ["ReceivePort"]

STEADY_CLOCKS = 1024
"""In-band status counts once it has been the same for so long: its bits cross one by one."""


class ReceivePort(wiring.Component):
    """Frames of one RGMII receiver, whose RXC is clock domain ``domain``.

    ``state``: what the PHY says over MDIO; with ``in_band`` that is not looked at, and what RGMII
    says between frames counts instead. ``link``: the state that counts. ``gigabit_only``: a link of
    another speed, or half duplex, is ``unsupported``. Nothing is received while the link is down or
    unsupported; when it falls one ``lost`` beat says so.

    ``frames`` comes about 8 clocks after the pins, one octet a clock. ``activity`` strobes with
    each frame's end, ``lost`` with each ``lost`` beat.
    """

    def __init__(self, domain, *, gigabit_only, in_band=False):
        self._domain = domain
        self._gigabit_only = gigabit_only
        self._in_band = in_band
        super().__init__({
            "rx": In(rgmii_rx()),
            "state": In(LINK_STATE),
            "link": Out(LINK_STATE),
            "unsupported": Out(1),
            "usable": Out(1),
            "frames": Out(frame_stream(1)),
            "activity": Out(1),
            "lost": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        near = DomainRenamer(self._domain)
        rgmii, mac = RgmiiReceive(), GmiiReceive()
        m.submodules.rgmii = near(rgmii)
        m.submodules.mac = near(mac)
        m.submodules.crossing = crossing = FrameCrossing(1, i_domain=self._domain)
        m.submodules.gate = gate = FrameGate(1, announces=True)
        connect(m, flipped(self.rx), rgmii.rx)
        connect(m, rgmii.o, mac.i)
        connect(m, mac.o, crossing.i)
        connect(m, crossing.o, gate.i)
        connect(m, gate.o, flipped(self.frames))

        if self._in_band:
            said, before = Signal(LINK_STATE), Signal(LINK_STATE)
            steady = Signal(range(STEADY_CLOCKS))
            m.submodules.status_cdc = FFSynchronizer(
                Value.cast(rgmii.status), Value.cast(said))
            long = steady == STEADY_CLOCKS - 1
            m.d.sync += [
                before.eq(said), steady.eq(Mux(said == before, Mux(long, steady, steady + 1), 0))]
            with m.If(long):
                m.d.sync += self.link.eq(before)
            with m.If(~said.link & ~before.link):     # a link that falls counts at once
                m.d.sync += self.link.link.eq(0)
        else:
            m.d.sync += self.link.eq(self.state)

        fast = self.link.speed == Speed.MBIT_1000
        known = self.link.speed != 3
        m.d.comb += [
            self.unsupported.eq(self.link.link & ~(
                (fast & self.link.full_duplex) if self._gigabit_only else known)),
            self.usable.eq(self.link.link & ~self.unsupported),
            gate.open.eq(self.usable),
            self.lost.eq(self.frames.valid & self.frames.p.lost),
            self.activity.eq(self.frames.valid & self.frames.p.last & ~self.frames.p.lost),
        ]
        m.submodules.speed_cdc = FFSynchronizer(~fast, rgmii.cfg_nibbles, o_domain=self._domain)
        return m
