"""The collecting side of one Transport Session: octets in, events out.

Bad input has one of three ends: it parses, it raises RemoteError (only where no next message can
be found, or a peer sends too many malformed ones), or it is counted under a reason. A malformed
message is discarded whole (RFC 7011, 9). Nothing the peer sends grows anything without a bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from ..spec.elements import DEFAULT_PEN
from .decoding import SetDecoder
from .errors import MalformedMessageError, RemoteError
from .framing import HEADER_OCTETS, SET_HEADER, Deframer, MessageHeader
from .records import Records
from .registry import Registry
from .templates import (
    FIRST_TEMPLATE_ID,
    OPTIONS_TEMPLATE_SET,
    TEMPLATE_SET,
    Refusal,
    Template,
    Withdrawal,
    parse_template_set,
)

__all__ = [
    "CollectingLimits", "CollectingSession", "DataSet", "Event", "RecordsMissing", "TemplateAdded",
    "TemplateRemoved",
]


@dataclass(frozen=True)
class CollectingLimits:
    """Bounds of what one Transport Session may hold."""

    domains: int = 64
    templates: int = 1024
    """Templates of all domains together."""
    template_fields: int = 1024
    malformed_messages: int = 1000
    """The session ends at the next one."""


@dataclass(frozen=True, slots=True)
class TemplateAdded:
    domain: int
    template: Template
    names: tuple[str, ...]
    """Column names of its Data Sets, in the fields' order."""


@dataclass(frozen=True, slots=True)
class TemplateRemoved:
    """Withdrawn, or made ambiguous by another definition under its id."""

    domain: int
    template_id: int


@dataclass(frozen=True, slots=True)
class DataSet:
    domain: int
    template: Template
    records: Records
    """Read-only; see SetDecoder for the columns."""
    octets: memoryview
    """The records' octets, padding among them."""
    export_time: int


@dataclass(frozen=True, slots=True)
class RecordsMissing:
    """The sequence number jumped: `count` Data Records never came."""

    domain: int
    count: int


Event = TemplateAdded | TemplateRemoved | DataSet | RecordsMissing

_Slot = SetDecoder | None
"""None: the id was defined twice, differently, so nothing under it can be read."""


@dataclass
class _Domain:
    slots: dict[int, _Slot] = field(default_factory=dict)
    expected: int | None = None
    """Sequence number of the next message; None before the first."""
    certain: bool = True
    """False once Data Records went by uncounted, until the next message tells how many."""


@dataclass
class _Staged:
    """What one message would change; taken over when the whole message has parsed."""

    header: MessageHeader
    slots: dict[int, _Slot]
    events: list[Event] = field(default_factory=list)
    records: int = 0
    certain: bool = True


