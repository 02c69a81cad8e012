"""An EpochBook, what it gave last for each epoch, and reports to send it."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np

from rocetap.collect.epochs import EpochBook
from rocetap.collect.outcomes import EPOCH, Outcome, outcomes
from rocetap.collect.rules import check
from rocetap.collect.settings import EpochLimits
from support.ipfix_tools import reports

__all__ = ["NOW", "Bench", "final", "report"]

NOW = 1_000_000


class Bench:
    """A book, and the newest row it gave for each epoch."""

    def __init__(self, **limits):
        self.book = EpochBook(EpochLimits(**limits))
        self.rows, self.counters, self.raw = {}, Counter(), []

    def take(self, result):
        for row in itertools.chain(*result.parts):
            self.rows[int(row["report"]["epoch_id"])] = row.copy()
        self.counters.update(result.counters)
        self.raw += [rule for _, rule in result.raw]
        return self

    def send(self, *batches, now=NOW):
        rows = np.concatenate(batches)
        return self.take(self.book.process(rows, check(rows), now))

    def outcome(self, epoch=1):
        return Outcome(outcomes(np.array([self.rows[epoch]], EPOCH))[0])

    def latest(self, epoch=1):
        return self.rows[epoch]["report"]


def report(report_id, epoch_id=1, **columns):
    """Report `report_id` of an epoch, its totals as large as its id allows."""
    defaults = {"report_id": report_id, "requests": 10 * report_id, "repeated": report_id}
    return reports(1, first_epoch=epoch_id, **(defaults | columns))


def final(report_id, epoch_id=1, **columns):
    return report(report_id, epoch_id, **({"flags": 0x21} | columns))
