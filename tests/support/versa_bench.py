"""Cocotb benches of the Versa at its pins, run by tests/cocotb/test_versa.py.

RGMII comes and goes by cocotbext-eth's models, MDIO and UART bit by bit. The host is the exporter's
own: its driver, its board, its reports, and at the far end the collector that validates them.
"""

from __future__ import annotations

import functools
import tempfile
from collections import Counter
from ipaddress import ip_address
from pathlib import Path

from cocotb.task import bridge
from cocotb.triggers import Timer

import cocotb
from rocetap.board.selftest import port_states
from rocetap.capture.reading import open_capture
from rocetap.capture.synth import SynthSettings, write_synthetic
from rocetap.capture.traffic import Impairments
from rocetap.collect.outcomes import Outcome, outcomes
from rocetap.collect.session import CollectorSession
from rocetap.export.board import Board
from rocetap.export.clock import BoardClock
from rocetap.export.epochs import EpochBook
from rocetap.ipfix.exporting import ExportingSession
from rocetap.provisioning import Connection, Port, Provisioning
from rocetap.spec.classes import FrameClass
from rocetap.spec.flags import SequenceFlag
from rocetap.spec.registers import LAYOUT_VERSION
from support import frames as build
from support.reference import classify, reference_capture
from support.versa_board import Versa
from support.versa_build import CONNECTIONS, WINDOW

W = 32
COUNTERS = ("requests", "skipped", "filled", "expired", "abandoned", "pending", "repeated", "late")
UP = {"link": 1, "speed": 2, "full_duplex": 1, "unsupported": 0, "found": 1, "inline": 1,
      "overflow": 0}
DOMAIN, NOW_S = 7, 1_700_000_000


def bench(function):
    """A cocotb test of a board that was just switched on, with a limit of simulated time."""
    @cocotb.test(timeout_time=60, timeout_unit="ms")
    @functools.wraps(function)
    async def run(dut):
        versa = Versa(dut)
        await versa.start()
        await function(versa)
        for port, phy in enumerate(versa.phys):
            assert phy.bad_frames == 0
            assert not getattr(dut, f"txc_bad_{port}").value, "TXC was not there in time"
    return run


def traffic(seed: int, packets: int) -> list[bytes]:
    """Synthetic frames of every kind, padded, without FCS."""
    settings = SynthSettings(
        packets=packets, connections=4, seed=seed, payload="small", reads=0, other=0.05, cnp=0.05,
        pfc=0.1, impairments=Impairments(gap=0.05, repeat=0.05, late=0.05, jump=0.01))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "traffic.pcap"
        write_synthetic(path, settings)
        with open_capture(str(path)) as capture:
            return [build.pad(bytes(batch.data[start:start + size]))
                    for batch in capture.batches()
                    for start, size in zip(batch.offsets, batch.captured, strict=True)]


def provisioning(keys) -> Provisioning:
    return Provisioning(
        ports=[Port(f"port{port}", port + 1) for port in range(2)],
        connections=[Connection(
            source=ip_address(key.source), destination=ip_address(key.destination),
            destination_qp=key.destination_qp, partition_key=key.partition_key, vlan=key.vlan,
            inner_vlan=key.inner_vlan, window=W) for key in keys])


class Exporter:
    """The exporter's parts on a driver, and a collector behind their messages; for the bridge's
    thread."""

    def __init__(self, driver, keys) -> None:
        clock = BoardClock.identity()
        self.board = Board(driver, provisioning(keys), clock, monotonic=driver._clock,
                           answer_s=0.02)
        self.book = EpochBook(CONNECTIONS, clock)
        self.exporting = ExportingSession(DOMAIN)
        self.collector = CollectorSession()
        self.messages = self.exporting.start(NOW_S)

    def start(self) -> None:
        self.board.start(fresh=True)
        for one in self.board.placements:
            self.book.provision(one.context, one.tag, one.connection, one.observation_point)

    def finish(self):
        """Closes the epochs and reads the counters: what the collector keeps, and the counters."""
        self.messages += self.exporting.sequence(
            self.book.serialize(self.board.close_epochs()), NOW_S)
        sample = self.board.read_pfc()
        self.messages += self.exporting.pfc(sample.readings, NOW_S)
        batch = self.collector.receive(b"".join(self.messages), NOW_S * 1000)
        assert (batch.error, batch.counters, dict(self.book.drops)) == (None, Counter(), {})
        return batch, sample.counters


@bench
async def phys_start_and_the_driver_finds_its_board(versa: Versa) -> None:
    driver = versa.driver()
    info = await bridge(driver.handshake)()
    assert (info.connections, info.ports, info.bus_bytes, info.max_window, info.version) == (
        CONNECTIONS, 2, 1, WINDOW, LAYOUT_VERSION)
    assert [state["link"] for state in await bridge(port_states)(driver)] == [0, 0]
    await versa.link_up(0)
    await versa.link_up(1, speed=100)
    states = await bridge(port_states)(driver)
    assert states == [UP, {**UP, "speed": 1, "unsupported": 1}]
    assert [phy.writes for phy in versa.phys] == [[(4, 0x0001), (9, 0x0200), (0, 0x1200)]] * 2
    assert driver.retries == 0
    # LEDs light low: links, and trouble where the speed is not supported, which blinks.
    leds = ~int(versa.dut.leds_n.value)
    assert (leds >> 2 & 1, leds >> 3 & 1, leds >> 4 & 1) == (1, 0, 0)