class CollectingSession:
    """One connection's decoder.

    `counters`: what was passed over, by reason. `records`: Data Records decoded.
    """

    def __init__(
        self, pen: int = DEFAULT_PEN, limits: CollectingLimits | None = None,
    ) -> None:
        self.limits: Final = limits or CollectingLimits()
        self.registry: Final = Registry(pen)
        self.counters: Counter[str] = Counter()
        self.messages = self.records = 0
        self._deframer = Deframer()
        self._domains: dict[int, _Domain] = {}
        self._malformed = 0
        self._templates = 0

    def receive(self, data: bytes | memoryview) -> Iterator[Event]:
        """Yields the events of the messages that are whole with `data`, in the stream's order.
        To be read to its end before the next call.

        Raises RemoteError when the session cannot go on; events before that were yielded.
        """
        for message in self._deframer.feed(data):
            self.messages += 1
            events: list[Event] = []
            error = self._message(message, events)
            yield from events
            if error is not None:
                self.counters[error.reason] += 1
                self._malformed += 1
                if self._malformed > self.limits.malformed_messages:
                    raise RemoteError(f"more than {self.limits.malformed_messages} malformed "
                                      f"messages, the last one: {error}")

    def end(self) -> None:
        """The stream has ended: a message cut short is counted as `truncated_message`."""
        if self._deframer.held:
            self.counters["truncated_message"] += 1

    def _message(self, message: memoryview, events: list[Event]) -> MalformedMessageError | None:
        """Appends the message's events. Of a malformed message only what its sequence number says
        about the ones before it stands, and no Template of it is kept."""
        header = MessageHeader.unpack(message)
        domain = self._domains.get(header.domain)
        if domain is None:
            if len(self._domains) >= self.limits.domains:
                self.counters["domain_limit"] += 1
                return None
            domain = self._domains[header.domain] = _Domain()
        events += self._check_sequence(domain, header)
        staged = _Staged(header, dict(domain.slots))
        try:
            for set_id, body in _split(message):
                self._set(staged, set_id, body)
        except MalformedMessageError as error:
            domain.certain = False
            return error
        self._templates += len(staged.slots) - len(domain.slots)
        domain.slots = staged.slots
        domain.expected = (header.sequence + staged.records) & 0xFFFF_FFFF
        domain.certain = staged.certain
        self.records += staged.records
        events += staged.events
        return None

    def _check_sequence(self, domain: _Domain, header: MessageHeader) -> list[Event]:
        expected, certain = domain.expected, domain.certain
        domain.expected, domain.certain = header.sequence, True
        ahead = 0 if expected is None else (header.sequence - expected) & 0xFFFF_FFFF
        if ahead == 0:
            return []
        if ahead >= 1 << 31:
            self.counters["sequence_backwards"] += 1
            return []
        if not certain:
            self.counters["records_unread"] += ahead
            return []
        self.counters["records_missing"] += ahead
        return [RecordsMissing(header.domain, ahead)]

    def _set(self, staged: _Staged, set_id: int, body: memoryview) -> None:
        if not len(body):
            self.counters["empty_set"] += 1
        if set_id in (TEMPLATE_SET, OPTIONS_TEMPLATE_SET):
            options = set_id == OPTIONS_TEMPLATE_SET
            for record in parse_template_set(body, options, self.limits.template_fields):
                self._template_record(staged, record)
        elif set_id < FIRST_TEMPLATE_ID:
            self.counters["reserved_set_id"] += 1
        else:
            self._data(staged, set_id, body)

    def _data(self, staged: _Staged, set_id: int, body: memoryview) -> None:
        decoder = staged.slots.get(set_id)
        if decoder is None:
            known = set_id in staged.slots
            self.counters["ambiguous_template" if known else "unknown_template"] += 1
            staged.certain = staged.certain and not len(body)
            return
        records = decoder.decode(body)
        if len(records):
            staged.records += len(records)
            staged.events.append(DataSet(
                staged.header.domain, decoder.template, records, body, staged.header.export_time))

    def _template_record(
        self, staged: _Staged, record: Template | Withdrawal | Refusal,
    ) -> None:
        if isinstance(record, Refusal):
            self.counters[record.reason] += 1
            if record.id in staged.slots:
                self._poison(staged, record.id)
        elif isinstance(record, Withdrawal):
            self._withdraw(staged, record)
        else:
            self._define(staged, record)

    def _define(self, staged: _Staged, template: Template) -> None:
        slots = staged.slots
        if template.id in slots:
            present = slots[template.id]
            if present is not None and present.template == template:
                self.counters["template_repeated"] += 1
                return
            self.counters["template_redefined"] += 1
            self._poison(staged, template.id)
            return
        others = self._templates - len(self._domains[staged.header.domain].slots)
        if others + len(slots) >= self.limits.templates:
            self.counters["template_limit"] += 1
            return
        decoder = slots[template.id] = SetDecoder(template, self.registry)
        staged.events.append(TemplateAdded(staged.header.domain, template, decoder.names))

    def _poison(self, staged: _Staged, template_id: int) -> None:
        """Records under an id with two definitions cannot be read without doubt (RFC 7011, 8.1):
        none are, until the id is withdrawn."""
        if staged.slots[template_id] is not None:
            staged.slots[template_id] = None
            staged.events.append(TemplateRemoved(staged.header.domain, template_id))

    def _withdraw(self, staged: _Staged, record: Withdrawal) -> None:
        slots = staged.slots
        if record.id is None:
            ids = [template_id for template_id, decoder in slots.items()
                   if decoder is None or (decoder.template.scope > 0) == record.options]
        else:
            ids = [record.id] if record.id in slots else []
            if not ids:
                self.counters["withdrawal_of_unknown"] += 1
        for template_id in ids:
            if slots.pop(template_id) is not None:
                staged.events.append(TemplateRemoved(staged.header.domain, template_id))


def _split(message: memoryview) -> list[tuple[int, memoryview]]:
    """(Set id, body) of each Set. Raises MalformedMessageError for a Set length below 4 or past
    the message's end."""
    sets = []
    position = HEADER_OCTETS
    while position < len(message):
        if len(message) - position < SET_HEADER.size:
            raise MalformedMessageError("set_length", "a Set header runs past the message's end")
        set_id, length = SET_HEADER.unpack_from(message, position)
        if not SET_HEADER.size <= length <= len(message) - position:
            raise MalformedMessageError(
                "set_length", f"Set length is {length}, must be 4 to {len(message) - position}")
        sets.append((set_id, message[position + SET_HEADER.size:position + length]))
        position += length
    return sets
