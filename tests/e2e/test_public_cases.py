"""Faults that people met in other tools, kinds (a) and (c), and the right outcome here: captures
through the Verilated gateware to the collector's rows.

Every number is written out by hand from the standards, none comes from a model. The page
docs/reference/public-cases.md says where each case is held.
"""

from collections import Counter

import pytest

from rocetap.replay import replay
from rocetap.spec.classes import FrameClass as Class
from rocetap.spec.flags import SequenceFlag
from support import frames as packets
from support.captures import REAL_CAPTURES, pcap, record

FINAL = int(SequenceFlag.finalEpoch)
SERIAL = int(SequenceFlag.serialDiscontinuity)
UNVERIFIED = int(SequenceFlag.generationUnverified)
FIELDS = {
    "requests": "requestPacketTotalCount", "skipped": "skippedPsnTotalCount",
    "filled": "filledPsnTotalCount", "expired": "expiredPsnTotalCount",
    "abandoned": "abandonedPsnTotalCount", "repeated": "repeatedPsnTotalCount",
    "late": "unclassifiedLatePacketTotalCount", "pending": "pendingPsnCount"}


@pytest.fixture
def seen(tmp_path):
    """Frames without FCS in, the replay's result out."""
    def run(*octets, window=64):
        path = tmp_path / "case.pcap"
        path.write_bytes(pcap(*(record(frame, seconds=1_700_000_000, fraction=1000 * number)
                                for number, frame in enumerate(octets))))
        return replay(str(path), window=window)
    return run


def epochs(result):
    """The counters of each epoch that are not 0, with its closure reasons, in order."""
    rows = []
    for row in sorted(result.sequence, key=lambda row: row["rdmaSequenceEpochId"]):
        assert row["outcome"] == "complete"
        counters = {name: row[element] for name, element in FIELDS.items() if row[element]}
        reasons = row["rdmaSequenceFlags"] & ~(FINAL | UNVERIFIED)
        rows.append(counters | ({"reasons": reasons} if reasons else {}))
    return rows


def sends(*psns, **fields):
    return [packets.roce(psn=psn % (1 << 24), **fields) for psn in psns]


def acknowledge(psn, syndrome, qp=0x20):
    """An ACK or NAK (IBTA Vol 1, 9.3.5): AETH of syndrome and MSN."""
    return packets.roce(bytes([syndrome, 0, 0, 1]), opcode=0x11, psn=psn, qp=qp)


# (a) 5, 11: first PSN, reuse of a QP number, wraps


def test_case_5_the_first_psn_is_no_gap(seen):
    [epoch] = epochs(seen(*sends(*range(0x9A3F01, 0x9A3F01 + 11))))
    assert epoch == {"requests": 11}


def test_case_5_a_reused_qp_is_one_serial_discontinuity(seen):
    first, second = range(0x9A3F01, 0x9A3F01 + 11), range(0x013370, 0x013370 + 11)
    assert epochs(seen(*sends(*first, *second))) == [
        {"requests": 11, "reasons": SERIAL}, {"requests": 11}]


def test_case_5_a_restart_far_behind_is_late_and_never_a_repeat(seen):
    """More than half of the PSN space ahead is behind: nothing tells it from very old retries."""
    first, second = range(0x100, 0x10B), range(0x100 + 0x900000, 0x10B + 0x900000)
    assert epochs(seen(*sends(*first, *second))) == [{"requests": 22, "late": 11}]


@pytest.mark.parametrize(("psns", "counters"), [
    ((-3, -2, -1, 0, 1), {"requests": 5}),
    ((-2, 1), {"requests": 2, "skipped": 2, "abandoned": 2}),
    ((-2, 1, -1, 0), {"requests": 4, "skipped": 2, "filled": 2}),
    ((-2, 1, -1, 0, -1, -2), {"requests": 6, "skipped": 2, "filled": 2, "repeated": 2}),
])
def test_case_11_the_psn_wraps(seen, psns, counters):
    assert epochs(seen(*sends(*psns))) == [counters]


def test_case_11_two_wraps_in_one_epoch(seen):
    """As fast as a window of 256 lets it: each step skips 254 positions, which expire later."""
    step = 255
    requests = 2 * (1 << 24) // step + 100
    skipped = (requests - 1) * (step - 1)
    [epoch] = epochs(seen(*sends(*range(7, 7 + requests * step, step)), window=256))
    assert epoch == {"requests": requests, "skipped": skipped, "abandoned": 254,
                     "expired": skipped - 254}


# (a) 14, 34, 41, 46: what surrounds the packet


