"""The reference model: the profile's verification examples by name, and its own edges."""

from __future__ import annotations

import pytest

from rocetap.capture.reading import open_capture
from rocetap.spec.classes import FrameClass
from rocetap.spec.opcodes import CNP, RC_RESPONSES, extended_header_octets
from support import reference_model
from support.captures import REAL_CAPTURES
from support.frames import ethernet, ipv4, mac_control, pfc, roce, udp
from support.impair import edge_distances, impaired_psns
from support.reference import (
    Epoch,
    M,
    ReferenceConnection,
    classify,
    reference_capture,
)
from support.reference_capture import _EXTENDED_OCTETS


def run(window, psns):
    connection = ReferenceConnection(window)
    for time, psn in enumerate(psns):
        connection.request(psn, time)
    return connection


def counters(report):
    return {name: value for name, value in vars(report).items()
            if value and name not in ("window", "first_time", "last_time", "flags")}


def test_example_gap_filled_and_repeated():
    connection = run(4, [100, 102, 101, 103, 102])
    assert connection.snapshot() == Epoch(
        window=4, requests=5, skipped=1, filled=1, repeated=1, first_time=0, last_time=4)
    assert connection.results == []


def test_example_position_before_the_first_is_unclassified_late():
    assert counters(run(4, [100, 99, 100]).snapshot()) == {"requests": 3, "late": 1, "repeated": 1}


def test_example_expired_and_abandoned():
    connection = run(4, [100, 102, 106])
    assert counters(connection.snapshot()) == {
        "requests": 3, "skipped": 4, "expired": 1, "pending": 3}
    [final] = connection.close()
    assert counters(final) == {"requests": 3, "skipped": 4, "expired": 1, "abandoned": 3}
    assert final.flags == 0x0001
    connection.request(101)
    assert connection.results == [final]
    assert counters(connection.snapshot()) == {"requests": 1}


def test_example_wrap_and_half_space():
    connection = run(4, [16777214, 16777215, 0, 1])
    assert counters(connection.snapshot()) == {"requests": 4}
    [final] = connection.request((1 + 2**23) % M, 9)
    assert counters(final) == {"requests": 4}
    assert final.flags == 0x0011
    assert counters(connection.snapshot()) == {"requests": 1}


def test_example_window_of_one_never_has_pending_positions():
    connection = run(1, [10, 11, 13, 14, 14, 13])
    assert [(counters(epoch), epoch.flags) for epoch in connection.results] == [
        ({"requests": 2}, 0x0011)]
    assert counters(connection.snapshot()) == {"requests": 4, "repeated": 1, "late": 1}


def test_example_read_disables_and_capture_fault_starts_fresh():
    connection = run(4, [1, 3])
    [final] = connection.violation()
    assert final.flags == 0x0003
    assert counters(final) == {"requests": 2, "skipped": 1, "abandoned": 1}
    assert connection.request(4) == []
    assert connection.snapshot() is None
    connection.provision()
    connection.request(5)
    connection.request(7)
    [final] = connection.capture_discontinuity()
    assert final.flags == 0x0005
    connection.request(6)
    assert counters(connection.snapshot()) == {"requests": 1}


