"""Cocotb benches of the AXI core at its pins, run by tests/cocotb/test_axi_core.py.

Streams are sent and received by cocotbext-axi's source and sink, which talk to each other over the
pins while the core watches them; registers are read and written by its AXI4-Lite manager, with the
host's own driver on top. No two clocks have a common period. What is expected comes from the
reference model.
"""

from __future__ import annotations

import functools
import random
import tempfile
from ipaddress import ip_address
from pathlib import Path

import numpy as np
from cocotb.clock import Clock
from cocotb.task import bridge, resume
from cocotb.triggers import ClockCycles, Timer
from cocotbext.axi import (
    AxiLiteBus,
    AxiLiteMaster,
    AxiResp,
    AxiStreamBus,
    AxiStreamFrame,
    AxiStreamSink,
    AxiStreamSource,
)

import cocotb
from rocetap.capture.reading import open_capture
from rocetap.capture.synth import SynthSettings, write_synthetic
from rocetap.capture.traffic import Impairments
from rocetap.link.driver import Driver
from rocetap.link.errors import RequestFailed
from rocetap.link.poll import read_counters
from rocetap.link.records import RECORD_DTYPE
from rocetap.link.table import ConnectionTable, apply_writes
from rocetap.spec.axi import AXI_REGISTERS, RECORD_WORDS, byte_address, record_word
from rocetap.spec.classes import FrameClass
from rocetap.spec.flags import SequenceFlag
from rocetap.spec.keys import pack_key
from rocetap.spec.records import RecordKind
from rocetap.spec.registers import LAYOUT_VERSION, MAGIC, OperationKind
from rocetap.spec.wire import Status
from support import frames as build
from support.reference import classify, reference_capture

CORE_PS, AXIL_PS, TAP_PS, SENT_PS = 6200, 9100, (6390, 6450), (6410, 6470)
CONNECTIONS, WORD, WINDOW = 32, 64, 32
FINAL, GAP = int(SequenceFlag.finalEpoch), int(SequenceFlag.captureDiscontinuity)


class NoLine:
    """The transport of a driver that does not need one."""

    def write(self, data: bytes, /) -> None:
        raise AssertionError("nothing goes over a link")

    def read(self, max_octets: int, timeout_s: float, /) -> bytes:
        raise AssertionError("nothing comes over a link")

    def close(self) -> None:
        pass


class LiteDriver(Driver):
    """The host's driver with register accesses over AXI4-Lite; for the bridge's thread."""

    def __init__(self, core: Core) -> None:
        super().__init__(NoLine(), clock=lambda: 0.0, credit_window=0,
                         random_bits=core.rng.getrandbits)
        self._core = core

    def _read(self, address, count):
        return tuple(resume(self._core.read)(address + i) for i in range(count))

    def _write(self, address, values):
        for i, value in enumerate(values):
            resume(self._core.write)(address + i, value)

    def take_all(self, cookie):
        """Records up to the marker with this cookie."""
        records = []
        for _ in range(2000):
            if self._read(AXI_REGISTERS["record_level"].address, 1)[0]:
                records.append(self._take())
                if (records[-1]["kind"], records[-1]["tag"]) == (RecordKind.MARKER, cookie):
                    return records
        raise AssertionError(f"no marker {cookie:#x} behind {len(records)} records")

    def _take(self):
        words = self._read(record_word(0), RECORD_WORDS)
        self._write(AXI_REGISTERS["record_pop"].address, (0,))
        octets = b"".join(word.to_bytes(8, "little") for word in words)
        return np.frombuffer(octets, RECORD_DTYPE)[0]


