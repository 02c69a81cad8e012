"""rocetap bench: a group of commands, a table or one object a line."""

import json

import pytest

from rocetap.bench.figures import Figure
from rocetap.cli import main
from rocetap.cli.bench import print_figures

FIGURES = [Figure("base", 1_000_000.0, "records/s"),
           Figure("ours", 2_500_000.0, "records/s", 2.5, "base", 2_000_000)]


def test_objects(capsys):
    print_figures(FIGURES, as_json=True)
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows[1] == {"name": "ours", "value": 2_500_000.0, "unit": "records/s", "ratio": 2.5,
                       "to": "base", "reach": 2_000_000}


def test_a_table_shows_ratios_and_what_to_reach(capsys):
    print_figures(FIGURES, as_json=False)
    line = next(line for line in capsys.readouterr().out.splitlines() if "ours" in line)
    assert line.split() == ["ours", "2,500,000", "records/s", "2.50", "base", "2,000,000"]


def test_the_command_measures(capsys):
    with pytest.raises(SystemExit) as left:
        main(["bench", "host", "--json", "--scale", "0.01"])
    assert left.value.code == 0
    names = [json.loads(line)["name"] for line in capsys.readouterr().out.splitlines()]
    assert "encode into messages" in names
    assert "decode and validate" in names
