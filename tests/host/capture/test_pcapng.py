"""The pcapng decoder: blocks, interfaces, sections, and what cannot be."""

from __future__ import annotations

import struct

import pytest

from rocetap.capture.frames import CaptureError, Frame
from rocetap.capture.notes import Notes
from rocetap.capture.pcapng import PcapngDecoder
from support.captures import block, enhanced, interface, old_packet, option, section, simple

NANO = option(9, b"\x09")
TICKS = 1700000000123456789


def decode(data, step=None):
    notes = Notes()
    decoder = PcapngDecoder("x.pcapng", notes)
    frames = []
    for start in range(0, len(data), step or len(data)):
        batch = decoder.feed(data[start:start + (step or len(data))])
        frames += list(batch.frames()) if batch else []
    return frames, decoder, notes.lines()


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("step", [None, 1, 17])
def test_interfaces_with_their_own_clocks(order, step):
    data = (section(order) + interface(order, options=option(9, b"\x09", order))
            + interface(order)
            + interface(order, options=option(14, struct.pack(order + "q", 100), order))
            + enhanced(b"nano", TICKS, order=order)
            + enhanced(b"micro", TICKS // 1000, order=order, number=1, original=99)
            + enhanced(b"offset", TICKS // 1000, order=order, number=2)
            + enhanced(b"", 5, order=order))
    frames, decoder, notes = decode(data, step)
    micro = 1700000000123456000
    assert frames == [
        Frame(b"nano", 4, TICKS, 0, False), Frame(b"micro", 99, micro, 1, False),
        Frame(b"offset", 6, micro + 100 * 10**9, 2, False), Frame(b"", 0, 5, 0, False)]
    assert (decoder.leftover(), decoder.offset, decoder.record) == (None, len(data), 9)
    assert notes == []


@pytest.mark.parametrize("order", ["<", ">"])
def test_simple_and_obsolete_packets(order):
    data = (section(order) + interface(order, snap=3) + simple(b"early", order=order)[:0]
            + old_packet(b"old", 7, order=order) + old_packet(b"gap", 8, order=order, drops=2)
            + block(3, struct.pack(order + "I", 5) + b"abc", order)
            + simple(b"xy", order=order))
    frames, _, notes = decode(data)
    assert frames == [
        Frame(b"old", 3, 7000, 0, False), Frame(b"gap", 3, 8000, 0, True),
        Frame(b"abc", 5, 8000, 0, False), Frame(b"xy", 2, 8000, 0, False)]
    assert notes == ["x.pcapng: block 5: simple packet block without a time; the last time known "
                     "is used (1 more alike)"]


def test_frames_that_the_capture_says_were_lost():
    drops = option(2, b"abcd") + option(4, struct.pack("<Q", 3))
    statistics = block(5, struct.pack("<III", 0, 0, 0) + option(5, struct.pack("<Q", 12)))
    quiet = block(5, struct.pack("<III", 0, 0, 0) + option(5, struct.pack("<Q", 0)))
    frames, _, notes = decode(section() + interface() + enhanced(b"1") + enhanced(
        b"2", options=drops) + enhanced(b"3", options=option(4, bytes(8))) + quiet + statistics)
    assert [frame.lost for frame in frames] == [False, True, False]
    assert notes == ["x.pcapng: block 7: interface 0 dropped 12 frames while capturing; counts may "
                     "be incomplete"]


@pytest.mark.parametrize("step", [None, 5, 1 << 20])
def test_unknown_blocks_are_skipped_however_long(step):
    long = block(0x0BAD, bytes((1 << 24) + 400)) if step != 5 else block(0x0BAD, bytes(400))
    data = (section() + block(4, b"names") + interface() + long + enhanced(b"1")
            + block(0x80000001, b""))
    frames, decoder, _ = decode(data, step)
    assert [frame.data for frame in frames] == [b"1"]
    assert (decoder.leftover(), decoder.offset, decoder.record) == (None, len(data), 7)


def test_a_new_section_has_its_own_order_and_interfaces():
    frames, _, _ = decode(section() + interface(options=NANO) + enhanced(b"1", 9)
                          + section(">") + interface(">") + enhanced(b"2", 9, order=">"))
    assert [(frame.data, frame.time_ns) for frame in frames] == [(b"1", 9), (b"2", 9000)]


def test_captured_above_original_and_fcs():
    frames, _, notes = decode(section() + interface(options=option(13, b"\x04"))
                              + enhanced(b"frameFCS!", original=2))
    assert [(frame.data, frame.original) for frame in frames] == [(b"frame", 5)]
    assert notes == [
        "x.pcapng: block 3: captured 9 octets of 2; taken as a whole frame of 9",
        "x.pcapng: frames of interface 0 carry an FCS of 4 octets, which is cut off unchecked"]


@pytest.mark.parametrize(("bad", "reason"), [
    (enhanced(b"2", number=1), "packet of interface 1, which no block describes"),
    (enhanced(b"2222")[:20] + struct.pack("<I", 5) + enhanced(b"2222")[24:],
     "captured length 5 cannot be, the block has room for 4"),
    (block(6, b"short"), "block length 20 cannot be"),
    (enhanced(b"2")[:-4] + struct.pack("<I", 40), "the two lengths of the block differ"),
    (struct.pack("<II", 6, 0x7FFFFFF0) + bytes(8),
     "block length 2147483632 cannot be, 16777216 is the most"),
    (struct.pack("<II", 99, 13) + bytes(16), "block length 13 cannot be"),
    (struct.pack("<II", 99, 8) + bytes(16), "block length 8 cannot be"),
    (b"\x0a\x0d\x0d\x0a" + bytes(24), "byte-order magic of a section header is wrong"),
])
def test_lost_framing_stops_there(bad, reason):
    head = section() + interface() + enhanced(b"1")
    frames, decoder, _ = decode(head + bad + enhanced(b"3"))
    assert [frame.data for frame in frames] == [b"1"]
    assert decoder.leftover() == f"{reason}; what follows cannot be read"
    assert (decoder.offset, decoder.record) == (len(head), 4)
    assert decoder.feed(enhanced(b"4")) is None


def test_blocks_that_are_not_whole():
    head = section() + interface()
    _, decoder, _ = decode(head + enhanced(b"1234")[:30])
    assert decoder.leftover() == "the file ends 30 octets into this block"
    _, decoder, _ = decode(head + block(0x0BAD, bytes(100))[:50])
    assert decoder.leftover() == "the file ends 62 octets before the end of this block"
    _, decoder, _ = decode(section() + interface()[:7])
    assert (decoder.ready, decoder.header_leftover()) == (
        False, "pcapng: record 2 at octet 28: the file ends 7 octets into this block")


def test_packets_of_other_link_types_are_refused():
    head = section() + interface() + interface(link_type=197)
    assert [frame.data for frame in decode(head + enhanced(b"1"))[0]] == [b"1"]
    with pytest.raises(CaptureError) as caught:
        decode(head + enhanced(b"1") + enhanced(b"2", number=1))
    assert str(caught.value) == (
        "x.pcapng: record 5 at octet 104: interface 1 has link type 197 (ERF), only 1 (Ethernet) "
        "is read; capture on an Ethernet interface")


def test_other_versions_are_refused():
    with pytest.raises(CaptureError) as caught:
        decode(section(version=(2, 0)))
    assert str(caught.value) == ("x.pcapng: pcapng version 2.0 at octet 12, only 1.x is read; "
                                 "convert it: editcap -F pcap IN OUT")


@pytest.mark.parametrize(("ticks", "offset"), [(0xFFFFFFFFFFFFFFFF, 0), (0, -1)])
def test_times_that_do_not_fit_are_refused(ticks, offset):
    with pytest.raises(CaptureError) as caught:
        decode(section() + interface(options=option(14, struct.pack("<q", offset)))
               + enhanced(b"1", ticks))
    assert str(caught.value) == (
        "x.pcapng: record 3 at octet 60: its time lies outside 1970 to 2554; repair it: "
        "editcap -t SECONDS IN OUT")
