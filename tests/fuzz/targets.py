"""What is fuzzed, under one rule: it parses, or raises the remote error, and nothing else.

Each target takes any octets and raises only where the rule is broken.
"""

from __future__ import annotations

import gzip
import lzma
import tempfile
from collections.abc import Callable
from contextlib import suppress

import numpy as np

from rocetap.capture.frames import CaptureError
from rocetap.capture.reading import open_capture
from rocetap.collect.session import CollectorSession
from rocetap.collect.settings import CollectorSettings, EpochLimits
from rocetap.ipfix.collecting import CollectingLimits, CollectingSession
from rocetap.ipfix.errors import RemoteError
from rocetap.ipfix.exporting import ExportingSession
from rocetap.ipfix.framing import MAX_MESSAGE
from rocetap.ipfix.records import PFC_READING, SEQUENCE_REPORT
from rocetap.link.errors import LinkRemoteError
from rocetap.link.framing import MAX_FRAME_OCTETS, FrameDecoder, encode_frame
from rocetap.link.messages import decode_from_board, decode_from_host
from rocetap.spec.wire import MAX_MESSAGE_OCTETS

__all__ = ["SEEDS", "TARGETS", "capture", "collector", "decoder", "everything", "link"]

_LIMITS = CollectingLimits(domains=4, templates=16, malformed_messages=8)


def _session() -> tuple[bytes, bytes]:
    session = ExportingSession(1)
    start = b"".join(session.start(1_700_000_000))
    rows = np.zeros(3, SEQUENCE_REPORT)
    rows["epoch_id"], rows["report_id"], rows["window"], rows["requests"] = [1, 2, 3], 1, 64, 9
    rows["ipv6"], rows["vid"], rows["flags"] = [0, 1, 0], [0, 0, 7], 0x21
    readings = np.zeros(2, PFC_READING)
    data = b"".join([*session.sequence(rows, 1_700_000_000),
                     *session.pfc(readings, 1_700_000_000)])
    return start, data


_START, _DATA = _session()


def decoder(octets: bytes) -> None:
    """The IPFIX decoder, in two pieces, with the Templates of a session before it or not."""
    session = CollectingSession(limits=_LIMITS)
    if octets[:1] > b"\x7f":
        list(session.receive(_START))
    cut = len(octets) // 2
    try:
        for piece in (octets[1:cut], octets[max(1, cut):]):
            for event in session.receive(piece):
                assert 0 <= event.domain < 1 << 32
    except RemoteError:
        pass
    session.end()
    assert all(count > 0 for count in session.counters.values())


def collector(octets: bytes) -> None:
    """Decoder, bindings, rules and epochs, behind the Templates of a session."""
    session = CollectorSession(CollectorSettings(
        reduced_lengths=True, raw_records=4, ipfix=_LIMITS,
        epochs=EpochLimits(contexts=8, closed_retention_ms=1)))
    raw = 0
    for now, piece in enumerate((_START, octets[:len(octets) // 2], octets[len(octets) // 2:])):
        batch = session.receive(piece, now)
        raw += len(batch.raw)
        if batch.error is not None:
            assert isinstance(batch.error, RemoteError)
            break
        session.tick(now)
    assert session.contexts <= 8
    assert raw <= 4
    session.end()
    assert session.contexts == 0


def link(octets: bytes) -> None:
    """COBS frames and the messages in them, from either side; a good frame after it is read."""
    frames = FrameDecoder()
    for piece in (octets[:len(octets) // 2], octets[len(octets) // 2:], b"\0"):
        for message in frames.receive(piece):
            assert 1 <= len(message) <= MAX_MESSAGE_OCTETS
            for decode in (decode_from_board, decode_from_host):
                with suppress(LinkRemoteError):
                    decode(message)
        assert frames.partial_octets <= MAX_FRAME_OCTETS
    for decode in (decode_from_board, decode_from_host):
        with suppress(LinkRemoteError):
            decode(octets)
    assert frames.receive(encode_frame(b"good")) == [b"good"]


def capture(octets: bytes) -> None:
    """The capture reader: whole frames inside what was read, or one line that names the file."""
    line = None
    with tempfile.NamedTemporaryFile(suffix=".cap") as file:
        file.write(octets)
        file.flush()
        try:
            with open_capture(file.name) as opened:
                for batch in opened.batches():
                    assert (batch.offsets + batch.captured <= len(batch.data)).all()
                    assert (batch.captured <= batch.original).all()
        except CaptureError as error:
            line = str(error)
    assert line is None or (line.startswith(f"{file.name}: ") and "\n" not in line)


def everything(octets: bytes) -> None:
    """One of the others, by the first octet."""
    if octets:
        list(TARGETS.values())[octets[0] % (len(TARGETS) - 1)](octets[1:])


TARGETS: dict[str, Callable[[bytes], None]] = {
    "decoder": decoder, "collector": collector, "link": link, "capture": capture,
    "everything": everything}

_PCAP = (b"\xd4\xc3\xb2\xa1\x02\0\x04\0" + bytes(8) + b"\xff\xff\0\0\x01\0\0\0"
         + b"\x01\0\0\0\x02\0\0\0\x0e\0\0\0\x0e\0\0\0" + bytes(14))
_PCAPNG = bytes.fromhex(
    "0a0d0d0a1c0000004d3c2b1a01000000ffffffffffffffff1c000000"
    "010000001400000001000000ffff000014000000"
    "06000000300000000000000001000000020000000e0000000e0000000000000000000000000000000000"
    "000030000000")
SEEDS: dict[str, list[bytes]] = {
    "decoder": [b"\xff" + _DATA, b"\x00" + _START + _DATA],
    "collector": [_DATA, _DATA + _DATA],
    "link": [encode_frame(bytes([kind, 1, 0, 0, 1]) + bytes(8)) for kind in (1, 2, 3, 0x81, 0x82)],
    "capture": [_PCAP, _PCAPNG, gzip.compress(_PCAP, mtime=0), lzma.compress(_PCAPNG)],
}
"""Octets that each target takes as good, to start from."""
SEEDS["everything"] = [bytes([number]) + seed for number, seeds in enumerate(SEEDS.values())
                       for seed in seeds]

assert all(len(seed) <= MAX_MESSAGE for seeds in SEEDS.values() for seed in seeds)
