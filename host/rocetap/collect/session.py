"""One peer's Transport Session at the collector: octets in, batches for the store out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ..ipfix.collecting import (
    CollectingSession,
    DataSet,
    Event,
    RecordsMissing,
    TemplateAdded,
    TemplateRemoved,
)
from ..ipfix.decoding import record_bounds, unsigned
from ..ipfix.errors import RemoteError
from ..ipfix.flowkeys import FLOW_KEYS
from ..ipfix.records import Records
from .bindings import Foreign, PfcBinding, Refused, SequenceBinding, bind
from .epochs import BookResult, EpochBook, Serials
from .outcomes import Outcome, outcomes
from .rules import Rule, check
from .settings import CollectorSettings

__all__ = ["Batch", "CollectorSession", "RawRecord"]


@dataclass(frozen=True)
class RawRecord:
    """A Data Record kept as it came, with what is needed to read it again."""

    domain: int
    epoch_id: int
    rule: Rule
    fields: str
    """Name and length of each field of its Template, `name:octets` by commas."""
    octets: bytes


@dataclass
class Batch:
    """What one call changed: all of it goes into the store together.

    `epochs`: (Observation Domain, EPOCH rows), of several for one epoch the last counts; `pfc`:
    (Observation Domain, PFC_READING rows);
    `counters`: what was passed over or dropped, by reason, since the batch before; `error`: why
    the session must be closed now, None while it goes on.
    """

    epochs: list[tuple[int, Records]] = field(default_factory=list)
    pfc: list[tuple[int, Records]] = field(default_factory=list)
    raw: list[RawRecord] = field(default_factory=list)
    counters: Counter[str] = field(default_factory=Counter)
    reports: int = 0
    """Sequence reports read, valid or not."""
    error: RemoteError | None = None
    ended: tuple[int, str] | None = None
    """When the Transport Session ended, ms since 1970-01-01 UTC, and why; None while it lasts."""

    def outcomes(self) -> Counter[str]:
        """How many epochs reached each outcome with this batch; those still open are none."""
        found: Counter[str] = Counter()
        for _, epochs in self.epochs:
            for number, count in enumerate(np.bincount(outcomes(epochs)).tolist()):
                if number and count:
                    found[Outcome(number).name] += count
        return found

    def __bool__(self) -> bool:
        return bool(self.epochs or self.pfc or self.raw or self.counters or self.reports
                    or self.ended)


@dataclass
class _Bound:
    binding: SequenceBinding | PfcBinding | Foreign | Refused
    names: tuple[str, ...]
    keys: int | None = None
    """flowKeyIndicator as advertised."""
    warned: bool = False


class CollectorSession:
    """Decodes and validates what one exporter sends over one connection.

    `now_ms` is the collector's clock in ms since 1970-01-01 UTC.
    """

    def __init__(self, settings: CollectorSettings | None = None) -> None:
        self.settings = settings or CollectorSettings()
        self.ipfix = CollectingSession(self.settings.pen, self.settings.ipfix)
        self._bound: dict[tuple[int, int], _Bound] = {}
        self._books: dict[int, EpochBook] = {}
        self._serials = Serials()
        self._told: Counter[str] = Counter()
        self._raw = self._raw_octets = 0

    @property
    def contexts(self) -> int:
        """Retained epochs."""
        return sum(len(book) for book in self._books.values())

    def receive(self, data: bytes | memoryview, now_ms: int) -> Batch:
        """Octets of the stream, cut anywhere. Never raises on bad input: see Batch.error."""
        batch = Batch()
        try:
            for sets in _neighbours(self.ipfix.receive(data)):
                if isinstance(sets, list):
                    self._data(sets, now_ms, batch)
                else:
                    self._event(sets)
        except RemoteError as error:
            batch.error = error
        return self._counted(batch)

    def tick(self, now_ms: int) -> Batch:
        """Retires epochs; to be called now and then, also while nothing comes."""
        batch = Batch()
        for domain, book in self._books.items():
            self._take(batch, domain, book.retire(now_ms))
        return self._counted(batch)

    def end(self) -> Batch:
        """The connection has ended, for whatever reason."""
        self.ipfix.end()
        batch = Batch()
        for domain, book in self._books.items():
            self._take(batch, domain, book.end())
        return self._counted(batch)

    def _event(self, event: Event) -> None:
        if isinstance(event, TemplateAdded):
            binding = bind(event.template, self.ipfix.registry, self.settings.reduced_lengths)
            self._bound[event.domain, event.template.id] = _Bound(binding, event.names)
        elif isinstance(event, TemplateRemoved):
            del self._bound[event.domain, event.template_id]
        elif isinstance(event, RecordsMissing):
            pass  # counted by the decoder as records_missing

    def _data(self, sets: list[DataSet], now_ms: int, batch: Batch) -> None:
        """Sets of one Template and domain, one after the other in the stream."""
        domain, template = sets[0].domain, sets[0].template
        bound = self._bound[domain, template.id]
        binding = bound.binding
        count = sum(len(item.records) for item in sets)
        if isinstance(binding, Foreign):
            if "flowKeyIndicator" in bound.names:
                for item in sets:
                    self._flow_keys(domain, bound.names, item.records, batch)
            elif "informationElementName" not in bound.names:
                batch.counters["record.foreign"] += count
        elif isinstance(binding, Refused):
            batch.counters[f"template.{binding.reason}"] += count
        elif isinstance(binding, PfcBinding):
            self._pfc(domain, binding.read(_joined(sets)), batch)
        elif self._keys_agree(bound, binding, count, batch):
            reports = binding.read(_joined(sets))
            self._sequence(domain, reports, sets, bound.names, now_ms, batch)

    def _flow_keys(
        self, domain: int, names: tuple[str, ...], records: Records, batch: Batch,
    ) -> None:
        """Flow Keys records (RFC 7011, 4.4): which fields of which Template are keys."""
        # Reduced-size encoding is legal for both (RFC 7011, 6.2).
        fits = all(one.name in names and records.dtype[one.name].kind in "uV"
                   and 1 <= records.dtype[one.name].itemsize <= one.octets for one in FLOW_KEYS)
        if not fits:
            batch.counters["template.flow_keys"] += len(records)
            return
        pairs = zip(*(unsigned(records, one.name).tolist() for one in FLOW_KEYS), strict=True)
        for template_id, keys in pairs:
            bound = self._bound.get((domain, template_id))
            if bound is None:
                batch.counters["flow_keys.unknown_template"] += 1
            else:
                bound.keys = keys

    def _keys_agree(
        self, bound: _Bound, binding: SequenceBinding, count: int, batch: Batch,
    ) -> bool:
        """Whether the Flow Keys advertised for the Template are those of the profile."""
        if bound.keys is None:
            if self.settings.require_flow_keys:
                batch.counters["template.flow_keys_missing"] += count
                return False
            if not bound.warned:
                bound.warned = True
                batch.counters["flow_keys.not_advertised"] += 1
            return True
        if bound.keys != binding.keys:
            batch.counters["template.flow_keys_wrong"] += count
            return False
        return True

    def _pfc(self, domain: int, readings: Records, batch: Batch) -> None:
        good = readings["priority"] <= 7
        if not good.all():
            batch.counters["rule.pfc_priority_range"] += int((~good).sum())
            readings = readings[good]
        if len(readings):
            batch.pfc.append((domain, readings))

    def _sequence(
        self, domain: int, reports: Records, sets: list[DataSet], names: tuple[str, ...],
        now_ms: int, batch: Batch,
    ) -> None:
        book = self._books.get(domain)
        if book is None:
            book = self._books[domain] = EpochBook(
                self.settings.epochs, lambda: self.contexts - len(self._books[domain]),
                self._serials)
        batch.reports += len(reports)
        ends = np.cumsum([len(item.records) for item in sets[:-1]]).tolist()
        result = book.process(reports, check(reports), now_ms, ends)
        self._take(batch, domain, result)
        if result.raw:
            self._keep_raw(domain, reports, sets, names, sorted(result.raw), batch)

    def _keep_raw(
        self, domain: int, reports: Records, sets: list[DataSet], names: tuple[str, ...],
        raw: list[tuple[int, Rule]], batch: Batch,
    ) -> None:
        """Keeps records raw as far as the limits go. What tells how to read a record counts as its
        own octets do: it is stored with each."""
        settings = self.settings
        fields = ",".join(f"{name}:{part.length}"
                          for name, part in zip(names, sets[0].template.fields, strict=True))
        for (index, rule), octets in zip(
                raw, _octets_of(sets, [index for index, _ in raw]), strict=True):
            size = len(fields) + len(octets)
            if self._raw >= settings.raw_records:
                batch.counters["resource.raw_records"] += 1
            elif self._raw_octets + size > settings.raw_octets:
                batch.counters["resource.raw_octets"] += 1
            else:
                self._raw += 1
                self._raw_octets += size
                batch.raw.append(RawRecord(
                    domain, int(reports["epoch_id"][index]), rule, fields, octets))

    def _take(self, batch: Batch, domain: int, result: BookResult) -> None:
        batch.epochs += [(domain, rows) for rows in result.parts]
        batch.counters.update(result.counters)

    def _counted(self, batch: Batch) -> Batch:
        """Adds what the decoder has counted since the batch before."""
        for reason, count in self.ipfix.counters.items():
            if count != self._told[reason]:
                batch.counters[f"ipfix.{reason}"] += count - self._told[reason]
                self._told[reason] = count
        return batch


def _neighbours(events: Iterator[Event]) -> Iterator[Event | list[DataSet]]:
    """Gathers Data Sets of one Template that follow one another, so that they are validated as
    one array."""
    sets: list[DataSet] = []
    try:
        for event in events:
            if (isinstance(event, DataSet) and sets and event.domain == sets[0].domain
                    and event.template is sets[0].template):
                sets.append(event)
                continue
            if isinstance(event, RecordsMissing) and sets:
                continue
            if sets:
                yield sets
            sets = []
            if isinstance(event, DataSet):
                sets = [event]
            else:
                yield event
    except RemoteError:
        if sets:
            yield sets
        raise
    if sets:
        yield sets


def _joined(sets: list[DataSet]) -> Records:
    """The records of all Sets in one array of the Template's dtype."""
    first = sets[0]
    if len(sets) == 1:
        return first.records
    if first.template.variable:
        out: Records = np.empty(sum(len(item.records) for item in sets), first.records.dtype)
        position = 0
        for item in sets:
            out[position:position + len(item.records)] = item.records
            position += len(item.records)
        return out
    size = first.template.minimum_octets
    joined: Records = np.frombuffer(
        b"".join(item.octets[:len(item.records) * size] for item in sets), first.records.dtype)
    return joined


def _octets_of(sets: list[DataSet], indices: list[int]) -> Iterator[bytes]:
    """The wire octets of some records, by their increasing indices over all Sets."""
    rest = iter(sets)
    first = end = 0
    for index in indices:
        while index >= end:
            item = next(rest)
            first, end = end, end + len(item.records)
            bounds: list[int] = []
        bounds = bounds or record_bounds(item.template, item.octets)
        yield bytes(item.octets[bounds[index - first]:bounds[index - first + 1]])