@bench
async def a_capture_in_and_its_records_out(versa: Versa) -> None:
    """Both ports at line rate with the shortest gap, wrong FCS, RX_ER and runts between: records
    and messages are the model's, and every frame goes out on the other port as it came."""
    await versa.link_up(0)
    await versa.link_up(1)
    frames = traffic(cocotb.RANDOM_SEED, 240)
    keys = sorted({found.key for found in map(classify, frames) if found.key is not None})
    sides: list[list[bytes]] = [[], []]
    for number, octets in enumerate(frames):      # a stream stays on one port
        key = classify(octets).key
        sides[(number if key is None else keys.index(key)) % 2].append(octets)
    expected = [reference_capture([(0, octets) for octets in side], W) for side in sides]
    epochs = {key: found for one in expected for key, found in one.epochs.items()}
    exporter = Exporter(versa.driver(), list(epochs))
    await bridge(exporter.start)()

    on_line: list[list[bytes]] = [[], []]
    errors: list[set[int]] = [set(), set()]
    bad: list[Counter[FrameClass]] = [Counter(), Counter()]
    for port, side in enumerate(sides):
        for number, octets in enumerate(side):
            if number % 10 == 4:        # a copy of the frame that must count nowhere
                kind = (FrameClass.BAD_FCS, FrameClass.MAC_ERROR, FrameClass.RUNT)[number // 10 % 3]
                bad[port][kind] += 1
                if kind is FrameClass.MAC_ERROR:
                    errors[port].add(len(on_line[port]))
                on_line[port].append(
                    build.with_fcs(octets[:58]) if kind is FrameClass.RUNT
                    else build.with_fcs(octets, wrong=kind is FrameClass.BAD_FCS))
            on_line[port].append(build.with_fcs(octets))
    senders = [cocotb.start_soon(versa.send(
        port, on_line[port], gap=(12, 5)[port], preamble=(7, 3)[port],
        errors=frozenset(errors[port]))) for port in range(2)]
    for sender in senders:
        await sender
    await Timer(10, "us")

    # Inline: the octets of every frame, in order; a bad one goes out bad.
    for port in range(2):
        assert versa.emitted(1 - port) == [
            (octets, number in errors[port]) for number, octets in enumerate(on_line[port])]

    batch, counters = await bridge(exporter.finish)()
    for port in range(2):
        classes = dict(zip(FrameClass, counters.frame_class[port], strict=True))
        want = Counter(expected[port].classes) + bad[port]
        want[FrameClass.LOST] = classes[FrameClass.LOST]
        assert classes == {item: want[item] for item in FrameClass}
        assert classes[FrameClass.LOST] <= 1     # what the port's clock lost before it ran
        pfc = tuple(expected[port].pfc[n] for n in range(8)) + tuple(
            expected[port].pfc_xoff[n] for n in range(8))
        assert counters.pfc_received[port] == pfc
        # Emitted on the other port, the bad ones not among them.
        assert counters.pfc_transmitted[1 - port] == pfc
    assert sum(one.pfc.total() for one in expected) > 0
    assert (counters.state["records_dropped"], counters.state["unprovisioned"]) == (0, 0)
    check_rows(batch, epochs)


def check_rows(batch, epochs) -> None:
    """The collector's rows against the model's epochs."""
    seen: dict[tuple, list] = {}
    for _, rows in batch.epochs:
        for row, outcome in zip(rows, outcomes(rows), strict=True):
            report = row["report"]
            assert Outcome(outcome) is Outcome.complete
            key = (bytes(report["source"]), bytes(report["destination"]), int(report["qp"]),
                   int(report["vid"]))
            seen.setdefault(key, []).append(
                {name: int(report[name]) for name in (*COUNTERS, "window", "flags")})
    want = {}
    for key, model in epochs.items():
        packed = tuple(int(ip_address(text)).to_bytes(16, "big")
                       for text in (key.source, key.destination))
        want[(*packed, key.destination_qp, key.vlan)] = [
            {name: getattr(epoch, name) for name in (*COUNTERS, "window")}
            | {"flags": epoch.flags | SequenceFlag.generationUnverified} for epoch in model]
    assert seen == want
    assert all(sum(epoch[name] for rows in seen.values() for epoch in rows) > 0
               for name in ("skipped", "filled", "repeated"))


@bench
async def a_link_that_falls_is_a_gap_and_carries_nothing(versa: Versa) -> None:
    await versa.link_up(0)
    await versa.link_up(1)
    frames = [build.pad(build.roce(bytes(8), psn=psn)) for psn in range(6)]
    on_line = [build.with_fcs(octets) for octets in frames]
    exporter = Exporter(versa.driver(), [classify(frames[0]).key])
    driver = exporter.board._driver
    await bridge(exporter.start)()
    await versa.send(0, on_line[:2])
    generation = await bridge(driver.read)("capture_generation")

    versa.phys[0].disconnect()
    await versa.polled()
    await versa.send(0, on_line[2:3])               # nobody sees it
    await versa.send(1, [build.with_fcs(build.pfc({3: 7}))])     # nowhere to go
    assert await bridge(driver.read)("capture_generation") == generation + 1
    assert [state["link"] for state in await bridge(port_states)(driver)] == [0, 1]
    versa.phys[0].connect(1000)
    await versa.polled()
    await versa.send(0, on_line[3:])

    assert [octets for octets, _ in versa.emitted(1)] == on_line[:2] + on_line[3:]
    assert versa.emitted(0) == []
    batch, counters = await bridge(exporter.finish)()
    assert sum(counters.pfc_transmitted[0]) == 0
    assert counters.pfc_received[1][3] == 1
    rows = [row["report"] for _, rows in batch.epochs for row in rows]
    gap = int(SequenceFlag.captureDiscontinuity)
    assert [(int(row["requests"]), int(row["skipped"]), int(row["flags"]) & gap)
            for row in rows] == [(2, 0, gap), (3, 0, 0)]
