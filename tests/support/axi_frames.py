"""Frames as AXI4-Stream beats, and frame streams as frames again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["Seen", "axis_beats", "frames_of"]


@dataclass(frozen=True)
class Seen:
    """A frame that came out of a frame stream; `octets` is None when it did not end."""

    octets: bytes | None
    error: bool = False
    lost: bool = False


def axis_beats(octets: bytes, bus_bytes: int, *, bad: bool = False) -> Iterator[dict[str, int]]:
    """The frame's beats; lanes behind its end are all ones, ``tuser`` is up before the end too."""
    for at in range(0, len(octets), bus_bytes):
        part = octets[at:at + bus_bytes]
        last = at + bus_bytes >= len(octets)
        yield {"tdata": int.from_bytes(part.ljust(bus_bytes, b"\xff"), "little"),
               "tkeep": (1 << len(part)) - 1, "tlast": last, "tuser": bad if last else 1}


def frames_of(beats: Iterable[Any], bus_bytes: int) -> list[Seen]:
    """What a frame stream's beats say."""
    frames: list[Seen] = []
    octets: bytes | None = None
    for beat in beats:
        if beat["first"]:
            if octets is not None:
                frames.append(Seen(None))
            octets = b""
        assert octets is not None, "a beat outside of a frame"
        count = beat["end"] + 1 if beat["last"] else bus_bytes
        octets += beat["data"].to_bytes(bus_bytes, "little")[:count]
        if beat["last"]:
            frames.append(Seen(b"", lost=True) if beat["lost"]
                          else Seen(octets, error=bool(beat["error"])))
            octets = None
        else:
            assert (beat["error"], beat["lost"]) == (0, 0)
        assert beat["sliced"] == 0
    return frames if octets is None else [*frames, Seen(None)]