def test_case_14_tags(seen):
    tagged = {
        "8100 pcp 3": [(0x8100, 0x600A)], "8100 DEI": [(0x8100, 0x700B)],
        "88A8 + 8100": [(0x88A8, 0xA00C), (0x8100, 0x600D)],
        "8100 + 8100": [(0x8100, 0x000E), (0x8100, 0x000F)],
        "9100 + 8100": [(0x9100, 0x0010), (0x8100, 0x0011)]}
    result = seen(
        packets.roce(psn=1), packets.roce(psn=2, tags=[(0x8100, 0x6000)]),    # a priority tag
        *(packets.roce(psn=7, tags=tags) for tags in tagged.values()),
        packets.roce(psn=9, tags=[(0x88A8, 1), (0x8100, 2), (0x8100, 3)]))
    assert result.frames == {Class.ELIGIBLE_REQUEST: 7, Class.TAGS_TOO_DEEP: 1}
    assert Counter((row.get("dot1qVlanId", 0), row.get("dot1qCustomerVlanId", 0),
                    row["requestPacketTotalCount"]) for row in result.sequence) == Counter([
        (0, 0, 2), (10, 0, 1), (11, 0, 1), (12, 13, 1), (14, 15, 1), (16, 17, 1)])


def own_vector(version, payload=bytes(range(18)), **fields):
    return packets.roce(payload, version=version, psn=fields.pop("psn", 1), qp=0x12, **fields)


def test_case_34_the_icrc_of_ipv6(seen):
    first = own_vector(6)
    assert first[-4:].hex() == "066d3c82"
    changed = own_vector(6, ip={"traffic_class": 0xC2, "flow": 0xABCDE, "hops": 3})
    assert changed[-4:] == first[-4:]
    result = seen(first, changed)
    assert result.frames == {Class.ELIGIBLE_REQUEST: 2}
    for octet in (30, 40, 70, 85):              # source, destination, BTH behind UDP, payload
        bad = bytearray(own_vector(6, psn=3))
        bad[octet] ^= 0x10
        assert seen(first, bytes(bad)).frames == {Class.ELIGIBLE_REQUEST: 1, Class.BAD_ICRC: 1}


def test_case_34_ipv6_headers_between(seen):
    udp = packets.udp(packets.bth(bytes(8), psn=777))

    def behind(number, header):
        return packets.ethernet(0x86DD, packets.ipv6(header + udp, next_header=number))

    hop_by_hop = bytes([17, 0, 1, 4, 0, 0, 0, 0])
    fragment = bytes([17, 0, 0, 1, 0, 0, 0, 9])
    result = seen(packets.roce(version=6, psn=5), behind(0, hop_by_hop), behind(44, fragment),
                  packets.ethernet(0x86DD, packets.ipv6(udp, length=0)),
                  packets.roce(version=6, psn=6))
    assert result.frames == {Class.ELIGIBLE_REQUEST: 2, Class.IPV6_EXTENSION: 1,
                             Class.IP_FRAGMENT: 1, Class.MALFORMED_IP: 1}
    assert epochs(result) == [{"requests": 2}]


def test_case_41_fragments_and_options(seen):
    udp = packets.udp(packets.bth(bytes(8), psn=777))

    def ip(**fields):
        return packets.pad(packets.ethernet(0x0800, packets.ipv4(udp, **fields)))

    with_options = own_vector(4, ip={"options": bytes([1, 1, 1, 0])})
    assert with_options[-4:].hex() == "00a4a5e4"
    result = seen(
        own_vector(4, psn=0), with_options, own_vector(4, psn=2, ip={"options": bytes(40)}),
        ip(flags=185), ip(flags=0x2000), own_vector(4, psn=3, ip={"flags": 0x4000}),
        ip(ihl=4), ip(length=27), ip(length=39), ip(length=2000), own_vector(4, psn=4))
    assert result.frames == {Class.ELIGIBLE_REQUEST: 5, Class.IP_FRAGMENT: 2,
                             Class.MALFORMED_IP: 4}
    assert epochs(result) == [{"requests": 5}]


def test_case_46_tunnels_are_not_read_as_a_bth(seen):
    inner = own_vector(4)

    def outer(port):
        return packets.ethernet(0x0800, packets.ipv4(packets.vxlan(inner, port=port)))

    assert len(outer(4789)) == 128
    gre = packets.ethernet(0x0800, packets.ipv4(
        bytes.fromhex("00000800") + inner[14:], protocol=47))
    result = seen(own_vector(4, psn=1), outer(4789), outer(8472), gre, own_vector(4, psn=2))
    assert result.frames == {Class.ELIGIBLE_REQUEST: 2, Class.TUNNELLED: 2, Class.NOT_ROCE: 1}
    assert epochs(result) == [{"requests": 2}]


