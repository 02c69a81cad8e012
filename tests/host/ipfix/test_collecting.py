import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocetap.ipfix.collecting import (
    CollectingLimits,
    CollectingSession,
    DataSet,
    RecordsMissing,
    TemplateAdded,
    TemplateRemoved,
)
from rocetap.ipfix.errors import RemoteError
from support.ipfix_tools import data_set, message, opened, readings, reports, template_record

NOW = 1_700_000_000
PLAIN = template_record(256, (8, 4))
TEMPLATE = data_set(2, PLAIN)
TWO_RECORDS = data_set(256, bytes([192, 0, 2, 1, 192, 0, 2, 2]))


def _feed(*messages, limits=None):
    session = CollectingSession(limits=limits)
    return session, list(session.receive(b"".join(messages)))


def _kinds(events):
    return [type(event) for event in events]


def _stream(count=20):
    session, start = opened(max_message=700)
    messages = [start, *session.sequence(reports(count), NOW), *session.pfc(readings(16), NOW)]
    return b"".join(messages)


def _summary(events):
    return [(type(event).__name__, event.records.tobytes() if isinstance(event, DataSet)
             and not event.template.variable else None) for event in events]


def test_what_was_sent_comes_out():
    session, start = opened()
    rows = reports(3, skipped=[5, 6, 7])
    sent = start + b"".join(session.sequence(rows, NOW))
    _, events = _feed(sent)
    assert events[-1].records["skippedPsnTotalCount"].tolist() == [5, 6, 7]
    assert events[-1].export_time == NOW
    assert _kinds(events).count(TemplateAdded) == 8


def test_octet_by_octet_gives_the_same_events():
    stream = _stream()
    _, whole = _feed(stream)
    session = CollectingSession()
    single = [event for at in range(len(stream)) for event in session.receive(stream[at:at + 1])]
    assert _summary(single) == _summary(whole)
    assert not session.counters


@settings(deadline=None)
@given(st.lists(st.integers(1, 900), min_size=1, max_size=30))
def test_any_split_gives_the_same_events(steps):
    stream = _stream(5)
    _, whole = _feed(stream)
    session, found, at, turn = CollectingSession(), [], 0, 0
    while at < len(stream):
        step = steps[turn % len(steps)]
        found += session.receive(stream[at:at + step])
        at, turn = at + step, turn + 1
    assert _summary(found) == _summary(whole)


def test_a_message_cut_short_is_counted_and_gives_nothing():
    session = CollectingSession()
    stream = message(TEMPLATE) + message(TWO_RECORDS)
    assert _kinds(session.receive(stream[:-1])) == [TemplateAdded]
    session.end()
    assert session.counters == {"truncated_message": 1}


# Sequence numbers (RFC 7011, 3.1)


def test_no_gap_is_seen_in_the_first_message():
    session, events = _feed(message(TEMPLATE, sequence=77), message(TWO_RECORDS, sequence=77))
    assert _kinds(events) == [TemplateAdded, DataSet]
    assert not session.counters


def test_a_message_that_never_came_is_exactly_its_records():
    """Messages: Templates; 3 records; 5; Templates and 2; 1. The headers say 0, 0, 3, 8, 10; with
    the third message gone exactly 5 records are missing."""
    record = bytes([192, 0, 2, 1])
    messages = [message(TEMPLATE, sequence=0),
                message(data_set(256, record * 3), sequence=0),
                message(data_set(256, record * 5), sequence=3),
                message(data_set(2, template_record(257, (12, 4))), data_set(256, record * 2),
                        sequence=8),
                message(data_set(256, record), sequence=10)]
    session, events = _feed(*messages)
    assert RecordsMissing not in _kinds(events)
    assert session.records == 11
    session, events = _feed(*messages[:2], *messages[3:])
    assert [event for event in events if isinstance(event, RecordsMissing)] == [
        RecordsMissing(1, 5)]
    assert session.counters == {"records_missing": 5}


def test_gaps_are_counted_across_the_wrap():
    session, events = _feed(message(TEMPLATE, sequence=(1 << 32) - 4),
                            message(TWO_RECORDS, sequence=(1 << 32) - 4),
                            message(TWO_RECORDS, sequence=1),
                            message(TWO_RECORDS, sequence=3))
    assert [event.count for event in events if isinstance(event, RecordsMissing)] == [3]
    assert session.counters == {"records_missing": 3}


def test_domains_count_for_themselves():
    session, _ = _feed(message(TEMPLATE, domain=1), message(TWO_RECORDS, domain=1),
                       message(TEMPLATE, domain=2), message(TWO_RECORDS, domain=2))
    assert not session.counters
    assert session.records == 4


def test_a_number_that_goes_back_is_counted_and_taken():
    session, _ = _feed(message(TEMPLATE, sequence=5), message(TWO_RECORDS, sequence=4),
                       message(TWO_RECORDS, sequence=6))
    assert session.counters == {"sequence_backwards": 1}


