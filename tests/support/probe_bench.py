"""Cocotb benches of the whole probe at its pins, run by tests/cocotb/test_probe.py.

Frames go in beat by beat on both ports at once, link octets go in and out with random pauses, and
the host's own driver talks over them. What is expected comes from the reference model and from the
frames' own construction.
"""

from __future__ import annotations

import dataclasses
import functools
import random
from collections import deque

from cocotb.clock import Clock
from cocotb.task import bridge, resume
from cocotb.triggers import ClockCycles, Event, RisingEdge

import cocotb
from rocetap.link.driver import Driver
from rocetap.link.poll import read_counters
from rocetap.link.table import ConnectionTable, apply_writes
from rocetap.spec.classes import FrameClass
from rocetap.spec.keys import pack_key
from rocetap.spec.records import RecordKind
from rocetap.spec.registers import LAYOUT_VERSION, MAGIC, OperationKind
from rocetap_hdl.layouts import frame_beat
from support import frames as build
from support.reference_model import ReferenceConnection

BUS, PORTS, CONNECTIONS, WORD, RECORDS = 8, 2, 16, 64, 64
CLOCK_PS = 6400
BEAT = frame_beat(BUS)
ANSWER_S = 3000 * CLOCK_PS * 1e-12
"""Time that any answer may take, with pauses on the link."""


class Pins:
    """The probe's surroundings: clock, reset, MACs, and the link as the driver's transport."""

    def __init__(self, dut) -> None:
        self.dut = dut
        self.rng = random.Random(cocotb.RANDOM_SEED)
        self.cycles = 0
        self.received = bytearray()
        self._queue: deque[int] = deque()
        self._wanted = Event()

    async def start(self) -> None:
        for port in range(PORTS):
            self._pin(f"frames_{port}_valid").value = 0
        self.dut.link_rx_valid.value = 0
        self.dut.link_tx_ready.value = 0
        self.dut.time_ns.value = 0
        Clock(self.dut.clk, CLOCK_PS, "ps").start()
        await self.reset()
        cocotb.start_soon(self._sink())
        cocotb.start_soon(self._source())

    async def reset(self) -> None:
        self.dut.rst.value = 1
        await ClockCycles(self.dut.clk, 4)
        self.dut.rst.value = 0
        await RisingEdge(self.dut.clk)

    def _pin(self, name: str):
        return getattr(self.dut, name)

    def seconds(self) -> float:
        return self.cycles * CLOCK_PS * 1e-12

    async def _sink(self) -> None:
        offered = None
        while True:
            await RisingEdge(self.dut.clk)
            self.cycles += 1
            valid = bool(self.dut.link_tx_valid.value)
            ready = bool(self.dut.link_tx_ready.value)
            payload = int(self.dut.link_tx_payload.value) if valid else None
            assert offered is None or payload == offered, "an offered octet changed or went away"
            offered = payload if valid and not ready else None
            if valid and ready:
                self.received.append(payload)
            if self.rng.random() < 0.2:
                self.dut.link_tx_ready.value = int(self.rng.random() < 0.7)

    async def _source(self) -> None:
        while True:
            if not self._queue:
                self.dut.link_rx_valid.value = 0
                self._wanted.clear()
                await self._wanted.wait()
                await RisingEdge(self.dut.clk)
            if self.rng.random() < 0.3:
                self.dut.link_rx_valid.value = 0
                await RisingEdge(self.dut.clk)
                continue
            self.dut.link_rx_valid.value = 1
            self.dut.link_rx_payload.value = self._queue[0]
            await RisingEdge(self.dut.clk)
            while not self.dut.link_rx_ready.value:
                await RisingEdge(self.dut.clk)
            self._queue.popleft()

    # The driver's transport; these are called from the bridge's thread.

    def write(self, data: bytes, /) -> None:
        self._queue.extend(data)
        self._wanted.set()

    def read(self, max_octets: int, timeout_s: float, /) -> bytes:
        return resume(self._read)(max_octets, timeout_s)

    def close(self) -> None:
        pass

    async def _read(self, max_octets: int, timeout_s: float) -> bytes:
        end = self.seconds() + timeout_s
        while not self.received and self.seconds() < end:
            await ClockCycles(self.dut.clk, 8)
        octets = bytes(self.received[:max_octets])
        del self.received[:max_octets]
        return octets

    def driver(self) -> Driver:
        return Driver(self, clock=self.seconds, timeout_s=ANSWER_S, tries=2, credit_window=0)

    # The MACs.

    async def send(self, port: int, frames: list[bytes], *, errors: frozenset[int] = frozenset(),
                   gaps: bool = False) -> None:
        """Frames with their FCS, one beat a clock and none between, or pauses anywhere. `errors`:
        numbers of the frames that the MAC marks bad."""
        valid, payload = self._pin(f"frames_{port}_valid"), self._pin(f"frames_{port}_payload")
        for number, frame in enumerate(frames):
            for at in range(0, len(frame), BUS):
                octets, last = frame[at:at + BUS], at + BUS >= len(frame)
                while gaps and self.rng.random() < 0.2:
                    valid.value = 0
                    await RisingEdge(self.dut.clk)
                valid.value = 1
                payload.value = BEAT.const({
                    "data": int.from_bytes(octets, "little"), "first": at == 0, "last": last,
                    "end": len(octets) - 1 if last else 0,
                    "error": last and number in errors}).as_value().value
                await RisingEdge(self.dut.clk)
        valid.value = 0