# (a) 17, 25, 26, 31: what is no request, what comes again, where a packet ends


def test_case_17_acknowledgements_have_a_psn_space_of_their_own(seen):
    answers = [acknowledge(10, 0), acknowledge(18, 0), acknowledge(25, 0),
               acknowledge(26, 0x60), acknowledge(26, 0x2C), acknowledge(26, 0x2C),
               acknowledge(40, 0)]
    requests = sends(500, 501, 502, qp=0x20)
    result = seen(answers[0], requests[0], *answers[1:4], requests[1], *answers[4:], requests[2])
    assert result.frames == {Class.ELIGIBLE_REQUEST: 3, Class.RESPONSE: 7}
    assert epochs(result) == [{"requests": 3}]


def test_case_25_congestion_notifications(seen):
    notice = packets.roce(bytes(16), opcode=0x81, becn=True, ip={"tos": 0xC2})
    assert notice[-4:].hex() == "7a91d846"
    requests = sends(*range(1, 21), ip={"tos": 3})
    mixed = [frame for pair in zip(requests[::2], requests[1::2], strict=True)
             for frame in (*pair, notice)]
    result = seen(*mixed)
    assert result.frames == {Class.ELIGIBLE_REQUEST: 20, Class.CNP: 10}
    assert epochs(result) == [{"requests": 20}]


if "cnp.pcap" in REAL_CAPTURES:
    def test_case_25_the_icrc_of_a_real_adapter():
        result = replay(str(REAL_CAPTURES["cnp.pcap"]))
        assert result.frames == {Class.CNP: 1}


@pytest.mark.parametrize(("psns", "counters"), [
    pytest.param((100, 101, 103, 104, "nak", 102, 103, 104, 105),
                 {"requests": 8, "skipped": 1, "filled": 1, "repeated": 2}, id="before the tap"),
    pytest.param((*range(100, 105), "nak", 102, 103, 104, 105),
                 {"requests": 9, "repeated": 3}, id="behind the tap"),
    pytest.param((*range(100, 105), *range(100, 106)),
                 {"requests": 11, "repeated": 5}, id="time-out"),
])
def test_case_26_go_back_n(seen, psns, counters):
    nak = acknowledge(102, 0x60, qp=0x12)
    result = seen(*(nak if psn == "nak" else packets.roce(psn=psn) for psn in psns))
    assert epochs(result) == [counters]


def test_case_31_padding_and_messages_of_no_octets(seen):
    empty = packets.roce(psn=2)
    assert (len(empty), empty[-4:].hex()) == (58, "107c1095")
    sizes = (1, 2, 3, 4, 18)
    result = seen(empty, packets.pad(packets.roce(psn=3)), packets.roce(psn=4) + bytes(26),
                  *(packets.roce(bytes(size), psn=5 + number) for number, size in enumerate(sizes)))
    assert result.frames == {Class.ELIGIBLE_REQUEST: 3 + len(sizes)}
    assert epochs(result) == [{"requests": 3 + len(sizes)}]


# (b) 43: the largest frames


def test_case_43_frames_up_to_the_limit_and_one_above(seen):
    """9,216 octets between header and FCS, with two tags 9,242: the largest; with no tag too."""
    def frame(psn, octets, **fields):
        payload = octets - len(packets.roce(psn=psn, **fields))
        return packets.roce(bytes(payload), psn=psn, **fields)

    sizes = (4170, 9018, 9216, 9237, 9238)
    result = seen(*(frame(number, size) for number, size in enumerate(sizes)),
                  frame(6, 9242), packets.roce(psn=5))
    assert result.frames == {Class.ELIGIBLE_REQUEST: len(sizes) + 1, Class.OVERSIZE: 1}
    assert epochs(result) == [{"requests": 6}]


# (c) 40: PFC frames that are odd


def test_case_40_odd_pfc_frames(seen):
    pause, resume = packets.pfc({3: 0xFFFF}), packets.pfc({3: 0})
    result = seen(
        pause, resume, packets.pfc({3: 0xFFFF}, source=bytes(6)),
        packets.pfc({3: 0xFFFF}, destination=packets.DESTINATION_MAC),
        packets.pfc({3: 0xFFFF}, tags=[(0x8100, 5)]), *[resume] * 9000)
    assert result.frames == {Class.PFC: 9003, Class.BAD_PFC: 1, Class.TAGGED_PFC: 1}
    assert {row["pfcPriority"]: row["pfcControlFrameTotalCount"] for row in result.pfc} == {
        priority: 9003 * (priority == 3) for priority in range(8)}
    assert result.sequence == []
