import struct
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocetap.collect.outcomes import Outcome, outcomes
from rocetap.collect.rules import Rule
from rocetap.collect.session import CollectorSession
from rocetap.collect.settings import CollectorSettings, EpochLimits
from rocetap.ipfix.templates import encode_template, template_of
from rocetap.spec.elements import (
    DEFAULT_PEN,
    DOT1Q_CUSTOMER_VLAN_ID,
    DOT1Q_VLAN_ID,
    PFC_RECEIVED,
    SEQUENCE_IPV4,
    DataType,
    Element,
    Semantics,
)
from support.ipfix_tools import data_set, message, opened, readings, reports, template_record

NOW = 1_700_000_000_000
TIME = 1_700_000_000


def _receive(*pieces, **settings_):
    session = CollectorSession(CollectorSettings(**settings_))
    return session, [session.receive(piece, NOW) for piece in pieces]


def _epochs(batch):
    return {(domain, int(row["report"]["epoch_id"])): Outcome(outcome)
            for domain, rows in batch.epochs
            for row, outcome in zip(rows, outcomes(rows), strict=True)}


def _session_of(rows, pfc=None, domain=1, **options):
    session, start = opened(domain, **options)
    octets = start + b"".join(session.sequence(rows, TIME))
    return octets if pfc is None else octets + b"".join(session.pfc(pfc, TIME))


def test_what_the_exporter_sends_is_complete_without_a_word():
    rows = reports(3, flags=0x21, ipv6=[0, 1, 0], vid=[0, 0, 7])
    session, (batch,) = _receive(_session_of(rows, readings(9)))
    assert _epochs(batch) == {(1, n): Outcome.complete for n in (1, 2, 3)}
    assert [(domain, row.tolist()) for domain, row in batch.pfc] == [(1, readings(9).tolist())]
    assert not batch.counters
    assert batch.reports == 3
    assert session.end().epochs == []


def test_octet_by_octet_comes_to_the_same():
    octets = _session_of(reports(3, flags=0x21), readings(2))
    session = CollectorSession()
    batches = [session.receive(octets[at:at + 1], NOW) for at in range(len(octets))]
    found = {}
    for batch in batches:
        found |= _epochs(batch)
    assert found == {(1, n): Outcome.complete for n in (1, 2, 3)}
    assert sum(len(rows) for batch in batches for _, rows in batch.pfc) == 2


def test_neighbouring_sets_are_validated_as_one():
    octets = _session_of(reports(50, flags=0x21), max_message=512)
    _, (batch,) = _receive(octets)
    assert len(batch.epochs) == 1
    assert len(_epochs(batch)) == 50


def test_domains_have_their_own_epochs():
    _, (one, two) = _receive(_session_of(reports(2, first_epoch=5)),
                             _session_of(reports(1), domain=2))
    assert _epochs(one) | _epochs(two) == {
        (1, 5): Outcome.open, (1, 6): Outcome.open, (2, 1): Outcome.open}
    assert not two.counters


def test_the_end_of_the_session_leaves_open_epochs_incomplete():
    session, _ = _receive(_session_of(reports(2, flags=[0x20, 0x21])))
    assert _epochs(session.end()) == {(1, 1): Outcome.incomplete}
    assert session.contexts == 0


def test_a_message_cut_short_is_counted_at_the_end():
    octets = _session_of(reports(1))
    session, (batch,) = _receive(octets[:-1])
    assert not batch.epochs
    assert session.end().counters == {"ipfix.truncated_message": 1}


def test_tick_retires_silent_epochs():
    session, _ = _receive(_session_of(reports(1)), epochs=EpochLimits(inactivity_ms=1000))
    assert not session.tick(NOW + 1000)
    batch = session.tick(NOW + 1001)
    assert _epochs(batch) == {(1, 1): Outcome.incomplete}
    assert batch.counters == {"epoch.inactive": 1}


def test_counters_are_told_once():
    octets = _session_of(reports(1))
    junk = message(data_set(999, b"abcd"), domain=1, sequence=21)
    _, (_, one, two) = _receive(octets, junk, message(domain=3))
    assert one.counters == {"ipfix.unknown_template": 1}
    assert not two.counters


def test_missing_records_are_counted():
    session, start = opened()
    messages = [m for n in (1, 2, 3)
                for m in session.sequence(reports(1, first_epoch=n, flags=0x21), TIME)]
    _, (batch,) = _receive(start + messages[0] + messages[2])
    assert batch.counters == {"ipfix.records_missing": 1}


def test_a_session_whose_framing_is_lost_reports_what_came_before():
    _, (batch,) = _receive(_session_of(reports(1)) + message(version=9))
    assert len(_epochs(batch)) == 1
    assert str(batch.error).endswith("has version 9, must be 10")


