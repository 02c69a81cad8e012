import numpy as np
import pytest

from rocetap.collect.contexts import ContextTable
from rocetap.collect.outcomes import EPOCH


def _rows(ids):
    rows = np.zeros(len(ids), EPOCH)
    rows["report"]["epoch_id"] = ids
    rows["reports"] = np.array(ids) * 10
    return rows


@pytest.mark.parametrize("seed", range(3))
def test_against_a_dictionary(seed):
    rng = np.random.default_rng(seed)
    table, model, top = ContextTable(), {}, 0
    for _ in range(60):
        ids = (top + np.cumsum(rng.integers(1, 9, rng.integers(0, 90)))).tolist()
        top = max([top, *ids])
        table.append(_rows(ids))
        model |= {epoch: epoch * 10 for epoch in ids}
        kept = rng.random(len(table)) < rng.choice([0.1, 0.9, 1.0])
        model = {epoch: model[epoch] for epoch, keep in zip(sorted(model), kept, strict=True)
                 if keep}
        table.keep(kept)
        assert len(table) == len(model)
        wanted = rng.integers(0, top + 2, 50).astype(np.uint64)
        slots, known = table.find(wanted)
        assert known.tolist() == [epoch in model for epoch in wanted.tolist()]
        assert table.rows["reports"][slots[known]].tolist() == [
            model[epoch] for epoch in wanted.tolist() if epoch in model]
    assert table.take(np.ones(len(table), np.bool_))["report"]["epoch_id"].tolist() == sorted(model)


def test_memory_shrinks_with_the_number_of_contexts():
    table = ContextTable()
    table.append(_rows(list(range(1, 10_001))))
    grown = len(table._words)
    table.keep(np.arange(10_000) < 10)
    assert len(table) == 10
    assert len(table._words) < grown // 100


def test_rows_and_words_are_one_memory():
    table = ContextTable()
    table.append(_rows([5]))
    table.rows["missing"][0] = 3
    assert table.take(np.array([0]))["missing"].tolist() == [3]
