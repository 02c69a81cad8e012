import asyncio
import threading

import pytest

from rocetap.collect.session import Batch
from rocetap.collect.store import StoreDamagedError, StoreError
from rocetap.collect.writing import StoreWriter


class Shelf:
    """A store in memory; fails while `broken`, and waits while `gate` is closed."""

    def __init__(self):
        self.transactions, self.broken = [], False
        self.gate = threading.Event()
        self.gate.set()

    def open_session(self, exporter, address, pen, now_ms):
        return 1

    def write(self, batches):
        self.gate.wait(5)
        if self.broken:
            raise self.broken if isinstance(self.broken, StoreError) else StoreError(
                "store x: cannot write: database or disk is full; free space")
        self.transactions.append([batch.reports for _, batch in batches])

    def close(self):
        pass

    @property
    def stored(self):
        return [reports for transaction in self.transactions for reports in transaction]


def _batch(number):
    return Batch(reports=number)


def test_batches_that_gather_go_into_one_transaction_in_order():
    async def run():
        shelf = Shelf()
        writer = StoreWriter(shelf, 100, 0.01)
        shelf.gate.clear()
        for number in range(1, 8):
            await writer.put(1, _batch(number))
            await asyncio.sleep(0.01 if number == 1 else 0)
        shelf.gate.set()
        await writer.stop()
        assert shelf.transactions == [[1], [2, 3, 4, 5, 6, 7]]
        assert writer.reports_written == 28
        assert writer.counters["batches_not_stored"] == 0

    asyncio.run(run())


def test_a_batch_that_changed_nothing_is_not_written():
    async def run():
        shelf = Shelf()
        writer = StoreWriter(shelf, 4, 0.01)
        await writer.put(1, Batch())
        await writer.stop()
        assert shelf.transactions == []

    asyncio.run(run())


def test_a_full_queue_holds_the_peer_back():
    async def run():
        shelf = Shelf()
        writer = StoreWriter(shelf, 2, 0.01)
        shelf.gate.clear()
        await writer.put(1, _batch(1))
        await asyncio.sleep(0.02)
        await writer.put(1, _batch(2))
        await writer.put(1, _batch(3))
        held = asyncio.create_task(writer.put(1, _batch(4)))
        await asyncio.sleep(0.05)
        assert not held.done()
        shelf.gate.set()
        await held
        await writer.stop()
        assert shelf.stored == [1, 2, 3, 4]

    asyncio.run(run())


def test_a_store_that_fails_is_tried_until_it_works_and_nothing_is_dropped(caplog):
    async def run():
        shelf = Shelf()
        shelf.broken = True
        writer = StoreWriter(shelf, 10, 0.01)
        for number in (1, 2, 3):
            await writer.put(1, _batch(number))
        await asyncio.sleep(0.1)
        assert writer.counters["store_failed"] > 2
        shelf.broken = False
        await writer.stop()
        assert sorted(shelf.stored) == [1, 2, 3]
        assert writer.counters["batches_not_stored"] == 0

    asyncio.run(run())
    assert caplog.text.count("trying again every 0.01 s") == 1


def test_a_stop_with_a_store_that_fails_says_so_and_counts_what_is_lost(caplog):
    async def run():
        shelf = Shelf()
        shelf.broken = True
        writer = StoreWriter(shelf, 1, 30)
        await writer.put(1, _batch(1))
        await asyncio.sleep(0.02)
        await writer.put(1, _batch(2))
        held = asyncio.create_task(writer.put(1, _batch(3)))
        await asyncio.sleep(0.02)
        with pytest.raises(StoreError) as caught:
            await writer.stop()
        assert str(caught.value) == ("store x: cannot write: database or disk is full; free "
                                     "space")
        await held
        assert writer.counters["batches_not_stored"] == 3

    asyncio.run(run())
    assert "the store's writer has stopped" in caplog.text


def test_a_damaged_store_ends_the_writer_and_what_waits_is_counted(caplog):
    async def run():
        shelf = Shelf()
        writer = StoreWriter(shelf, 4, 0.01)
        shelf.broken = StoreDamagedError("store x: cannot write: malformed; start again")
        await writer.put(1, _batch(1))
        await asyncio.wait_for(writer.broken(), 5)
        assert writer.failed
        await writer.put(1, _batch(2))
        with pytest.raises(StoreDamagedError):
            await writer.stop()
        assert writer.counters == {"store_failed": 1, "batches_not_stored": 2}

    asyncio.run(run())
    assert "no batch is stored any more" in caplog.text
