"""The daemon's numbers as Prometheus metrics, and its health."""

from __future__ import annotations

import importlib.metadata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from rocetap.export.hub import Hub
from rocetap.spec.classes import FrameClass
from rocetap.spec.flags import CLOSURE_REASONS, SequenceFlag
from rocetap.telemetry.server import Health

__all__ = ["ExporterMetrics", "exporter_health", "exporter_registry"]

_PREFIX: Final = "rocetap_exporter"
_PRIORITIES: Final = 8
_CLOSURES: Final = ("ordinary", *(flag.name or "" for flag in SequenceFlag
                                  if flag & CLOSURE_REASONS))
_DROPS: Final = ("snapshot", "final", "no_session", "session_start", "session_end",
                 "board_restart", "unknown_tag", "after_final", "report_ids", "epoch_ids")
"""Reasons that are shown from the start, at 0."""

_LINE: Final = ("crc", "format", "oversize", "message", "retry", "stale_reply", "record_missed",
                "record_discarded", "sweep_repeated")


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"{_PREFIX}_{name}", text, value=value)


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(f"{_PREFIX}_{name}", text, value=value)


def _counters(name: str, text: str, labels: tuple[str, ...],
              values: Mapping[tuple[str, ...], float]) -> Metric:
    family = CounterMetricFamily(f"{_PREFIX}_{name}", text, labels=labels)
    for label_values, value in values.items():
        family.add_metric(label_values, value)
    return family


def _by_reason(counts: Counter[str], shown: tuple[str, ...]) -> dict[tuple[str, ...], float]:
    return {(reason,): counts[reason] for reason in (*shown, *sorted(counts.keys() - set(shown)))}


