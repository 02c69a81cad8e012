"""IPFIX by hand: columns for reports, messages put together octet by octet, and other decoders."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np

from rocetap.ipfix.exporting import ExportingSession
from rocetap.ipfix.records import PFC_READING, SEQUENCE_REPORT

__all__ = [
    "address", "data_set", "dump", "message", "opened", "pcap_of", "readings", "reports", "run",
    "template_record", "tool",
]


def address(*octets):
    """Sixteen octets: four are an IPv4 address in the last four."""
    return np.void(bytes(16 - len(octets)) + bytes(octets))


def reports(count, first_epoch=1, **columns):
    """Valid first reports of epochs in a row; `columns` override."""
    rows = np.zeros(count, SEQUENCE_REPORT)
    rows["observation_point"] = 7
    rows["source"] = address(192, 0, 2, 1)
    rows["destination"] = address(198, 51, 100, 2)
    rows["qp"] = 0x012345
    rows["pkey"] = 0xFFFF
    rows["epoch_id"] = np.arange(first_epoch, first_epoch + count)
    rows["report_id"] = 1
    rows["window"] = 64
    rows["flags"] = 0x20
    rows["flow_start_ms"] = 1_700_000_000_000
    rows["flow_end_ms"] = 1_700_000_000_500
    rows["requests"] = 10
    for name, values in columns.items():
        rows[name] = values
    return rows


def readings(count, **columns):
    """PFC readings of priorities in turn; `columns` override."""
    rows = np.zeros(count, PFC_READING)
    rows["observation_point"] = 7
    rows["interface"] = 2
    rows["priority"] = np.arange(count) % 8
    rows["time_ms"] = 1_700_000_000_123
    rows["total"] = np.arange(count) * 1000
    for name, values in columns.items():
        rows[name] = values
    return rows


def opened(domain=1, **options):
    """A started exporting session and its first messages as octets."""
    session = ExportingSession(domain, **options)
    return session, b"".join(session.start(1_700_000_000))


def data_set(set_id, body, length=None):
    """A Set; `length` lies about its size."""
    return struct.pack("!HH", set_id, len(body) + 4 if length is None else length) + body


def message(*sets, sequence=0, domain=1, time=1_700_000_000, version=10, length=None):
    """A message; `version` and `length` may lie."""
    body = b"".join(sets)
    size = len(body) + 16 if length is None else length
    return struct.pack("!HHIII", version, size, time, sequence, domain) + body


def template_record(template_id, *fields, scope=None, count=None):
    """A Template Record of (number, length) or (number, length, PEN); `count` lies."""
    record = struct.pack("!HH", template_id, len(fields) if count is None else count)
    if scope is not None:
        record += struct.pack("!H", scope)
    for number, size, *enterprise in fields:
        record += struct.pack("!HH", number | (0x8000 if enterprise else 0), size)
        record += b"".join(struct.pack("!I", pen) for pen in enterprise)
    return record


def tool(name):
    """The path of an independent decoder; without it the test fails and says what to install."""
    package = {"ipfixDump": "libfixbuf-tools", "tshark": "tshark"}[name]
    path = shutil.which(name)
    assert path, f"{name} is not installed: apt-get install {package}"
    return path


def run(*command, given=b""):
    """Standard output of a program that must succeed."""
    done = subprocess.run(command, input=given, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout.decode()


def dump(octets, folder: Path, *options):
    """What ipfixDump prints of a stream of messages."""
    path = folder / "stream.ipfix"
    path.write_bytes(octets)
    return run(tool("ipfixDump"), "--in", str(path), *options)


def pcap_of(octets, folder: Path, port=4739):
    """A capture of one TCP connection that carries `octets` to `port`, in segments of 1,400."""
    from scapy.layers.inet import IP, TCP
    from scapy.layers.l2 import Ether
    from scapy.utils import wrpcap

    frames = []
    for position in range(0, len(octets), 1400):
        frames.append(Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
                      / IP(src="192.0.2.1", dst="192.0.2.2")
                      / TCP(sport=40000, dport=port, flags="PA", seq=1 + position, ack=1)
                      / octets[position:position + 1400])
    path = folder / "stream.pcap"
    wrpcap(str(path), frames)
    return path
