"""docs/reference/frame-classes.md: its table is the spec's, and the tests that it names exist."""

import re
from pathlib import Path

from rocetap.spec.classes import ATTRIBUTABLE, FRAME_CLASSES, LOSES_CAPTURE, FrameClass

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/frame-classes.md").read_text(encoding="utf-8")


def effect(frame_class):
    if frame_class is FrameClass.ELIGIBLE_REQUEST:
        return "counted"
    if frame_class in ATTRIBUTABLE:
        return "violation"
    return "capture discontinuity" if frame_class in LOSES_CAPTURE else "none"


def test_table():
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in PAGE.splitlines() if re.match(r"\| \d", line)]
    assert [[*row[:3], row[4]] for row in rows] == [
        [str(int(one)), one.name, meaning, effect(one)] for one, meaning in FRAME_CLASSES.items()]
    assert all(row[3] for row in rows)


def test_named_tests_exist():
    named = re.findall(r"`(tests/\S+\.py)(?:::(\w+))?`", PAGE)
    assert len(named) > 15
    for path, function in named:
        text = (ROOT / path).read_text(encoding="utf-8")
        assert not function or f"def {function}(" in text, (path, function)
