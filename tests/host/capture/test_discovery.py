"""Streams in captures: what makes one, what splits one, and the provisioning made of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import astuple

import pytest

from rocetap.capture.discovery import StreamKey, discover, opcode_name
from rocetap.capture.reading import open_capture
from rocetap.capture.synth import SynthSettings, write_synthetic
from rocetap.capture.traffic import Impairments
from rocetap.provisioning import Port
from support.captures import REAL_CAPTURES, enhanced, interface, pcap, record, section
from support.frames import roce
from support.reference import reference_capture


def discover_frames(tmp_path, *frames):
    path = tmp_path / "x.pcap"
    path.write_bytes(pcap(*(record(frame) for frame in frames)))
    with open_capture(str(path)) as capture:
        return discover(capture.batches())


def test_every_part_of_the_key_splits_and_the_source_port_does_not(tmp_path):
    variants = [
        {}, {"qp": 0x13}, {"pkey": 0x7FFF}, {"ip": {"source": "192.0.2.2"}},
        {"ip": {"destination": "198.51.100.3"}}, {"tags": [(0x8100, 5)]}, {"tags": [(0x8100, 6)]},
        {"tags": [(0x88A8, 5), (0x8100, 6)]}, {"tags": [(0x88A8, 6), (0x8100, 5)]}, {"version": 6}]
    frames = [roce(psn=n, sport=port, **variant) for n, variant in enumerate(variants)
              for port in (0, 69, 49152)]
    found = discover_frames(tmp_path, *frames)
    assert [stream.packets for stream in found.streams] == [{4: 3}] * len(variants)
    assert len({stream.key for stream in found.streams}) == len(variants)
    assert astuple(found.streams[8].key)[2:] == (0x12, 0xFFFF, 6, 5)
    assert (found.frames, found.roce_packets, found.interfaces) == (30, 30, [0])


def test_tag_types_and_priorities_do_not_split(tmp_path):
    found = discover_frames(tmp_path, *(roce(tags=[tag]) for tag in (
        (0x8100, 5), (0x88A8, 5), (0x9100, 0xF005))))
    assert [stream.packets for stream in found.streams] == [{4: 3}]


def test_responses_and_cnps_make_no_stream(tmp_path):
    frames = [roce(opcode=code) for code in [*range(0x0D, 0x13), 0x81]]
    assert discover_frames(tmp_path, *frames).streams == []


@pytest.mark.parametrize("opcode", [0x0C, 0x13, 0x14, 0x15, 0x16, 0x19, 0x1C, 0x1F])
def test_other_requests_in_rc_space_make_a_stream_outside_the_profile(tmp_path, opcode):
    found = discover_frames(tmp_path, roce(bytes(28), opcode=opcode), roce(opcode=0x11))
    [stream] = found.streams
    assert (stream.requests, stream.outside) == (0, {opcode: 1})


@pytest.mark.parametrize("opcode", [0x20, 0x24, 0x44, 0x64, 0x80, 0xA4, 0xE0])
def test_other_transports_make_no_stream_but_are_seen_on_one(tmp_path, opcode):
    assert discover_frames(tmp_path, roce(bytes(28), opcode=opcode)).streams == []
    [stream] = discover_frames(tmp_path, roce(bytes(28), opcode=opcode), roce()).streams
    assert (stream.requests, stream.outside) == (1, {opcode: 1})


def test_opcode_names():
    assert opcode_name(0x0C) == "RDMA_READ_REQUEST (0x0c)"
    assert opcode_name(0x19) == "opcode 0x19"


def test_a_port_for_each_interface_of_the_capture(tmp_path):
    path = tmp_path / "x.pcapng"
    path.write_bytes(section() + interface() * 3 + enhanced(roce(), number=0)
                     + enhanced(roce(psn=1), number=2))
    with open_capture(str(path)) as capture:
        found = discover(capture.batches())
    assert found.provisioning(64).ports == [Port("port0", 1), Port("port2", 3)]
    assert discover([]).provisioning(64).ports == [Port("port0", 1)]


def test_the_streams_of_a_synthetic_capture_are_those_of_the_reference(tmp_path):
    path = tmp_path / "s.pcap"
    write_synthetic(path, SynthSettings(
        packets=3000, connections=21, seed=4, reads=2, impairments=Impairments(gap=0.01)))
    with open_capture(str(path)) as capture:
        frames = [frame for batch in capture.batches() for frame in batch.frames()]
    with open_capture(str(path)) as capture:
        found = discover(capture.batches())
    expected = reference_capture(frames, 64).epochs
    assert {tuple(map(str, astuple(stream.key))) for stream in found.streams} == {
        tuple(map(str, key)) for key in expected}
    assert sum(1 for stream in found.streams if stream.outside) == 2
    connections = found.provisioning(100).connections
    assert len(connections) == 21
    assert Counter(connection.window for connection in connections) == {100: 21}
    assert [astuple(stream.key) for stream in found.streams] == [
        (c.source, c.destination, c.destination_qp, c.partition_key, c.vlan, c.inner_vlan)
        for c in connections]


if "rc-send-ack.pcap" in REAL_CAPTURES:
    def test_the_request_streams_of_a_real_capture():
        with open_capture(str(REAL_CAPTURES["rc-send-ack.pcap"])) as capture:
            found = discover(capture.batches())
        assert (found.frames, found.roce_packets) == (123, 105)
        assert [stream.packets for stream in found.streams] == [{5: 1}, {0: 33, 3: 33, 5: 1}]
        assert all(isinstance(stream.key, StreamKey) and not stream.outside
                   for stream in found.streams)
