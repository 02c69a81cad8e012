"""What a capture gives: batches of frames as arrays, and the errors of reading."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocetap.errors import RocetapError

__all__ = [
    "LINK_TYPE_ETHERNET", "MAX_FRAME_OCTETS", "CaptureError", "Frame", "FrameBatch",
    "TruncatedCapture", "link_type_name",
]

LINK_TYPE_ETHERNET = 1

MAX_FRAME_OCTETS = 262_144
"""Longest frame that is believed, in octets: the bound that libpcap sets for a snapshot length."""

_LINK_TYPES = {
    0: "BSD loopback", 1: "Ethernet", 101: "raw IP", 105: "IEEE 802.11", 108: "OpenBSD loopback",
    113: "Linux cooked capture", 127: "IEEE 802.11 radiotap", 197: "ERF", 228: "raw IPv4",
    229: "raw IPv6", 247: "InfiniBand", 249: "USB", 276: "Linux cooked capture 2",
}


def link_type_name(number: int) -> str:
    """"197 (ERF)": the number, and the name where there is one."""
    name = _LINK_TYPES.get(number)
    return f"{number} ({name})" if name else str(number)


class CaptureError(RocetapError):
    """A capture that cannot be read: which file, where in it, and what to do."""


class TruncatedCapture(CaptureError):
    """The capture stops in the middle of a record, or its framing is lost.

    Readers deliver all whole records first and then set `Capture.truncation` to this; a command
    prints its results, then this line, and leaves with exit code 3. `offset` counts octets of the
    capture, after decompression, to the record that is not whole; `record` counts records (pcap)
    or blocks (pcapng) from 1.
    """

    exit_code = 3

    def __init__(self, path: str, *, offset: int, record: int, reason: str) -> None:
        super().__init__(f"{path}: record {record} at octet {offset}: {reason}; "
                         f"all {record - 1} records before it were read")
        self.offset = offset
        self.record = record
        self.reason = reason


@dataclass(frozen=True)
class Frame:
    """One frame of a batch. It was cut by the tap when `original` exceeds `len(data)`."""

    data: bytes
    original: int
    time_ns: int
    interface: int
    lost: bool


@dataclass(frozen=True)
class FrameBatch:
    """Frames in file order; all arrays but `data` have one element a frame."""

    data: NDArray[np.uint8]
    """The octets that the frames lie in."""
    offsets: NDArray[np.uint64]
    """Where each frame begins in `data`."""
    captured: NDArray[np.uint32]
    """Octets of each frame that are in the file."""
    original: NDArray[np.uint32]
    """Octets that each frame had on the wire, without FCS; never below `captured`."""
    time_ns: NDArray[np.uint64]
    """Arrival, ns since 1970, exact."""
    interface: NDArray[np.uint16]
    """Index of the interface in the capture, from 0 (modulo 65536)."""
    lost: NDArray[np.bool_]
    """The capture says that frames were lost between the frame before and this one."""

    def __len__(self) -> int:
        return len(self.offsets)

    def frames(self) -> Iterator[Frame]:
        """One by one, copied: for slow and simple uses."""
        octets = self.data.tobytes()
        for start, size, original, time_ns, interface, lost in zip(
                self.offsets.tolist(), self.captured.tolist(), self.original.tolist(),
                self.time_ns.tolist(), self.interface.tolist(), self.lost.tolist(), strict=True):
            yield Frame(octets[start:start + size], original, time_ns, interface, lost)
