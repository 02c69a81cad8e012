"""Synthetic captures: many request streams with impairments, and all that goes on between them.

The same settings give the same file, octet for octet.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from random import Random
from typing import BinaryIO

from rocetap.errors import RocetapError
from rocetap.files import written

from .encode import RoceFlow, pad_frame, pfc_frame
from .pcap_writer import PcapWriter
from .traffic import PSN_MODULUS, Impairments, RequestStream

__all__ = ["SynthSettings", "SynthSummary", "synthetic_frames", "write_synthetic"]

_MAX_CONNECTIONS = 65_536
_START_NS = 1_700_000_000_000_000_000
_BURST = 8
_MTUS = {"small": (256,), "mixed": (256, 1024, 2048), "large": (4096,)}


@dataclass(frozen=True)
class SynthSettings:
    """What the capture holds. Raises RocetapError for a value that cannot be."""

    packets: int = 20_000
    """Frames in the file, all kinds together."""
    connections: int = 8
    """Request streams; two neighbours are the two directions of one connection."""
    seed: int = 1
    impairments: Impairments = field(
        default_factory=lambda: Impairments(gap=0.002, repeat=0.002, late=0.002))
    reads: int = 1
    """Streams with one READ in the middle of the capture; counted from the last."""
    cnp: float = 0.002
    """Congestion notifications per request."""
    pfc: float = 0.002
    """PFC frames per request; each XOFF is followed by an XON."""
    other: float = 0.01
    """Frames that are not RoCEv2 per request."""
    payload: str = "mixed"
    """Path MTU, "small": 256; "mixed": 256, 1024 and 2048 in turn; "large": 4096."""

    def __post_init__(self) -> None:
        for name, least, most in (("packets", 1, 1 << 40), ("connections", 1, _MAX_CONNECTIONS),
                                  ("reads", 0, self.connections)):
            value = getattr(self, name)
            if not least <= value <= most:
                raise RocetapError(f"{name} is {value}, must be {least} to {most}")
        rates = {name: getattr(self.impairments, name)
                 for name in ("gap", "repeat", "late", "jump")}
        rates |= {name: getattr(self, name) for name in ("cnp", "pfc", "other")}
        for name, rate in rates.items():
            if not 0 <= rate <= 1:
                raise RocetapError(f"{name} is {rate}, must be a chance from 0 to 1")
        if self.payload not in _MTUS:
            raise RocetapError(f"payload is {self.payload!r}, must be one of {', '.join(_MTUS)}")


@dataclass
class SynthSummary:
    """What was put into a capture."""

    frames: int = 0
    octets: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    """Frames by kind: request, acknowledgement, cnp, read (responses too), pfc, other."""
    done: Counter[str] = field(default_factory=Counter)
    """Of all streams: requests, missing, repeated, late, jumps, reads."""


def write_synthetic(path: str | Path, settings: SynthSettings, *,
                    nanoseconds: bool = True) -> SynthSummary:
    """Writes the capture, frame by frame. Raises RocetapError when the file cannot be written."""
    with written(Path(path)) as stream:
        return _write(stream, settings, nanoseconds)


def _write(stream: BinaryIO, settings: SynthSettings, nanoseconds: bool) -> SynthSummary:
    writer = PcapWriter(stream, nanoseconds=nanoseconds)
    summary = SynthSummary()
    for time_ns, frame in synthetic_frames(settings, summary):
        writer.write(time_ns, frame)
    writer.flush()
    return summary


def synthetic_frames(settings: SynthSettings,
                     summary: SynthSummary | None = None) -> Iterator[tuple[int, bytes]]:
    """(arrival in ns, frame) in order; the gaps are those of a 10 Gbit/s line that is half full."""
    counts = SynthSummary() if summary is None else summary
    rng = Random(settings.seed)
    streams = [_stream(index, settings, rng) for index in range(settings.connections)]
    time_ns = _START_NS
    for kind, frame in _interleave(streams, settings, rng):
        counts.frames += 1
        counts.octets += len(frame)
        counts.kinds[kind] += 1
        yield time_ns, frame
        time_ns += (len(frame) + 24) * 8 // 10 + int(rng.random() * 2000)
        if counts.frames == settings.packets:
            break
    for stream in streams:
        counts.done.update(stream.done)


def _interleave(streams: list[RequestStream], settings: SynthSettings,
                rng: Random) -> Iterator[tuple[str, bytes]]:
    """(kind, frame) without end: bursts of one stream, and between them all the rest."""
    reading = streams[len(streams) - settings.reads:]
    sent, paused = 0, -1
    while True:
        if reading and sent >= settings.packets // 2:
            for frame in reading.pop().read(1 + rng.getrandbits(2)):
                sent += 1
                yield "read", pad_frame(frame)
        stream = streams[int(rng.random() * len(streams))]
        for _ in range(1 + int(rng.random() * _BURST)):
            sent += 1
            yield "request", pad_frame(stream.next_frame())
            acknowledgement = stream.acknowledgement()
            if acknowledgement is not None:
                sent += 1
                yield "acknowledgement", pad_frame(acknowledgement)
            if rng.random() < settings.cnp:
                sent += 1
                yield "cnp", stream.congestion_notification()
            if rng.random() < settings.pfc:
                sent += 1
                priority = paused if paused >= 0 else rng.getrandbits(3)
                quanta = 0 if paused >= 0 else 0xFFFF
                paused = -1 if paused >= 0 else priority
                yield "pfc", pfc_frame(_mac(0xFE), {priority: quanta})
            if rng.random() < settings.other:
                sent += 1
                yield "other", pad_frame(_OTHERS[int(rng.random() * len(_OTHERS))])


def _stream(index: int, settings: SynthSettings, rng: Random) -> RequestStream:
    """Streams 2k and 2k+1 are the two directions of connection k; families and tags alternate.

    Stream 0 begins so that its PSNs wrap within the capture.
    """
    pair, side = divmod(index, 2)
    forward, backward = (_flow(pair, side), _flow(pair, 1 - side))
    mtus = _MTUS[settings.payload]
    start = rng.getrandbits(24)
    if index == 0:
        start = PSN_MODULUS - 1 - settings.packets // (4 * settings.connections)
    return RequestStream(forward, backward, start=start, mtu=mtus[pair % len(mtus)],
                         impairments=settings.impairments, rng=rng)


def _flow(pair: int, side: int) -> RoceFlow:
    """The flow from side `side` of a connection to its other side."""
    tags: tuple[tuple[int, int], ...] = ((), ((0x8100, 3 << 13 | 100 + pair % 50),),
                                         ((0x88A8, 3 << 13 | 200), (0x8100, 3 << 13 | 100))
                                         )[pair // 2 % 3]
    host = pair % 200 + 1
    ends: list[IPv4Address] | list[IPv6Address]
    if pair % 2:
        ends = [IPv6Address(f"2001:db8:0:1::{host:x}"), IPv6Address(f"2001:db8:0:2::{host:x}")]
    else:
        ends = [IPv4Address(f"192.0.2.{host}"), IPv4Address(f"198.51.100.{host}")]
    return RoceFlow(source_mac=_mac(side), destination_mac=_mac(1 - side), source=ends[side],
                    destination=ends[1 - side], destination_qp=0x100 + 2 * pair + side, tags=tags)


def _mac(number: int) -> bytes:
    """A locally administered address."""
    return bytes((0x02, 0, 0, 0, 0, number))


def _other_frames() -> list[bytes]:
    """Neighbours of RoCEv2 on the wire: ARP, LLDP, DNS, TCP, and ICMPv6."""
    ethernet = _mac(1) + _mac(0)
    addresses = IPv4Address("192.0.2.1").packed + IPv4Address("198.51.100.1").packed

    def ipv4(protocol: int, body: bytes) -> bytes:
        return (ethernet + b"\x08\x00"
                + struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(body), 1, 0x4000, 64, protocol, 0)
                + addresses + body)

    return [
        b"\xff" * 6 + _mac(0) + bytes.fromhex("0806 0001 0800 0604 0001") + _mac(0) + bytes(14),
        bytes.fromhex("0180c200000e") + _mac(0) + bytes.fromhex("88cc 0207 04") + _mac(0)
        + bytes.fromhex("0402 0731 0602 0078 0000"),
        ipv4(17, struct.pack(">HHHH", 4791, 53, 24, 0) + bytes(16)),
        ipv4(6, struct.pack(">HHIIHHHH", 443, 4791, 1, 1, 0x5010, 100, 0, 0) + bytes(20)),
        ethernet + b"\x86\xdd" + struct.pack(">IHBB", 6 << 28, 8, 58, 255)
        + IPv6Address("2001:db8::1").packed + IPv6Address("2001:db8::2").packed
        + bytes.fromhex("8000 0000 0001 0001"),
    ]


_OTHERS = _other_frames()
