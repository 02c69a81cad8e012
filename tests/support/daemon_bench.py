"""A daemon between a FakeBoard and a real TLS collector, quick enough for tests."""

import asyncio
import contextlib
import random
import time
from ipaddress import ip_address

from rocetap.export.backoff import Backoff
from rocetap.export.daemon import Daemon
from rocetap.export.hub import Settings
from rocetap.export.tls import Limits, client_context
from rocetap.link.driver import Driver
from rocetap.link.errors import TransportOpenError
from rocetap.pki import Credentials
from rocetap.provisioning import Connection, Provisioning

__all__ = [
    "QUICK", "all_accounted", "ids", "make", "provisioning", "running", "until",
]

QUICK = Limits(connect=2.0, dead_peer=1.0, grace=0.3, settle=0.05, close=1.0)


def provisioning(count=2):
    return Provisioning(connections=[Connection(
        source=ip_address("192.0.2.1"), destination=ip_address("198.51.100.2"),
        destination_qp=number, partition_key=0xFFFF, window=64) for number in range(count)])


def make(board, endpoint, files, *, interval=0.1, plan=None, open_driver=None, reread=None,
         watch=None, limits=QUICK, clocks=None, **settings):
    """`files`: Credentials, or what gives a context."""
    def driver():
        if not board.plugged:
            raise TransportOpenError("cannot open fake: no such port")
        return Driver(board.transport(), clock=time.monotonic, timeout_s=0.1)

    return Daemon(
        Settings(endpoint, "collector.example", interval=interval, limits=limits, **settings),
        client_context(files) if isinstance(files, Credentials) else files,
        plan or provisioning(), open_driver or driver, reread=reread, watch=watch,
        backoff=lambda: Backoff(initial=0.05, cap=0.2, random=random.Random(1)), **(clocks or {}))


PATIENCE_S = 60
"""How long a test waits for what must come about: a machine may be busy, so only a test of a bound
that the product promises waits less."""



@contextlib.asynccontextmanager
async def running(daemon):
    task = asyncio.create_task(daemon.run())
    try:
        yield task
    finally:
        daemon.stop()
        await asyncio.wait_for(task, PATIENCE_S)


async def until(condition, task=None, seconds=PATIENCE_S):
    deadline = time.monotonic() + seconds
    while not condition():
        assert task is None or not task.done(), task.exception()
        assert time.monotonic() < deadline, "condition did not come about"
        await asyncio.sleep(0.01)


def ids(reports):
    return [(row["rdmaDestinationQP"], row["rdmaSequenceEpochId"], row["rdmaSequenceReportId"])
            for row in reports]


def all_accounted(daemon):
    """Every record that the board gave was sent, dropped under a reason, or waits."""
    counts = daemon.hub.statistics
    return counts.produced == (counts.sent + sum(daemon.hub.drops.values())
                               + daemon.hub.queue.records)
