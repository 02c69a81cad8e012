"""PFC detector (IEEE 802.3 31.5.3, 31D.2, 31D.3)."""

from amaranth.hdl import *
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from .ethernet import ethernet_header
from .header import octets

__all__ = ["ControlKind", "PfcDetector", "mac_control", "pfc_event"]

PFC_OPCODE = 0x0101
"""IEEE 802.3 table 31A-1."""

PAUSE_OPCODE = 0x0001
"""IEEE 802.3 table 31A-1."""

PRIORITIES = 8

pfc_event = data.StructLayout({"vector": unsigned(PRIORITIES), "xoff": unsigned(PRIORITIES)})
"""``vector``: bit n of the class-enable vector. ``xoff``: that bit, and pause time n above zero."""


class ControlKind(enum.Enum, shape=unsigned(3)):
    """What a MAC Control frame is."""

    NONE = 0
    OTHER = 1    # another opcode
    PFC = 2
    BAD = 3      # the PFC opcode, untagged, but not to 01-80-C2-00-00-01, or cut by the tap
    PAUSE = 4    # whatever its address and tags
    TAGGED = 5   # the PFC opcode under a tag


mac_control = data.StructLayout({"kind": ControlKind, "pfc": pfc_event})


class PfcDetector(wiring.Component):
    """Reads MAC Control frames. One header a clock, `LATENCY` clock each.

    FCS and length are not its business. Any source address is right, reserved octets are not
    looked at. A sliced PFC frame cannot be shown to be good and is BAD; one sliced before its
    opcode is OTHER.
    """

    LATENCY = 1

    i: In(stream.Signature(ethernet_header, always_ready=True))
    o: Out(stream.Signature(mac_control, always_ready=True))

    def elaborate(self, platform):
        m = Module()
        frame, out = self.i.payload, self.o.payload
        opcode_known = ~frame.sliced | (frame.available >= 2)
        opcode = octets(frame.packet, 0, 2)
        vector = frame.packet[8 * 3:8 * 4]
        m.d.sync += [
            self.o.valid.eq(self.i.valid),
            out.pfc.vector.eq(vector),
            out.pfc.xoff.eq(vector & Cat(
                octets(frame.packet, 4 + 2 * n, 2).any() for n in range(PRIORITIES))),
        ]
        with m.If(~frame.mac_control):
            m.d.sync += out.kind.eq(ControlKind.NONE)
        with m.Elif(opcode_known & (opcode == PAUSE_OPCODE)):
            m.d.sync += out.kind.eq(ControlKind.PAUSE)
        with m.Elif(~opcode_known | (opcode != PFC_OPCODE)):
            m.d.sync += out.kind.eq(ControlKind.OTHER)
        with m.Elif(frame.tags != 0):
            m.d.sync += out.kind.eq(ControlKind.TAGGED)
        with m.Elif(frame.pfc_address & ~frame.sliced):
            m.d.sync += out.kind.eq(ControlKind.PFC)
        with m.Else():
            m.d.sync += out.kind.eq(ControlKind.BAD)
        return m
