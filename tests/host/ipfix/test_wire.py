import struct

import numpy as np
import pytest

from rocetap.ipfix.records import PFC_READING, SEQUENCE_REPORT
from rocetap.ipfix.wire import PFC_COLUMNS, SEQUENCE_COLUMNS, Decoder, Encoder
from rocetap.spec.elements import (
    DOT1Q_CUSTOMER_VLAN_ID,
    DOT1Q_VLAN_ID,
    PFC_RECEIVED,
    SEQUENCE_IPV4,
    SEQUENCE_IPV6,
)
from support.ipfix_tools import readings, reports

VLAN = (DOT1Q_VLAN_ID, DOT1Q_CUSTOMER_VLAN_ID)


def _random(count, dtype, seed=5):
    rng = np.random.default_rng(seed)
    rows = np.frombuffer(rng.bytes(count * dtype.itemsize), dtype).copy()
    for name in dtype.names:
        if name.startswith("reserved"):
            rows[name] = 0
        elif dtype[name].kind == "b":
            rows[name] = rng.integers(0, 2, count)
    return rows


def _by_struct(row, ipv6, vlan):
    """One record octet by octet, in the profile's example order."""
    cut = slice(0 if ipv6 else 12, 16)
    head = struct.pack("!Q", row["observation_point"])
    head += bytes(row["source"])[cut] + bytes(row["destination"])[cut]
    body = struct.pack(
        "!IHQQQQIHQQQQIQQQ", row["qp"], row["pkey"], row["flow_start_ms"], row["flow_end_ms"],
        row["epoch_id"], row["report_id"], row["window"], row["flags"], row["skipped"],
        row["filled"], row["expired"], row["abandoned"], row["pending"], row["repeated"],
        row["requests"], row["late"])
    return head + body + (struct.pack("!HH", row["vid"], row["cvid"]) if vlan else b"")


@pytest.mark.parametrize(("fields", "octets", "ipv6", "vlan"), [
    (SEQUENCE_IPV4, 120, False, False),
    (SEQUENCE_IPV6, 144, True, False),
    (SEQUENCE_IPV4 + VLAN, 124, False, True),
    (SEQUENCE_IPV6 + VLAN, 148, True, True),
])
def test_sequence_records_are_what_struct_packs(fields, octets, ipv6, vlan):
    """120 octets per IPv4 record, 144 per IPv6 (Export Profile and Template)."""
    encoder = Encoder(fields, SEQUENCE_COLUMNS, SEQUENCE_REPORT)
    rows = _random(5000, SEQUENCE_REPORT)
    wire = encoder(rows)
    assert encoder.octets == octets
    assert wire.tobytes() == b"".join(_by_struct(row, ipv6, vlan) for row in rows)


def test_pfc_records_are_what_struct_packs():
    encoder = Encoder(PFC_RECEIVED, PFC_COLUMNS, PFC_READING)
    rows = _random(100, PFC_READING)
    assert encoder(rows).tobytes() == b"".join(
        struct.pack("!QIBQQ", row["observation_point"], row["interface"], row["priority"],
                    row["time_ms"], row["total"]) for row in rows)


@pytest.mark.parametrize(("fields", "columns", "rows"), [
    (SEQUENCE_IPV4, SEQUENCE_COLUMNS, reports(3)),
    (SEQUENCE_IPV6 + VLAN, SEQUENCE_COLUMNS,
     reports(3, source=np.void(bytes(range(16))), vid=5, cvid=4094)),
    (PFC_RECEIVED, PFC_COLUMNS, readings(9)),
])
def test_decoder_undoes_encoder(fields, columns, rows):
    wire = Encoder(fields, columns, rows.dtype)(rows)
    offsets = np.cumsum([0, *(element.octets for element in fields)]).tolist()
    decoder = Decoder(list(zip(fields, offsets, strict=False)), offsets[-1], columns, rows.dtype)
    assert decoder(wire).tobytes() == rows.tobytes()
