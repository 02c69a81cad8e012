"""The figures are measured on real work; their size is not judged here, the machine is shared."""

from rocetap.bench.figures import best
from rocetap.bench.host import epochs_come_and_go, host_figures
from rocetap.bench.workload import epochs, rounds
from rocetap.collect.rules import check


def test_the_workload_is_valid():
    assert not check(epochs(5, 100, final=True)).any()
    for rows in rounds(64, 3):
        assert not check(rows).any()


def test_figures_of_a_small_run():
    said = []
    figures = {figure.name: figure for figure in host_figures(
        0.01, lambda stage, done, total: said.append(stage))}
    assert all(figure.value > 0 for name, figure in figures.items() if "grew" not in name)
    for name in ("encode into messages", "decode and validate",
                 "decode, validate, store: every record a new row"):
        figure = figures[name]
        assert figure.ratio == figure.value / figures[figure.to].value
    assert figures["encode into messages"].ratio > 1
    assert said[0] == "struct"
    assert said[-1] == "epochs"


def test_memory_does_not_grow_with_the_epochs():
    run = epochs_come_and_go(40_000, contexts=1000)
    assert run.grown_kib < 64
    assert run.retained <= 1000


def test_the_best_turn_counts():
    turns = iter([200_000, 1000, 200_000])
    least = best(lambda: sum(range(next(turns))))
    assert least < best(lambda: sum(range(200_000)), 1)
