from __future__ import annotations

import io

import pytest
from scapy.utils import RawPcapReader

from rocetap.capture.pcap_writer import PcapWriter
from support.captures import pcap, record

TIME = 1700000000123456789


@pytest.mark.parametrize(("nano", "fraction"), [(True, 123456789), (False, 123456)])
def test_the_file_is_the_hand_packed_one(nano, fraction):
    stream = io.BytesIO()
    writer = PcapWriter(stream, nanoseconds=nano, snap_length=65535)
    writer.write(TIME, b"abc")
    writer.write(TIME + 1_000_000_000, b"")
    writer.flush()
    assert stream.getvalue() == pcap(
        record(b"abc", seconds=1700000000, fraction=fraction),
        record(b"", seconds=1700000001, fraction=fraction), nano=nano)


def test_a_snapshot_length_cuts_and_large_files_go_out_in_pieces(tmp_path):
    path = tmp_path / "x.pcap"
    with open(path, "wb") as stream:
        writer = PcapWriter(stream, snap_length=1000)
        for n in range(1100):
            writer.write(n, bytes(1001))
        assert path.stat().st_size > 1 << 20
        writer.flush()
    with RawPcapReader(str(path)) as reader:
        packets = list(reader)
    assert len(packets) == 1100
    assert {(len(data), meta.wirelen) for data, meta in packets} == {(1000, 1001)}
