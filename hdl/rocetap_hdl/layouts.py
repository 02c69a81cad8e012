"""What flows between the components: payload layouts and stream signatures.

Everything here is derived from :mod:`rocetap.spec` where the host sees it too. Layouts are least
significant field first; octet 0 of a beat, the first on the wire, is bits 7:0.
"""

from amaranth.hdl import unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rocetap.spec.keys import KEY_FIELDS
from rocetap.spec.records import RECORD_FIELDS

__all__ = [
    "KEY", "RECORD", "RegisterBus", "Verdict", "frame_beat", "frame_stream", "operation",
    "operation_stream", "record_stream", "verdict_stream",
]


def frame_beat(bus_bytes):
    """One beat of a frame stream, from the destination address to the FCS inclusive; in a design
    that is built for frames without FCS, to the octet before it.

    ``data``: ``bus_bytes`` octets, the first on the wire in bits 7:0. ``first`` and ``last`` mark
    the frame's ends. ``end``: index of the last octet that counts, when ``last``. ``error``, when
    ``last``: the MAC says that the frame is bad. ``sliced``, when ``last``: the tap cut the frame,
    octets behind ``end`` were not captured, there is no FCS to check (the last four octets are
    placeholders all the same). ``lost``: this beat, ``first`` and ``last`` at once, is no frame but
    says that frames were lost here.
    """
    return data.StructLayout({
        "data": unsigned(8 * bus_bytes),
        "first": 1,
        "last": 1,
        "end": unsigned(max(1, (bus_bytes - 1).bit_length())),
        "error": 1,
        "sliced": 1,
        "lost": 1,
    })


def frame_stream(bus_bytes):
    """A tap cannot be held up: always ready. Gaps between beats are allowed anywhere."""
    return stream.Signature(frame_beat(bus_bytes), always_ready=True)


KEY = data.StructLayout({name: unsigned(bits) for name, bits in KEY_FIELDS.items()})
"""The connection key of :mod:`rocetap.spec.keys`."""


Verdict = data.StructLayout({
    "frame_class": unsigned(5),   # rocetap.spec.classes.FrameClass
    "key": KEY,                   # right for ATTRIBUTABLE classes, RESPONSE and CNP; else anything
    "psn": unsigned(24),
    "opcode": unsigned(8),
    "time": unsigned(64),         # ns, arrival of the frame's first beat
})
"""The parser's one word on one frame."""


def verdict_stream():
    """One verdict a frame, in the frames' order; always ready."""
    return stream.Signature(Verdict, always_ready=True)


def operation(connections):
    """One operation on the window engine's pipe (:class:`rocetap.spec.registers.OperationKind`)."""
    return data.StructLayout({
        "kind": unsigned(4),
        "context": unsigned(max(1, (connections - 1).bit_length())),
        "raise_generation": 1,     # a capture discontinuity lies before this operation
        "psn": unsigned(24),       # REQUEST
        "time": unsigned(64),      # REQUEST: arrival, ns
        "window": unsigned(24),    # PROVISION
        "tag": unsigned(16),       # PROVISION, MARKER
        "reasons": unsigned(16),   # CLOSE, REMOVE: closure reasons, finalEpoch is implied
    })


def operation_stream(connections):
    """Operations; the engine takes one a clock, whatever they are."""
    return stream.Signature(operation(connections), always_ready=True)


RECORD = data.StructLayout({name: unsigned(bits) for name, bits in RECORD_FIELDS.items()})
"""The snapshot record of :mod:`rocetap.spec.records`."""


def record_stream(*, always_ready=False):
    """Snapshot records, whole."""
    return stream.Signature(RECORD, always_ready=always_ready)


class RegisterBus(wiring.Signature):
    """Register access, one at a time.

    The initiator holds ``address``, ``write`` and ``write_data`` steady and ``request`` high until
    ``done`` is high for one clock; with it come ``status`` (:class:`rocetap.spec.wire.Status`) and,
    for a good read, ``read_data``. ``request`` falls for at least one clock after that.
    """

    def __init__(self):
        super().__init__({
            "request": Out(1),
            "write": Out(1),
            "address": Out(16),
            "write_data": Out(64),
            "done": In(1),
            "status": In(2),
            "read_data": In(64),
        })
