"""docs/reference/rules-collector.md: every file and every test that it names exists."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/reference/rules-collector.md").read_text()
ROWS = [line.split(" | ") for line in PAGE.splitlines()
        if line.startswith("| ") and not line.startswith("| rule ")]
TESTS = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))
FILES = sorted({name for row in ROWS for name in re.findall(r"\w+/\w+\.py", row[1])})


def _names(path):
    return {node.name for node in ast.walk(ast.parse((ROOT / path).read_text()))
            if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize(("path", "name"), TESTS)
def test_every_named_test_exists(path, name):
    assert name in _names(path)


@pytest.mark.parametrize("name", FILES)
def test_every_named_file_exists(name):
    assert (ROOT / "host/rocetap" / name).is_file()


def test_every_rule_has_a_place_and_a_test():
    assert len(ROWS) > 50
    for row in ROWS:
        assert len(row) == 3, row
        assert re.search(r"\w+/\w+\.py", row[1]), row
        assert "::test_" in row[2], row