def test_records_of_a_skipped_set_are_unread_not_missing():
    session, events = _feed(message(TWO_RECORDS, sequence=0), message(TEMPLATE, sequence=2))
    assert _kinds(events) == [TemplateAdded]
    assert session.counters == {"unknown_template": 1, "records_unread": 2}


# Templates


def test_data_without_a_template_is_counted_once_and_skipped_by_its_length():
    session, events = _feed(message(TWO_RECORDS, TEMPLATE, TWO_RECORDS))
    assert _kinds(events) == [TemplateAdded, DataSet]
    assert session.counters == {"unknown_template": 1}


def test_the_same_id_in_two_domains_is_two_templates():
    other = data_set(2, template_record(256, (138, 8)))
    _, events = _feed(message(TEMPLATE, TWO_RECORDS, domain=1),
                      message(other, TWO_RECORDS, domain=2))
    assert [len(event.records) for event in events if isinstance(event, DataSet)] == [2, 1]


def test_a_repeated_template_is_counted_and_changes_nothing():
    session, events = _feed(message(TEMPLATE, TEMPLATE, TWO_RECORDS))
    assert _kinds(events) == [TemplateAdded, DataSet]
    assert session.counters == {"template_repeated": 1}


def test_a_template_redefined_without_withdrawal_leaves_nothing_readable_under_its_id():
    """RFC 7011, 8.1: what the records mean is no longer sure."""
    other = data_set(2, template_record(256, (138, 8)))
    session, events = _feed(message(TEMPLATE, other, TWO_RECORDS, TEMPLATE, TWO_RECORDS))
    assert _kinds(events) == [TemplateAdded, TemplateRemoved]
    assert session.counters == {"template_redefined": 2, "ambiguous_template": 2}


def test_withdrawn_and_defined_anew():
    other = data_set(2, template_record(256, (138, 8)))
    session, events = _feed(message(TEMPLATE, data_set(2, template_record(256)), other,
                                    TWO_RECORDS))
    assert _kinds(events) == [TemplateAdded, TemplateRemoved, TemplateAdded, DataSet]
    assert len(events[-1].records) == 1
    assert not session.counters


def test_data_after_a_withdrawal_is_skipped():
    session, events = _feed(message(TEMPLATE, data_set(2, template_record(256)), TWO_RECORDS))
    assert _kinds(events) == [TemplateAdded, TemplateRemoved]
    assert session.counters == {"unknown_template": 1}


def test_withdraw_all_takes_one_kind_only():
    options = data_set(3, template_record(257, (145, 2), (173, 8), scope=1))
    second = data_set(2, template_record(258, (12, 4)))
    for set_id, gone in ((2, [256, 258]), (3, [257])):
        session, events = _feed(message(TEMPLATE, options, second,
                                        data_set(set_id, template_record(set_id))))
        removed = [event.template_id for event in events if isinstance(event, TemplateRemoved)]
        assert removed == gone
        assert not session.counters


def test_a_withdrawal_of_what_is_not_there_is_counted():
    session, _ = _feed(message(data_set(2, template_record(300))))
    assert session.counters == {"withdrawal_of_unknown": 1}


def test_two_options_templates_in_a_set_and_all_scope():
    both = data_set(3, template_record(256, (145, 2), (173, 8), scope=2)
                    + template_record(257, (145, 2), (173, 8), scope=1))
    session, events = _feed(message(both, data_set(256, bytes(10)), data_set(257, bytes(20))))
    assert _kinds(events) == [TemplateAdded, TemplateAdded, DataSet, DataSet]
    assert session.records == 3
    assert not session.counters


def test_a_scope_count_of_zero_is_counted():
    bad = data_set(3, template_record(256, (145, 2), (173, 8), scope=0))
    session, _ = _feed(message(bad, data_set(256, bytes(10))))
    assert session.counters == {"scope_count": 1, "unknown_template": 1}


# Sets and messages


@pytest.mark.parametrize("padding", range(4))
def test_padding_shorter_than_a_record(padding):
    session, events = _feed(message(TEMPLATE, data_set(256, bytes(8 + padding))))
    assert len(events[-1].records) == 2
    assert not session.counters


def test_an_empty_set_is_counted_and_harmless():
    session, events = _feed(message(data_set(256, b""), TEMPLATE, data_set(256, b""),
                                    data_set(2, b""), TWO_RECORDS))
    assert _kinds(events) == [TemplateAdded, DataSet]
    assert session.counters == {"empty_set": 3, "unknown_template": 1}


@pytest.mark.parametrize("set_id", [0, 1, 4, 255])
def test_reserved_set_ids_are_skipped(set_id):
    session, events = _feed(message(TEMPLATE, data_set(set_id, b"abcd"), TWO_RECORDS))
    assert _kinds(events) == [TemplateAdded, DataSet]
    assert session.counters == {"reserved_set_id": 1}


