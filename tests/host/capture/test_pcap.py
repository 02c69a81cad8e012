"""The pcap decoder: formats, odd records, and octets in pieces of any size."""

from __future__ import annotations

import pytest

from rocetap.capture.frames import CaptureError, Frame
from rocetap.capture.notes import Notes
from rocetap.capture.pcap import PcapDecoder
from support.captures import pcap, record

FRAMES = [bytes([n]) * size for n, size in enumerate((60, 0, 1, 1514))]


def decode(data, step=None):
    """Frames, decoder, notes; the octets fed in pieces of `step`."""
    notes = Notes()
    decoder = PcapDecoder("x.pcap", notes)
    frames = []
    for start in range(0, len(data), step or max(1, len(data))):
        batch = decoder.feed(data[start:start + (step or len(data))])
        frames += list(batch.frames()) if batch else []
    return frames, decoder, notes.lines()


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("nano", [True, False])
@pytest.mark.parametrize("step", [None, 1, 13])
def test_the_four_formats_give_exact_times(order, nano, step):
    fraction = 123456789 if nano else 123456
    data = pcap(*(record(frame, seconds=1700000000, fraction=fraction, order=order)
                  for frame in FRAMES), order=order, nano=nano)
    frames, decoder, notes = decode(data, step)
    time_ns = 1700000000123456789 if nano else 1700000000123456000
    assert frames == [Frame(frame, len(frame), time_ns, 0, False) for frame in FRAMES]
    assert decoder.leftover() is None
    assert (decoder.link_type, decoder.record, decoder.offset) == (1, 5, len(data))
    assert notes == []


def test_the_latest_time_of_the_format_fits():
    [frame], _, _ = decode(pcap(record(b"x", seconds=2**32 - 1, fraction=999_999_999)))
    assert frame.time_ns == (2**32 - 1) * 10**9 + 999_999_999


def test_a_cut_frame_keeps_its_original_length():
    [frame], _, notes = decode(pcap(record(b"abc", original=1098)))
    assert (frame.data, frame.original) == (b"abc", 1098)
    assert notes == []


def test_captured_above_original_is_one_warning_and_later_records_are_read():
    frames, _, notes = decode(pcap(
        record(b"1"), record(bytes(48), original=1), record(b"3"), record(b"44", original=0)))
    assert [(len(frame.data), frame.original) for frame in frames] == [
        (1, 1), (48, 48), (1, 1), (2, 2)]
    assert notes == ["x.pcap: record 2: captured 48 octets of 1; taken as a whole frame of 48 "
                     "(1 more alike)"]


def test_a_length_that_cannot_be_stops_there_without_allocating():
    frames, decoder, _ = decode(pcap(record(b"1"), record(b"2", captured=0xFFFFFFFF), record(b"3")))
    assert [frame.data for frame in frames] == [b"1"]
    assert (decoder.record, decoder.offset) == (2, 24 + 17)
    assert decoder.leftover() == (
        "captured length 4294967295 cannot be, 262144 is the most; what follows cannot be read")
    assert decoder.feed(bytes(100)) is None


def test_the_longest_frame_is_read():
    [frame], _, _ = decode(pcap(record(bytes(262_144))))
    assert len(frame.data) == 262_144


def test_a_fraction_above_a_second_is_one_warning():
    [frame], _, notes = decode(pcap(record(b"1", seconds=1, fraction=10**9)))
    assert frame.time_ns == 2 * 10**9
    assert notes == ["x.pcap: record 1: fraction of a second is 1000000000, 999999999 is the most; "
                     "its time was added up all the same"]


def test_an_fcs_that_the_file_declares_is_cut_off():
    link = 2 << 28 | 1 << 26 | 1
    frames, decoder, notes = decode(pcap(
        record(b"frameFCS!"), record(b"frame", original=9), record(b"fr", original=9),
        record(b"ab"), link_type=link))
    assert [(frame.data, frame.original) for frame in frames] == [
        (b"frame", 5), (b"frame", 5), (b"fr", 5), (b"", 0)]
    assert decoder.link_type == 1
    assert notes == [
        "x.pcap: frames carry an FCS of 4 octets, which is cut off unchecked"]


@pytest.mark.parametrize(("number", "name"), [
    (197, "197 (ERF)"), (113, "113 (Linux cooked capture)"), (4242, "4242")])
def test_other_link_types_are_named(number, name):
    with pytest.raises(CaptureError) as caught:
        decode(pcap(link_type=number))
    assert str(caught.value) == (
        f"x.pcap: link type {name} at octet 20, only 1 (Ethernet) is read; capture on an Ethernet "
        f"interface")


def test_other_versions_are_refused():
    with pytest.raises(CaptureError) as caught:
        decode(pcap(version=(3, 1)))
    assert str(caught.value) == ("x.pcap: pcap version 3.1 at octet 4, only 2.x is read; convert "
                                 "it: editcap -F pcap IN OUT")


@pytest.mark.parametrize(("cut", "reason"), [
    (24 + 20 + 7, "the file ends 7 octets into its 16-octet header"),
    (24 + 20 + 16 + 10, "the file ends 10 octets into its 40 of data"),
    (24 + 20 + 16, "the file ends 0 octets into its 40 of data")])
def test_what_is_left_over_at_the_end(cut, reason):
    frames, decoder, _ = decode(pcap(record(b"1234"), record(bytes(40)))[:cut])
    assert [frame.data for frame in frames] == [b"1234"]
    assert (decoder.leftover(), decoder.record, decoder.offset) == (reason, 2, 44)


def test_a_header_that_ends_early():
    _, decoder, _ = decode(pcap()[:20])
    assert not decoder.ready
    assert decoder.header_leftover() == (
        "pcap: the file ends 20 octets into its 24-octet header; capture again")
