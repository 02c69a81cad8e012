import numpy as np
import pytest

from rocetap.ipfix.collecting import CollectingSession, DataSet, TemplateAdded
from rocetap.ipfix.errors import LocalError
from rocetap.ipfix.exporting import ExportingSession
from rocetap.ipfix.framing import MessageHeader
from support.ipfix_tools import opened, readings, reports

NOW = 1_700_000_000


def _sets(messages):
    for message in messages:
        position = 16
        while position < len(message):
            set_id = int.from_bytes(message[position:position + 2], "big")
            length = int.from_bytes(message[position + 2:position + 4], "big")
            yield set_id, message[position + 4:position + length]
            position += length


def _sequences(messages):
    return [MessageHeader.unpack(message).sequence for message in messages]


def _epochs(messages, start):
    collector = CollectingSession()
    events = list(collector.receive(start + b"".join(messages)))
    assert not collector.counters
    return [epoch for event in events
            if isinstance(event, DataSet) and "rdmaSequenceEpochId" in event.records.dtype.names
            for epoch in event.records["rdmaSequenceEpochId"].tolist()]


def test_start_sends_type_information_then_templates_then_flow_keys():
    ids = [set_id for set_id, _ in _sets(ExportingSession(1).start(NOW))]
    assert ids == [3, 256, 2, 2, 2, 2, 3, 3, 3, 263]


def test_start_defines_each_template_once_each_in_a_set_of_its_own():
    collector = CollectingSession()
    added = [event.template for message in ExportingSession(1).start(NOW)
             for event in collector.receive(message) if isinstance(event, TemplateAdded)]
    assert [(t.id, len(t.fields), t.scope) for t in added] == [
        (256, 9, 2), (257, 19, 0), (258, 19, 0), (259, 21, 0), (260, 21, 0), (261, 5, 3),
        (262, 5, 3), (263, 2, 1)]
    assert [t.minimum_octets for t in added[1:7]] == [120, 144, 124, 148, 29, 29]


def test_flow_keys_of_every_sequence_template():
    flow_keys = dict(_sets(ExportingSession(1).start(NOW)))[263]
    assert flow_keys.hex(" ", 10) == (
        "0101000000000000009f 0102000000000000009f 0103000000000018009f 0104000000000018009f")


def test_small_messages_carry_the_same():
    small = ExportingSession(1, max_message=512).start(NOW)
    assert max(map(len, small)) <= 512
    whole = list(_sets(ExportingSession(1).start(NOW)))
    joined = {}
    for set_id, body in _sets(small):
        joined[set_id] = joined.get(set_id, b"") + body
    assert joined[256] == dict(whole)[256]
    assert joined[263] == dict(whole)[263]


def test_sequence_numbers_count_data_records_options_records_too():
    session = ExportingSession(1)
    start = session.start(NOW)
    assert _sequences(start) == [0, 16]
    assert session.records_sent == 16 + 4
    assert _sequences(session.sequence(reports(3), NOW)) == [20]
    assert _sequences(session.pfc(readings(5), NOW)) == [23]
    assert _sequences(session.sequence(reports(1, first_epoch=4), NOW)) == [28]


def test_545_ipv4_records_fill_a_message():
    session, _ = opened()
    messages = session.sequence(reports(546), NOW)
    assert [len(message) for message in messages] == [65_420, 16 + 4 + 120]
    assert _sequences(messages) == [20, 565]


def test_templates_by_family_and_vlan():
    session, _ = opened()
    rows = reports(6)
    rows["ipv6"] = [0, 1, 0, 1, 0, 0]
    rows["vid"] = [0, 0, 5, 5, 0, 4094]
    rows["cvid"] = [0, 0, 0, 6, 7, 0]
    sets = list(_sets(session.sequence(rows, NOW)))
    assert [(set_id, len(body)) for set_id, body in sets] == [
        (257, 120), (258, 144), (259, 124), (260, 148), (259, 248)]
    assert sets[3][1][-4:] == bytes([0, 5, 0, 6])


