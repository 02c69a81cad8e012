import struct

from rocetap.ipfix.templates import VARIABLE
from rocetap.ipfix.typeinfo import TYPE_INFO, type_record, type_records, type_template
from rocetap.spec.elements import BY_NAME, ELEMENTS, ENTERPRISE_ELEMENTS, DataType, Element


def test_the_template_has_number_and_enterprise_as_scope():
    template = type_template(256)
    assert template.scope == 2
    assert [field.number for field in template.fields] == [
        346, 303, 339, 344, 345, 342, 343, 341, 340]
    assert [field.length for field in template.fields[-2:]] == [VARIABLE, VARIABLE]
    assert all(field.enterprise is None for field in template.fields)


def test_a_record_octet_by_octet():
    element = BY_NAME["pfcPriority"]
    record = type_record(element, 32473)
    fixed = struct.pack("!IHBBHQQ", 32473, 15, 1, 4, 0, 0, 7)
    name, text = element.name.encode(), element.description.encode()
    assert record == fixed + bytes([len(name)]) + name + bytes([len(text)]) + text


def test_lengths_of_255_and_more_take_three_octets():
    long = Element("x", 1, 1, DataType.unsigned8, enterprise=True, description="d" * 255)
    assert type_record(long, 1)[26:] == b"\x01x\xff\x00\xff" + b"d" * 255


def test_one_record_for_each_enterprise_element_and_no_other():
    numbers = [int.from_bytes(record[4:6], "big") for record in type_records(ELEMENTS, 1)]
    assert numbers == [element.number for element in ENTERPRISE_ELEMENTS]
    assert len(TYPE_INFO) == 9
