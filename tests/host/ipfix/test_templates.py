import pytest

from rocetap.ipfix.errors import MalformedMessageError
from rocetap.ipfix.templates import (
    VARIABLE,
    Field,
    Refusal,
    Template,
    Withdrawal,
    encode_template,
    parse_template_set,
    template_of,
)
from rocetap.spec.elements import SEQUENCE_IPV4
from support.ipfix_tools import template_record


def _parse(octets, options=False, max_fields=100):
    return parse_template_set(memoryview(octets), options, max_fields)


def test_there_and_back_with_enterprise_and_variable_fields():
    plain = Template(256, (Field(8, 4), Field(5, 4, 32473), Field(82, VARIABLE)))
    options = Template(999, (Field(145, 2), Field(173, 8)), scope=1)
    assert _parse(encode_template(plain)) == [plain]
    assert _parse(encode_template(options), options=True) == [options]
    assert plain.variable
    assert plain.minimum_octets == 9


def test_the_profiles_template_record_is_80_octets_with_standard_elements():
    """Export Profile and Template: 4 + 19 * 4, and four more for each enterprise number."""
    record = encode_template(template_of(256, SEQUENCE_IPV4, 32473))
    assert len(record) == 80 + 4 * 14
    standard = Template(256, tuple(Field(e.number, e.octets) for e in SEQUENCE_IPV4))
    assert len(encode_template(standard)) == 80


def test_several_records_and_padding_in_a_set():
    one, two = Template(256, (Field(8, 4),)), Template(257, (Field(12, 4),))
    for padding in range(8):
        octets = encode_template(one) + encode_template(two) + bytes(padding)
        assert _parse(octets) == [one, two], padding


def test_withdrawals():
    assert _parse(template_record(300)) == [Withdrawal(300, False)]
    assert _parse(template_record(2)) == [Withdrawal(None, False)]
    assert _parse(template_record(3), options=True) == [Withdrawal(None, True)]
    assert _parse(template_record(300), options=True) == [Withdrawal(300, True)]


def test_all_fields_may_be_scope():
    record = template_record(256, (145, 2), (173, 8), scope=2)
    assert _parse(record, options=True) == [Template(256, (Field(145, 2), Field(173, 8)), 2)]


@pytest.mark.parametrize("scope", [0, 3])
def test_a_scope_count_that_cannot_be_is_refused_and_the_next_record_read(scope):
    good = template_record(257, (145, 2), (173, 8), scope=1)
    records = _parse(template_record(256, (145, 2), (173, 8), scope=scope) + good, options=True)
    assert records == [Refusal(256, "scope_count"),
                       Template(257, (Field(145, 2), Field(173, 8)), 1)]


@pytest.mark.parametrize(("record", "reason"), [
    (template_record(255, (8, 4)), "template_id_reserved"),
    (template_record(255), "template_id_reserved"),
    (template_record(3), "template_id_reserved"),
    (template_record(256, *[(8, 4)] * 101), "template_fields_limit"),
    (template_record(256, (82, 0)), "template_without_octets"),
    (template_record(256, (82, 65_534)), "template_too_long"),
])
def test_refused_records(record, reason):
    assert [found.reason for found in _parse(record)] == [reason]


@pytest.mark.parametrize("octets", [
    template_record(256, (8, 4), count=65_535),
    template_record(256, (8, 4), count=2),
    template_record(256, (8, 4, 32473))[:-2],
    template_record(256, (8, 4, 32473), (9, 4))[:-4],
])
def test_a_record_past_the_sets_end_makes_the_message_malformed(octets):
    with pytest.raises(MalformedMessageError) as caught:
        _parse(octets)
    assert str(caught.value) == "a Template Record runs past the end of its Set"
    assert caught.value.reason == "truncated_template"