class ExporterMetrics(Collector):
    """Reads the hub when it is scraped; to be called in the event loop's thread.

    `expires`: seconds since 1970 by file, of the certificates in use.
    """

    def __init__(self, hub: Hub, expires: Callable[[], Mapping[str, float]]) -> None:
        self._hub = hub
        self._expires = expires

    def describe(self) -> Iterator[Metric]:
        """Nothing: registering shall not read the hub."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """All families."""
        yield from self._board()
        yield from self._board_counters()
        yield from self._records()
        yield from self._session()

    def _board(self) -> Iterator[Metric]:
        board, now = self._hub.board, self._hub.monotonic()
        age = float("nan") if board.sampled_at is None else now - board.sampled_at
        yield _gauge("board_up", "Whether the link to the board works.", board.up)
        yield _gauge("board_last_sample_age_seconds", "Since the latest whole sample.", age)
        yield _gauge("board_sample_seconds", "What the latest sample took.", board.sample_s)
        yield _counter("board_starts", "Times that the board was brought up.", board.starts)
        yield _counter("board_restarts", "Of them, those that found it reset.", board.restarts)
        yield _gauge("clock_error_seconds", "At most so far off UTC are time stamps of now, if "
                     "this host's clock is right.", board.clock_error_ns / 1e9)
        yield _counters("line_errors", "Trouble on the link as this host saw it.", ("kind",),
                        _by_reason(board.line, _LINE))

    def _board_counters(self) -> Iterator[Metric]:
        totals = self._hub.board.totals
        frames: dict[tuple[str, ...], float] = {}
        pfc: dict[tuple[str, ...], float] = {}
        xoff: dict[tuple[str, ...], float] = {}
        for name, value in totals.items():
            bank, *where = name.split("/")
            if bank == "frame_class":
                frames[where[0], FrameClass(int(where[1])).name.lower()] = value
            elif bank == "pfc_received":
                index = int(where[1])
                (pfc if index < _PRIORITIES else xoff)[where[0], str(index % _PRIORITIES)] = value
        yield _counters("board_frames", "Frames by port and class; each is in one class.",
                        ("port", "class"), frames)
        yield _counters("board_pfc_frames", "Received PFC frames by port and priority.",
                        ("port", "priority"), pfc)
        yield _counters("board_pfc_xoff_frames", "Of them, those with quanta above zero.",
                        ("port", "priority"), xoff)
        for register, name, text in (
                ("capture_generation", "board_capture_discontinuities",
                 "Interruptions of complete observation."),
                ("records_dropped", "board_records_dropped",
                 "Records that found no room in the board's FIFO."),
                ("unprovisioned", "board_unprovisioned_requests",
                 "Attributable requests of connections that are not provisioned.")):
            yield _counter(name, text, totals.get(register, 0))
        yield _counters("board_link_errors", "Frames from this host that the board dropped.",
                        ("kind",), {(kind,): totals.get(f"link_errors/{kind}", 0)
                                    for kind in ("crc", "format")})

    def _records(self) -> Iterator[Metric]:
        hub, counts = self._hub, self._hub.statistics
        yield _counter("records_produced", "Records that the board gave: each is exported, "
                       "dropped or waiting.", counts.produced)
        yield _counter("records_exported", "Records handed to an accepted session.", counts.sent)
        yield _counters("records_dropped", "Records that went nowhere.", ("reason",),
                        _by_reason(hub.drops, _DROPS))
        yield _gauge("records_waiting", "Records in the queue.", hub.queue.records)
        yield _gauge("records_waiting_limit", "Bound of the queue.", hub.settings.queue_limit)
        yield _counter("records_in_doubt", "Exported records whose session broke: the collector "
                       "may not have them.", counts.in_doubt)
        yield _counter("pfc_readings_exported", "PFC readings handed to a session.",
                       counts.readings_sent)
        yield _counter("epochs_opened", "Epochs of which a report was sent.", counts.epochs)
        yield _counters("epochs_closed", "Final reports sent, by closure flag; one with two flags "
                        "counts under both.", ("flag",), _by_reason(counts.closed, _CLOSURES))
        yield _gauge("epochs_open", "Epochs without a final report in this session.",
                     hub.book.open_epochs if hub.book else 0)
        yield _counter("connections_disabled", "Connections that a violation has disabled.",
                       counts.violations)

    def _session(self) -> Iterator[Metric]:
        hub, counts = self._hub, self._hub.statistics
        yield _gauge("session_up", "Whether a session is accepted.", hub.book is not None)
        yield _counter("sessions", "Accepted sessions.", counts.sessions)
        yield _counter("session_attempts", "Tries to open one.", counts.attempts)
        yield _counters("provisioning_reloads", "Times that the provisioning was read again.",
                        ("outcome",), _by_reason(counts.reloads, ("taken", "refused")))
        expiry = GaugeMetricFamily(f"{_PREFIX}_certificate_expiry_timestamp_seconds",
                                   "End of validity of what is in use.", labels=("file",))
        for name, value in self._expires().items():
            expiry.add_metric((name,), value)
        yield expiry
        info = GaugeMetricFamily(f"{_PREFIX}_build_info", "1.", labels=("version",))
        info.add_metric((importlib.metadata.version("rocetap"),), 1)
        yield info


def exporter_registry(hub: Hub, expires: Callable[[], Mapping[str, float]]) -> CollectorRegistry:
    """A registry with the daemon's metrics in it."""
    registry = CollectorRegistry()
    registry.register(ExporterMetrics(hub, expires))
    return registry


def exporter_health(hub: Hub) -> Health:
    """Healthy: the board is up, its latest sample is not older than three intervals and a few
    seconds, and the collector has accepted a session."""
    board = hub.board
    age = None if board.sampled_at is None else hub.monotonic() - board.sampled_at
    is_fresh = age is not None and age <= 3 * hub.settings.interval + 5
    session = hub.book is not None
    return Health(board.up and is_fresh and session, {
        "board": "up" if board.up else "down",
        "last_sample_age_seconds": None if age is None else round(age, 3),
        "session": "up" if session else "down"})
