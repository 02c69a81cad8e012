"""The probe with its build options, at its register bus: VXLAN connections and both PFC banks."""

import pytest
from amaranth.sim import Simulator

from rocetap.link.table import ConnectionTable
from rocetap.spec.classes import FrameClass
from rocetap.spec.keys import pack_key
from rocetap.spec.records import RecordKind
from rocetap.spec.registers import KEY_WORDS, REGISTERS, OperationKind, bank_address
from rocetap.spec.wire import Status
from rocetap_hdl.probe import Probe
from support.classify import Arrival
from support.frames import (
    DESTINATION_MAC,
    ethernet,
    ipv4,
    mac_control,
    pad,
    pfc,
    roce,
    vxlan,
    with_fcs,
)
from support.parser_bench import beats
from support.refuses import refuses

CONNECTIONS = 8
SETTLE = 60


def good(octets, **how):
    return Arrival(with_fcs(pad(octets)), **how)


class Bench:
    """A probe without link: one testbench that plays MACs and host."""

    def __init__(self, **options):
        self.dut = Probe(connections=CONNECTIONS, word=8, records=64, link=False, **options)
        self.table = ConnectionTable(CONNECTIONS)
        self.ctx = None
        self.records = []

    def run(self, story):
        async def testbench(ctx):
            self.ctx = ctx
            ctx.set(self.dut.records.ready, 1)
            await story(self)

        async def watch(ctx):
            stream = self.dut.records
            async for _, _, valid, payload in ctx.tick().sample(stream.valid, stream.payload):
                if valid:
                    self.records.append(payload)
        sim = Simulator(self.dut)
        sim.add_clock(1e-8)
        sim.add_testbench(testbench)
        sim.add_testbench(watch, background=True)
        sim.run()

    async def send(self, stream, arrivals):
        for arrival in arrivals:
            for beat in beats(arrival, self.dut.bus_bytes):
                self.ctx.set(stream.valid, 1)
                self.ctx.set(stream.payload, beat)
                await self.ctx.tick()
        self.ctx.set(stream.valid, 0)
        await self.ctx.tick().repeat(SETTLE)

    async def access(self, address, value=None):
        bus = self.dut.bus
        self.ctx.set(bus.address, address)
        self.ctx.set(bus.write, value is not None)
        self.ctx.set(bus.write_data, value or 0)
        self.ctx.set(bus.request, 1)
        await self.ctx.tick().until(bus.done)
        status, read = self.ctx.get(bus.status), self.ctx.get(bus.read_data)
        self.ctx.set(bus.request, 0)
        await self.ctx.tick()
        assert status == Status.OK
        return read

    async def write(self, name, **fields):
        await self.access(REGISTERS[name].address, REGISTERS[name].pack(**fields))

    async def provision(self, key, context):
        for slot in self.table.insert(key, context):
            for word in range(KEY_WORDS):
                await self.access(bank_address("table_key", 0, word),
                                  slot.key >> 64 * word & (1 << 64) - 1)
            await self.write("table_commit", slot=slot.slot, way=slot.way, valid=1,
                             context=context)
        await self.write("operation_argument", window=8)
        await self.write("operation", kind=OperationKind.PROVISION, context=context)

    async def bank(self, name, port, count):
        return [await self.access(bank_address(name, port, index)) for index in range(count)]

    async def classes(self, port):
        """Frame classes that are not zero."""
        counts = await self.bank("frame_class", port, len(FrameClass))
        return {FrameClass(index): count for index, count in enumerate(counts) if count}


ODD_PFC = [  # priority 3, one each, and what a received one moves
    (good(pfc({3: 0xFFFF})), FrameClass.PFC),
    (good(pfc({3: 0})), FrameClass.PFC),
    (good(pfc({3: 0xFFFF}, source=bytes(6))), FrameClass.PFC),
    (good(pfc({3: 0xFFFF}, destination=DESTINATION_MAC)), FrameClass.BAD_PFC),
    (good(mac_control(0x0102, bytes(18))), FrameClass.MAC_CONTROL),
    (good(mac_control(0x0001, bytes.fromhex("ffff"))), FrameClass.PAUSE),
    (good(pfc({3: 0xFFFF}, tags=((0x8100, 0x6000),))), FrameClass.TAGGED_PFC),
    (Arrival(with_fcs(pfc({3: 0xFFFF})[:42])), FrameClass.RUNT),
    (Arrival(with_fcs(pfc({3: 0xFFFF}), wrong=True)), FrameClass.BAD_FCS),
    (good(pfc({3: 0xFFFF}), error=True), FrameClass.MAC_ERROR),
]
PRIORITY_3 = [0] * 3 + [3] + [0] * 4 + [0] * 3 + [2] + [0] * 4


def test_odd_pfc_frames_received_and_sent():
    """Each invalid frame moves one class and no PFC counter; a sent frame moves no class."""
    arrivals = [arrival for arrival, _ in ODD_PFC]
    bench = Bench(ports=2, transmit=True)

    async def story(bench):
        await bench.send(bench.dut.frames[0], arrivals)
        assert await bench.classes(0) == {
            **{frame_class: 1 for _, frame_class in ODD_PFC}, FrameClass.PFC: 3}
        assert await bench.classes(1) == {}
        assert await bench.bank("pfc_received", 0, 16) == PRIORITY_3
        assert await bench.bank("pfc_transmitted", 0, 16) == [0] * 16
        await bench.send(bench.dut.sent[1], arrivals)
        assert await bench.classes(1) == {}
        assert await bench.bank("pfc_transmitted", 1, 16) == PRIORITY_3
        for bank in ("pfc_received", "pfc_transmitted"):
            assert await bench.bank(bank, bank == "pfc_received", 16) == [0] * 16
    bench.run(story)
    assert not bench.records