def bench(function):
    """A cocotb test of a started bench, with a limit of simulated time."""
    @cocotb.test(timeout_time=2, timeout_unit="ms")
    @functools.wraps(function)
    async def run(dut):
        pins = Pins(dut)
        await pins.start()
        await function(pins)
    return run


def on_the_wire(frame: bytes, *, wrong: bool = False) -> bytes:
    return build.with_fcs(build.pad(frame), wrong=wrong)


@dataclasses.dataclass(frozen=True)
class Connection:
    """A connection of the bench, with how its frames look."""

    context: int
    version: int
    qp: int
    vid: int
    window: int

    @property
    def key(self) -> int:
        source, destination = ((0xC0000201, 0xC6336402) if self.version == 4 else
                               (0x20010DB8 << 96 | 1, 0x20010DB8 << 96 | 2))
        return pack_key(source=source, destination=destination, qp=self.qp, pkey=0xFFFF,
                        outer_vid=self.vid, ipv6=self.version == 6)

    def request(self, rng: random.Random, psn: int, **fields) -> bytes:
        return build.roce(rng.randbytes(rng.randrange(0, 40)), version=self.version, qp=self.qp,
                          psn=psn, sport=rng.randrange(1 << 16),
                          tags=[(0x8100, self.vid)] if self.vid else [], **fields)


CONNECTIONS_USED = (
    Connection(0, 4, 0x12, 0, 64), Connection(3, 4, 0x13, 10, 1), Connection(15, 6, 0x12, 0, 7))


def provision(driver: Driver, credit: int = 0) -> None:
    """What the daemon does first; in the bridge's thread."""
    driver.handshake()
    if credit:
        driver.credit(credit)
    table = ConnectionTable(CONNECTIONS)
    for one in CONNECTIONS_USED:
        apply_writes(driver, table.insert(one.key, one.context))
        driver.operate(OperationKind.PROVISION, one.context, window=one.window,
                       tag=0x100 + one.context)


def collect(driver: Driver, cookie: int) -> list:
    """Records up to the marker with this cookie."""
    records: list = []
    for _ in range(200):
        driver.poll(50 * CLOCK_PS * 1e-12)
        records += list(driver.take_records())
        if any(one["kind"] == RecordKind.MARKER and one["tag"] == cookie for one in records):
            return records
    raise AssertionError(f"no marker {cookie:#x} among {len(records)} records")


def check(record, one: Connection, epoch) -> None:
    """A SEQUENCE record against the model's report."""
    assert record["kind"] == RecordKind.SEQUENCE
    assert (record["context"], record["tag"]) == (one.context, 0x100 + one.context)
    for name in ("window", "flags", "requests", "skipped", "filled", "expired", "abandoned",
                 "pending", "repeated", "late"):
        assert record[name] == getattr(epoch, name), (name, record, epoch)


def walk(rng: random.Random, count: int, window: int) -> list[int]:
    """PSNs with gaps, late ones, repeats, steps beyond the window, and the wrap of 24 bits."""
    psn = (1 << 24) - rng.randrange(count)
    psns = []
    for _ in range(count):
        psn += rng.choice([1] * 12 + [0, -1, -2, 2, 3, -window, window])
        if rng.random() < 0.03:
            psn += rng.choice([window + 1, 1 << 23])    # serialDiscontinuity
        psns.append(psn % (1 << 24))
    return psns


@bench
async def the_driver_finds_its_board(pins: Pins) -> None:
    def talk():
        driver = pins.driver()
        info = driver.handshake()
        assert (info.connections, info.ports, info.bus_bytes, info.max_window, info.version) == (
            CONNECTIONS, PORTS, BUS, WORD, LAYOUT_VERSION)
        assert driver.read("magic") == MAGIC
        assert driver.read("boot_id") == info.boot_id != 0
        pins.dut.time_ns.value = 123_456_789_012
        assert driver.read("time") == 123_456_789_012
        assert driver.retries == 0

    await bridge(talk)()


