"""RECORD_DTYPE and decode_records against the table of the spec."""

import random

import numpy as np
import pytest

from rocetap.link.errors import LinkRemoteError
from rocetap.link.records import RECORD_DTYPE, decode_records
from rocetap.spec.records import RECORD_FIELDS


def test_the_type_is_the_table():
    assert RECORD_DTYPE.itemsize == 88
    offset = 0
    for name, bits in RECORD_FIELDS.items():
        field, at = RECORD_DTYPE.fields[name][:2]
        assert (field.kind, field.itemsize * 8, at) == ("u", bits, offset)
        assert field.newbyteorder("<") == field
        offset += bits // 8


def test_many_records_at_once():
    dice = random.Random(51)
    rows = [{name: dice.getrandbits(bits) for name, bits in RECORD_FIELDS.items()}
            for _ in range(50)]
    octets = b"".join(row[name].to_bytes(bits // 8, "little")
                      for row in rows for name, bits in RECORD_FIELDS.items())
    records = decode_records(octets)
    assert records.shape == (50,)
    assert [{name: int(record[name]) for name in RECORD_FIELDS} for record in records] == rows
    records["requests"] = np.arange(50)     # a copy of its own, not a view of the octets
    assert decode_records(b"").shape == (0,)


def test_part_of_a_record():
    with pytest.raises(LinkRemoteError, match=r"^89 octets are no whole number of records of 88 "
                                              r"octets$"):
        decode_records(bytes(89))
