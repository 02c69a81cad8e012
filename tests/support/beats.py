"""Frames as arrays for a board, and what the beat recorder saw as frames again."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

from rocetap_hdl.layouts import frame_beat
from rocetap_sim.board import SimulatedBoard
from rocetap_sim.design import Design
from support.designs.beat_recorder import record_octets


def recorder_board(bus_bytes=8, ports=1, **options):
    """A simulated board around the beat recorder."""
    design = Design("support.designs.beat_recorder", "BeatRecorder",
                    (("bus_bytes", bus_bytes), ("ports", ports)))
    return SimulatedBoard(design=design, **options)


def batch_of(frames, *, original=None, time_ns=None, interface=None, lost=None):
    """A FrameBatch of frames given as octets."""
    sizes = np.array([len(frame) for frame in frames], dtype=np.uint32)
    count = len(frames)
    return SimpleNamespace(
        data=np.frombuffer(b"".join(frames), dtype=np.uint8),
        offsets=np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.uint64),
        captured=sizes,
        original=sizes if original is None else np.asarray(original, dtype=np.uint32),
        time_ns=np.arange(count, dtype=np.uint64) if time_ns is None else time_ns,
        interface=np.zeros(count, np.uint16) if interface is None else interface,
        lost=np.zeros(count, bool) if lost is None else np.asarray(lost))


@dataclass(frozen=True)
class SeenFrame:
    """A frame as its beats gave it, FCS among its octets."""

    octets: bytes
    port: int
    time_ns: int
    error: bool = False
    sliced: bool = False
    lost: bool = False


class Recording:
    """Collects the recorder's octets from a board and puts frames together."""

    def __init__(self, board):
        self._board = board
        self._bus_bytes = board.design.bus_bytes
        self._layout = frame_beat(self._bus_bytes)
        self._size = record_octets(self._bus_bytes)
        self._rest = b""
        self._open = {}

    def take(self):
        """Frames that are whole by now; runs the board until it has nothing more to say."""
        while True:
            self._board.run_until_output(200, 1 << 20)
            octets = self._board.read(1 << 20)
            if not octets:
                break
            self._rest += octets
        return self._frames()

    def _frames(self):
        whole = len(self._rest) // self._size * self._size
        records, self._rest = self._rest[:whole], self._rest[whole:]
        frames = []
        for at in range(0, whole, self._size):
            record = records[at:at + self._size]
            time_ns, port = int.from_bytes(record[:8], "little"), record[8]
            beat = self._layout.from_bits(int.from_bytes(record[9:], "little"))
            if beat["first"]:
                assert port not in self._open, "a frame begins inside another"
                self._open[port] = (time_ns, b"")
            begun, octets = self._open.pop(port)
            count = beat["end"] + 1 if beat["last"] else self._bus_bytes
            octets += beat["data"].to_bytes(self._bus_bytes, "little")[:count]
            if beat["last"]:
                frames.append(SeenFrame(octets, port, begun, bool(beat["error"]),
                                        bool(beat["sliced"]), bool(beat["lost"])))
            else:
                assert (beat["error"], beat["sliced"], beat["lost"]) == (0, 0, 0)
                self._open[port] = (begun, octets)
        return frames