class Core:
    """The core's surroundings."""

    def __init__(self, dut) -> None:
        self.dut = dut
        self.rng = random.Random(cocotb.RANDOM_SEED)
        self.own_clocks = hasattr(dut, "s_axis_tap_0_aclk")
        self.ports = 2 if hasattr(dut, "s_axis_tap_1_tdata") else 1
        self.bus_bytes = len(dut.s_axis_tap_0_tdata) // 8
        self.clock = Clock(dut.aclk, CORE_PS, "ps")
        self.tap_clocks, self.resets, self.sources, self.sinks = [], [], [], []
        self.transmits = hasattr(dut, "s_axis_sent_0_tdata")
        names = [(f"tap_{port}", TAP_PS[port]) for port in range(self.ports)]
        if self.transmits:
            names += [(f"sent_{port}", SENT_PS[port]) for port in range(self.ports)]
        for name, period in names:
            clock, reset = dut.aclk, dut.aresetn
            if self.own_clocks:
                clock, reset = (getattr(dut, f"s_axis_{name}_{pin}")
                                for pin in ("aclk", "aresetn"))
                self.tap_clocks.append(Clock(clock, period, "ps"))
            self.resets.append(reset)
            bus = AxiStreamBus.from_prefix(dut, f"s_axis_{name}")
            self.sources.append(AxiStreamSource(bus, clock, reset, False))
            self.sinks.append(AxiStreamSink(bus, clock, reset, False))
        self.lite = AxiLiteMaster(
            AxiLiteBus.from_prefix(dut, "s_axil"), dut.s_axil_aclk, dut.s_axil_aresetn, False)
        for one in (*self.sources, *self.sinks, self.lite.write_if, self.lite.read_if):
            one.log.setLevel("WARNING")     # they would write several lines for every access

    async def start(self) -> None:
        dut = self.dut
        if hasattr(dut, "time_ns"):
            dut.time_ns.value = 0
        every = {dut.aresetn, dut.s_axil_aresetn, *self.resets}
        for reset in every:
            reset.value = 0
        self.clock.start()
        Clock(dut.s_axil_aclk, AXIL_PS, "ps").start()
        for clock in self.tap_clocks:
            clock.start()
        await Timer(200, "ns")
        dut.s_axil_aresetn.value = 1
        dut.aresetn.value = 1
        await Timer(100, "ns")
        for reset in every:
            reset.value = 1
        await Timer(100, "ns")
        for stream in range(len(self.sources)):     # a tap is blind up to the first frame's end
            await self.send(stream, [bytes(64)])

    def with_pauses(self) -> None:
        def pauses(chance):
            while True:
                yield self.rng.random() < chance
        for one in self.sources:
            one.set_pause_generator(pauses(0.2))
        for one in self.sinks:
            one.set_pause_generator(pauses(0.2))
        for channel in (self.lite.write_if.aw_channel, self.lite.write_if.w_channel,
                        self.lite.write_if.b_channel, self.lite.read_if.ar_channel,
                        self.lite.read_if.r_channel):
            channel.set_pause_generator(pauses(0.3))

    async def send(self, stream, frames) -> None:
        """Frames, as octets or AxiStreamFrames, into the tap of a port, or from `ports` on into
        what a port has sent; returns when the last one is through the core."""
        for frame in frames:
            await self.sources[stream].send(frame)
        await self.sources[stream].wait()
        await ClockCycles(self.dut.aclk, 60)

    def bad(self, octets: bytes) -> AxiStreamFrame:
        """The frame marked bad by its MAC, or with octets that are not kept in its middle or in its
        last beat."""
        tkeep, tuser = [1] * len(octets), [0] * len(octets)
        match self.rng.randrange(3):
            case 0:
                tuser[-1] = 1
            case 1:
                tkeep[self.rng.randrange(len(octets) - 1)] = 0
            case 2:
                octets += bytes(1 - len(octets) % 2)
                last = (len(octets) - 1) // self.bus_bytes * self.bus_bytes
                tkeep, tuser = [1] * len(octets), [0] * len(octets)
                tkeep[last] = 0
        return AxiStreamFrame(octets, tkeep=tkeep, tuser=tuser)

    async def read(self, number: int) -> int:
        answer = await self.lite.read(byte_address(number), 8)
        self._check(answer, f"READ of {number:#x}")
        return int.from_bytes(answer.data, "little")

    async def write(self, number: int, value: int) -> None:
        answer = await self.lite.write(byte_address(number), value.to_bytes(8, "little"))
        self._check(answer, f"WRITE of {number:#x}")

    @staticmethod
    def _check(answer, what: str) -> None:
        if answer.resp != AxiResp.OKAY:
            raise RequestFailed(f"{what}: {answer.resp.name}", {
                AxiResp.SLVERR: Status.REFUSED, AxiResp.DECERR: Status.NO_REGISTER}[answer.resp])