def test_a_sent_request_is_not_metered():
    bench = Bench(transmit=True)

    async def story(bench):
        await bench.provision(plain_key(), 1)
        await bench.send(bench.dut.sent[0], [good(roce(psn=5))])
        await bench.write("operation", kind=OperationKind.SNAPSHOT, context=1)
        await bench.ctx.tick().repeat(SETTLE)
        assert await bench.classes(0) == {}
    bench.run(story)
    assert not bench.records


def test_frames_sent_without_the_option():
    assert not hasattr(Probe(connections=8, word=8), "sent")


def plain_key(**more):
    return pack_key(source=0xC0000201, destination=0xC6336402, qp=0x12, pkey=0xFFFF, **more)


@pytest.mark.parametrize("build", [False, True])
def test_a_tunnelled_connection_is_another_than_the_plain_one(build):
    """Same addresses, same queue pair: one key has the VNI; a third tunnel is not provisioned."""
    bench = Bench(vxlan=build)

    def inside(vni, psn):
        return good(ethernet(0x0800, ipv4(vxlan(roce(psn=psn), vni=vni))))

    async def story(bench):
        await bench.provision(plain_key(), 1)
        await bench.provision(plain_key(tunnelled=1, vni=5000), 2)
        await bench.send(bench.dut.frames[0], [
            good(roce(psn=100)), inside(5000, 7), good(roce(psn=102)), inside(5000, 8),
            inside(5001, 9), inside(5000, 10), good(roce(psn=101))])
        for context in (1, 2):
            await bench.write("operation", kind=OperationKind.SNAPSHOT, context=context)
        await bench.ctx.tick().repeat(SETTLE)
        assert await bench.access(REGISTERS["unprovisioned"].address) == (1 if build else 0)
        assert await bench.classes(0) == (
            {FrameClass.ELIGIBLE_REQUEST: 7} if build else
            {FrameClass.ELIGIBLE_REQUEST: 3, FrameClass.TUNNELLED: 4})
    bench.run(story)
    assert all(record["kind"] == RecordKind.SEQUENCE for record in bench.records)
    seen = {record["context"]: tuple(record[name] for name in ("requests", "skipped", "filled"))
            for record in bench.records}
    assert seen == {1: (3, 1, 1), **({2: (3, 1, 0)} if build else {})}


PLAYED = [  # a frame, how it is played, and the class that it moves
    (pad(roce(psn=5)), {"times": 3}, FrameClass.ELIGIBLE_REQUEST),
    (pad(roce(psn=5)), {"wrong_fcs": 1}, FrameClass.BAD_FCS),
    (pad(roce(psn=5)), {"mac_error": 1}, FrameClass.MAC_ERROR),
    (pfc({3: 7}), {"times": 2}, FrameClass.PFC),
    (roce(psn=6)[:50], {}, FrameClass.RUNT),
]


async def play(bench, port, frame, **how):
    for index in range(32):
        word = frame[8 * index:8 * index + 8].ljust(8, b"\0")
        await bench.access(bank_address("selftest_frame", 0, index), int.from_bytes(word, "little"))
    await bench.write("selftest", octets=len(frame), port=port, **{"times": 1, **how})


@pytest.mark.parametrize("bus_bytes", [1, 8])
def test_played_frames_are_counted_like_any_other(bus_bytes):
    bench = Bench(ports=2, bus_bytes=bus_bytes, selftest=True)

    async def story(bench):
        for frame, how, _ in PLAYED:
            await play(bench, 1, frame, **how)
            await bench.ctx.tick().repeat(120 * how.get("times", 1))
        assert await bench.classes(0) == {}
        assert await bench.classes(1) == {
            frame_class: how.get("times", 1) for _, how, frame_class in PLAYED}
    bench.run(story)


def test_what_comes_while_frames_are_played_is_a_gap_on_that_port_alone():
    bench = Bench(ports=2, bus_bytes=1, selftest=True)
    live = Arrival(with_fcs(pad(roce(psn=1))))

    async def story(bench):
        await bench.send(bench.dut.frames[0], [live] * 2)
        await play(bench, 0, PLAYED[0][0], times=20)
        await bench.send(bench.dut.frames[0], [live])
        await bench.send(bench.dut.frames[1], [live])
        await bench.ctx.tick().repeat(20 * 100)
        await bench.send(bench.dut.frames[0], [live] * 3)
        assert await bench.classes(0) == {
            FrameClass.ELIGIBLE_REQUEST: 2 + 20 + 3, FrameClass.LOST: 1}
        assert await bench.classes(1) == {FrameClass.ELIGIBLE_REQUEST: 1}
        assert await bench.access(REGISTERS["capture_generation"].address) == 1
    bench.run(story)


def test_a_probe_without_fcs_has_no_selftest():
    assert not Probe(connections=8, word=8, has_fcs=False, link=False).selftest
    refuses("selftest is True and has_fcs False: the frames it plays have an FCS",
            lambda: Probe(connections=8, word=8, has_fcs=False, selftest=True))
