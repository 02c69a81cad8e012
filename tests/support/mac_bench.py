"""Octets of GMII for the MACs, and what came out of them as frames."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["GmiiOctet", "Received", "frames_in", "gap", "on_the_line", "received"]

SFD = 0xD5


@dataclass(frozen=True)
class GmiiOctet:
    """One clock of GMII."""

    valid: int = 0
    error: int = 0
    data: int = 0


@dataclass(frozen=True)
class Received:
    """A frame as beats of one octet gave it."""

    octets: bytes
    error: bool = False
    lost: bool = False


def gap(octets: int = 12, *, error_at: int | None = None) -> list[GmiiOctet]:
    """Clocks between frames, with RX_ER in one of them."""
    return [GmiiOctet(error=int(at == error_at)) for at in range(octets)]


def on_the_line(frame: bytes, *, preamble: int = 7, error_at: int | None = None,
                sfd: bool = True) -> list[GmiiOctet]:
    """Preamble, SFD and frame; `error_at`: octet of the frame that comes with RX_ER."""
    octets = b"\x55" * preamble + (bytes([SFD]) if sfd else b"") + frame
    ahead = len(octets) - len(frame)
    return [GmiiOctet(1, int(error_at is not None and at - ahead == error_at), octet)
            for at, octet in enumerate(octets)]


def received(beats) -> list[Received]:
    """Frames of 1-octet beats (constants of frame_beat(1)); asserts that each begins and ends."""
    frames: list[Received] = []
    octets = b""
    for beat in beats:
        assert bool(beat["first"]) == (octets == b""), "a frame begins or goes on where none may"
        octets += bytes([beat["data"]])
        if beat["last"]:
            frames.append(Received(b"" if beat["lost"] else octets, bool(beat["error"]),
                                   bool(beat["lost"])))
            octets = b""
        else:
            assert (beat["error"], beat["lost"]) == (0, 0)
    assert octets == b"", "the last frame has no end"
    return frames


def frames_in(line) -> list[tuple[int, bytes, int, bool]]:
    """(gap before it, frame, preamble's octets, whether TX_ER was up) of what a transmitter emits,
    given as (valid, error, data)."""
    frames, octets, idle, errors = [], None, 0, False
    for valid, error, data in [*line, (0, 0, 0)]:
        if valid:
            if octets is None:
                octets, errors, before = bytearray(), False, idle
            octets.append(data)
            errors |= bool(error)
            idle = 0
            continue
        assert not error, "TX_ER without TX_EN"
        if octets is not None:
            at = octets.index(SFD)
            assert octets[:at] == b"\x55" * at
            frames.append((before, bytes(octets[at + 1:]), at, errors))
            octets = None
        idle += 1
    return frames
