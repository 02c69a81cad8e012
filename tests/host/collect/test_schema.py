"""docs/reference/store.md describes the schema that is there, table by table in its order."""

import re
import sqlite3
from pathlib import Path

import pytest

from rocetap.collect.outcomes import EndReason, Outcome, Qualification
from rocetap.collect.schema import (
    APPLICATION,
    PARTS,
    ROW_SERIAL_BITS,
    SCHEMA,
    SCHEMA_VERSION,
    TABLES,
)
from rocetap.ipfix.wire import PFC_COLUMNS, SEQUENCE_COLUMNS
from rocetap.spec.flags import SequenceFlag

PAGE = (Path(__file__).parents[3] / "docs/reference/store.md").read_text()
SECTIONS = {part.split("\n", 1)[0]: part for part in PAGE.split("\n## ")[1:]}


def _rows(section):
    return dict(re.findall(r"^\| (\w+) \| (.+) \|$", SECTIONS[section], re.MULTILINE))


@pytest.fixture(scope="module")
def db():
    db = sqlite3.connect(":memory:")
    db.executescript(SCHEMA)
    yield db
    db.close()


@pytest.mark.parametrize("table", [*TABLES, "epochs"])
def test_every_column_is_described_in_its_order(db, table):
    columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
    described = [name for name in _rows(table) if name != "column"]
    assert described == columns


def test_no_table_is_described_that_is_not_there(db):
    tables = {name for name, in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert set(SECTIONS) - {"How versions differ", "epochs"} == tables == set(TABLES)


def test_every_part_of_a_shared_column_is_described():
    rows = _rows("epoch_rows")
    for name, (column, low, bits) in PARTS.items():
        assert f"{name} {low + bits - 1}:{low}" in rows[column]


def test_columns_of_elements_name_them():
    for section, columns in (("epochs", SEQUENCE_COLUMNS), ("pfc_readings", PFC_COLUMNS)):
        rows = _rows(section)
        for element, column in columns.items():
            assert element in rows[column], column


def test_numbers_are_the_codes():
    rows = _rows("epochs")
    for column, values in (("outcome", Outcome), ("qualifications", Qualification),
                           ("flags", SequenceFlag)):
        for value in values:
            assert f"{value.value} {value.name}" in rows[column]
    assert f"{EndReason.inactivity.value} inactivity" in rows["ended"]
    assert f"{EndReason.session_end.value} end of the session" in rows["ended"]
    assert f"2^{ROW_SERIAL_BITS}" in rows["id"]


def test_versions():
    assert f"Schema version {SCHEMA_VERSION} " in PAGE
    assert f"0x{APPLICATION:x}" in PAGE
    versions = re.findall(r"^\| (\d+) \|", SECTIONS["How versions differ"], re.MULTILINE)
    assert versions == [str(number) for number in range(1, SCHEMA_VERSION + 1)]
