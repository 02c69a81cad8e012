"""Whole files: cut anywhere, compressed, from pipes, from other writers, and random octets."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import struct
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.l2 import Ether
from scapy.utils import PcapNgWriter
from scapy.utils import PcapWriter as ScapyPcapWriter

from rocetap.capture.frames import CaptureError
from rocetap.capture.reading import open_capture
from support.captures import (
    REAL_CAPTURES,
    block,
    enhanced,
    interface,
    old_packet,
    option,
    pcap,
    record,
    section,
    simple,
)

PCAP = pcap(*(record(bytes([n]) * (20 + n), seconds=n, fraction=n) for n in range(4)))
PCAPNG = (section() + interface(options=option(9, b"\x09")) + block(4, b"names")
          + enhanced(b"one", 1) + simple(b"two") + old_packet(b"three", 3)
          + block(0x0BAD, b"unknown") + enhanced(b"four", 4))


def read(path):
    """Data of all frames, and the truncation."""
    with open_capture(str(path)) as capture:
        assert capture.truncation is None
        data = [frame.data for batch in capture.batches() for frame in batch.frames()]
        return data, capture.truncation


def read_octets(tmp_path, octets):
    path = tmp_path / "x.cap"
    path.write_bytes(octets)
    return read(path)


@pytest.mark.parametrize(("whole", "frames"), [(PCAP, 4), (PCAPNG, 4)], ids=["pcap", "pcapng"])
def test_cut_at_every_octet(tmp_path, whole, frames):
    expected, truncation = read_octets(tmp_path, whole)
    assert (len(expected), truncation) == (frames, None)
    clean, told = 0, 0
    for cut in range(len(whole)):
        if cut < (24 if whole is PCAP else 28) or (28 < cut < 56 and whole is PCAPNG):
            with pytest.raises(CaptureError, match=r"\A[^\n]+\Z"):
                read_octets(tmp_path, whole[:cut])
            continue
        got, truncation = read_octets(tmp_path, whole[:cut])
        assert got == expected[:len(got)]
        if truncation is None:
            clean += 1
        else:
            told += 1
            assert truncation.offset <= cut
            assert truncation.exit_code == 3
            assert read_octets(tmp_path, whole[:truncation.offset]) == (got, None)
    assert told > 100
    assert clean == (4 if whole is PCAP else 7)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("whole", [PCAP, PCAPNG], ids=["pcap", "pcapng"])
def test_compressed_by_content_whatever_the_name(tmp_path, whole, pack):
    assert read_octets(tmp_path, pack(whole)) == read_octets(tmp_path, whole)


def test_a_cut_gzip_file_gives_the_whole_records_and_one_line(tmp_path):
    content = pcap(*(record(os.urandom(1000)) for _ in range(100)))
    cut = gzip.compress(content)[:-30_000]
    got, truncation = read_octets(tmp_path, cut)
    expected, _ = read_octets(tmp_path, content)
    assert 0 < len(got) < 100
    assert got == expected[:len(got)]
    assert str(truncation) == (
        f"{tmp_path}/x.cap: record {len(got) + 1} at octet {24 + 1016 * len(got)}: the gzip data "
        f"ends early; all {len(got)} records before it were read")


def test_the_line_of_a_cut_file(tmp_path):
    _, truncation = read_octets(tmp_path, PCAP[:-25])
    assert str(truncation) == (
        f"{tmp_path}/x.cap: record 4 at octet 135: the file ends 14 octets into its 16-octet "
        f"header; all 3 records before it were read")


@pytest.mark.parametrize(("octets", "line"), [
    (b"", "is empty (0 octets); capture again"),
    (b"\xd4\xc3", "is no capture: begins with octets d4 c3; pcap and pcapng are read, plain or in "
                  "gzip, bzip2 or xz"),
    (b"GIF89a..", "is no capture: begins with octets 47 49 46 38; pcap and pcapng are read, plain "
                  "or in gzip, bzip2 or xz"),
    (PCAP[:20], "pcap: the file ends 20 octets into its 24-octet header; capture again"),
    (gzip.compress(b""), "is empty (0 octets); capture again"),
    (gzip.compress(PCAP)[:8], "the gzip data ends early"),
    (PCAPNG[:16], "pcapng: record 1 at octet 0: the file ends 16 octets into this block"),
])
def test_files_without_a_frame(tmp_path, octets, line):
    with pytest.raises(CaptureError) as caught:
        read_octets(tmp_path, octets)
    assert str(caught.value) == f"{tmp_path}/x.cap: {line}"
    assert caught.value.exit_code == 2


def test_captures_with_no_frame_are_read(tmp_path):
    assert read_octets(tmp_path, pcap()) == ([], None)
    assert read_octets(tmp_path, section()) == ([], None)
    assert read_octets(tmp_path, section() + interface()) == ([], None)


def test_warnings_are_kept_for_the_command(tmp_path):
    path = tmp_path / "x.cap"
    path.write_bytes(pcap(record(b"ab", original=1)))
    with open_capture(str(path)) as capture:
        assert capture.link_type == 1
        list(capture.batches())
        assert capture.warnings == [
            f"{path}: record 1: captured 2 octets of 1; taken as a whole frame of 2"]


def test_a_pipe_gives_frames_as_they_come(tmp_path):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    more = threading.Event()

    def feed():
        with open(path, "wb", buffering=0) as pipe:
            pipe.write(PCAP[:24 + 16 + 20 + 3])
            assert more.wait(20)
            pipe.write(PCAP[24 + 16 + 20 + 3:])

    writer = threading.Thread(target=feed)
    writer.start()
    with open_capture(str(path)) as capture:
        batches = capture.batches()
        first = next(batches)
        assert [frame.data for frame in first.frames()] == [bytes(20)]
        more.set()
        assert sum(len(batch) for batch in batches) == 3
    writer.join(20)
    assert capture.truncation is None


def test_standard_input_is_read_and_stays_open(monkeypatch):
    stream = io.BytesIO(gzip.compress(PCAP))
    monkeypatch.setattr("sys.stdin", type("S", (), {"buffer": stream})())
    with open_capture("-") as capture:
        assert sum(len(batch) for batch in capture.batches()) == 4
        assert capture.name == "standard input"
    assert not stream.closed


def test_files_of_another_writer(tmp_path):
    frames = [Ether(dst="02:00:00:00:00:02", src="02:00:00:00:00:01") / (b"x" * n)
              for n in range(5)]
    expected = [bytes(frame) for frame in frames]
    for endianness, nano in (("<", True), (">", True), ("<", False), (">", False)):
        path = tmp_path / "s.pcap"
        with ScapyPcapWriter(str(path), endianness=endianness, nano=nano) as writer:
            writer.write(frames)
        assert read(path) == (expected, None)
    path = tmp_path / "s.pcapng"
    with PcapNgWriter(str(path)) as writer:
        writer.write(frames)
    assert read(path) == (expected, None)


def never_anything_else(path, octets):
    path.write_bytes(octets)
    line = f"{path}: "
    try:
        with open_capture(str(path)) as capture:
            for batch in capture.batches():
                assert (batch.offsets + batch.captured <= len(batch.data)).all()
                assert (batch.captured <= batch.original).all()
    except CaptureError as error:
        line = str(error)
    assert line.startswith(f"{path}: ")
    assert "\n" not in line


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz") / "x.cap"


@given(head=st.sampled_from([b"", PCAP[:4], PCAP[:24], PCAPNG[:28], PCAPNG[:60], b"\x1f\x8b\x08",
                             b"\xfd7zXZ\x00", b"BZh9"]),
       rest=st.binary(max_size=200))
@settings(max_examples=300, deadline=None)
def test_random_octets_are_read_or_refused(scratch, head, rest):
    never_anything_else(scratch, head + rest)


@given(data=st.data())
@settings(max_examples=400, deadline=None)
def test_changed_octets_are_read_or_refused(scratch, data):
    octets = bytearray(data.draw(st.sampled_from(
        [PCAP, PCAPNG, gzip.compress(PCAP, mtime=0), lzma.compress(PCAPNG)])))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(octets) - 4))
        octets[at:at + 4] = data.draw(st.one_of(
            st.binary(min_size=1, max_size=6),
            st.sampled_from([b"\xff" * 4, bytes(4), struct.pack("<I", 0x7FFFFFFF)])))
    never_anything_else(scratch, bytes(octets))


if "rc-send-ack.pcap" in REAL_CAPTURES:
    def test_a_real_capture_is_read_whole():
        frames, truncation = read(REAL_CAPTURES["rc-send-ack.pcap"])
        assert (len(frames), truncation) == (123, None)


if "infiniband-cm-erf.pcap" in REAL_CAPTURES:
    def test_a_real_capture_of_another_link_is_refused():
        path = REAL_CAPTURES["infiniband-cm-erf.pcap"]
        with pytest.raises(CaptureError) as caught:
            open_capture(str(path))
        assert str(caught.value) == (
            f"{path}: link type 197 (ERF) at octet 20, only 1 (Ethernet) is read; capture on an "
            f"Ethernet interface")
