"""Random batches against the rules of Collector Processing, written with dictionaries, one report
at a time and apart from the collector."""

import numpy as np
import pytest

from rocetap.collect.outcomes import Outcome, State
from rocetap.collect.rules import Rule, check
from support.epoch_bench import Bench, report


class Model:
    """The rules of Collector Processing with dictionaries, written apart from the collector."""

    def __init__(self, contexts):
        self.contexts, self.high, self.limit = {}, 0, contexts

    def send(self, row, alone):
        key = bytes(row.tobytes()[:60])
        epoch = int(row["epoch_id"])
        if epoch not in self.contexts:
            if epoch <= self.high:
                return
            self.high = epoch
            if len(self.contexts) >= self.limit:
                return
            self.contexts[epoch] = {"key": key, "id": 0, "row": None, "state": "open",
                                    "gaps": 0, "odd": False, "raw": None}
        context = self.contexts[epoch]
        if context["key"] != key or context["state"] == "invalid":
            return
        report_id, last = int(row["report_id"]), context["row"]
        if report_id == 0:
            context["state"] = "invalid"
        elif report_id < context["id"]:
            pass
        elif report_id == context["id"]:
            if context["raw"] != row.tobytes():
                context["state"] = "invalid"
        elif context["state"] == "final":
            context["state"] = "invalid"
        elif alone == Rule.UNKNOWN_FLAGS:
            context["gaps"] += report_id - context["id"] - 1
            context |= {"id": report_id, "raw": row.tobytes(), "odd": True}
        elif alone != Rule.OK or (last is not None and self.breaks(last, row)):
            context["state"] = "invalid"
        else:
            context["gaps"] += report_id - context["id"] - 1
            context |= {"id": report_id, "row": row.copy(), "raw": row.tobytes()}
            context["state"] = "final" if row["flags"] & 1 else "open"

    @staticmethod
    def breaks(last, row):
        totals = ("skipped", "filled", "expired", "abandoned", "repeated", "requests", "late")
        return (any(row[n] < last[n] for n in totals) or row["window"] != last["window"]
                or row["flow_start_ms"] != last["flow_start_ms"]
                or (row["flags"] ^ last["flags"]) & 0x20 != 0)

    def outcome(self, epoch):
        context = self.contexts[epoch]
        whole = not context["gaps"] and not context["odd"]
        return {"open": Outcome.open, "invalid": Outcome.invalid,
                "final": Outcome.complete if whole else Outcome.incomplete}[context["state"]]


@pytest.mark.parametrize("seed", range(12))
def test_random_batches_against_the_model(seed):
    rng = np.random.default_rng(seed)
    faults = rng.choice([0.0, 0.02, 0.2])
    contexts = int(rng.choice([20, 1000]))
    bench, model = Bench(contexts=contexts, closed_retention_ms=1 << 40), Model(contexts)
    progress, top = {}, 0
    for _ in range(40):
        rows = []
        for _ in range(rng.integers(1, 60)):
            if not progress or rng.random() < 0.2:
                top += int(rng.integers(1, 4))
                progress[top] = 0
            epoch = int(rng.choice(list(progress)[-25:]))
            progress[epoch] += 1
            row = report(progress[epoch], epoch)
            if rng.random() < 0.08:
                row["flags"] |= 1
            if rng.random() < faults:
                fault(rng, row)
            rows.append(row)
        batch = np.concatenate(rows)
        codes = check(batch)
        # A full book frees closed epochs first; the model does not, so keep none closed there.
        if contexts == 20:
            batch["flags"] &= 0xFFFE
            codes = check(batch)
        bench.send(batch)
        for row, code in zip(batch, codes, strict=True):
            if code != Rule.EPOCH_ID_ZERO:
                model.send(row, code)
        assert bench.book.high_water == model.high
        if contexts == 20 and any(c["state"] == "invalid" for c in model.contexts.values()):
            break
    assert sorted(bench.rows) == sorted(model.contexts)
    for epoch, context in model.contexts.items():
        row = bench.rows[epoch]
        assert bench.outcome(epoch) == model.outcome(epoch), epoch
        assert row["missing"] == context["gaps"]
        assert State(row["state"]).name.lower() == context["state"]
        assert max(row["report"]["report_id"], row["unread_id"]) == context["id"]
        if context["row"] is None:
            assert row["reports"] == row["report"]["report_id"] == 0
        else:
            assert row["report"].tobytes() == context["row"].tobytes()


def fault(rng, row):
    """One of the ways in which a report goes wrong."""
    kind = rng.integers(0, 10)
    name, value = [
        ("report_id", row["report_id"] + 2), ("report_id", max(0, int(row["report_id"][0]) - 1)),
        ("flags", row["flags"] | 0x40), ("requests", 3), ("window", 65), ("flags", 0),
        ("qp", 9), ("skipped", 3), ("epoch_id", 0), ("flow_start_ms", 5)][kind]
    row[name] = value
