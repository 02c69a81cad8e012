import numpy as np
import pytest

from rocetap.ipfix.decoding import SetDecoder, unsigned
from rocetap.ipfix.errors import MalformedMessageError
from rocetap.ipfix.registry import Registry
from rocetap.ipfix.templates import VARIABLE, Field, Template

REGISTRY = Registry(32473)


def _decoder(*fields, scope=0):
    return SetDecoder(Template(256, fields, scope), REGISTRY)


def test_fixed_lengths_are_one_view_of_the_octets():
    decoder = _decoder(Field(8, 4), Field(138, 8), Field(77, 3, 999), Field(9999, 2))
    assert decoder.names == ("sourceIPv4Address", "observationPointId", "e999.77", "ie9999")
    body = bytes(range(17)) + bytes(range(100, 117))
    records = decoder.decode(memoryview(body))
    assert bytes(records["sourceIPv4Address"][1]) == bytes([100, 101, 102, 103])
    assert records["observationPointId"].tolist() == [0x0405060708090A0B, 0x68696A6B6C6D6E6F]
    assert bytes(records["e999.77"][0]) == bytes([12, 13, 14])
    assert np.shares_memory(records, np.frombuffer(body, np.uint8))


@pytest.mark.parametrize("padding", range(4))
def test_padding_shorter_than_a_record_is_passed_over(padding):
    assert len(_decoder(Field(8, 4)).decode(memoryview(bytes(8 + padding)))) == 2


def test_padding_that_looks_like_no_record_at_all():
    assert len(_decoder(Field(8, 4)).decode(memoryview(b"\0\0\0"))) == 0


def test_a_field_that_stands_twice_has_two_columns():
    decoder = _decoder(Field(8, 4), Field(8, 4), Field(8, 4))
    assert decoder.names == ("sourceIPv4Address", "sourceIPv4Address#2", "sourceIPv4Address#3")


@pytest.mark.parametrize("octets", range(1, 9))
def test_reduced_size_integers(octets):
    """RFC 7011, 6.2: any length from one octet to the type's."""
    value = 0x1122334455667788 >> (64 - 8 * octets)
    decoder = _decoder(Field(138, octets), Field(8, 4))
    body = (value.to_bytes(octets, "big") + bytes(4)) * 3
    assert unsigned(decoder.decode(memoryview(body)), "observationPointId").tolist() == [value] * 3


@pytest.mark.parametrize(("size", "long_form"), [
    (0, False), (1, False), (254, False),
    (0, True), (1, True), (254, True), (255, True), (256, True), (65_000, True)])
def test_variable_lengths(size, long_form):
    """RFC 7011, 7: one octet below 255, or 255 and two more, which any length may use."""
    head = b"\xff" + size.to_bytes(2, "big") if long_form else bytes([size])
    decoder = _decoder(Field(138, 2), Field(82, VARIABLE))
    body = b"\0\7" + head + bytes(size) + b"\0\x08\x01x"
    records = decoder.decode(memoryview(body))
    assert records["observationPointId"].tolist() == [7, 8]
    assert records["ie82"].tolist() == [bytes(size), b"x"]


@pytest.mark.parametrize("body", [b"\x05abcd", b"\xff\x00", b"\xff", b"\xff\xff\xffab"])
def test_a_variable_length_past_the_set_is_malformed(body):
    decoder = _decoder(Field(82, VARIABLE), Field(83, 0))
    with pytest.raises(MalformedMessageError) as caught:
        decoder.decode(memoryview(body))
    assert caught.value.reason == "value_past_set"


def test_a_fixed_field_after_a_variable_one_that_ate_its_octets():
    decoder = _decoder(Field(82, VARIABLE), Field(8, 4))
    with pytest.raises(MalformedMessageError) as caught:
        decoder.decode(memoryview(b"\x03abcde"))
    assert str(caught.value) == "a value of 4 octets runs past the end of its Set"