def bench(function):
    """A cocotb test of a started bench, with a limit of simulated time."""
    @cocotb.test(timeout_time=10, timeout_unit="ms")
    @functools.wraps(function)
    async def run(dut):
        core = Core(dut)
        await core.start()
        await function(core)
    return run


def packed(key) -> int:
    source, destination = ip_address(key.source), ip_address(key.destination)
    return pack_key(source=int(source), destination=int(destination), qp=key.destination_qp,
                    pkey=key.partition_key, outer_vid=key.vlan, inner_vid=key.inner_vlan,
                    ipv6=source.version == 6)


def provision(driver: LiteDriver, keys) -> None:
    """What the daemon does first; in the bridge's thread. Memories outlive a reset: records of
    epochs that an earlier bench left open are taken away."""
    driver.handshake()
    table = ConnectionTable(CONNECTIONS)
    for context, key in enumerate(keys):
        apply_writes(driver, table.insert(packed(key), context))
        driver.operate(OperationKind.PROVISION, context, window=WINDOW, tag=context)
    driver.operate(OperationKind.MARKER, 0, tag=1)
    driver.take_all(1)


def close(driver: LiteDriver):
    """Final records by context, and all counters."""
    driver.sweep(OperationKind.CLOSE, 0, CONNECTIONS - 1, cookie=0xBEEF)
    *records, _marker = driver.take_all(0xBEEF)
    by_context: dict[int, list] = {}
    for record in records:
        by_context.setdefault(int(record["context"]), []).append(record)
    return by_context, read_counters(driver)


def traffic(seed: int, packets: int) -> list[bytes]:
    """Synthetic frames of every kind, without FCS, of 60 octets or more."""
    settings = SynthSettings(
        packets=packets, connections=8, seed=seed, payload="small", reads=2, other=0.05, cnp=0.02,
        pfc=0.05, impairments=Impairments(gap=0.05, repeat=0.03, late=0.05, jump=0.01))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "traffic.pcap"
        write_synthetic(path, settings)
        with open_capture(str(path)) as capture:
            return [build.pad(bytes(batch.data[start:start + size]))
                    for batch in capture.batches()
                    for start, size in zip(batch.offsets, batch.captured, strict=True)]


@bench
async def the_driver_finds_its_core(core: Core) -> None:
    def talk():
        driver = LiteDriver(core)
        info = driver.handshake()
        assert (info.connections, info.ports, info.bus_bytes, info.max_window, info.version) == (
            CONNECTIONS, core.ports, core.bus_bytes, WORD, LAYOUT_VERSION)
        assert (info.transmitted, info.vxlan) == (core.transmits, 0)
        assert driver.read("magic") == MAGIC
        assert driver.read("boot_id") == info.boot_id != 0

    core.with_pauses()
    await bridge(talk)()


@bench
async def records_are_the_models(core: Core) -> None:
    core.with_pauses()
    frames = traffic(cocotb.RANDOM_SEED, 300)
    keys = sorted({found.key for found in map(classify, frames) if found.key is not None})
    streams: list[list[bytes]] = [[] for _ in range(core.ports)]
    for number, octets in enumerate(frames):      # a stream stays on one port
        key = classify(octets).key
        streams[(number if key is None else keys.index(key)) % core.ports].append(octets)
    expected = [reference_capture([(0, octets) for octets in stream], WINDOW)
                for stream in streams]
    epochs = {key: found for one in expected for key, found in one.epochs.items()}
    assert len(epochs) >= 8
    driver = LiteDriver(core)
    await bridge(provision)(driver, list(epochs))
    before = await bridge(read_counters)(driver)
    bad = [0] * core.ports

    async def send(port):
        mixed = []
        for octets in streams[port]:
            if core.rng.random() < 0.1:
                mixed.append(core.bad(octets))
                bad[port] += 1
            mixed.append(octets)
        await core.send(port, mixed)

    for task in [cocotb.start_soon(send(port)) for port in range(core.ports)]:
        await task
    by_context, counters = await bridge(close)(driver)
    names = ("window", "flags", "requests", "skipped", "filled", "expired", "abandoned", "pending",
             "repeated", "late")
    for context, (key, model) in enumerate(epochs.items()):
        seen = [{name: int(record[name]) for name in names}
                for record in by_context.get(context, [])]
        assert seen == [{name: getattr(epoch, name) for name in names} for epoch in model], key
    totals = {name: sum(getattr(epoch, name) for found in epochs.values() for epoch in found)
              for name in ("filled", "expired", "repeated")}
    assert min(totals.values()) > 0, totals
    for port in range(core.ports):
        classes = {item: after - old for item, after, old in zip(
            FrameClass, counters.frame_class[port], before.frame_class[port], strict=True)}
        want = {item: expected[port].classes[item] for item in FrameClass}
        assert classes == want | {FrameClass.MAC_ERROR: bad[port]}
        assert counters.pfc_received[port] == (
            *(expected[port].pfc[priority] for priority in range(8)),
            *(expected[port].pfc_xoff[priority] for priority in range(8)))
    assert sum(one.pfc.total() for one in expected) > 0
    assert (counters.state["records_dropped"], counters.state["unprovisioned"]) == (0, 0)


