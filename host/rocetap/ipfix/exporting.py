"""The exporting side of one Transport Session and Observation Domain: arrays in, messages out.

Sequence numbers count Data Records sent before a message, those of Options Templates too (RFC
7011, 3.1). Over TCP the Templates go out once, first, and live as long as the connection.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from ..spec import elements as spec
from ..spec.elements import DEFAULT_PEN, Element
from ..spec.flags import UNASSIGNED_FLAGS
from .errors import LocalError
from .flowkeys import flow_key_record, flow_keys_template
from .framing import MAX_MESSAGE
from .packing import MessageWriter
from .records import PFC_READING, SEQUENCE_REPORT, Records
from .templates import template_of
from .typeinfo import type_records, type_template
from .wire import PFC_COLUMNS, SEQUENCE_COLUMNS, Encoder

__all__ = [
    "DEFAULT_MAX_MESSAGE", "FLOW_KEYS_TEMPLATE", "MIN_MAX_MESSAGE", "PFC_TEMPLATES",
    "SEQUENCE_TEMPLATES", "TYPE_INFO_TEMPLATE", "ExportingSession",
]

DEFAULT_MAX_MESSAGE: Final = 65_420
"""545 IPv4 records in one Set."""
MIN_MAX_MESSAGE: Final = 512
"""Room for the longest single record."""

_VLAN: Final = (spec.DOT1Q_VLAN_ID, spec.DOT1Q_CUSTOMER_VLAN_ID)

TYPE_INFO_TEMPLATE: Final = 256
SEQUENCE_TEMPLATES: Final[dict[int, tuple[Element, ...]]] = {
    257: spec.SEQUENCE_IPV4,
    258: spec.SEQUENCE_IPV6,
    259: spec.SEQUENCE_IPV4 + _VLAN,
    260: spec.SEQUENCE_IPV6 + _VLAN,
}
"""Template id -> fields. The order is: + 1 for IPv6, + 2 with the VLAN namespace keys."""
PFC_TEMPLATES: Final[dict[int, tuple[Element, ...]]] = {
    261: spec.PFC_RECEIVED,
    262: spec.PFC_TRANSMITTED,
}
FLOW_KEYS_TEMPLATE: Final = 263
_PFC_SCOPE: Final = 3
_SLAB: Final = 8 * 545
"""Records encoded at a time: small enough that the memory is used again."""


class ExportingSession:
    """Serializes reports and readings for one connection.

    Call `start` once, first. A new connection needs a new object, and new epochs in it.

    Raises LocalError for a domain, PEN or message size out of range.
    """

    def __init__(
        self, domain: int, pen: int = DEFAULT_PEN, max_message: int = DEFAULT_MAX_MESSAGE,
    ) -> None:
        _check_u32("observation domain", domain)
        _check_u32("enterprise number", pen)
        if not MIN_MAX_MESSAGE <= max_message <= MAX_MESSAGE:
            raise LocalError(f"max_message is {max_message}, must be {MIN_MAX_MESSAGE} to "
                             f"{MAX_MESSAGE} octets")
        self.domain, self.pen, self.max_message = domain, pen, max_message
        self.records_sent = 0
        """Data Records serialized so far, those of Options Templates too."""
        self._highest_epoch = 0
        self._started = False
        self._encoders = {
            template_id: Encoder(fields, columns, dtype)
            for templates, columns, dtype in (
                (SEQUENCE_TEMPLATES, SEQUENCE_COLUMNS, SEQUENCE_REPORT),
                (PFC_TEMPLATES, PFC_COLUMNS, PFC_READING))
            for template_id, fields in templates.items()}

    def start(self, export_time: int) -> list[bytes]:
        """The messages that open the session: type information, Templates, Options Templates,
        Flow Keys. One Template in each Set, no padding, no empty Set.

        `export_time`: seconds since 1970-01-01 UTC. Raises LocalError when called twice.
        """
        if self._started:
            raise LocalError("start was called twice; a new connection needs a new session")
        pen = self.pen
        writer = self._writer(export_time)
        writer.template(type_template(TYPE_INFO_TEMPLATE))
        writer.records(TYPE_INFO_TEMPLATE, type_records(spec.ELEMENTS, pen))
        writer.flush()
        for template_id, fields in SEQUENCE_TEMPLATES.items():
            writer.template(template_of(template_id, fields, pen))
        for template_id, fields in PFC_TEMPLATES.items():
            writer.template(template_of(template_id, fields, pen, scope=_PFC_SCOPE))
        writer.template(flow_keys_template(FLOW_KEYS_TEMPLATE))
        writer.records(FLOW_KEYS_TEMPLATE, [
            flow_key_record(template_id, fields)
            for template_id, fields in SEQUENCE_TEMPLATES.items()])
        self._started = True
        return self._finish(writer)

    def sequence(self, reports: Records, export_time: int) -> list[bytes]:
        """Messages with `reports` (SEQUENCE_REPORT), in the order given, whatever their
        Templates: the first reports of epochs go out in increasing epoch id.

        Raises LocalError, and serializes nothing, for another dtype, a session not started, a
        first report (report id 1) whose epoch id is not above all before, a zero id, or an
        unassigned flag bit.
        """
        self._check(reports, SEQUENCE_REPORT)
        if not len(reports):
            return []
        reports = np.ascontiguousarray(reports)
        highest = self._check_reports(reports)
        vlan = (reports["vid"] | reports["cvid"]) != 0
        template_ids = 257 + reports["ipv6"] + 2 * vlan
        messages = self._arrays(reports, template_ids, export_time)
        self._highest_epoch = highest
        return messages

    def pfc(self, readings: Records, export_time: int) -> list[bytes]:
        """Messages with `readings` (PFC_READING), in the order given.

        Raises LocalError for another dtype, a session not started, or a priority above 7.
        """
        self._check(readings, PFC_READING)
        if not len(readings):
            return []
        readings = np.ascontiguousarray(readings)
        if readings["priority"].max() > 7:
            raise LocalError(f"priority is {readings['priority'].max()}, must be 0 to 7")
        template_ids = 261 + readings["transmitted"].astype(np.int64)
        return self._arrays(readings, template_ids, export_time)

    def _check(self, records: Records, dtype: np.dtype[np.void]) -> None:
        if not self._started:
            raise LocalError("start was not called: the Templates go out first")
        if records.dtype != dtype or records.ndim != 1:
            raise LocalError(f"records are of {records.dtype} in {records.ndim} dimensions, must "
                             f"be one-dimensional {dtype}")

    def _check_reports(self, reports: Records) -> int:
        """The highest epoch id after these reports."""
        if not reports["epoch_id"].all() or not reports["report_id"].all():
            raise LocalError("an epoch id or report id is 0, both count from 1")
        unassigned = reports["flags"] & UNASSIGNED_FLAGS
        if unassigned.any():
            raise LocalError(f"flags 0x{unassigned.max():04x} are not assigned, must be zero")
        first = reports["epoch_id"][reports["report_id"] == 1]
        if not len(first):
            return self._highest_epoch
        before = np.concatenate([np.array([self._highest_epoch], np.uint64), first[:-1]])
        wrong = np.flatnonzero(first <= before)
        if len(wrong):
            raise LocalError(f"first report of epoch {first[wrong[0]]} comes after epoch "
                             f"{before[wrong[0]]}; epoch ids must increase")
        return int(first[-1])

    def _arrays(
        self, records: Records, template_ids: npt.NDArray[np.int64], export_time: int,
    ) -> list[bytes]:
        """Each Template's records are encoded as one array; runs of neighbours in the order
        given become Sets."""
        writer = self._writer(export_time)
        cuts = np.flatnonzero(np.diff(template_ids)) + 1
        if not len(cuts):
            template_id = int(template_ids[0])
            encoder = self._encoders[template_id]
            for first in range(0, len(records), _SLAB):
                slab = encoder(records[first:first + _SLAB])
                writer.run(template_id, _octets(slab), encoder.octets)
            return self._finish(writer)
        encoded, positions = {}, {}
        for template_id in np.unique(template_ids).tolist():
            chosen = records[template_ids == template_id]
            encoded[template_id] = _octets(self._encoders[template_id](chosen))
            positions[template_id] = 0
        bounds = [0, *cuts.tolist(), len(records)]
        for first, last in pairwise(bounds):
            template_id = int(template_ids[first])
            size = self._encoders[template_id].octets
            begin = positions[template_id]
            end = positions[template_id] = begin + (last - first) * size
            writer.run(template_id, encoded[template_id][begin:end], size)
        return self._finish(writer)

    def _writer(self, export_time: int) -> MessageWriter:
        _check_u32("export time", export_time)
        return MessageWriter(self.domain, self.records_sent, self.max_message, export_time)

    def _finish(self, writer: MessageWriter) -> list[bytes]:
        messages = writer.finish()
        self.records_sent = writer.sequence
        return messages


def _octets(records: Records) -> memoryview:
    return records.view(np.uint8).data


def _check_u32(what: str, value: int) -> None:
    if not 0 <= value < 1 << 32:
        raise LocalError(f"{what} is {value}, must be 0 to {(1 << 32) - 1}")
