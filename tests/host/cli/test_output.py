"""Rows as tables and as JSON lines."""

import io
import json
from collections import Counter

from rocetap.cli.output import (
    frame_line,
    latest_readings,
    print_jsonl,
    print_records,
    print_tables,
)
from rocetap.spec.classes import FrameClass

SEQUENCE = {
    "record": "sequence", "sourceIPv6Address": "2001:db8::1", "destinationIPv6Address": "::2",
    "rdmaDestinationQP": 0x12, "rdmaSequenceEpochId": 7, "rdmaSequenceWindow": 64,
    "rdmaSequenceFlags": 0x33, "skippedPsnTotalCount": 1, "filledPsnTotalCount": 2,
    "expiredPsnTotalCount": 3, "abandonedPsnTotalCount": 4, "pendingPsnCount": 5,
    "repeatedPsnTotalCount": 6, "requestPacketTotalCount": 700,
    "unclassifiedLatePacketTotalCount": 8, "dot1qVlanId": 10, "dot1qCustomerVlanId": 20,
    "outcome": "invalid", "invalidReason": "totals_decreased", "qualifications": ["closureFlag"]}


def table(sequence, pfc=(), width=None):
    stream = io.StringIO()
    print_tables(list(sequence), list(pfc), stream, width)
    return stream.getvalue()


def pfc(priority, total, **interface):
    return {"record": "pfc", "pfcPriority": priority, "pfcControlFrameTotalCount": total,
            **(interface or {"ingressPhysicalInterface": 3})}


def test_jsonl_is_one_object_a_line():
    stream = io.StringIO()
    print_jsonl([SEQUENCE, pfc(1, 2)], stream)
    assert [json.loads(line) for line in stream.getvalue().splitlines()] == [SEQUENCE, pfc(1, 2)]


def test_every_counter_stands_under_its_heading():
    lines = [line for line in table([SEQUENCE]).splitlines() if "┃" in line or "│" in line]
    cells = [[cell.strip() for cell in line.replace("┃", "│").split("│")[1:-1]] for line in lines]
    row = {name: " ".join(line[at] for line in cells[1:]).strip()
           for at, name in enumerate(cells[0])}
    assert row == {
        "source": "2001:db8::1", "destination": "::2", "QP": "0x12", "VLAN": "10/20", "epoch": "7",
        "W": "64", "requests": "700", "skipped": "1", "filled": "2", "expired": "3",
        "abandoned": "4", "pending": "5", "repeated": "6", "late": "8",
        "flags": "finalEpoch profileViolation serialDiscontinuity generationUnverified",
        "outcome": "invalid (totals_decreased) closureFlag"}


def test_several_epochs_have_a_line_of_totals():
    other = SEQUENCE | {"requestPacketTotalCount": 1, "skippedPsnTotalCount": 14,
                        "filledPsnTotalCount": 13}
    bare = {name: value for name, value in SEQUENCE.items() if not name.endswith("Count")}
    for width in (80, 200):
        text = " ".join(table([SEQUENCE, other, bare], width=width).split())
        assert ("in all 3 epochs: 701 requests; 15 skipped = 15 filled + 6 expired + 8 abandoned + "
                "10 pending; 12 repeated, 16 late") in text
    assert "in all" not in table([SEQUENCE])


RECORDS = [{"record": "dropped", "reason": "epoch.invalid", "count": 12, "exporter": "probe"},
           {"record": "dropped", "reason": "x" * 70, "count": 1, "exporter": None}]


def test_records_are_a_table_where_they_fit():
    stream = io.StringIO()
    print_records("dropped", RECORDS, stream, 120)
    title, _, heading, _, first, second, *_ = stream.getvalue().splitlines()
    assert title.strip() == "dropped"
    assert heading.split() == ["reason", "count", "exporter"]
    assert first.split() == ["epoch.invalid", "12", "probe"]
    assert second.split() == ["x" * 70, "1"]


def test_records_that_do_not_fit_are_a_line_for_each_value():
    stream = io.StringIO()
    print_records("dropped", RECORDS, stream, 80)
    lines = [line.split() for line in stream.getvalue().splitlines()]
    assert lines == [["dropped"], ["reason", "epoch.invalid"], ["count", "12"],
                     ["exporter", "probe"], [], ["reason", "x" * 70], ["count", "1"], []]
    assert max(map(len, stream.getvalue().splitlines())) <= 80


def test_no_records_are_a_line():
    stream = io.StringIO()
    print_records("raw", [], stream, 80)
    assert stream.getvalue() == "raw: none\n"


def test_an_epoch_without_an_accepted_report_shows_no_counter_as_zero():
    text = table([{"record": "sequence", "sourceIPv4Address": "192.0.2.1",
                   "destinationIPv4Address": "192.0.2.2", "rdmaDestinationQP": 1,
                   "rdmaSequenceEpochId": 9, "outcome": "invalid", "qualifications": []}])
    row = next(line for line in text.splitlines() if "192.0.2.1" in line)
    assert " 0 " not in row


def test_the_latest_reading_of_each_counter():
    """Counters of two places stay apart, and the table says where each is."""
    places = [{"exporter": name, "observationDomainId": 1, "observationPointId": point}
              for name, point in (("a", 1), ("b", 1), ("b", 2))]
    rows = [pfc(3, total) | places[at] for at, total in ((0, 1), (1, 2), (0, 3), (2, 4), (1, 5))]
    rows.append(pfc(3, 6, egressPhysicalInterface=3) | places[0])
    latest = latest_readings(rows)
    assert sorted(row["pfcControlFrameTotalCount"] for row in latest) == [3, 4, 5, 6]
    shown = [line.split() for line in table([], latest).splitlines()]
    assert ["exporter", "point", "interface"] in [words[:3] for words in shown]
    assert [words[:4] + words[7:8] for words in shown if words[-1:] == ["-"]] == [
        ["a", "1", "3", "received", "3"], ["b", "1", "3", "received", "5"],
        ["b", "2", "3", "received", "4"], ["a", "1", "3", "transmitted", "6"]]


def test_pfc_shows_the_latest_reading_by_port_direction_and_priority():
    text = table([], [pfc(3, 1), pfc(3, 12), pfc(0, 5), pfc(7, 9, egressPhysicalInterface=4)])
    rows = [line.split() for line in text.splitlines()
            if "received" in line or "transmitted" in line]
    assert rows == [["3", "received", "5", "-", "-", "12", "-", "-", "-", "-"],
                    ["4", "transmitted", *"-------", "9"]]


def test_the_frames_in_one_line():
    assert frame_line(Counter({FrameClass.PFC: 2, FrameClass.ELIGIBLE_REQUEST: 5})) == (
        "7 frames: 5 eligible_request, 2 pfc")
    assert frame_line(Counter()) == "0 frames: none"


def test_a_narrow_terminal_gets_every_field_too():
    text = table([SEQUENCE], width=80)
    assert max(map(len, text.splitlines())) <= 80
    heading = next(line.split() for line in text.splitlines() if "req." in line)
    assert heading == ["epoch", "req.", "skip", "fill", "exp.", "aband.", "pend.", "rep.", "late"]
    words = text.split()
    for word in ("invalid", "(totals_decreased)", "closureFlag", "2001:db8::1", "::2", "0x12",
                 "10/20", "64", "finalEpoch", "profileViolation",
                 "serialDiscontinuity", "generationUnverified"):
        assert word in words
    row = next(line.split() for line in text.splitlines() if line.strip().startswith("7: "))
    assert row[-8:] == ["700", "1", "2", "3", "4", "5", "6", "8"]