@pytest.mark.parametrize("seed", range(3))
def test_a_mixed_batch_keeps_the_order_of_epochs_across_templates(seed):
    """First reports are serialized in increasing epoch-ID order (Identity and Epoch Lifecycle)."""
    rng = np.random.default_rng(seed)
    session, start = opened(max_message=2000)
    rows = reports(500, ipv6=rng.integers(0, 2, 500), vid=rng.integers(0, 2, 500) * 9)
    assert _epochs(session.sequence(rows, NOW), start) == list(range(1, 501))


def test_pfc_directions_have_their_own_templates():
    session, _ = opened()
    rows = readings(4, transmitted=[0, 0, 1, 0])
    assert [(i, len(body)) for i, body in _sets(session.pfc(rows, NOW))] == [
        (261, 58), (262, 29), (261, 29)]


def test_nothing_to_send_is_no_message():
    session, _ = opened()
    assert session.sequence(reports(0), NOW) == []
    assert session.pfc(readings(0), NOW) == []


def test_other_strides_are_sent_as_well():
    session, start = opened()
    assert _epochs(session.sequence(reports(10)[::2], NOW), start) == [1, 3, 5, 7, 9]


def test_domain_and_time_stand_in_the_header():
    session = ExportingSession(0xFFFF_FFFF)
    header = MessageHeader.unpack(session.start(NOW)[0])
    assert (header.domain, header.export_time) == (0xFFFF_FFFF, NOW)


@pytest.mark.parametrize(("arguments", "text"), [
    ({"domain": 1 << 32}, "observation domain is 4294967296, must be 0 to 4294967295"),
    ({"domain": 1, "pen": -1}, "enterprise number is -1, must be 0 to 4294967295"),
    ({"domain": 1, "max_message": 511}, "max_message is 511, must be 512 to 65535 octets"),
    ({"domain": 1, "max_message": 65_536}, "max_message is 65536, must be 512 to 65535 octets"),
])
def test_wrong_settings_are_refused(arguments, text):
    with pytest.raises(LocalError) as caught:
        ExportingSession(**arguments)
    assert str(caught.value) == text


def test_order_of_calls():
    session = ExportingSession(1)
    with pytest.raises(LocalError) as caught:
        session.sequence(reports(1), NOW)
    assert str(caught.value) == "start was not called: the Templates go out first"
    session.start(NOW)
    with pytest.raises(LocalError) as caught:
        session.start(NOW)
    assert str(caught.value) == "start was called twice; a new connection needs a new session"


@pytest.mark.parametrize(("rows", "text"), [
    (reports(2, epoch_id=[2, 2]),
     "first report of epoch 2 comes after epoch 2; epoch ids must increase"),
    (reports(2, epoch_id=[3, 2]),
     "first report of epoch 2 comes after epoch 3; epoch ids must increase"),
    (reports(1, epoch_id=1),
     "first report of epoch 1 comes after epoch 1; epoch ids must increase"),
    (reports(1, epoch_id=0), "an epoch id or report id is 0, both count from 1"),
    (reports(1, first_epoch=2, report_id=0), "an epoch id or report id is 0, both count from 1"),
    (reports(1, first_epoch=2, flags=0x0060), "flags 0x0040 are not assigned, must be zero"),
])
def test_reports_that_no_exporter_may_send_are_refused(rows, text):
    session, _ = opened()
    session.sequence(reports(1), NOW)
    sent = session.records_sent
    with pytest.raises(LocalError) as caught:
        session.sequence(rows, NOW)
    assert str(caught.value) == text
    assert session.records_sent == sent


def test_later_reports_of_an_epoch_need_no_order():
    session, start = opened()
    messages = session.sequence(reports(3), NOW)
    messages += session.sequence(reports(3, report_id=2)[::-1].copy(), NOW)
    assert _epochs(messages, start) == [1, 2, 3, 3, 2, 1]


def test_wrong_arrays_are_refused():
    session, _ = opened()
    with pytest.raises(LocalError, match=r"^records are of \[.*\] in 1 dimensions, must be "):
        session.sequence(readings(1), NOW)
    with pytest.raises(LocalError) as caught:
        session.pfc(readings(1, priority=8), NOW)
    assert str(caught.value) == "priority is 8, must be 0 to 7"
    with pytest.raises(LocalError) as caught:
        session.pfc(readings(1), 1 << 32)
    assert str(caught.value) == "export time is 4294967296, must be 0 to 4294967295"