@bench
async def counters_are_the_models(pins: Pins) -> None:
    driver = pins.driver()
    await bridge(provision)(driver, credit=1000)
    models = {one: ReferenceConnection(one.window) for one in CONNECTIONS_USED}
    expected = {port: dict.fromkeys(FrameClass, 0) for port in range(PORTS)}
    # A connection stays on one port, so that the order of its packets is the order sent.
    homes = {CONNECTIONS_USED[0]: 0, CONNECTIONS_USED[1]: 1, CONNECTIONS_USED[2]: 1}
    epochs = {one: [] for one in CONNECTIONS_USED}
    streams = {port: [] for port in range(PORTS)}
    errors: dict[int, set[int]] = {port: set() for port in range(PORTS)}
    psns = {one: deque(walk(pins.rng, 60, one.window)) for one in CONNECTIONS_USED}
    while any(psns.values()):
        one = pins.rng.choice([one for one, left in psns.items() if left])
        port, stream = homes[one], streams[homes[one]]
        psn = psns[one].popleft()
        frame = one.request(pins.rng, psn)
        match pins.rng.randrange(10):
            case 0:
                stream.append(on_the_wire(frame, wrong=True))
                expected[port][FrameClass.BAD_FCS] += 1
                continue
            case 1:
                errors[port].add(len(stream))
                stream.append(on_the_wire(frame))
                expected[port][FrameClass.MAC_ERROR] += 1
                continue
            case 2:
                ack = build.roce(bytes(4), version=one.version, opcode=0x11, qp=one.qp)
                stream.append(on_the_wire(ack))
                expected[port][FrameClass.RESPONSE] += 1
            case 3:
                stream.append(on_the_wire(build.pfc({3: 7, 5: 0})))
                expected[port][FrameClass.PFC] += 1
        stream.append(on_the_wire(frame))
        expected[port][FrameClass.ELIGIBLE_REQUEST] += 1
        epochs[one] += models[one].request(psn)
    senders = [cocotb.start_soon(pins.send(port, streams[port], errors=frozenset(errors[port]),
                                           gaps=port == 1)) for port in range(PORTS)]
    for sender in senders:
        await sender
    await ClockCycles(pins.dut.clk, 200)

    def finish():
        driver.sweep(OperationKind.CLOSE, 0, CONNECTIONS - 1, cookie=0xBEEF)
        return collect(driver, 0xBEEF), read_counters(driver)

    records, counters = await bridge(finish)()
    for one in CONNECTIONS_USED:
        epochs[one] += models[one].close()
        seen = [record for record in records
                if record["kind"] == RecordKind.SEQUENCE and record["context"] == one.context]
        assert len(seen) == len(epochs[one])
        for record, epoch in zip(seen, epochs[one], strict=True):
            check(record, one, epoch)
    assert len(records) == sum(map(len, epochs.values())) + 1
    for port in range(PORTS):
        assert dict(zip(FrameClass, counters.frame_class[port], strict=True)) == expected[port]
        pfc = expected[port][FrameClass.PFC]
        assert counters.pfc_received[port] == (
            0, 0, 0, pfc, 0, pfc, 0, 0, 0, 0, 0, pfc, 0, 0, 0, 0)
        assert counters.pfc_transmitted[port] == (0,) * 16
    assert counters.state["records_dropped"] == 0
    assert counters.state["unprovisioned"] == 0


