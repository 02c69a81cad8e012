"""The frame builders of support.frames against scapy, octet for octet."""

import random

import pytest
from scapy.contrib.mac_control import MACControlClassBasedFlowControl
from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP, IPOption_NOP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw

from support.frames import pfc, roce, with_fcs

ETHER = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("seed", range(20))
def test_roce(version, seed):
    rng = random.Random(f"builders {version} {seed}")
    tags = [(0x8100, rng.getrandbits(16)) for _ in range(rng.randrange(3))]
    layer = ETHER
    for _, tci in tags:
        layer /= Dot1Q(prio=tci >> 13, dei=tci >> 12 & 1, vlan=tci & 0xFFF)
    nops = 4 * rng.randrange(11)
    a, b, c, sport = (rng.getrandbits(bits) for bits in (8, 8, 16, 16))
    if version == 4:
        ip = {"ttl": a, "tos": b, "identification": c, "options": b"\1" * nops}
        layer /= IP(src="192.0.2.1", dst="198.51.100.2", ttl=a, tos=b, id=c, flags="DF",
                    options=[IPOption_NOP()] * nops)
    else:
        ip = {"hops": a, "traffic_class": b, "flow": c}
        layer /= IPv6(src="2001:db8::1", dst="2001:db8::2", hlim=a, tc=b, fl=c)
    payload = rng.randbytes(rng.randrange(40))
    fields = {"opcode": rng.choice((0, 1, 2, 4, 7, 8)), "psn": rng.getrandbits(24),
              "pkey": rng.getrandbits(16), "fecn": rng.getrandbits(1), "becn": rng.getrandbits(1),
              "solicited": rng.getrandbits(1)}
    qp, migrated, acknowledge = rng.getrandbits(24), rng.getrandbits(1), rng.getrandbits(1)
    pad_count = -len(payload) % 4
    layer /= UDP(sport=sport, dport=4791, chksum=0) / BTH(
        dqpn=qp, migreq=migrated, ackreq=acknowledge, padcount=pad_count, **fields)
    expected = bytes(layer / Raw(payload + bytes(pad_count)))
    assert roce(payload, version=version, tags=tags, ip=ip, sport=sport, qp=qp,
                migrated=migrated, acknowledge=acknowledge, **fields) == expected


def test_pfc():
    layer = MACControlClassBasedFlowControl(
        c0_enabled=1, c3_enabled=1, c3_pause_time=0xFFFF, c7_enabled=1, c7_pause_time=1)
    expected = bytes(Ether(dst="01:80:c2:00:00:01", src="02:00:00:00:00:01") / layer)
    assert pfc({0: 0, 3: 0xFFFF, 7: 1}) == expected.ljust(60, b"\0")


def test_fcs_of_known_octets():
    """The CRC-32 catalogue's check value: 0xCBF43926 for '123456789'."""
    assert with_fcs(b"123456789")[-4:].hex() == "2639f4cb"
    assert with_fcs(b"123456789", wrong=True)[-4:].hex() == "2739f4cb"
