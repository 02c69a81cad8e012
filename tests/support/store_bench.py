"""A store filled through the exporter's and the collector's own sessions."""

from __future__ import annotations

from rocetap.collect.session import CollectorSession
from support.ipfix_tools import opened

__all__ = ["TIME", "fill"]

TIME = 1_700_000_000


def fill(store, *batches, pfc=None, end=True, exporter="probe-1.example", now_ms=2000, domain=1):
    """Sends batches of reports, then readings, each through the wire; gives the session's id,
    exporter and collector."""
    session_id = store.open_session(exporter, "192.0.2.77", 32473, 1000)
    sender, start = opened(domain)
    collector = CollectorSession()
    store.write([(session_id, collector.receive(start, now_ms))])
    for rows in batches:
        octets = b"".join(sender.sequence(rows, TIME))
        store.write([(session_id, collector.receive(octets, now_ms))])
    if pfc is not None:
        octets = b"".join(sender.pfc(pfc, TIME))
        store.write([(session_id, collector.receive(octets, now_ms))])
    if end:
        batch = collector.end()
        batch.ended = (3000, "closed by the exporter")
        store.write([(session_id, batch)])
    return session_id, sender, collector
