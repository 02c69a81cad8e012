import numpy as np
import pytest

from rocetap.collect.bindings import Foreign, PfcBinding, Refused, SequenceBinding, bind
from rocetap.ipfix.decoding import SetDecoder
from rocetap.ipfix.exporting import PFC_TEMPLATES, SEQUENCE_TEMPLATES
from rocetap.ipfix.records import PFC_READING, SEQUENCE_REPORT
from rocetap.ipfix.registry import Registry
from rocetap.ipfix.templates import VARIABLE, Field, Template, template_of
from rocetap.ipfix.wire import PFC_COLUMNS, SEQUENCE_COLUMNS, Encoder
from rocetap.spec.elements import (
    BY_NAME,
    DEFAULT_PEN,
    PFC_RECEIVED,
    PFC_TRANSMITTED,
    SEQUENCE_IPV4,
    SEQUENCE_IPV6,
)
from support.ipfix_tools import address, readings, reports

REGISTRY = Registry(DEFAULT_PEN)


def _bind(elements, scope=0, reduced=False, pen=DEFAULT_PEN):
    return bind(template_of(300, elements, pen, scope), REGISTRY, reduced)


def _shorter(elements, name, octets):
    fields = list(template_of(300, elements, DEFAULT_PEN).fields)
    index = [element.name for element in elements].index(name)
    fields[index] = Field(fields[index].number, octets, fields[index].enterprise)
    return tuple(fields)


@pytest.mark.parametrize("template_id", SEQUENCE_TEMPLATES)
def test_our_sequence_templates_bind_and_read(template_id):
    elements = SEQUENCE_TEMPLATES[template_id]
    binding = _bind(elements)
    assert isinstance(binding, SequenceBinding)
    ipv6 = elements[1].name == "sourceIPv6Address"
    rows = reports(5, ipv6=ipv6, skipped=3, filled=3)
    if ipv6:
        rows["source"] = address(0x20, 1, *range(13), 9)
    if len(elements) == 21:
        rows["vid"], rows["cvid"] = 4094, 12
    wire = Encoder(elements, SEQUENCE_COLUMNS, SEQUENCE_REPORT)(rows)
    assert binding.read(wire).tobytes() == rows.tobytes()


@pytest.mark.parametrize("template_id", PFC_TEMPLATES)
def test_our_pfc_templates_bind_and_read(template_id):
    elements = PFC_TEMPLATES[template_id]
    binding = _bind(elements, scope=3)
    assert isinstance(binding, PfcBinding)
    rows = readings(8, transmitted=template_id == 262)
    wire = Encoder(elements, PFC_COLUMNS, PFC_READING)(rows)
    assert binding.read(wire).tobytes() == rows.tobytes()


def test_keys_are_addresses_qp_partition_epoch_observation_point_and_namespace():
    assert _bind(SEQUENCE_IPV4).keys == 0b1001_1111
    assert _bind(SEQUENCE_TEMPLATES[260]).keys == 0b1001_1111 | 0b11 << 19


def test_the_order_of_fields_is_free():
    shuffled = SEQUENCE_IPV4[::-1]
    rows = reports(3, expired=4, skipped=4)
    wire = Encoder(shuffled, SEQUENCE_COLUMNS, SEQUENCE_REPORT)(rows)
    assert _bind(shuffled).read(wire).tobytes() == rows.tobytes()


def test_templates_without_our_elements_are_foreign():
    assert isinstance(_bind([BY_NAME["sourceIPv4Address"]]), Foreign)
    assert isinstance(_bind(SEQUENCE_IPV4, pen=4242), Foreign)


def _without(elements, name):
    return [element for element in elements if element.name != name]


@pytest.mark.parametrize("name", [element.name for element in SEQUENCE_IPV4])
def test_every_sequence_field_is_required_once(name):
    assert _bind(_without(SEQUENCE_IPV4, name)) == Refused("field_missing")
    assert _bind([*SEQUENCE_IPV4, BY_NAME[name]]) == Refused("field_repeated")


def test_a_template_has_one_address_family():
    for name in ("sourceIPv6Address", "destinationIPv6Address"):
        assert _bind([*SEQUENCE_IPV4, BY_NAME[name]]) == Refused("two_address_families")


def test_vlan_keys_stand_once():
    twice = [*SEQUENCE_IPV6, BY_NAME["dot1qVlanId"], BY_NAME["dot1qVlanId"]]
    assert _bind(twice) == Refused("field_repeated")


def test_sequence_records_are_no_options():
    assert _bind(SEQUENCE_IPV4, scope=2) == Refused("sequence_in_options_template")


