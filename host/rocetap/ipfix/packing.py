"""Records into Sets, Sets into messages: never an empty Set, no padding, no message too long."""

from __future__ import annotations

from collections.abc import Iterable

from .framing import HEADER_OCTETS, SET_HEADER, MessageHeader
from .templates import OPTIONS_TEMPLATE_SET, TEMPLATE_SET, Template, encode_template

__all__ = ["MessageWriter"]


class MessageWriter:
    """Fills messages of one Observation Domain, one after the other.

    `sequence`: Data Records sent before; counts on, and is the next message's sequence number
    modulo 2^32.
    """

    def __init__(self, domain: int, sequence: int, max_message: int, export_time: int) -> None:
        self.sequence = sequence
        self._domain, self._max, self._time = domain, max_message, export_time
        self._messages: list[bytes] = []
        self._parts: list[bytes | memoryview] = []
        self._octets = HEADER_OCTETS
        self._records = 0

    def template(self, template: Template) -> None:
        """One Template Record in a Set of its own (some collectors misread two in a Set)."""
        record = encode_template(template)
        if self._octets + SET_HEADER.size + len(record) > self._max:
            self.flush()
        self._set(OPTIONS_TEMPLATE_SET if template.scope else TEMPLATE_SET, record)

    def records(self, template_id: int, records: Iterable[bytes]) -> None:
        """Data Records of any length, as many in a Set as fit."""
        body: list[bytes] = []
        size = SET_HEADER.size
        for record in records:
            if self._octets + size + len(record) > self._max:
                self._close(template_id, body)
                self.flush()
                body, size = [], SET_HEADER.size
            body.append(record)
            size += len(record)
        self._close(template_id, body)

    def run(self, template_id: int, octets: memoryview, record_octets: int) -> None:
        """Data Records of one length, one after the other in `octets`; cut where a message is
        full."""
        position = 0
        while position < len(octets):
            fit = (self._max - self._octets - SET_HEADER.size) // record_octets
            if fit < 1:
                self.flush()
                continue
            piece = octets[position:position + fit * record_octets]
            self._records += len(piece) // record_octets
            self._set(template_id, piece)
            position += len(piece)

    def flush(self) -> None:
        """Ends the message at hand, if there is anything in it."""
        if not self._parts:
            return
        header = MessageHeader(self._octets, self._time, self.sequence & 0xFFFF_FFFF, self._domain)
        self._messages.append(b"".join([header.pack(), *self._parts]))
        self.sequence += self._records
        self._parts, self._octets, self._records = [], HEADER_OCTETS, 0

    def finish(self) -> list[bytes]:
        """All messages, the last one ended."""
        self.flush()
        return self._messages

    def _close(self, template_id: int, body: list[bytes]) -> None:
        if body:
            self._records += len(body)
            self._set(template_id, b"".join(body))

    def _set(self, set_id: int, body: bytes | memoryview) -> None:
        self._parts += [SET_HEADER.pack(set_id, SET_HEADER.size + len(body)), body]
        self._octets += SET_HEADER.size + len(body)
