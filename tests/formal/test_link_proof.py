"""The link's framing: nothing with a wrong CRC is delivered, and what is encoded is decoded."""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Const, Elaboratable, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.crc.catalog import CRC8_ROHC

from rocetap.spec.wire import MAX_MESSAGE_OCTETS
from rocetap_hdl.link import cobs, frame
from support.formal import deep, free, mutant, prove, refute
from support.stream_rules import watch

CRC_OCTETS = 4
LONGEST = MAX_MESSAGE_OCTETS + CRC_OCTETS

FORMAT = "stat_format strobes for a frame of wrong form, only"
CRC = "stat_crc strobes for a frame of right form with a wrong CRC, only"
DELIVERS = "a message comes of a right frame, only"
MESSAGE = "the message is the frame's octets, without the CRC"
INSIDE = "what the checker holds is what came in"


def crc_step(state, octet, polynomial):
    """A CRC bit by bit, octets least significant bit first."""
    state = state ^ octet
    for _ in range(8):
        state = state[1:] ^ Mux(state[0], polynomial, 0)
    return state


class SmallSum:
    """In place of the CRC-32, a CRC of eight bits: what the checker does with it is the same. (The
    CRC-32 itself meets zlib's in tests/hdl/link.)"""

    polynomial = 0xE0
    initial = 0xFF
    residue = CRC8_ROHC().residue()

    def create(self):
        return CRC8_ROHC().create()


class CheckedFrames(Elaboratable):
    """FrameChecker against frames that may be any, of any length, one octet of them remembered."""

    def __init__(self, *changes):
        shown = ("oversize = Signal()", "oversize = self.oversize = Signal()")
        self._dut = mutant(frame, *changes, shown, CRC32_ISO_HDLC=SmallSum).FrameChecker()

    def elaborate(self, platform):
        m = Module()
        dut = self._dut
        m.submodules.dut = inside = dut.elaborate(platform)
        free(m, dut)
        watch(m, "i", dut.i, assume=True)

        # The frame as it comes in.
        octets = Signal(range(LONGEST + 2))         # stays at LONGEST + 1 for anything longer
        state = Signal(8, init=SmallSum.initial)
        aborted = Signal()
        ended = Signal()
        place, octet = Signal(range(LONGEST)), Signal(8)
        takes = dut.i.valid & dut.i.ready
        m.d.comb += [place.eq(AnyConst(place.shape())), Assume(place < LONGEST)]
        m.d.sync += ended.eq(takes & dut.i.payload.last)
        with m.If(takes):
            m.d.sync += [
                octets.eq(Mux(octets > LONGEST, octets, octets + 1)),
                state.eq(crc_step(state, dut.i.payload.data, SmallSum.polynomial)),
                aborted.eq(dut.i.payload.abort),
            ]
            with m.If(octets == place):
                m.d.sync += octet.eq(dut.i.payload.data)

        # What must become of it.
        malformed = aborted | (octets > LONGEST) | (octets <= CRC_OCTETS)
        right = state == SmallSum.residue
        delivering = Signal()
        length, at = Signal(range(LONGEST)), Signal(range(LONGEST))
        with m.If(ended):
            m.d.sync += [octets.eq(0), state.eq(SmallSum.initial), at.eq(0),
                         delivering.eq(~malformed & right), length.eq(octets - CRC_OCTETS)]
        with m.If(dut.o.valid & dut.o.ready):
            m.d.sync += at.eq(at + 1)
            with m.If(dut.o.payload.last):
                m.d.sync += delivering.eq(0)
        m.d.comb += [
            Assert(dut.stat_format == (ended & malformed), FORMAT),
            Assert(dut.stat_crc == (ended & ~malformed & ~right), CRC),
            Assert(dut.o.valid == delivering, DELIVERS),
        ]
        with m.If(delivering):
            m.d.comb += [
                Assert(dut.o.payload.length == length, MESSAGE),
                Assert(dut.o.payload.first == (at == 0), MESSAGE),
                Assert(dut.o.payload.last == (at == length - 1), MESSAGE),
                Assert((at != place) | (dut.o.payload.data == octet), MESSAGE),
            ]

        # For the induction.
        memory = inside.submodules.memory
        look = memory.read_port(domain="comb")
        read, write = memory.read_ports[0], memory.write_ports[0]
        m.d.comb += [
            look.addr.eq(place),
            Assert((octets == 0) | ~delivering, INSIDE),
            Assert(~(ended & delivering), INSIDE),
            Assert(dut.i.ready == ~(ended | delivering), INSIDE),
            Assert(inside.submodules.crc.crc == state, INSIDE),
            Assert(dut.oversize == (octets > LONGEST), INSIDE),
            Assert(write.addr == Mux(octets > LONGEST, LONGEST, octets), INSIDE),
            Assert(~delivering | (read.addr == at + dut.o.ready), INSIDE),
            Assert(~delivering | ((at < length) & (length <= MAX_MESSAGE_OCTETS)), INSIDE),
            Assert(Mux(delivering, place >= length, place >= octets) | (look.data == octet),
                   INSIDE),
        ]
        return m


