"""Request streams: messages in order, and each impairment as the reference model sees it."""

from __future__ import annotations

from ipaddress import ip_address
from random import Random

import pytest

from rocetap.capture.encode import RoceFlow
from rocetap.capture.traffic import Impairments, RequestStream
from rocetap.spec.classes import FrameClass
from support.reference import M, classify, reference_capture


def flow(side):
    ends = [ip_address("192.0.2.1"), ip_address("198.51.100.1")]
    return RoceFlow(source_mac=bytes(6), destination_mac=bytes(6), source=ends[side],
                    destination=ends[1 - side], destination_qp=0x10 + side)


def stream(start=100, seed=3, mtu=256, **impairments):
    return RequestStream(flow(0), flow(1), start=start, mtu=mtu,
                         impairments=Impairments(**impairments), rng=Random(seed))


def frames_of(requests, count=2000):
    return [(n, requests.next_frame()) for n in range(count)]


def only_epochs(frames, window=64):
    [epochs] = reference_capture(frames, window).epochs.values()
    return epochs


def test_messages_are_well_formed_and_in_order():
    requests = stream(start=M - 5)
    seen = [classify(frame) for _, frame in frames_of(requests)]
    assert {item.frame_class for item in seen} == {FrameClass.ELIGIBLE_REQUEST}
    assert [item.psn for item in seen] == [(M - 5 + n) % M for n in range(2000)]
    assert {item.opcode for item in seen} == set(range(12))
    inside = None
    for item in seen:
        kind, step = divmod(item.opcode, 6)
        if step in (0, 4, 5):
            assert inside is None
            inside = kind if step == 0 else None
        else:
            assert inside == kind
            inside = None if step in (2, 3) else kind
    assert dict(requests.done) == {"requests": 2000}


def test_a_stream_without_impairments_has_nothing_to_report():
    [epoch] = only_epochs(frames_of(stream(start=M - 1000)))
    assert (epoch.requests, epoch.skipped, epoch.repeated, epoch.late) == (2000, 0, 0, 0)


def test_gaps_are_positions_that_never_come():
    requests = stream(gap=0.02)
    [epoch] = only_epochs(frames_of(requests))
    assert epoch.skipped == requests.done["missing"] > 50
    assert (epoch.filled, epoch.repeated, epoch.late) == (0, 0, 0)


def test_repeats_are_the_same_packets_again():
    requests = stream(repeat=0.02)
    frames = frames_of(requests)
    [epoch] = only_epochs(frames)
    assert 50 < epoch.repeated <= requests.done["repeated"]
    assert (epoch.skipped, epoch.late) == (0, 0)
    bodies = {}
    for _, frame in frames:
        seen = classify(frame)
        assert bodies.setdefault(seen.psn, (seen.opcode, frame[54:-4])) == (
            seen.opcode, frame[54:-4])


def test_late_packets_fill_and_very_late_ones_come_behind_the_window():
    requests = stream(late=0.05)
    [epoch] = only_epochs(frames_of(requests))
    assert epoch.filled > 10
    assert epoch.late > 0
    assert epoch.repeated == 0
    assert epoch.filled + epoch.late >= requests.done["late"] - 1


@pytest.mark.parametrize("window", [1, 256, 1 << 22])
def test_jumps_are_beyond_any_window(window):
    requests = stream(jump=0.01)
    frames = frames_of(requests, 500 if window < 1 << 22 else 40)
    epochs = only_epochs(frames, window)
    assert len(epochs) == 1 + requests.done["jumps"]
    assert {epoch.flags for epoch in epochs[:-1]} <= {0x11}
    assert all(epoch.skipped == 0 for epoch in epochs)


def test_a_read_disables_the_stream_and_its_responses_take_up_psns():
    requests = stream()
    before = frames_of(requests, 10)
    read = requests.read(3)
    after = frames_of(requests, 2)
    seen = [classify(frame) for frame in read]
    assert [item.opcode for item in seen] == [0x0C, 0x0D, 0x0E, 0x0F]
    assert [item.psn for item in seen] == [110, 110, 111, 112]
    assert [item.key.destination_qp for item in seen] == [0x10, 0x11, 0x11, 0x11]
    assert classify(after[0][1]).psn == 113
    assert [item.opcode for item in map(classify, stream().read(1))] == [0x0C, 0x10]
    [epoch] = only_epochs(before + [(10, frame) for frame in read] + after)
    assert (epoch.requests, epoch.flags) == (10, 3)


def test_acknowledgements_are_coalesced_and_go_back():
    requests = stream()
    answers = []
    for _ in range(400):
        psn = classify(requests.next_frame()).psn
        answer = requests.acknowledgement()
        if answer is not None:
            seen = classify(answer)
            assert (seen.frame_class, seen.psn) == (FrameClass.RESPONSE, psn)
            assert (seen.key.source, seen.key.destination_qp) == ("198.51.100.1", 0x11)
            answers.append(psn)
    assert 50 < len(answers) < 300
    cnp = classify(requests.congestion_notification())
    assert (cnp.frame_class, cnp.psn, cnp.key.destination_qp) == (FrameClass.CNP, 0, 0x11)


def test_rates_add_up_and_none_leaks_into_another():
    requests = stream(gap=0.02, repeat=0.02, late=0.02, jump=0.02)
    frames_of(requests, 10_000)
    assert set(requests.done) == {"requests", "missing", "repeated", "late", "jumps"}
    assert 100 < requests.done["jumps"] < 220
    assert 400 < requests.done["missing"] < 1200
    requests = stream(late=0.5)
    frames_of(requests)
    assert set(requests.done) == {"requests", "late"}


def test_source_ports_vary():
    ports = {frame[34:36] for _, frame in frames_of(stream(), 200)}
    assert len(ports) > 4