def test_a_start_in_the_middle_and_a_queue_pair_used_again():
    first = [0x9A3F01 + n for n in range(11)]
    for second in (0x013370, 0x9A3F0B + M // 2 + 9000):
        connection = run(64, first + [(second + n) % M for n in range(11)])
        connection.close()
        if second == 0x013370:
            assert [(counters(epoch), epoch.flags) for epoch in connection.results] == [
                ({"requests": 11}, 0x11), ({"requests": 11}, 0x01)]
        else:
            assert [counters(epoch) for epoch in connection.results] == [
                {"requests": 22, "late": 11}]


def test_a_hole_across_the_wrap_is_filled():
    connection = run(64, [0xFFFFFE, 1, 0xFFFFFF, 0])
    assert counters(connection.snapshot()) == {"requests": 4, "skipped": 2, "filled": 2}


def test_several_wraps_in_a_small_serial_space(monkeypatch):
    monkeypatch.setattr(reference_model, "M", 64)
    connection = run(4, [n * 3 % 64 for n in range(1000)])
    assert connection.results == []
    assert counters(connection.snapshot()) == {
        "requests": 1000, "skipped": 1998, "expired": 1996, "pending": 2}


@pytest.mark.parametrize(("psns", "expected"), [
    ([100, 101, 103, 104, 102, 103, 104, 105],
     {"requests": 8, "skipped": 1, "filled": 1, "repeated": 2}),
    ([*range(100, 105), *range(102, 106)], {"requests": 9, "repeated": 3}),
    ([*range(100, 105), *range(100, 106)], {"requests": 11, "repeated": 5}),
], ids=["before the tap", "behind the tap", "time-out"])
def test_go_back_n(psns, expected):
    assert counters(run(64, psns).snapshot()) == expected


def test_responses_and_notifications_between_requests_touch_nothing():
    frames = []
    for psn in range(500, 520):
        frames.append(roce(opcode=0x04, psn=psn, qp=0x20))
        frames.append(roce(bytes([0x1F, 0, 0, 1]), opcode=0x11, psn=10 + 8 * (psn % 7), qp=0x20))
        frames.append(roce(bytes([0x60, 0, 0, 1]), opcode=0x11, psn=26, qp=0x20))
        frames.append(roce(bytes(16), opcode=0x81, psn=0, qp=0x20, becn=True))
        frames.append(roce(opcode=0x11, psn=psn, qp=0x20, tver=1))
    expected = reference_capture(enumerate(frames), 64)
    [[epoch]] = expected.epochs.values()
    assert (counters(epoch), epoch.flags) == ({"requests": 20}, 0x01)
    assert expected.classes == {FrameClass.ELIGIBLE_REQUEST: 20, FrameClass.RESPONSE: 60,
                                FrameClass.CNP: 20}


def test_frames_of_every_class():
    inner = roce(psn=777)
    wanted = {
        FrameClass.UNSUPPORTED_REQUEST: roce(bytes(16), opcode=0x0C),
        FrameClass.MALFORMED_ROCE: roce(tver=1), FrameClass.BAD_ICRC: roce(wrong_icrc=True),
        FrameClass.ROCEV1: ethernet(0x8915, bytes(60)),
        FrameClass.IP_FRAGMENT: roce(ip={"flags": 185}),
        FrameClass.IPV6_EXTENSION: roce(version=6, ip={"next_header": 0}),
        FrameClass.TAGS_TOO_DEEP: roce(tags=[(0x8100, 1)] * 3),
        FrameClass.MALFORMED_IP: roce(ip={"ihl": 4}),
        FrameClass.TUNNELLED: ethernet(0x0800, ipv4(udp(bytes(8) + inner, destination=4789))),
        FrameClass.PFC: pfc({3: 0}), FrameClass.PAUSE: mac_control(1, bytes(2)),
        FrameClass.MAC_CONTROL: mac_control(2, bytes(2)),
        FrameClass.TAGGED_PFC: pfc({3: 1}, tags=[(0x8100, 1)]),
        FrameClass.BAD_PFC: pfc({3: 1}, destination=bytes(6)),
        FrameClass.NOT_ROCE: ethernet(0x0806, bytes(46)),
    }
    for frame_class, frame in wanted.items():
        assert classify(frame).frame_class == frame_class
    assert classify(roce(bytes(3))[:-1]).frame_class == FrameClass.MALFORMED_IP
    assert classify(pfc({3: 0})[:40], 60).frame_class == FrameClass.BAD_PFC
    assert classify(roce(bytes(15), opcode=0x06, pad_count=0)).frame_class == (
        FrameClass.MALFORMED_ROCE)
    assert classify(pfc({3: 0, 5: 7})).pfc == {3: 0, 5: 7}


@pytest.mark.parametrize("window", [1, 2, 4, 100, 256])
def test_every_distance_at_which_the_algorithm_changes_its_mind(window):
    for distance in edge_distances(window):
        connection = ReferenceConnection(window)
        for psn in range(2 * window + 2):
            connection.request((M - 3 + psn) % M, 0)
        high = M - 3 + 2 * window + 1
        closed = connection.request((high + distance) % M, 1)
        before = 2 * window + 2
        u = distance % M
        if u == M // 2 or window < u < M // 2:
            assert [epoch.flags for epoch in closed] == [0x11]
            assert counters(connection.snapshot()) == {"requests": 1}
            continue
        assert closed == []
        expected = {"requests": before + 1}
        if 2 <= u <= window:
            expected |= {"skipped": u - 1, "pending": u - 1}
        elif u == 0 or u > M - window:
            expected["repeated"] = 1
        elif u > M // 2:
            expected["late"] = 1
        assert counters(connection.snapshot()) == expected, distance


@pytest.mark.parametrize("window", [1, 4, 100, 256])
def test_impaired_sequences_reach_every_counter(window):
    print("seeds 0 to 9")
    seen = {}
    for seed in range(10):
        connection = run(window, impaired_psns(500, window, seed))
        connection.close()
        for epoch in connection.results:
            for name in counters(epoch):
                seen[name] = seen.get(name, 0) + 1
        assert sum(epoch.requests for epoch in connection.results) == 500
        assert len(connection.results) > 1
    never = {"skipped", "filled", "expired", "abandoned"} if window == 1 else set()
    assert set(seen) == {"requests", "skipped", "filled", "expired", "abandoned", "repeated",
                         "late"} - never


def test_impaired_sequences_are_the_same_for_a_seed():
    assert impaired_psns(300, 64, 5) == impaired_psns(300, 64, 5)
    assert impaired_psns(300, 64, 5) != impaired_psns(300, 64, 6)


@pytest.mark.parametrize("change", [
    {"skipped": 1}, {"pending": 4, "skipped": 4}, {"repeated": 3}, {"abandoned": 1, "skipped": 1},
    {"flags": 0x10}, {"flags": 1, "pending": 1, "skipped": 1}])
def test_a_report_that_breaks_a_relation_is_refused(change):
    Epoch(window=4, requests=3).check()
    with pytest.raises(AssertionError):
        Epoch(**{"window": 4, "requests": 3, **change}).check()


def test_lengths_of_extended_headers_agree_with_the_contract():
    for opcode in range(256):
        if opcode in RC_RESPONSES or opcode == CNP:
            continue
        assert _EXTENDED_OCTETS.get(opcode, 0) == extended_header_octets(opcode), hex(opcode)


def vector_v1():
    """SEND_ONLY of the eighteen octets 00 to 11 hex, from 192.0.2.1 to 198.51.100.2."""
    return bytearray.fromhex(
        "4500 0040 0001 4000 4011 0000 c0000201 c6336402"
        "c000 12b7 002c 0000 0420 ffff 0000 0012 0000 0001")


def ipv4_checksum(header):
    total = sum(int.from_bytes(header[i:i + 2], "big") for i in range(0, len(header), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return (total ^ 0xFFFF).to_bytes(2, "big")


def v1_frame(icrc="d62bc474"):
    packet = vector_v1()
    packet[10:12] = ipv4_checksum(packet[:20])
    return (bytes(12) + b"\x08\x00" + bytes(packet) + bytes(range(18)) + bytes(2)
            + bytes.fromhex(icrc))


def test_own_icrc_vector_is_good_and_one_flipped_bit_is_bad():
    good = classify(v1_frame())
    assert good.frame_class == FrameClass.ELIGIBLE_REQUEST
    assert (good.key.destination_qp, good.key.partition_key, good.psn) == (0x12, 0xFFFF, 1)
    assert classify(v1_frame("d62bc475")).frame_class == FrameClass.BAD_ICRC
    still_good = set()
    for at in range(14, len(v1_frame())):
        frame = bytearray(v1_frame())
        frame[at] ^= 1
        if classify(bytes(frame)).frame_class == FrameClass.ELIGIBLE_REQUEST:
            still_good.add(at - 14)
    # TOS, TTL, IP checksum, UDP checksum, BTH's octet 4: what the ICRC leaves out.
    assert still_good == {1, 8, 10, 11, 26, 27, 32}


@pytest.mark.parametrize(("captured", "expected"), [
    (78, FrameClass.ELIGIBLE_REQUEST), (64, FrameClass.ELIGIBLE_REQUEST),
    (58, FrameClass.ELIGIBLE_REQUEST), (54, FrameClass.ELIGIBLE_REQUEST),
    (53, FrameClass.SLICED_SHORT), (45, FrameClass.SLICED_SHORT), (20, FrameClass.SLICED_SHORT)])
def test_a_cut_frame_counts_when_its_bth_is_whole(captured, expected):
    assert classify(v1_frame()[:captured], 78).frame_class == expected


@pytest.mark.parametrize(("combine", "flags"), [(False, [0x05]), (True, [0x07])])
def test_a_violation_after_a_gap_may_combine_its_causes(combine, flags):
    connection = ReferenceConnection(4, combine=combine)
    connection.request(1)
    connection.capture_discontinuity()
    connection.violation()
    assert [epoch.flags for epoch in connection.results] == flags
    connection.provision()
    connection.request(2)
    connection.close()
    assert [epoch.flags for epoch in connection.results] == [*flags, 0x01]


@pytest.mark.parametrize("combine", [False, True])
def test_a_request_after_a_gap_is_counted_in_a_fresh_epoch(combine):
    connection = ReferenceConnection(4, combine=combine)
    for psn in (1, 3):
        connection.request(psn)
    connection.capture_discontinuity()
    connection.request(2)
    assert [epoch.flags for epoch in connection.results] == [0x05]
    assert counters(connection.snapshot()) == {"requests": 1}


def test_a_short_cut_closes_every_stream_and_a_bad_icrc_disables_its_own():
    frames = [(1, v1_frame()), (2, v1_frame("00000000")), (3, v1_frame())]
    [[final]] = reference_capture(frames, 4).epochs.values()
    assert (final.requests, final.flags, final.first_time, final.last_time) == (1, 3, 1, 1)


if "rc-send-ack.pcap" in REAL_CAPTURES:
    def test_real_request_streams_have_no_gap():
        with open_capture(str(REAL_CAPTURES["rc-send-ack.pcap"])) as capture:
            frames = [frame for batch in capture.batches() for frame in batch.frames()]
        expected = reference_capture(frames, 64)
        finals = [final for epochs in expected.epochs.values() for final in epochs]
        assert sorted(counters(final).items() for final in finals) == [
            {"requests": 1}.items(), {"requests": 67}.items()]
        assert [final.flags for final in finals] == [1, 1]
        assert expected.classes[FrameClass.RESPONSE] == 37
        assert expected.classes[FrameClass.ELIGIBLE_REQUEST] == 68
        assert sum(expected.classes.values()) == 123
