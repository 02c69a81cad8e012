"""Compression is found by content; damage is told after the last good octet."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma

import pytest

from rocetap.capture.frames import CaptureError
from rocetap.capture.source import CHUNK_OCTETS, DamagedStream, open_source, read_chunks

CONTENT = bytes(range(256)) * 300
COMPRESSORS = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress}


class Dripping(io.RawIOBase):
    """A stream that gives a few octets at a time."""

    def __init__(self, data, step):
        self._data, self._step = data, step

    def readable(self):
        return True

    def read(self, size=-1):
        piece, self._data = self._data[:self._step], self._data[self._step:]
        return piece


def read_all(data, step=None):
    stream = io.BytesIO(data) if step is None else Dripping(data, step)
    got = []
    try:
        for chunk in read_chunks("x", stream):
            assert 0 < len(chunk) <= CHUNK_OCTETS
            got.append(chunk)
    except DamagedStream as error:
        return b"".join(got), str(error)
    return b"".join(got), None


@pytest.mark.parametrize("step", [None, 1, 7])
@pytest.mark.parametrize("name", COMPRESSORS)
def test_compressed_content_comes_whole(name, step):
    assert read_all(COMPRESSORS[name](CONTENT), step) == (CONTENT, None)


@pytest.mark.parametrize("size", [0, 1, 5, 6, 7, 1000])
@pytest.mark.parametrize("step", [None, 1, 4])
def test_plain_content_comes_whole(size, step):
    assert read_all(CONTENT[:size], step) == (CONTENT[:size], None)


@pytest.mark.parametrize("name", COMPRESSORS)
def test_members_one_behind_the_other_with_padding(name):
    pack = COMPRESSORS[name]
    data = pack(CONTENT) + bytes(8) + pack(b"more") + bytes(4)
    assert read_all(data) == (CONTENT + b"more", None)


@pytest.mark.parametrize("name", COMPRESSORS)
def test_more_than_a_chunk_from_a_few_octets(name):
    content = bytes(CHUNK_OCTETS * 2 + 5)
    assert read_all(COMPRESSORS[name](content)) == (content, None)


@pytest.mark.parametrize("name", COMPRESSORS)
def test_a_cut_stream_gives_what_there_is_and_then_the_reason(name):
    whole = COMPRESSORS[name](CONTENT)
    got, reason = read_all(whole[:-5])
    assert reason == f"the {name} data ends early"
    assert CONTENT.startswith(got)
    got, reason = read_all(whole[:-len(whole) // 3], 3)
    assert reason == f"the {name} data ends early"


@pytest.mark.parametrize("name", COMPRESSORS)
def test_a_damaged_stream_is_told(name):
    whole = bytearray(COMPRESSORS[name](CONTENT))
    whole[len(whole) // 2] ^= 0xFF
    got, reason = read_all(bytes(whole))
    assert got == b"" or CONTENT.startswith(got[:65536])
    assert reason.startswith(f"the {name} data is damaged (")


@pytest.mark.parametrize(("magic", "program"), [("28b52ffd", "zstd"), ("04224d18", "lz4")])
def test_other_compressions_are_named(magic, program):
    with pytest.raises(CaptureError) as caught:
        list(read_chunks("a.pcap", io.BytesIO(bytes.fromhex(magic) + bytes(20))))
    assert str(caught.value) == (
        f"a.pcap: is compressed with {program}, which is not read here; decompress it first: "
        f"{program} -d FILE")


def test_files_that_cannot_be_opened(tmp_path):
    missing = tmp_path / "none.pcap"
    with pytest.raises(CaptureError) as caught:
        open_source(str(missing))
    assert str(caught.value) == (
        f"{missing}: no such file; give the path of a pcap or pcapng capture")
    with pytest.raises(CaptureError) as caught:
        open_source(str(tmp_path))
    assert str(caught.value) == f"{tmp_path}: is a directory; name one capture file in it"
    with pytest.raises(CaptureError) as caught:
        open_source("a\0b")
    assert str(caught.value) == "a\0b: cannot be opened: embedded null byte"


def test_permission_denied(monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(CaptureError) as caught:
        open_source("secret.pcap")
    assert str(caught.value) == "secret.pcap: permission denied; make the file readable"


def test_a_read_error_is_one_line():
    class Broken(io.RawIOBase):
        def read(self, size=-1):
            raise OSError(5, "Input/output error")

    with pytest.raises(CaptureError) as caught:
        list(read_chunks("disk.pcap", Broken()))
    assert str(caught.value) == "disk.pcap: cannot be read: Input/output error"


def test_a_terminal_is_no_capture(monkeypatch):
    terminal = type("T", (io.BytesIO,), {"isatty": lambda self: True})()
    monkeypatch.setattr("sys.stdin", type("S", (), {"buffer": terminal})())
    with pytest.raises(CaptureError) as caught:
        open_source("-")
    assert str(caught.value) == (
        "standard input is a terminal: name a capture file, or pipe one in")