def test_raw_records_keep_their_octets_and_how_to_read_them():
    octets = _session_of(reports(3))
    # An exporter of ours sends no unassigned bit: set one in the second record.
    at = octets.rindex(struct.pack("!IHQ", 64, 0x20, 0)) - 120 + 4
    changed = octets[:at] + struct.pack("!H", 0x4020) + octets[at + 2:]
    _, (batch,) = _receive(changed)
    assert [(raw.domain, raw.epoch_id, raw.rule) for raw in batch.raw] == [
        (1, 2, Rule.UNKNOWN_FLAGS)]
    assert batch.raw[0].octets == changed[-240:-120]
    assert batch.raw[0].fields.startswith("observationPointId:8,sourceIPv4Address:4,")
    assert len(batch.raw[0].fields.split(",")) == 19
    assert batch.counters == {"rule.unknown_flags": 1, "report.unsupported_flags": 1}


def test_raw_records_are_bounded():
    rows = reports(3, skipped=5)
    _, (batch,) = _receive(_session_of(rows), raw_records=2)
    assert len(batch.raw) == 2
    assert batch.counters["resource.raw_records"] == 1


def test_raw_records_are_bounded_by_their_octets_too():
    rows = reports(5, skipped=5)
    session, (batch,) = _receive(_session_of(rows))
    each = len(batch.raw[0].fields) + 120
    assert session._raw_octets == 5 * each
    session, (one, two) = _receive(
        _session_of(rows), _session_of(reports(2, skipped=5), domain=2), raw_octets=3 * each + 1)
    assert [len(batch.raw) for batch in (one, two)] == [3, 0]
    assert [batch.counters["resource.raw_octets"] for batch in (one, two)] == [2, 2]


def _with_name(record, length):
    """A valid record with a field of variable length in front (RFC 7011, 7)."""
    head = bytes([length]) if length < 255 else b"\xff" + struct.pack("!H", length)
    return head + bytes([length % 251]) * length + record


@pytest.mark.parametrize("lengths", [
    [0, 1, 254], [255, 3, 300], [9], [1, 2, 3, 4], [5000, 0, 5000]])
@pytest.mark.parametrize("parts", [1, 2])
def test_raw_records_of_variable_length_are_each_their_own_octets(lengths, parts):
    name = Element("interfaceName", 82, 0, DataType.string, Semantics.default)
    template = encode_template(template_of(300, (name, *SEQUENCE_IPV4), DEFAULT_PEN))
    records = []
    for index, length in enumerate(lengths):
        record = bytearray(_session_of(reports(1, first_epoch=index + 1, flags=0x20))[-120:])
        at = record.index(struct.pack("!IHQ", 64, 0x20, 0)) + 4
        record[at:at + 2] = b"\x40\x20"
        records.append(_with_name(bytes(record), length))
    cut = len(records) // parts
    sets = [data_set(300, b"".join(some)) for some in (records[:cut], records[cut:]) if some]
    session = CollectorSession()
    batch = session.receive(message(data_set(2, template), *sets), NOW)
    assert [raw.octets for raw in batch.raw] == records
    assert {raw.rule for raw in batch.raw} == {Rule.UNKNOWN_FLAGS}
    assert batch.raw[0].fields.startswith("ie82:65535,observationPointId:8,")


def test_contexts_are_bounded_over_all_domains():
    session, (one, two) = _receive(_session_of(reports(3)), _session_of(reports(3), domain=2),
                                   epochs=EpochLimits(contexts=4))
    assert session.contexts == 4
    assert not one.counters
    assert two.counters == {"resource.contexts": 2}


# Templates and Flow Keys


def _by_hand(elements=SEQUENCE_IPV4, keys=0b1001_1111, scope=0, record=bytes(120)):
    template = encode_template(template_of(300, elements, DEFAULT_PEN, scope))
    options = template_record(301, (145, 2), (173, 8), scope=1)
    parts = [data_set(3 if scope else 2, template), data_set(3, options)]
    if keys is not None:
        parts.append(data_set(301, struct.pack("!HQ", 300, keys)))
    return message(*parts, data_set(300, record))


def _valid_record():
    return _session_of(reports(1, flags=0x21))[-120:]


def test_flow_keys_as_the_profile_asks():
    _, (batch,) = _receive(_by_hand(record=_valid_record()))
    assert _epochs(batch) == {(1, 1): Outcome.complete}
    assert not batch.counters


@pytest.mark.parametrize("length", range(1, 9))
def test_flow_keys_in_any_legal_length(length):
    """Reduced-size encoding of an unsigned64 (RFC 7011, 6.2)."""
    ipv4 = encode_template(template_of(300, SEQUENCE_IPV4, DEFAULT_PEN))
    options = template_record(301, (145, 2), (173, length), scope=1)
    keys = 0b1001_1111
    octets = message(data_set(2, ipv4), data_set(3, options),
                     data_set(301, struct.pack("!H", 300) + keys.to_bytes(length)),
                     data_set(300, _valid_record()))
    _, (batch,) = _receive(octets, require_flow_keys=True)
    assert _epochs(batch) == {(1, 1): Outcome.complete}
    assert not batch.counters