@bench
async def transmitted_pfc_is_counted_where_it_was_emitted(core: Core) -> None:
    """Each port apart, frames that were given up not at all, and no frame of another kind."""
    core.with_pauses()
    driver = LiteDriver(core)
    await bridge(driver.handshake)()
    before = await bridge(read_counters)(driver)
    good = [build.pad(build.pfc({port: 7})) for port in range(core.ports)]
    request = build.pad(build.roce(bytes(8)))
    for port in range(core.ports):
        counted = [good[port]] * (3 + port)
        others = [core.bad(good[port]) for _ in range(4)] + [request] * 4
        mixed = counted + others
        core.rng.shuffle(mixed)
        await core.send(core.ports + port, mixed)
    after = await bridge(read_counters)(driver)
    assert after.frame_class == before.frame_class
    assert after.pfc_received == before.pfc_received
    assert after.pfc_transmitted == tuple(
        tuple(3 + port if index % 8 == port else 0 for index in range(16))
        for port in range(core.ports))


@bench
async def beats_count_where_both_say_so(core: Core) -> None:
    """Frames wait at a sink that is not ready, and are seen once all the same."""
    request = build.pad(build.roce(bytes(40), psn=9))
    driver = LiteDriver(core)
    await bridge(driver.handshake)()

    async def seen():
        counters = await bridge(read_counters)(driver)
        return counters.frame_class[0][FrameClass.ELIGIBLE_REQUEST]

    core.sinks[0].pause = True
    for _ in range(3):
        await core.sources[0].send(request)
    await ClockCycles(core.dut.aclk, 300)
    assert await seen() == 0
    core.sinks[0].pause = False
    await core.send(0, [])
    assert await seen() == 3
    assert core.sinks[0].count() == 4       # and the one that woke the tap


@bench
async def accesses_that_fail_say_so(core: Core) -> None:
    core.with_pauses()
    status = AXI_REGISTERS["access_status"]
    driver = LiteDriver(core)
    await bridge(driver.handshake)()
    for number, response in ((0x7F0, AxiResp.DECERR), (0x12, AxiResp.DECERR),
                             (record_word(0), AxiResp.SLVERR)):
        answer = await core.lite.read(byte_address(number), 4)
        assert (answer.resp, answer.data) == (response, b"\xff" * 4), hex(number)
    refused = await core.lite.write(
        byte_address(AXI_REGISTERS["record_pop"].address), bytes(8))
    assert refused.resp == AxiResp.SLVERR
    assert status.unpack(await core.read(status.address)) == {"last_write": 2, "failed": 4}
    partly = await core.lite.write(byte_address(2) + 1, b"x")
    assert partly.resp == AxiResp.SLVERR
    high_alone = await core.lite.read(byte_address(3) + 4, 4)
    assert high_alone.resp == AxiResp.SLVERR
    await core.write(2, 0x1234_5678_9ABC_DEF0)
    assert await core.read(2) == 0x1234_5678_9ABC_DEF0
    assert status.unpack(await core.read(status.address)) == {"last_write": 0, "failed": 6}


