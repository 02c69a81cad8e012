"""Transmitted PFC frames: what the MAC has put on the link, looked at for nothing else."""

from amaranth.hdl import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .delay import later
from .ethernet import FCS_OCTETS, Ethernet
from .fcs import FrameCheck
from .header import HeaderCapture
from .layouts import frame_stream
from .parser import MAX_OCTETS, MIN_OCTETS
from .pfc import PRIORITIES, ControlKind, PfcDetector, pfc_event

__all__ = ["SentPfc"]

HEAD_OCTETS = 14 + 2 + 2 + 2 * PRIORITIES
"""Up to the last pause time (IEEE 802.3 31D.2)."""


class SentPfc(wiring.Component):
    """Strobes ``pfc`` for each good PFC frame that was emitted, `latency` clocks after its last
    beat.

    ``frames``: the frames as the MAC has emitted them, FCS included unless ``has_fcs`` is false.
    Never what was only handed to the MAC: a frame that it has given up, or cut off, must come with
    ``error``. What makes a frame good is what :class:`.parser.Parser` asks of a received one: not
    lost, cut or in error, MIN_OCTETS to MAX_OCTETS with its FCS, the FCS right, untagged, to
    01-80-C2-00-00-01, EtherType 0x8808, opcode 0x0101. All else passes uncounted.
    """

    latency = HeaderCapture.LATENCY + Ethernet.LATENCY + PfcDetector.LATENCY + 1

    def __init__(self, bus_bytes, *, has_fcs=True):
        self._bus_bytes = bus_bytes
        self._has_fcs = has_fcs
        super().__init__({
            "frames": In(frame_stream(bus_bytes)),
            "pfc": Out(stream.Signature(pfc_event, always_ready=True)),
        })

    def elaborate(self, platform):
        m = Module()
        n = self._bus_bytes
        m.submodules.capture = capture = HeaderCapture(n, head=HEAD_OCTETS)
        m.submodules.ethernet = ethernet = Ethernet(has_fcs=self._has_fcs)
        m.submodules.control = control = PfcDetector()
        m.d.comb += [
            capture.frames.valid.eq(self.frames.valid),
            capture.frames.payload.eq(self.frames.payload),
        ]
        fcs_good = Const(1)
        if self._has_fcs:
            m.submodules.fcs = fcs = FrameCheck(n)
            m.d.comb += [
                fcs.frames.valid.eq(self.frames.valid),
                fcs.frames.payload.eq(self.frames.payload),
            ]
            assert self.latency - 1 == FrameCheck.LATENCY
            fcs_good = fcs.results.payload

        beat, index = capture.beats.p.beat, capture.beats.p.index
        last_octet = index if n == 1 else Cat(beat.end, index)
        last_with_fcs = last_octet + (0 if self._has_fcs else FCS_OCTETS)
        m.d.comb += [
            ethernet.heads.valid.eq(capture.beats.valid),
            ethernet.heads.p.octets.eq(capture.beats.p.octets),
            ethernet.heads.p.last_octet.eq(last_octet),
            ethernet.heads.p.sliced.eq(beat.sliced),
            control.i.valid.eq(ethernet.headers.valid),
            control.i.payload.eq(ethernet.headers.payload),
        ]
        whole = later(
            m, "whole", Ethernet.LATENCY + PfcDetector.LATENCY,
            ends=capture.beats.valid & beat.last & ~beat.lost & ~beat.error,
            sized=(last_with_fcs >= MIN_OCTETS - 1) & (last_with_fcs < MAX_OCTETS))
        m.d.sync += [
            self.pfc.valid.eq(whole.ends & whole.sized & fcs_good
                              & (control.o.p.kind == ControlKind.PFC)),
            self.pfc.payload.eq(control.o.p.pfc),
        ]
        return m