@pytest.mark.parametrize("keys", [
    0b1_1001_1111,  # the report id among them
    0b0001_1111,    # no epoch id
    0b1001_1110,    # no observation point
    0, (1 << 64) - 1])
def test_other_flow_keys_are_refused(keys):
    _, (batch,) = _receive(_by_hand(keys=keys, record=_valid_record()))
    assert batch.counters == {"template.flow_keys_wrong": 1}
    assert not batch.epochs


def test_a_namespace_field_that_is_no_key_is_refused():
    elements = (*SEQUENCE_IPV4, DOT1Q_VLAN_ID, DOT1Q_CUSTOMER_VLAN_ID)
    _, (batch,) = _receive(_by_hand(elements, record=_valid_record() + bytes(4)))
    assert batch.counters == {"template.flow_keys_wrong": 1}


def test_without_flow_keys_records_are_taken_and_the_lack_counted_once():
    octets = _by_hand(keys=None, record=_valid_record())
    _, (batch, again) = _receive(octets, message(data_set(300, _valid_record()), sequence=1))
    assert _epochs(batch) == {(1, 1): Outcome.complete}
    assert batch.counters == {"flow_keys.not_advertised": 1}
    assert again.counters == {"report.repeat": 1}


def test_without_flow_keys_records_are_refused_where_they_are_required():
    _, (batch,) = _receive(_by_hand(keys=None, record=_valid_record()), require_flow_keys=True)
    assert batch.counters == {"template.flow_keys_missing": 1}
    assert not batch.epochs


def test_flow_keys_of_an_unknown_template_are_counted():
    octets = message(data_set(3, template_record(301, (145, 2), (173, 8), scope=1)),
                     data_set(301, struct.pack("!HQ", 999, 1)))
    _, (batch,) = _receive(octets)
    assert batch.counters == {"flow_keys.unknown_template": 1}


def test_flow_keys_of_odd_lengths_are_counted():
    octets = message(data_set(3, template_record(301, (145, 2), (173, 9), scope=1)),
                     data_set(301, bytes(11)))
    _, (batch,) = _receive(octets)
    assert batch.counters == {"template.flow_keys": 1}


def test_a_template_that_is_not_as_the_profile_asks_is_refused_by_reason():
    _, (batch,) = _receive(_by_hand(SEQUENCE_IPV4[:-1], record=bytes(224)))
    assert batch.counters == {"template.field_missing": 2}


def test_foreign_templates_are_accepted_and_their_records_passed_over():
    octets = message(data_set(2, template_record(300, (8, 4), (82, 65_535))),
                     data_set(300, bytes([1, 2, 3, 4, 2]) + b"ab"))
    _, (batch,) = _receive(octets)
    assert batch.counters == {"record.foreign": 1}


def test_another_enterprise_number_is_foreign():
    octets = _session_of(reports(2), pen=4242)
    _, (batch,) = _receive(octets)
    assert batch.counters == {"record.foreign": 2}
    _, (batch,) = _receive(octets, pen=4242)
    assert len(_epochs(batch)) == 2


def test_a_template_redefined_ends_what_was_bound():
    other = data_set(2, template_record(300, (8, 4)))
    _, (first, second) = _receive(_by_hand(record=_valid_record()), message(
        other, data_set(300, _valid_record()), sequence=2))
    assert _epochs(first)
    assert second.counters == {"ipfix.template_redefined": 1, "ipfix.ambiguous_template": 1}


# PFC


def test_a_priority_above_seven_is_refused():
    record = struct.pack("!QIBQQ", 7, 2, 8, NOW, 5)
    good = struct.pack("!QIBQQ", 7, 2, 7, NOW, 5)
    _, (batch,) = _receive(_by_hand(PFC_RECEIVED, None, 3, good + record + good))
    assert [row["priority"].tolist() for _, row in batch.pfc] == [[7, 7]]
    assert batch.counters == {"rule.pfc_priority_range": 1}


def test_readings_are_kept_as_they_come():
    """No interval is made of two readings, and a fall is no fault: reset or wrap."""
    rows = readings(2, total=[(1 << 64) - 1, 3], priority=4)
    _, (batch,) = _receive(_session_of(reports(0), rows))
    assert batch.pfc[0][1]["total"].tolist() == [(1 << 64) - 1, 3]
    assert not batch.counters


# Fuzzing


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_change_to_a_good_stream_is_counted_or_ends_the_session(data):
    stream = bytearray(_session_of(reports(4, flags=0x21), readings(3)))
    for _ in range(data.draw(st.integers(1, 10))):
        stream[data.draw(st.integers(0, len(stream) - 1))] = data.draw(st.integers(0, 255))
    session = CollectorSession()
    began = time.monotonic()
    session.receive(bytes(stream), NOW)
    session.tick(NOW + 10_000_000)
    session.end()
    assert session.contexts == 0
    assert time.monotonic() - began < 5