def test_the_two_profiles_do_not_mix():
    assert _bind([*SEQUENCE_IPV4, BY_NAME["pfcPriority"]]) == Refused("two_profiles")


@pytest.mark.parametrize(("name", "octets"), [
    ("rdmaDestinationQP", 8), ("rdmaDestinationQP", VARIABLE), ("flowStartMilliseconds", 4),
    ("sourceIPv4Address", 3), ("requestPacketTotalCount", 0)])
def test_lengths_that_no_agreement_allows(name, octets):
    template = Template(300, _shorter(SEQUENCE_IPV4, name, octets))
    for reduced in (False, True):
        assert bind(template, REGISTRY, reduced) == Refused("field_length")


def test_shorter_integers_need_agreement():
    """Other legal integer lengths require explicit agreement (Export Profile and Template)."""
    template = Template(300, _shorter(SEQUENCE_IPV4, "requestPacketTotalCount", 3))
    assert bind(template, REGISTRY, False) == Refused("field_length")
    binding = bind(template, REGISTRY, True)
    rows = reports(4, requests=0x012345)
    full = Encoder(SEQUENCE_IPV4, SEQUENCE_COLUMNS, SEQUENCE_REPORT)(rows).tobytes()
    body = b"".join(full[at:at + 104] + full[at + 109:at + 120] for at in range(0, len(full), 120))
    records = SetDecoder(template, REGISTRY).decode(memoryview(body))
    assert binding.read(records).tobytes() == rows.tobytes()


def test_pfc_integers_may_be_shorter():
    fields = _shorter(PFC_RECEIVED, "pfcControlFrameTotalCount", 2)
    binding = bind(Template(300, fields, 3), REGISTRY, False)
    body = bytes(7) + b"\7" + bytes(3) + b"\2" + b"\5" + bytes(8) + b"\1\0"
    read = binding.read(SetDecoder(Template(300, fields, 3), REGISTRY).decode(memoryview(body)))
    assert read["total"].tolist() == [256]
    assert read["priority"].tolist() == [5]


@pytest.mark.parametrize(("elements", "scope", "reason"), [
    ([*PFC_RECEIVED, BY_NAME["egressPhysicalInterface"]], 3, "physical_interface"),
    (_without(PFC_RECEIVED, "ingressPhysicalInterface"), 2, "physical_interface"),
    (_without(PFC_RECEIVED, "observationTimeMilliseconds"), 3, "field_missing"),
    (_without(PFC_RECEIVED, "pfcPriority"), 2, "field_missing"),
    ([*PFC_RECEIVED, BY_NAME["pfcPriority"]], 3, "field_repeated"),
    (PFC_RECEIVED, 2, "field_role"),
    (PFC_RECEIVED, 4, "field_role"),
    (PFC_RECEIVED, 0, "field_role"),
])
def test_pfc_fields_stand_once_in_their_roles(elements, scope, reason):
    assert _bind(elements, scope) == Refused(reason)


def test_pfc_templates_with_more_elements_and_another_order_are_accepted():
    """Collecting Processes MUST accept Templates with additional Information Elements."""
    order = [PFC_TRANSMITTED[2], PFC_TRANSMITTED[0], PFC_TRANSMITTED[1], PFC_TRANSMITTED[4],
             PFC_TRANSMITTED[3], BY_NAME["dot1qVlanId"]]
    binding = _bind(order, scope=3)
    assert isinstance(binding, PfcBinding)
    body = bytes([3]) + bytes(7) + b"\7" + bytes(3) + b"\2" + bytes(7) + b"\x09" + bytes(
        7) + b"\x0a" + b"\0\1"
    read = binding.read(SetDecoder(template_of(300, order, DEFAULT_PEN, 3), REGISTRY).decode(
        memoryview(body)))
    expected = np.zeros(1, PFC_READING)
    expected["observation_point"], expected["interface"], expected["transmitted"] = 7, 2, True
    expected["priority"], expected["total"], expected["time_ms"] = 3, 9, 10
    assert read.tobytes() == expected.tobytes()


def test_a_variable_foreign_field_beside_the_nineteen():
    fields = (*template_of(300, SEQUENCE_IPV4, DEFAULT_PEN).fields, Field(82, VARIABLE))
    template = Template(300, fields)
    rows = reports(2)
    full = Encoder(SEQUENCE_IPV4, SEQUENCE_COLUMNS, SEQUENCE_REPORT)(rows).tobytes()
    body = full[:120] + b"\2ab" + full[120:] + b"\0"
    records = SetDecoder(template, REGISTRY).decode(memoryview(body))
    assert bind(template, REGISTRY, False).read(records).tobytes() == rows.tobytes()