@bench
async def times_are_those_of_the_core(core: Core) -> None:
    key = classify(build.pad(build.roce(psn=5))).key
    driver = LiteDriver(core)
    await bridge(provision)(driver, [key])
    given = hasattr(core.dut, "time_ns")
    times = (0x1122_3344_5566_7788, 0x1122_3344_5566_9999)
    began = await core.read(4)
    for psn, now in enumerate(times):
        if given:
            core.dut.time_ns.value = now
        await core.send(0, [build.pad(build.roce(psn=psn))])
        await Timer(2000, "ns")
    by_context, _ = await bridge(close)(driver)
    (record,) = by_context[0]
    first, last = int(record["first_time"]), int(record["last_time"])
    if given:
        assert (first, last) == times
    else:    # counted from a clock of 322.265625 MHz, which here has a period of CORE_PS
        slower = CORE_PS / 1000 * 0.322265625
        assert 2000 / slower <= last - first <= 3500 / slower
        assert began < first


@bench
async def a_core_that_stands_still_does_not_hang_the_bus(core: Core) -> None:
    driver = LiteDriver(core)
    info = await bridge(driver.handshake)()
    core.clock.stop()
    answer = await core.lite.read(byte_address(2), 4)
    assert (answer.resp, answer.data) == (AxiResp.SLVERR, b"\xff" * 4)
    core.clock.start()
    await ClockCycles(core.dut.aclk, 100)
    assert await core.read(2) == info.boot_id
    assert await core.read(0) == MAGIC


@bench
async def a_reset_of_the_core_is_seen_by_the_driver(core: Core) -> None:
    driver = LiteDriver(core)
    first = await bridge(driver.handshake)()
    assert first.boot_id
    core.dut.aresetn.value = 0
    await ClockCycles(core.dut.aclk, 5)
    core.dut.aresetn.value = 1
    assert await core.read(2) == 0
    second = await bridge(driver.handshake)()
    assert second.restarted
    await core.send(0, [build.pad(build.roce(psn=1))] * 3)
    counters = await bridge(read_counters)(driver)
    seen = counters.frame_class[0][FrameClass.ELIGIBLE_REQUEST]
    assert seen == (3 if core.own_clocks else 2)    # a shared clock: the tap was reset too


@bench
async def a_reset_of_a_tap_is_a_capture_discontinuity(core: Core) -> None:
    """Only where taps have clocks of their own."""
    frames = [build.pad(build.roce(psn=psn)) for psn in range(20)]
    driver = LiteDriver(core)
    await bridge(provision)(driver, [classify(frames[0]).key])
    lost = (await bridge(read_counters)(driver)).frame_class[0][FrameClass.LOST]
    await core.send(0, frames[:5])
    core.resets[0].value = 0
    await ClockCycles(core.dut.s_axis_tap_0_aclk, 1)
    core.resets[0].value = 1
    await core.send(0, frames[5:12])
    by_context, counters = await bridge(close)(driver)
    seen = [(int(record["flags"]), int(record["requests"])) for record in by_context[0]]
    assert seen == [(FINAL | GAP, 5), (FINAL, 6)]       # the first one after it only wakes the tap
    assert counters.frame_class[0][FrameClass.LOST] == lost + 1


@bench
async def a_core_that_is_too_slow_says_what_it_lost(core: Core) -> None:
    """Only where taps have clocks of their own."""
    *frames, tail = [build.pad(build.roce(psn=psn)) for psn in range(61)]
    driver = LiteDriver(core)
    await bridge(provision)(driver, [classify(frames[0]).key])
    before = (await bridge(read_counters)(driver)).frame_class[0]
    core.tap_clocks[0].stop()
    Clock(core.dut.s_axis_tap_0_aclk, 2300, "ps").start()
    await core.send(0, frames)
    await core.send(0, [tail])
    by_context, counters = await bridge(close)(driver)
    lost, seen = (counters.frame_class[0][item] - before[item]
                  for item in (FrameClass.LOST, FrameClass.ELIGIBLE_REQUEST))
    assert lost > 1
    assert 10 < seen <= len(frames)
    records = by_context[0]
    assert len(records) == lost + 1
    assert [int(record["flags"]) for record in records] == [FINAL | GAP] * lost + [FINAL]
    assert sum(int(record["requests"]) for record in records) == seen
    assert all(record["skipped"] == 0 for record in records)    # nothing is joined across a gap
