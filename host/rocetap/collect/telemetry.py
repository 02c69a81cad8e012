"""The collector's numbers as Prometheus metrics, and whether it is well.

Drops, report gaps and limits are facts about collector and metering, never about the network.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ..telemetry.server import Health
from .outcomes import Outcome
from .server import CollectorServer

__all__ = ["collector_health", "collector_registry"]

_PREFIX = "rocetap_collector"


def collector_registry(server: CollectorServer) -> CollectorRegistry:
    """A registry with the numbers of one server, read when they are asked for."""
    registry = CollectorRegistry()
    registry.register(_Numbers(server))
    return registry


def collector_health(server: CollectorServer) -> Health:
    """Well while it listens and its store can be written."""
    writer = server.writer
    return Health(not writer.failing and not writer.failed, {
        "peers": server.peers, "reports_written": server.reports_written,
        "store": "stopped" if writer.failed else "failing" if writer.failing else "well",
        "batches_waiting": writer.waiting})


class _Numbers(Collector):
    def __init__(self, server: CollectorServer) -> None:
        self._server = server

    def collect(self) -> Iterator[Metric]:
        server, writer = self._server, self._server.writer
        for name, text, value in (
                ("peers", "Connections now, those in their handshake among them.", server.peers),
                ("contexts", "Epochs that are retained for comparison.", server.contexts),
                ("queued_batches", "Batches that wait for the store.", writer.waiting),
                ("store_failing", "1 while the store cannot be written.",
                 int(writer.failing or writer.failed)),
                ("certificate_expiry_timestamp_seconds",
                 "End of the validity of the collector's certificate, s since 1970-01-01 UTC.",
                 server.certificate_expires_ms / 1000)):
            yield GaugeMetricFamily(f"{_PREFIX}_{name}", text, value=value)
        for name, text, count in (
                ("sessions", "Transport Sessions begun.", server.sessions_begun),
                ("reports_written", "Sequence reports whose batch is in the store.",
                 server.reports_written)):
            yield CounterMetricFamily(f"{_PREFIX}_{name}", text, value=count)
        yield _counters("epochs", "Epochs that reached an outcome, as stored.", "outcome", {
            outcome.name: writer.outcomes[outcome.name] for outcome in Outcome
            if outcome is not Outcome.open})
        yield _counters("refused", "Connections refused or broken, by reason.", "reason",
                        server.counters)
        yield _counters("dropped", "Records and messages passed over or dropped by the collector, "
                        "by reason; no network fact.", "reason", server.drops)
        yield _counters("store_errors", "Writes that failed, and batches given up.", "reason",
                        {reason: writer.counters[reason]
                         for reason in ("store_failed", "batches_not_stored")})
        limits = GaugeMetricFamily(f"{_PREFIX}_limit", "Limits of the collector.",
                                   labels=["name"])
        for name, limit in server.settings.limits().items():
            limits.add_metric([name], limit)
        yield limits

    def describe(self) -> Iterable[Metric]:
        """Nothing at registration: the numbers are there when they are asked for."""
        return []


def _counters(name: str, text: str, label: str, counts: Mapping[str, int]) -> CounterMetricFamily:
    family = CounterMetricFamily(f"{_PREFIX}_{name}", text, labels=[label])
    for value, count in sorted(counts.items()):
        family.add_metric([value], count)
    return family
