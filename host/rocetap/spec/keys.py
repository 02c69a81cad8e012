"""The connection key: its bits, and the hash that places it in the gateware's table.

The table has WAYS memories of `slots` entries. A key may stand in one slot of each way; the host
chooses (it moves entries, cuckoo fashion), the gateware reads all ways and compares whole keys, so
the look-up never gives a false match. The hash is of the H3 family: every key bit that is set adds
(XOR) a constant, so it is a tree of XOR gates in the gateware and a few lines here.
"""

from __future__ import annotations

import hashlib
from typing import Final

__all__ = [
    "HASH_BITS", "KEY_BITS", "KEY_FIELDS", "MAX_SLOT_BITS", "WAYS",
    "hash_columns", "hash_key", "pack_key", "slot_of", "slots_for", "unpack_key",
]

KEY_FIELDS: Final[dict[str, int]] = {
    "qp": 24,            # BTH DestQP
    "pkey": 16,          # BTH P_Key
    "inner_vid": 12,     # VLAN id of the inner of two tags, else 0
    "outer_vid": 12,     # VLAN id of the only or outer tag; 0 untagged or priority-tagged
    "vni": 24,           # VXLAN network identifier when `tunnelled`, else 0
    "tunnelled": 1,
    "ipv6": 1,           # address family: 0 IPv4 (addresses in the low 32 bits), 1 IPv6
    "destination": 128,  # as an integer, most significant octet first on the wire
    "source": 128,
}
"""Field name -> bits, least significant first. The UDP source port is not in it, ever."""

KEY_BITS: Final = sum(KEY_FIELDS.values())

WAYS: Final = 4
MAX_SLOT_BITS: Final = 14
HASH_BITS: Final = WAYS * MAX_SLOT_BITS


def pack_key(**fields: int) -> int:
    """The key as an integer of KEY_BITS. Fields left out are 0; a field out of range raises."""
    unknown = fields.keys() - KEY_FIELDS.keys()
    if unknown:
        raise ValueError(f"unknown key fields {sorted(unknown)}, known are {list(KEY_FIELDS)}")
    key = shift = 0
    for name, bits in KEY_FIELDS.items():
        value = fields.get(name, 0)
        if not 0 <= value < 1 << bits:
            raise ValueError(f"key field {name} is {value}, must fit {bits} bits")
        key |= value << shift
        shift += bits
    return key


def unpack_key(key: int) -> dict[str, int]:
    """The fields of a packed key."""
    fields = {}
    for name, bits in KEY_FIELDS.items():
        fields[name] = key & ((1 << bits) - 1)
        key >>= bits
    return fields


def _columns() -> tuple[int, ...]:
    columns = []
    for bit in range(KEY_BITS):
        digest = hashlib.sha256(f"rocetap connection key bit {bit}".encode()).digest()
        columns.append(int.from_bytes(digest, "big") & ((1 << HASH_BITS) - 1))
    return tuple(columns)


_COLUMNS: Final = _columns()


def hash_columns() -> tuple[int, ...]:
    """The constant of each key bit, HASH_BITS wide."""
    return _COLUMNS


def hash_key(key: int) -> int:
    """H3 hash of a packed key: XOR of the constants of its set bits."""
    digest = 0
    while key:
        low = key & -key
        digest ^= _COLUMNS[low.bit_length() - 1]
        key ^= low
    return digest


def slot_of(digest: int, way: int, slots: int) -> int:
    """The slot of one way: that way's MAX_SLOT_BITS of the digest, cut to the table's size."""
    return (digest >> (way * MAX_SLOT_BITS)) & (slots - 1)


def slots_for(connections: int) -> int:
    """Slots of each way for a table of `connections` contexts: twice as many slots as contexts in
    all, so that placing the last connection practically never fails."""
    if not 1 <= connections <= WAYS << MAX_SLOT_BITS >> 1:
        raise ValueError(f"connections is {connections}, must be 1 to {WAYS << MAX_SLOT_BITS >> 1}")
    contexts = max(8, 1 << (connections - 1).bit_length())
    return 2 * contexts // WAYS
