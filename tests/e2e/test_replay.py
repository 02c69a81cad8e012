"""Captures through the Verilated gateware, the link, TLS and the collector, against the model."""

import random
import subprocess
import sys
from ipaddress import ip_address
from pathlib import Path

import pytest

from rocetap.capture.reading import open_capture
from rocetap.capture.synth import SynthSettings, write_synthetic
from rocetap.capture.traffic import Impairments
from rocetap.errors import RocetapError
from rocetap.provisioning import Connection, Provisioning
from rocetap.replay import replay
from rocetap.spec.classes import FrameClass
from support import frames as packets
from support.captures import REAL_CAPTURES, pcap, record
from support.impair import impaired_psns
from support.reference import Key, reference_capture

MS = 1_000_000
START = 1_700_000_000_000_000_000
UNVERIFIED = 0x20
COUNTERS = {
    "requests": "requestPacketTotalCount", "skipped": "skippedPsnTotalCount",
    "filled": "filledPsnTotalCount", "expired": "expiredPsnTotalCount",
    "abandoned": "abandonedPsnTotalCount", "pending": "pendingPsnCount",
    "repeated": "repeatedPsnTotalCount", "late": "unclassifiedLatePacketTotalCount",
    "window": "rdmaSequenceWindow"}


def write(path, octets, step_ns=10_000):
    """A pcap of frames at regular times."""
    times = [divmod(START + number * step_ns, 10**9) for number in range(len(octets))]
    path.write_bytes(pcap(*(record(frame, seconds=seconds, fraction=fraction)
                            for frame, (seconds, fraction) in zip(octets, times, strict=True))))
    return str(path)


def expected_of(path, window):
    with open_capture(path) as capture:
        return reference_capture(
            [frame for batch in capture.batches() for frame in batch.frames()], window)


def key_of(row):
    family = "IPv6" if "sourceIPv6Address" in row else "IPv4"
    return Key(row[f"source{family}Address"], row[f"destination{family}Address"],
               row["rdmaDestinationQP"], row["rdmaPartitionKey"], row.get("dot1qVlanId", 0),
               row.get("dot1qCustomerVlanId", 0))


def found(result):
    """Key -> its epochs, each as the reference model's fields."""
    epochs = {}
    for row in result.sequence:
        epochs.setdefault(key_of(row), []).append(
            {name: row[element] for name, element in COUNTERS.items()}
            | {"flags": row["rdmaSequenceFlags"], "start": row["flowStartMilliseconds"],
               "end": row["flowEndMilliseconds"]})
    return epochs


