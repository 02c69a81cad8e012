"""Synthetic captures: the same settings the same file, and all that was asked for is in it."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from itertools import pairwise

import pytest

from rocetap.capture.reading import open_capture
from rocetap.capture.synth import SynthSettings, write_synthetic
from rocetap.capture.traffic import Impairments
from rocetap.errors import RocetapError
from rocetap.spec.classes import FrameClass
from support.reference import classify, reference_capture

FULL = SynthSettings(
    packets=12_000, connections=24, seed=5, reads=3, pfc=0.01, cnp=0.01,
    impairments=Impairments(gap=0.01, repeat=0.01, late=0.02, jump=0.001))
DIGEST = "4e8b4e1f751f99325a6a54c28eed84eea95efd57bdbf307378376e1929c6b9f9"


def frames_of(path):
    with open_capture(str(path)) as capture:
        frames = [frame for batch in capture.batches() for frame in batch.frames()]
        assert capture.truncation is None
        assert capture.warnings == []
        return frames


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    path = tmp_path_factory.mktemp("synth") / "full.pcap"
    summary = write_synthetic(path, FULL)
    frames = frames_of(path)
    return path, summary, frames, reference_capture(frames, 64)


def test_every_frame_is_well_formed_and_counted(full):
    _, summary, frames, expected = full
    assert summary.frames == len(frames) == 12_000
    assert summary.octets == sum(len(frame.data) for frame in frames)
    assert min(len(frame.data) for frame in frames) == 60
    assert set(expected.classes) == {
        FrameClass.ELIGIBLE_REQUEST, FrameClass.UNSUPPORTED_REQUEST, FrameClass.RESPONSE,
        FrameClass.CNP, FrameClass.PFC, FrameClass.NOT_ROCE}
    kinds = summary.kinds
    assert expected.classes[FrameClass.ELIGIBLE_REQUEST] == kinds["request"]
    assert expected.classes[FrameClass.UNSUPPORTED_REQUEST] == 3
    assert expected.classes[FrameClass.RESPONSE] == kinds["acknowledgement"] + kinds["read"] - 3
    assert expected.classes[FrameClass.CNP] == kinds["cnp"]
    assert expected.classes[FrameClass.PFC] == kinds["pfc"]
    assert expected.classes[FrameClass.NOT_ROCE] == kinds["other"]


def test_families_tags_and_directions_are_mixed(full):
    _, _, _, expected = full
    assert len(expected.epochs) == 24
    forms = {(":" in key.source, bool(key.vlan), bool(key.inner_vlan)) for key in expected.epochs}
    assert forms == {(ipv6, *tags) for ipv6 in (False, True)
                     for tags in ((False, False), (True, False), (True, True))}
    ends = {(key.source, key.destination) for key in expected.epochs}
    assert all((destination, source) in ends for source, destination in ends)


def test_every_counter_and_reason_is_reached(full):
    _, summary, _, expected = full
    epochs = [epoch for stream in expected.epochs.values() for epoch in stream]
    for name in ("skipped", "filled", "expired", "abandoned", "repeated", "late"):
        assert sum(getattr(epoch, name) for epoch in epochs) > 0, name
    assert {epoch.flags for epoch in epochs} == {0x01, 0x03, 0x11}
    assert sum(epoch.flags == 0x03 for epoch in epochs) == summary.done["reads"] == 3
    assert len(epochs) == 24 + sum(epoch.flags == 0x11 for epoch in epochs)


def test_psns_of_the_first_stream_wrap(tmp_path):
    write_synthetic(tmp_path / "x.pcap", SynthSettings(packets=3000))
    seen = [classify(frame.data) for frame in frames_of(tmp_path / "x.pcap")]
    psns = [item.psn for item in seen if item.key is not None and item.opcode < 12
            and item.key.source == "192.0.2.1" and item.key.destination_qp == 0x100]
    assert max(psns) > 0xFFFFF0
    assert min(psns) < 16


def test_pauses_and_resumes_come_on_several_priorities(full):
    _, _, _, expected = full
    assert len(expected.pfc) == 8
    xoff, total = sum(expected.pfc_xoff.values()), sum(expected.pfc.values())
    assert total - xoff in (xoff, xoff - 1)


def test_times_rise_and_are_written_exactly(full, tmp_path):
    path, _, frames, _ = full
    times = [frame.time_ns for frame in frames]
    assert times[0] == 1_700_000_000_000_000_000
    assert all(a < b for a, b in pairwise(times))
    micro = tmp_path / "micro.pcap"
    write_synthetic(micro, FULL, nanoseconds=False)
    assert [frame.time_ns for frame in frames_of(micro)] == [t // 1000 * 1000 for t in times]
    assert micro.stat().st_size == path.stat().st_size


def test_the_seed_decides(full, tmp_path):
    path, _, _, _ = full
    write_synthetic(tmp_path / "again.pcap", FULL)
    write_synthetic(tmp_path / "other.pcap", replace(FULL, seed=6))
    assert (tmp_path / "again.pcap").read_bytes() == path.read_bytes()
    assert (tmp_path / "other.pcap").read_bytes() != path.read_bytes()


def test_the_file_of_a_seed_does_not_change_unnoticed(full):
    """A change of this digest changes everybody's captures: it has to be meant."""
    path, _, _, _ = full
    assert hashlib.sha256(path.read_bytes()).hexdigest() == DIGEST


def test_nothing_but_clean_requests_when_nothing_is_asked_for(tmp_path):
    write_synthetic(tmp_path / "x.pcap", SynthSettings(
        packets=1000, connections=3, reads=0, cnp=0, pfc=0, other=0, impairments=Impairments()))
    expected = reference_capture(frames_of(tmp_path / "x.pcap"), 1)
    assert set(expected.classes) == {FrameClass.ELIGIBLE_REQUEST, FrameClass.RESPONSE}
    for [epoch] in expected.epochs.values():
        assert (epoch.flags, epoch.skipped, epoch.repeated, epoch.late) == (1, 0, 0, 0)


@pytest.mark.parametrize(("payload", "longest"), [
    ("small", 256 + 120), ("mixed", 2048 + 120), ("large", 4096 + 120)])
def test_payload_sizes(tmp_path, payload, longest):
    write_synthetic(tmp_path / "x.pcap", SynthSettings(packets=800, payload=payload))
    found = max(len(frame.data) for frame in frames_of(tmp_path / "x.pcap"))
    assert longest - 120 < found < longest


@pytest.mark.parametrize(("settings", "line"), [
    ({"packets": 0}, "packets is 0, must be 1 to 1099511627776"),
    ({"connections": 0}, "connections is 0, must be 1 to 65536"),
    ({"connections": 2, "reads": 3}, "reads is 3, must be 0 to 2"),
    ({"impairments": Impairments(gap=1.5)}, "gap is 1.5, must be a chance from 0 to 1"),
    ({"pfc": -0.1}, "pfc is -0.1, must be a chance from 0 to 1"),
    ({"payload": "huge"}, "payload is 'huge', must be one of small, mixed, large"),
])
def test_settings_that_cannot_be(settings, line):
    with pytest.raises(RocetapError) as caught:
        SynthSettings(**settings)
    assert str(caught.value) == line


def test_a_file_that_cannot_be_written(tmp_path):
    with pytest.raises(RocetapError) as caught:
        write_synthetic(tmp_path / "none" / "x.pcap", SynthSettings(packets=1))
    assert str(caught.value) == (
        f"cannot write {tmp_path}/none/x.pcap: No such file or directory")