@bench
async def connections_come_and_go_while_traffic_runs(pins: Pins) -> None:
    """Three streams in order, back to back on both ports. One stays; the two others are inserted,
    reprovisioned and removed while the table fills around them and keys move. Each of their epochs
    begins and ends somewhere in its stream, and between has every packet and no other."""
    steady, first, second = CONNECTIONS_USED
    driver = pins.driver()
    await bridge(provision)(driver, credit=1000)
    running = True
    sent = dict.fromkeys(CONNECTIONS_USED, 0)

    async def run(port: int, *streams: Connection) -> None:
        while running:
            for one in streams:
                await pins.send(port, [on_the_wire(one.request(pins.rng, sent[one]))])
                sent[one] += 1

    senders = [cocotb.start_soon(run(0, steady)), cocotb.start_soon(run(1, first, second))]

    def change() -> list:
        table = ConnectionTable(CONNECTIONS)
        for one in CONNECTIONS_USED:    # the same slots as `provision` chose
            table.insert(one.key, one.context)
        for one in (first, second, first):
            apply_writes(driver, table.remove(one.key))
            driver.operate(OperationKind.REMOVE, one.context)
            others = [dataclasses.replace(one, qp=0x1000 + number)
                      for number in range(CONNECTIONS - len(CONNECTIONS_USED))]
            for other in others:
                apply_writes(driver, table.insert(other.key, 14))
            driver.operate(OperationKind.PROVISION, one.context, window=5, tag=0x500 + one.context)
            apply_writes(driver, table.insert(one.key, one.context))
            driver.operate(OperationKind.PROVISION, one.context, window=9, tag=0x900 + one.context)
            for other in others:
                apply_writes(driver, table.remove(other.key))
        return collect_now(0xACE)

    def collect_now(cookie: int) -> list:
        driver.sweep(OperationKind.CLOSE, 0, CONNECTIONS - 1, cookie=cookie)
        return collect(driver, cookie)

    records = await bridge(change)()
    running = False
    for sender in senders:
        await sender
    await ClockCycles(pins.dut.clk, 200)
    records += await bridge(collect_now)(0xBAD)
    counters = await bridge(read_counters)(driver)
    epochs = {one: [record for record in records if record["kind"] == RecordKind.SEQUENCE
                    and record["context"] == one.context] for one in CONNECTIONS_USED}
    assert sum(map(len, epochs.values())) + 2 == len(records), "no other context saw a packet"
    for found in epochs.values():
        for record in found:
            assert [record[name] for name in (
                "skipped", "filled", "expired", "abandoned", "pending", "repeated", "late")] == [
                0] * 7, record
            assert record["requests"] > 0
    total = {one: sum(int(record["requests"]) for record in found)
             for one, found in epochs.items()}
    assert total[steady] == sent[steady] > 100
    assert {int(record["tag"]) >> 8 for one in (first, second) for record in epochs[one]} >= {1, 9}
    missed = sent[first] - total[first] + sent[second] - total[second]
    assert counters.state["unprovisioned"] == missed > 0
    assert counters.state["records_dropped"] == 0


@bench
async def noise_on_the_link_is_counted_and_survived(pins: Pins) -> None:
    def talk():
        driver = pins.driver()
        driver.handshake()
        pins.write(b"\x05\x01\x02\x03\x04\0")            # a frame with a wrong CRC
        pins.write(bytes(range(1, 200)) * 4)                # far too long
        boot = driver.read("boot_id")
        assert boot == driver.board.boot_id
        errors = driver.read_fields("link_errors")
        assert sum(errors.values()) == 2, errors
        assert driver.retries == 0

    await bridge(talk)()


@bench
async def a_full_snapshot_fifo_drops_and_counts(pins: Pins) -> None:
    driver = pins.driver()
    await bridge(provision)(driver)
    one, closures = CONNECTIONS_USED[0], 100
    # Each packet is half the PSN space away from the one before: it closes an epoch and opens one.
    frames = [on_the_wire(one.request(pins.rng, (number % 2) << 23))
              for number in range(closures + 1)]
    await pins.send(0, frames)
    await ClockCycles(pins.dut.clk, 200)

    def finish():
        level, dropped = driver.read("snapshot_level"), driver.read("records_dropped")
        assert int(pins.dut.snapshot_level.value) == level
        assert int(pins.dut.snapshot_room.value) == RECORDS - level
        assert level == RECORDS
        assert level + dropped == closures
        driver.credit(1000)
        driver.sweep(OperationKind.SNAPSHOT, one.context, one.context, cookie=7)
        return level, collect(driver, 7)

    level, records = await bridge(finish)()
    *old, report, marker = records
    assert len(old) == level
    first = int(old[0]["epoch"])    # numbers outlive a reset; a boot id tells boots apart
    assert [record["epoch"] for record in old] == [*range(first, first + level)]
    assert all(record["flags"] == 0x11 and record["requests"] == 1 for record in old)
    assert (report["epoch"], report["flags"], report["requests"]) == (first + closures, 0, 1)
    assert marker["kind"] == RecordKind.MARKER


@bench
async def a_reset_in_the_middle_of_a_frame_starts_anew(pins: Pins) -> None:
    driver = pins.driver()
    await bridge(provision)(driver)
    one = CONNECTIONS_USED[0]
    frame = on_the_wire(one.request(pins.rng, 5))
    await pins.send(0, [frame] * 3)
    sender = cocotb.start_soon(pins.send(0, [frame]))
    await ClockCycles(pins.dut.clk, 3)
    await pins.reset()
    await sender
    await pins.send(0, [frame])
    pins.received.clear()

    def finish():
        assert driver.read("boot_id") == 0
        counters = driver.read_bank("frame_class", 0)
        moved = {frame_class.name for frame_class in FrameClass if counters[frame_class]}
        # The whole frame, and the rest of the one that the reset cut, which is a bad frame.
        assert moved == {"ELIGIBLE_REQUEST", "RUNT"}, moved
        assert sum(counters) == 2

    await bridge(finish)()