def asked(expected):
    return {key: [
        {name: getattr(epoch, name) for name in COUNTERS}
        | {"flags": epoch.flags | UNVERIFIED, "start": epoch.first_time // MS,
           "end": epoch.last_time // MS} for epoch in epochs]
        for key, epochs in expected.epochs.items() if epochs}


def check(path, window):
    result, expected = replay(path, window=window), expected_of(path, window)
    assert found(result) == asked(expected)
    assert result.frames == expected.classes
    assert {row["pfcPriority"]: row["pfcControlFrameTotalCount"] for row in result.pfc} == {
        priority: expected.pfc[priority] for priority in range(8)}
    assert {row["outcome"] for row in result.sequence} <= {"complete"}
    assert not result.dropped
    return result, expected


@pytest.mark.parametrize(("window", "seed"), [(1, 11), (4, 12), (100, 13), (256, 14)])
def test_synthetic_traffic_equals_the_reference_model(tmp_path, window, seed):
    path = tmp_path / "capture.pcap"
    write_synthetic(path, SynthSettings(
        packets=2500, connections=12, seed=seed, reads=2, cnp=0.02, pfc=0.02, payload="small",
        impairments=Impairments(gap=0.02, repeat=0.02, late=0.03, jump=0.01)))
    result, expected = check(str(path), window)
    assert sum(len(epochs) for epochs in expected.epochs.values()) > 12
    assert any(epoch.filled for epochs in expected.epochs.values() for epoch in epochs) or (
        window == 1)
    assert {"IPv4", "IPv6"} == {"IPv6" if "sourceIPv6Address" in row else "IPv4"
                                for row in result.sequence}


@pytest.mark.parametrize(("window", "seed"), [(1, 1), (4, 2), (100, 3), (256, 4)])
def test_random_sequences_in_both_directions_with_acknowledgements(tmp_path, window, seed):
    """Back-to-back packets of one connection, a wrap in the middle, ACKs and CNPs between, source
    ports that vary."""
    rng = random.Random(seed)
    psns = impaired_psns(500, window, seed, start=0xFFFFF0)
    octets = []
    for number, psn in enumerate(psns):
        octets.append(packets.roce(bytes(rng.randrange(8)), psn=psn, qp=0x12,
                                   sport=rng.randrange(1 << 16)))
        if rng.random() < 0.3:
            octets.append(packets.roce(bytes(4), opcode=0x11, psn=rng.randrange(1 << 24), qp=0x12))
        if rng.random() < 0.1:
            octets.append(packets.roce(bytes(16), opcode=0x81, qp=0x12, becn=True))
        if rng.random() < 0.3:
            octets.append(packets.roce(
                b"", psn=number, qp=0x34,
                ip={"source": "198.51.100.2", "destination": "192.0.2.1"}))
        if rng.random() < 0.3:
            octets.append(packets.roce(b"x", version=6, psn=psn, qp=0x12,
                                       tags=[(0x8100, 0x600A)]))
    _, expected = check(write(tmp_path / "capture.pcap", octets), window)
    assert len(expected.epochs) == 3


EXAMPLES = {
    "fill and repeat": (4, [100, 102, 101, 103, 102], [
        {"requests": 5, "skipped": 1, "filled": 1, "repeated": 1}]),
    "before the first": (4, [100, 99, 100], [{"requests": 3, "late": 1, "repeated": 1}]),
    "expiry and closure": (4, [100, 102, 106], [
        {"requests": 3, "skipped": 4, "expired": 1, "abandoned": 3}]),
    "wrap": (4, [16777214, 16777215, 0, 1], [{"requests": 4}]),
    "half space": (4, [16777214, 16777215, 0, 1, 1 + (1 << 23)], [
        {"requests": 4, "flags": 0x11}, {"requests": 1}]),
    "window one": (1, [5, 6, 8], [{"requests": 2, "flags": 0x11}, {"requests": 1}]),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_verification_examples(tmp_path, name):
    window, psns, epochs = EXAMPLES[name]
    path = write(tmp_path / "capture.pcap", [packets.roce(psn=psn) for psn in psns])
    [got] = found(replay(path, window=window)).values()
    default = dict.fromkeys(COUNTERS, 0) | {"flags": 0x01, "window": window}
    assert [{field: value for field, value in one.items() if field not in ("start", "end")}
            for one in got] == [
        default | wanted | {"flags": wanted.get("flags", 0x01) | UNVERIFIED} for wanted in epochs]


def test_verification_example_read_and_capture_fault(tmp_path):
    """A READ disables the connection, also for SENDs after it; a cut packet closes all that may be
    affected, and nothing pending is carried over."""
    sends = [packets.roce(psn=psn) for psn in (1, 3)]
    read = packets.roce(bytes(16), opcode=0x0C, psn=4)
    path = write(tmp_path / "read.pcap", [*sends, read, *sends])
    [[epoch]] = found(replay(path, window=4)).values()
    assert (epoch["requests"], epoch["skipped"], epoch["abandoned"]) == (2, 1, 1)
    assert epoch["flags"] == 0x01 | 0x02 | UNVERIFIED

    cut = tmp_path / "cut.pcap"
    frames = [packets.roce(psn=psn) for psn in (1, 3, 2)]
    cut.write_bytes(pcap(*(record(frames[0], seconds=1), record(frames[1], seconds=2),
                           record(frames[1][:45], seconds=3, original=len(frames[1])),
                           record(frames[2], seconds=4))))
    [epochs] = found(replay(str(cut), window=4)).values()
    assert [(one["requests"], one["skipped"], one["filled"], one["abandoned"], one["flags"])
            for one in epochs] == [
        (2, 1, 0, 1, 0x01 | 0x04 | UNVERIFIED), (1, 0, 0, 0, 0x01 | UNVERIFIED)]


def test_a_violation_before_any_epoch_makes_no_report_and_is_told(tmp_path):
    path = write(tmp_path / "capture.pcap", [
        packets.roce(bytes(16), opcode=0x0C, psn=4), packets.roce(psn=5)])
    result = replay(path)
    assert result.sequence == []
    assert result.disabled == 1


def test_a_capture_without_frames_is_no_error(tmp_path):
    result = replay(write(tmp_path / "capture.pcap", []))
    assert result.sequence == []
    assert [row["pfcControlFrameTotalCount"] for row in result.pfc] == [0] * 8


def test_report_storms_lose_nothing(tmp_path):
    """Every packet breaks the series: an epoch a packet, many more than the board's FIFO holds."""
    octets = [packets.roce(psn=(i * 0x345678) % (1 << 24)) for i in range(3000)]
    result, expected = check(write(tmp_path / "capture.pcap", octets), 8)
    assert len(result.sequence) == 3000
    assert [len(epochs) for epochs in expected.epochs.values()] == [3000]
    assert [row["rdmaSequenceEpochId"] for row in result.sequence] == list(range(1, 3001))


def test_a_provisioning_chooses_what_is_watched(tmp_path):
    path = write(tmp_path / "capture.pcap", [
        packets.roce(psn=psn, qp=qp) for psn in (1, 2, 3) for qp in (0x12, 0x13)])
    plan = Provisioning(observation_domain=9, observation_point=77, connections=[Connection(
        source=ip_address("192.0.2.1"), destination=ip_address("198.51.100.2"),
        destination_qp=0x13, partition_key=0xFFFF, window=16, generation_verified=True)])
    [row] = replay(path, provisioning=plan).sequence
    assert (row["rdmaDestinationQP"], row["rdmaSequenceWindow"]) == (0x13, 16)
    assert (row["requestPacketTotalCount"], row["rdmaSequenceFlags"]) == (3, 0x01)
    assert (row["observationPointId"], row["observationDomainId"]) == (77, 9)


def test_a_window_that_the_board_does_not_have(tmp_path):
    path = write(tmp_path / "capture.pcap", [packets.roce()])
    with pytest.raises(RocetapError) as caught:
        replay(path, window=257)
    assert str(caught.value) == "window 257 is out of range: this board takes 1 to 256"


class TestCommand:
    """The command in a process of its own: streams, exit codes, words."""

    def run(self, *arguments, **settings):
        return subprocess.run([sys.executable, "-m", "rocetap.cli", "replay", *arguments],
                              capture_output=True, check=False, timeout=300, **settings)

    def test_jsonl_is_data_and_nothing_else(self, tmp_path):
        import json

        path = write(tmp_path / "my capture.pcap", [packets.roce(psn=psn) for psn in (1, 2)] + [
            packets.pfc({3: 0xFFFF})])
        done = self.run(path, "--format", "jsonl", "--window", "32")
        assert done.returncode == 0, done.stderr
        rows = [json.loads(line) for line in done.stdout.decode().splitlines()]
        [sequence] = [row for row in rows if row["record"] == "sequence"]
        assert sequence["requestPacketTotalCount"] == 2
        assert sequence["outcome"] == "complete"
        assert sequence["sourceIPv4Address"] == "192.0.2.1"
        counts = {row["pfcPriority"]: row["pfcControlFrameTotalCount"] for row in rows
                  if row["record"] == "pfc"}
        assert counts == {priority: int(priority == 3) for priority in range(8)}
        assert {row["ingressPhysicalInterface"] for row in rows if row["record"] == "pfc"} == {1}

    def test_a_cut_capture_gives_all_whole_records_a_line_and_exit_code_3(self, tmp_path):
        path = write(tmp_path / "capture.pcap", [packets.roce(psn=psn) for psn in range(5)])
        cut = tmp_path / "cut.pcap"
        cut.write_bytes(Path(path).read_bytes()[:-10])
        done = self.run(str(cut))
        assert done.returncode == 3
        lines = done.stderr.decode().splitlines()
        assert len([line for line in lines if line.startswith("rocetap: warning: ")]) == 1
        assert lines[-1].startswith(f"rocetap: warning: {cut}: record 5 at octet ")
        assert "requests" in done.stdout.decode()

    def test_standard_input(self, tmp_path):
        path = write(tmp_path / "capture.pcap", [packets.roce(psn=psn) for psn in range(5)])
        octets = Path(path).read_bytes()
        whole = self.run("-", "--format", "jsonl", input=octets)
        assert whole.returncode == 0, whole.stderr
        assert b'"requestPacketTotalCount": 5' in whole.stdout
        cut = self.run("-", "--format", "jsonl", input=octets[:-10])
        assert cut.returncode == 3
        assert cut.stderr.decode().splitlines()[-1].startswith(
            "rocetap: warning: standard input: record 5 at octet ")

    def test_no_output_names_a_cause(self, tmp_path):
        path = write(tmp_path / "capture.pcap", [
            packets.roce(psn=psn) for psn in (1, 9, 2, 2, 400, 3)])
        done = self.run(path, "--window", "4")
        text = (done.stdout + done.stderr).decode().lower()
        for word in ("lost", "retransmi", "reorder", "duplicate"):
            assert word not in text


if "rc-send-ack.pcap" in REAL_CAPTURES:
    def test_real_requests_and_acknowledgements():
        result, _ = check(str(REAL_CAPTURES["rc-send-ack.pcap"]), 64)
        assert sum(row["requestPacketTotalCount"] for row in result.sequence) == 68
        for element in ("skippedPsnTotalCount", "repeatedPsnTotalCount",
                        "unclassifiedLatePacketTotalCount", "filledPsnTotalCount"):
            assert sum(row[element] for row in result.sequence) == 0
        assert {row["outcome"] for row in result.sequence} == {"complete"}
        assert result.frames[FrameClass.RESPONSE] == 37


if "cnp.pcap" in REAL_CAPTURES:
    def test_a_real_congestion_notification_makes_no_epoch():
        result = replay(str(REAL_CAPTURES["cnp.pcap"]))
        assert result.sequence == []
        assert result.frames == {FrameClass.CNP: 1}
