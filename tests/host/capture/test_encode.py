"""The encoder against golden ICRCs, a captured CNP's, and another encoder's decoding."""

from __future__ import annotations

from ipaddress import ip_address
from random import Random

import pytest
from scapy.contrib.mac_control import MACControlClassBasedFlowControl
from scapy.contrib.roce import AETH, BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether

from rocetap.capture.encode import RoceFlow, pad_frame, pfc_frame
from rocetap.capture.reading import open_capture
from rocetap.spec.classes import FrameClass
from support.captures import REAL_CAPTURES
from support.reference import classify

MACS = {"source_mac": bytes.fromhex("020000000001"),
        "destination_mac": bytes.fromhex("020000000002")}
BODY = bytes(range(18)) + bytes(2)


def flow(version=4, **fields):
    ends = {4: ("192.0.2.1", "198.51.100.2"), 6: ("2001:db8::1", "2001:db8::2")}[version]
    return RoceFlow(**MACS, source=ip_address(ends[0]), destination=ip_address(ends[1]),
                    **{"destination_qp": 0x12, "traffic_class": 0, **fields})


@pytest.mark.parametrize(("version", "fields", "packet", "size", "icrc"), [
    (4, {}, {}, 78, "d62bc474"),
    (4, {"tags": ((0x8100, 3 << 13 | 10),)}, {}, 82, "d62bc474"),
    (4, {}, {"traffic_class": 0x63, "becn": True}, 78, "d62bc474"),
    (6, {}, {}, 98, "066d3c82"),
    (6, {"traffic_class": 0x63}, {}, 98, "066d3c82"),
])
def test_golden_icrc_of_a_send_only(version, fields, packet, size, icrc):
    frame = flow(version, **fields).packet(4, 1, BODY, pad=2, migrated=False, identification=1,
                                           **packet)
    assert (len(frame), frame[-4:].hex()) == (size, icrc)
    assert classify(frame).frame_class == FrameClass.ELIGIBLE_REQUEST


def test_golden_icrc_without_payload_and_of_a_cnp():
    frame = flow().packet(4, 2, migrated=False, identification=1)
    assert (len(frame), frame[-4:].hex()) == (58, "107c1095")
    assert pad_frame(frame) == frame + bytes(2)
    cnp = flow(traffic_class=0xC2)
    frame = cnp.packet(0x81, 0, bytes(16), migrated=False, becn=True, identification=1)
    assert (len(frame), frame[-4:].hex()) == (74, "7a91d846")


def test_every_form_decodes_in_another_decoder_with_the_same_icrc_and_checksum():
    rng = Random(8)
    print("seed 8")
    for _ in range(300):
        version = rng.choice((4, 6))
        tags = tuple((0x8100, rng.getrandbits(16)) for _ in range(rng.randrange(3)))
        size = rng.randrange(40)
        pad = -size % 4
        values = {"psn": rng.getrandbits(24), "dqpn": rng.getrandbits(24),
                  "pkey": rng.getrandbits(16), "becn": rng.getrandbits(1),
                  "ackreq": rng.getrandbits(1), "migreq": rng.getrandbits(1)}
        sport, octet, ident = rng.getrandbits(16), rng.getrandbits(8), rng.getrandbits(16)
        frame = flow(version, tags=tags, destination_qp=values["dqpn"],
                     partition_key=values["pkey"]).packet(
            4, values["psn"], rng.randbytes(size) + bytes(pad), pad=pad, source_port=sport,
            ack_request=values["ackreq"], becn=values["becn"], migrated=values["migreq"],
            traffic_class=octet, identification=ident)
        decoded = Ether(frame)
        layer = decoded[BTH]
        assert {name: getattr(layer, name) for name in values} == values
        assert (layer.padcount, layer.opcode, layer.version) == (pad, 4, 0)
        assert [(tag.prio, tag.vlan) for tag in decoded.iterpayloads()
                if isinstance(tag, Dot1Q)] == [(tci >> 13, tci & 0xFFF) for _, tci in tags]
        assert (decoded[UDP].sport, decoded[UDP].dport) == (sport, 4791)
        ip = decoded[IP] if version == 4 else decoded[IPv6]
        assert (ip.tos if version == 4 else ip.tc) == octet
        rebuilt = decoded.copy()
        rebuilt[BTH].icrc = None
        if version == 4:
            rebuilt[IP].chksum = None
            rebuilt[IP].len = None
        else:
            rebuilt[IPv6].plen = None
        rebuilt[UDP].len = None
        assert bytes(rebuilt) == frame


def test_an_acknowledge_decodes_in_another_decoder():
    frame = flow().acknowledge(0x123456, 0xABCDE, syndrome=0x60, source_port=77)
    decoded = Ether(frame)
    assert (decoded[BTH].opcode, decoded[BTH].psn) == (0x11, 0x123456)
    assert (decoded[AETH].syndrome, decoded[AETH].msn) == (0x60, 0xABCDE)
    assert len(frame) == 62


def test_pfc_decodes_in_another_decoder():
    frame = pfc_frame(MACS["source_mac"], {3: 0xFFFF, 7: 0})
    assert len(frame) == 60
    decoded = Ether(frame)
    assert (decoded.dst, decoded.type) == ("01:80:c2:00:00:01", 0x8808)
    layer = decoded[MACControlClassBasedFlowControl]
    assert [getattr(layer, f"c{n}_enabled") for n in range(8)] == [0, 0, 0, 1, 0, 0, 0, 1]
    assert [getattr(layer, f"c{n}_pause_time") for n in range(8)] == [
        0, 0, 0, 0xFFFF, 0, 0, 0, 0]


if "cnp.pcap" in REAL_CAPTURES:
    def test_a_cnp_of_a_real_card_octet_for_octet():
        with open_capture(str(REAL_CAPTURES["cnp.pcap"])) as capture:
            [real] = [frame.data for batch in capture.batches() for frame in batch.frames()]
        decoded = Ether(real)
        made = RoceFlow(
            source_mac=real[6:12], destination_mac=real[:6], source=ip_address(decoded[IP].src),
            destination=ip_address(decoded[IP].dst), destination_qp=0x118, traffic_class=0xC2,
        ).packet(0x81, 0, bytes(16), source_port=decoded[UDP].sport, becn=True, migrated=False,
                 identification=decoded[IP].id)
        assert made[-4:].hex() == "82fd002a"
        assert made == real
