"""docs/reference/rules-exporter.md names files and tests that are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/reference/rules-exporter.md").read_text(encoding="utf-8")
ROWS = [line.strip("|").split(" | ") for line in PAGE.splitlines()
        if line.startswith("| ") and not line.startswith("| section")]


def test_the_page_has_both_profiles():
    assert [line for line in PAGE.splitlines() if line.startswith("## ")] == [
        "## Sequence observations", "## PFC telemetry",
        "## RFC 7011, as far as the profiles rest on it"]
    assert len(ROWS) >= 40


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1].strip()[:60])
def test_a_rule_has_a_place_and_a_test(row):
    _section, _rule, built, held = row
    places = re.findall(r"`((?:hdl|host)/[\w/]+\.py)`", built)
    assert places
    for place in places:
        top, _, rest = place.partition("/")
        inside = {"hdl": "hdl/rocetap_hdl", "host": "host/rocetap"}[top]
        assert (ROOT / inside / rest).is_file(), place
    tests = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", held)
    assert tests
    for file, name in tests:
        assert re.search(rf"^ *(async )?def {name}\(", (ROOT / file).read_text(), re.MULTILINE), (
            f"{file} has no {name}")
