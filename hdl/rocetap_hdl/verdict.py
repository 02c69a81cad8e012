"""From what every stage found to the one class of a frame."""

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rocetap.spec.classes import FrameClass

from .layouts import verdict_stream
from .pfc import ControlKind, mac_control, pfc_event

__all__ = ["Content", "Judge", "content_findings", "content_verdict", "frame_state"]

content_findings = data.StructLayout({
    "short": 1,                  # ends before its EtherType
    "sliced": 1,                 # by the tap
    "too_deep": 1,
    "rocev1": 1,
    "is_ip": 1,
    "control": mac_control,
    "ip_class": unsigned(5),     # of an IP packet
})

content_verdict = data.StructLayout({"frame_class": unsigned(5), "pfc": pfc_event})

frame_state = data.StructLayout({
    "lost": 1,
    "error": 1,
    "oversize": 1,
    "runt": 1,
    "bad_fcs": 1,
    "bad_icrc": 1,
})


def _first_of(rules, otherwise):
    value = otherwise
    for holds, frame_class in reversed(rules):
        value = Mux(holds, Const(frame_class, 5), value)
    return value


class Content(wiring.Component):
    """The class by content alone. One a clock, `LATENCY` clock each.

    In this order: SLICED_SHORT or, not sliced, MALFORMED_IP before the EtherType, TAGS_TOO_DEEP,
    the MAC Control classes, ROCEV1, the class of an IP packet, NOT_ROCE.
    """

    LATENCY = 1

    i: In(stream.Signature(content_findings, always_ready=True))
    o: Out(stream.Signature(content_verdict, always_ready=True))

    def elaborate(self, platform):
        m = Module()
        found = self.i.payload
        m.d.sync += [
            self.o.valid.eq(self.i.valid),
            self.o.p.pfc.eq(found.control.pfc),
            self.o.p.frame_class.eq(_first_of((
                (found.short & found.sliced, FrameClass.SLICED_SHORT),
                (found.short, FrameClass.MALFORMED_IP),
                (found.too_deep, FrameClass.TAGS_TOO_DEEP),
                (found.control.kind == ControlKind.PFC, FrameClass.PFC),
                (found.control.kind == ControlKind.BAD, FrameClass.BAD_PFC),
                (found.control.kind == ControlKind.TAGGED, FrameClass.TAGGED_PFC),
                (found.control.kind == ControlKind.PAUSE, FrameClass.PAUSE),
                (found.control.kind == ControlKind.OTHER, FrameClass.MAC_CONTROL),
                (found.rocev1, FrameClass.ROCEV1),
            ), Mux(found.is_ip, found.ip_class, FrameClass.NOT_ROCE))),
        ]
        return m


class Judge(wiring.Component):
    """The final class. One verdict a clock, `LATENCY` clock each.

    In this order: LOST, MAC_ERROR, OVERSIZE, RUNT, BAD_FCS, then the class by content; a request
    that is well formed turns into BAD_ICRC when its ICRC is wrong. A class is final only here: a
    PFC frame is strobed on ``pfc`` with its verdict, and only then.
    """

    LATENCY = 1

    i: In(verdict_stream())
    state: In(frame_state)
    event: In(pfc_event)
    o: Out(verdict_stream())
    pfc: Out(stream.Signature(pfc_event, always_ready=True))

    def elaborate(self, platform):
        m = Module()
        content = self.i.p.frame_class
        request = ((content == FrameClass.ELIGIBLE_REQUEST)
                   | (content == FrameClass.UNSUPPORTED_REQUEST))
        frame_class = Signal(5)
        m.d.comb += frame_class.eq(_first_of((
            (self.state.lost, FrameClass.LOST),
            (self.state.error, FrameClass.MAC_ERROR),
            (self.state.oversize, FrameClass.OVERSIZE),
            (self.state.runt, FrameClass.RUNT),
            (self.state.bad_fcs, FrameClass.BAD_FCS),
            (request & self.state.bad_icrc, FrameClass.BAD_ICRC),
        ), content))
        m.d.sync += [
            self.o.valid.eq(self.i.valid),
            self.o.payload.eq(self.i.payload),
            self.o.p.frame_class.eq(frame_class),
            self.pfc.valid.eq(self.i.valid & (frame_class == FrameClass.PFC)),
            self.pfc.payload.eq(self.event),
        ]
        return m