@pytest.mark.parametrize("length", [0, 3, 13, 65_535])
def test_a_set_length_that_cannot_be_discards_its_message_only(length):
    """RFC 7011, 9: also the Template before it in the message; the next message is read."""
    bad = message(TEMPLATE, data_set(256, bytes(8), length=length))
    session, events = _feed(bad, message(TEMPLATE, TWO_RECORDS, sequence=2))
    assert _kinds(events) == [TemplateAdded, DataSet]
    assert session.counters == {"set_length": 1, "records_unread": 2}


def test_octets_behind_the_last_set_discard_the_message():
    session, events = _feed(message(TEMPLATE, b"\0\0"))
    assert events == []
    assert session.counters == {"set_length": 1}


def test_a_template_cut_inside_its_enterprise_number():
    cut = data_set(2, template_record(256, (8, 4, 32473))[:-2])
    session, events = _feed(message(TEMPLATE, cut), message(TEMPLATE))
    assert _kinds(events) == [TemplateAdded]
    assert session.counters == {"truncated_template": 1}


def test_a_field_count_of_65535():
    session, _ = _feed(message(data_set(2, template_record(256, (8, 4), count=65_535))))
    assert session.counters == {"truncated_template": 1}


def test_what_a_malformed_message_says_about_missing_records_stands():
    session, events = _feed(message(TEMPLATE, sequence=0),
                            message(data_set(256, b"", length=3), sequence=4))
    assert events[1:] == [RecordsMissing(1, 4)]
    assert session.counters == {"records_missing": 4, "set_length": 1}


@pytest.mark.parametrize("bad", [
    message(b"", version=9), message(b"", length=0), message(b"", length=15)])
def test_lost_framing_raises_after_the_events_before_it(bad):
    session, events = CollectingSession(), []
    with pytest.raises(RemoteError):
        events.extend(session.receive(message(TEMPLATE) + bad))
    assert _kinds(events) == [TemplateAdded]


def test_the_largest_message():
    body = bytes(4 * ((65_535 - 16 - 4) // 4))
    _, events = _feed(message(TEMPLATE), message(data_set(256, body)))
    assert len(events[-1].records) == 16_378


# Bounds


def test_templates_are_bounded():
    limits = CollectingLimits(templates=3)
    records = b"".join(template_record(256 + n, (8, 4)) for n in range(5))
    session, events = _feed(message(data_set(2, records), domain=1),
                            message(TEMPLATE, domain=2), limits=limits)
    assert _kinds(events) == [TemplateAdded] * 3
    assert session.counters == {"template_limit": 3}
    withdrawal = data_set(2, template_record(256))
    events = list(session.receive(message(withdrawal, domain=1) + message(TEMPLATE, domain=2)))
    assert _kinds(events) == [TemplateRemoved, TemplateAdded]


def test_domains_are_bounded():
    session, events = _feed(*(message(TEMPLATE, domain=n) for n in range(4)),
                            limits=CollectingLimits(domains=2))
    assert _kinds(events) == [TemplateAdded] * 2
    assert session.counters == {"domain_limit": 2}


def test_fields_are_bounded():
    session, _ = _feed(message(data_set(2, template_record(256, *[(8, 4)] * 5))),
                       limits=CollectingLimits(template_fields=4))
    assert session.counters == {"template_fields_limit": 1}


def test_a_peer_that_sends_only_malformed_messages_is_let_go():
    session = CollectingSession(limits=CollectingLimits(malformed_messages=3))
    bad = message(data_set(256, b"", length=0))
    list(session.receive(bad * 3))
    with pytest.raises(RemoteError) as caught:
        list(session.receive(bad))
    assert str(caught.value) == ("more than 3 malformed messages, the last one: Set length is 0, "
                                 "must be 4 to 4")


# Fuzzing: parses, or raises the remote error, or counts; nothing else, and soon


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=400))
def test_any_octets(octets):
    _never_else(octets)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(
    st.sampled_from([2, 3, 256, 257, 258, 263, 4, 0]), st.binary(max_size=60),
    st.none() | st.integers(0, 80)), max_size=6))
def test_any_sets_under_good_headers(sets):
    _never_else(message(*(data_set(*parts) for parts in sets)))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_change_to_a_good_stream(data):
    stream = bytearray(_stream(4))
    for _ in range(data.draw(st.integers(1, 8))):
        stream[data.draw(st.integers(0, len(stream) - 1))] = data.draw(st.integers(0, 255))
    _never_else(bytes(stream))


def _never_else(octets):
    session = CollectingSession()
    began = time.monotonic()
    try:
        for _ in session.receive(octets):
            pass
    except RemoteError:
        pass
    session.end()
    assert time.monotonic() - began < 5