def test_no_wrong_frame_is_delivered():
    """By induction over 3 clocks: frames of any length and number."""
    prove(CheckedFrames(), depth=3, induction=True)


BROKEN_FRAMES = {
    "crc_ignored": (("m.Elif(~crc.match_detected)", "m.Elif(0)"), DELIVERS),
    "crc_carried_on": (("m.d.comb += [crc.start.eq(1), read.addr.eq(0)]",
                        "m.d.comb += read.addr.eq(0)"), CRC),
    "abort_ignored": (("aborted | oversize | (count <= CRC_OCTETS)",
                       "oversize | (count <= CRC_OCTETS)"), FORMAT),
    "empty_allowed": (("(count <= CRC_OCTETS)", "(count < CRC_OCTETS)"), FORMAT),
    "length_of_frame": (("self.o.payload.length.eq(count - CRC_OCTETS)",
                         "self.o.payload.length.eq(count)"), MESSAGE),
}


def test_broken_checkers_are_found():
    """To 10 clocks: a frame of up to 6 octets, its check and its delivery."""
    refute({name: (CheckedFrames(change), broken)
            for name, (change, broken) in BROKEN_FRAMES.items()}, depth=10)


GROUP, DEPTH = 3, 4
"""Octets of a full group and words of a queue, small here so that both bounds are reached."""

ZERO = "a zero octet is a delimiter: none stands inside a group"
ORDER = "what is decoded was encoded, octet by octet"
ABORT = "an encoded packet never ends inside a group"


class RoundTrip(Elaboratable):
    """Packets through encoder and decoder: the octet at any place comes out as it went in."""

    def __init__(self, *changes):
        module = mutant(cobs, *changes, GROUP_OCTETS=GROUP)
        module.CobsEncoder.DATA_DEPTH = module.CobsEncoder.CODES_DEPTH = DEPTH
        self._encoder, self._decoder = module.CobsEncoder(), module.CobsDecoder()

    def elaborate(self, platform):
        m = Module()
        m.submodules.encoder = encoder = self._encoder
        m.submodules.decoder = decoder = self._decoder
        free(m, encoder, "i")
        free(m, decoder, "o")
        watch(m, "i", encoder.i, assume=True)
        m.d.comb += Assume(encoder.i.payload.data[2:] == 0)     # all but zero are alike
        wiring.connect(m, encoder.o, decoder.i)

        # One octet after another, and which are the last of their packets.
        place = Signal(5)
        went, came = Signal(5), Signal(5)
        octet, last = Signal(8), Signal()
        m.d.comb += place.eq(AnyConst(5))
        with m.If(encoder.i.valid & encoder.i.ready):
            m.d.sync += went.eq(went + 1)
            with m.If(went == place):
                m.d.sync += [octet.eq(encoder.i.payload.data), last.eq(encoder.i.payload.last)]
        out = decoder.o.payload
        with m.If(decoder.o.valid):
            m.d.comb += [
                Assert(~out.abort, ABORT),
                Assert(came < went, ORDER),
                Assert((came != place) | (Cat(out.data, out.last) == Cat(octet, last)), ORDER),
            ]
            with m.If(decoder.o.ready):
                m.d.sync += came.eq(came + 1)

        # The wire: a code, so many octets less one, and so on, then the delimiter.
        remaining = Signal(8)
        with m.If(encoder.o.valid):
            m.d.comb += Assert((remaining == 0) | (encoder.o.payload != 0), ZERO)
            with m.If(encoder.o.ready):
                m.d.sync += remaining.eq(Mux(
                    remaining != 0, remaining - 1,
                    Mux(encoder.o.payload == 0, 0, encoder.o.payload - Const(1, 8))))
        return m


ROUND_TRIP = 14


def test_what_is_encoded_is_decoded():
    """To 12 clocks: packets of any octets and lengths, full groups and full queues among them.

    `make prove`: to 14 clocks."""
    prove(RoundTrip(), depth=deep(12, ROUND_TRIP), timeout=deep(240, 3600))


BROKEN_CODES = {
    "full_group_adds_zero": ((
        "zero_after_group.eq(octet != GROUP_OCTETS + 1)", "zero_after_group.eq(1)"), ORDER),
    "last_zero_forgotten": ((
        "closing.eq(self.i.payload.last & is_zero)", "closing.eq(0)"), ORDER),
    "zero_stored": (("data.i.valid.eq(~is_zero)", "data.i.valid.eq(1)"), ZERO),
    "code_one_short": (("code.eq(length + Mux(is_zero, 1, 2))",
                        "code.eq(length + Mux(is_zero, 1, 1))"), ORDER),
    "end_not_marked": (("self.o.payload.last.eq(is_end)", "self.o.payload.last.eq(0)"), ORDER),
}


def test_broken_codes_are_found():
    """To 14 clocks."""
    refute({name: (RoundTrip(change), broken)
            for name, (change, broken) in BROKEN_CODES.items()}, depth=ROUND_TRIP)
