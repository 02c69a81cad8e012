"""The register file by the map of rocetap.spec.registers, access by access."""

import pytest

from rocetap.spec.fingerprint import layout_hash
from rocetap.spec.keys import KEY_BITS, WAYS
from rocetap.spec.registers import BANKS, KEY_WORDS, REGISTERS, OperationKind, bank_address
from rocetap.spec.wire import Status
from rocetap_hdl.registers import RegisterFile
from support.simulate import fields, simulate


def make():
    return RegisterFile(connections=64, word=256, ports=2, bus_bytes=8, counter_latency=9,
                        transmitted=True)


async def access(ctx, dut, address, write=None, patience=40):
    ctx.set(dut.bus.address, address)
    ctx.set(dut.bus.write, write is not None)
    ctx.set(dut.bus.write_data, write or 0)
    ctx.set(dut.bus.request, 1)
    clocks = 0
    while not ctx.get(dut.bus.done):
        assert clocks < patience, f"no answer at {address:#x} in {patience} clocks"
        await ctx.tick()
        clocks += 1
    result = Status(ctx.get(dut.bus.status)), ctx.get(dut.bus.read_data), clocks
    ctx.set(dut.bus.request, 0)
    await ctx.tick().repeat(2)
    return result


def run(drive, *streams, dut=None):
    dut = dut or make()

    async def testbench(ctx):
        await drive(ctx, dut)

    return simulate(dut, testbench, *(getattr(dut, name) for name in streams))


def test_identity_and_latency():
    async def drive(ctx, dut):
        status, value, clocks = await access(ctx, dut, REGISTERS["magic"].address)
        assert (status, value.to_bytes(8, "little"), clocks) == (Status.OK, b"rocetap\0",
                                                                 dut.latency)
        status, value, _ = await access(ctx, dut, REGISTERS["layout"].address)
        assert (status, value) == (Status.OK, layout_hash())
        status, value, _ = await access(ctx, dut, REGISTERS["capacity"].address)
        assert REGISTERS["capacity"].unpack(value) == {
            "connections": 64, "ports": 2, "vxlan": 0, "transmitted": 1, "bus_bytes": 8,
            "max_window": 256, "version": 1}
    run(drive)


def test_what_is_written_is_read():
    async def drive(ctx, dut):
        assert (await access(ctx, dut, REGISTERS["control"].address))[1] == 1
        for name, value in (("boot_id", 0x1234_5678_9ABC_DEF0), ("control", 0),
                            ("operation_argument", REGISTERS["operation_argument"].pack(
                                window=77, tag=0xABCD))):
            assert (await access(ctx, dut, REGISTERS[name].address, value))[0] == Status.OK
            assert (await access(ctx, dut, REGISTERS[name].address))[:2] == (Status.OK, value)
        assert ctx.get(dut.cfg_check_icrc) == 0
    run(drive)


@pytest.mark.parametrize(("name", "port", "value"), [
    ("time", "time", 123456789012345), ("capture_generation", "generation", 9),
    ("records_dropped", "records_dropped", 1 << 40), ("snapshot_level", "snapshot_level", 17)])
def test_inputs_are_read(name, port, value):
    async def drive(ctx, dut):
        ctx.set(getattr(dut, port), value)
        assert (await access(ctx, dut, REGISTERS[name].address))[:2] == (Status.OK, value)
    run(drive)


def test_every_address_that_is_no_register_says_so():
    readable = {r.address for r in REGISTERS.values() if "r" in r.access}
    for name in RegisterFile.counter_banks:
        for port in range(2):
            readable |= {bank_address(name, port, i) for i in range(BANKS[name].count)}

    async def drive(ctx, dut):
        for address in [*range(0x40), *range(0xF8, 0x408), 0x1000, 0xFFFF]:
            status, _, _ = await access(ctx, dut, address)
            assert (status == Status.OK) == (address in readable), hex(address)
    run(drive)


def test_counters_are_asked_by_bank_port_and_index():
    async def drive(ctx, dut):
        ctx.set(dut.counter_value, 4242)
        for number, name in enumerate(RegisterFile.counter_banks):
            for port, index in ((0, 0), (1, BANKS[name].count - 1)):
                status, value, _ = await access(ctx, dut, bank_address(name, port, index))
                assert (status, value) == (Status.OK, 4242)
                assert (ctx.get(dut.counter_bank), ctx.get(dut.counter_port),
                        ctx.get(dut.counter_index)) == (number, port, index)
        status, _, _ = await access(ctx, dut, bank_address("frame_class", 2, 0))
        assert status == Status.NO_REGISTER  # a port that this board does not have
    run(drive)


def test_an_operation_is_answered_once_it_is_in_the_pipe():
    dut = make()
    word = REGISTERS["operation"].pack(kind=OperationKind.PROVISION, context=63)

    async def drive(ctx, dut):
        argument = REGISTERS["operation_argument"].pack(window=256, tag=5)
        await access(ctx, dut, REGISTERS["operation_argument"].address, argument)
        ctx.set(dut.bus.address, REGISTERS["operation"].address)
        ctx.set(dut.bus.write, 1)
        ctx.set(dut.bus.write_data, word)
        ctx.set(dut.bus.request, 1)
        await ctx.tick().repeat(30)
        assert ctx.get(dut.bus.done) == 0
        ctx.set(dut.operation.ready, 1)
        await ctx.tick()
        assert ctx.get(dut.bus.done) == 1
        assert ctx.get(dut.bus.status) == Status.OK
        ctx.set(dut.bus.request, 0)
        await ctx.tick().repeat(5)

    (operations,) = run(drive, "operation", dut=dut)
    got = fields(operations[0])
    assert len(operations) == 1
    assert (got["kind"], got["context"], got["window"], got["tag"]) == (
        OperationKind.PROVISION, 63, 256, 5)


@pytest.mark.parametrize(("window", "fields_"), [
    (0, {"kind": OperationKind.PROVISION, "context": 1}),
    (257, {"kind": OperationKind.PROVISION, "context": 1}),
    (1, {"kind": OperationKind.PROVISION, "context": 64}),
    (1, {"kind": OperationKind.NOTHING, "context": 1}),
    (1, {"kind": OperationKind.REQUEST, "context": 1}),
    (1, {"kind": OperationKind.VIOLATION, "context": 1}),
    (1, {"kind": 8, "context": 1}),
    (1, {"kind": 15, "context": 1}),
])
def test_operations_that_are_refused(window, fields_):
    dut = make()

    async def drive(ctx, dut):
        ctx.set(dut.operation.ready, 1)
        argument = REGISTERS["operation_argument"].pack(window=window)
        await access(ctx, dut, REGISTERS["operation_argument"].address, argument)
        word = REGISTERS["operation"].pack(**fields_)
        assert (await access(ctx, dut, REGISTERS["operation"].address, word))[0] == Status.REFUSED

    (operations,) = run(drive, "operation", dut=dut)
    assert operations == []


@pytest.mark.parametrize(("busy", "fields_", "status"), [
    (0, {"kind": OperationKind.SNAPSHOT, "first": 2, "last": 63, "cookie": 9}, Status.OK),
    (0, {"kind": OperationKind.CLOSE, "first": 5, "last": 5, "reasons": 8}, Status.OK),
    (1, {"kind": OperationKind.SNAPSHOT, "first": 0, "last": 63}, Status.REFUSED),
    (0, {"kind": OperationKind.SNAPSHOT, "first": 0, "last": 64}, Status.REFUSED),
    (0, {"kind": OperationKind.SNAPSHOT, "first": 3, "last": 2}, Status.REFUSED),
    (0, {"kind": OperationKind.PROVISION, "first": 0, "last": 2}, Status.REFUSED),
])
def test_sweep_register(busy, fields_, status):
    async def drive(ctx, dut):
        ctx.set(dut.sweep_busy, busy)
        word = REGISTERS["sweep"].pack(**fields_)
        started = []
        ctx.set(dut.bus.address, REGISTERS["sweep"].address)
        ctx.set(dut.bus.write, 1)
        ctx.set(dut.bus.write_data, word)
        ctx.set(dut.bus.request, 1)
        for _ in range(20):
            if ctx.get(dut.bus.done):
                assert ctx.get(dut.bus.status) == status
                ctx.set(dut.bus.request, 0)
            if ctx.get(dut.sweep_start):
                started.append({"kind": ctx.get(dut.sweep_kind), "first": ctx.get(dut.sweep_first),
                                "last": ctx.get(dut.sweep_last),
                                "reasons": ctx.get(dut.sweep_reasons),
                                "cookie": ctx.get(dut.sweep_cookie)})
            await ctx.tick()
        defaults = {"reasons": 0, "cookie": 0}
        assert started == ([defaults | fields_] if status == Status.OK else [])
    run(drive)


def test_a_key_is_committed_whole():
    key = int.from_bytes(bytes(range(1, 45)), "little") & ((1 << KEY_BITS) - 1)

    async def drive(ctx, dut):
        for index in range(KEY_WORDS):
            word = (key >> (64 * index)) & ((1 << 64) - 1)
            assert (await access(ctx, dut, bank_address("table_key", 0, index),
                                 word))[0] == Status.OK
        commit = REGISTERS["table_commit"]
        assert commit.address == bank_address("table_key", 0, KEY_WORDS - 1) + 1
        for fields_ in ({"slot": dut.slots}, {"way": WAYS}, {"context": 64}):
            assert (await access(ctx, dut, commit.address,
                                 commit.pack(**fields_)))[0] == Status.REFUSED
        ctx.set(dut.bus.address, commit.address)
        ctx.set(dut.bus.write, 1)
        ctx.set(dut.bus.write_data, commit.pack(slot=31, way=3, valid=1, context=63))
        ctx.set(dut.bus.request, 1)
        strobes = 0
        for _ in range(20):
            if ctx.get(dut.bus.done):
                ctx.set(dut.bus.request, 0)
            if ctx.get(dut.commit):
                strobes += 1
                assert ctx.get(dut.commit_key) == key
                assert (ctx.get(dut.commit_slot), ctx.get(dut.commit_way), ctx.get(
                    dut.commit_valid), ctx.get(dut.commit_context)) == (31, 3, 1, 63)
            await ctx.tick()
        assert strobes == 1
    run(drive)


def test_misses_are_counted():
    async def drive(ctx, dut):
        ctx.set(dut.missed, 1)
        await ctx.tick().repeat(3)
        ctx.set(dut.missed, 0)
        assert (await access(ctx, dut, REGISTERS["unprovisioned"].address))[1] == 3
    run(drive)


def with_selftest():
    return RegisterFile(connections=64, word=256, ports=2, bus_bytes=8, counter_latency=9,
                        selftest=True)


def test_port_state_is_what_the_macs_say():
    async def drive(ctx, dut):
        ctx.set(dut.port_state, 0x2D_25)
        assert await access(ctx, dut, REGISTERS["port_state"].address) == (
            Status.OK, 0x2D_25, dut.latency)
        status, _, _ = await access(ctx, dut, REGISTERS["port_state"].address, 1)
        assert status == Status.NO_REGISTER
    run(drive)


def test_without_selftest_its_registers_do_not_exist():
    async def drive(ctx, dut):
        for address in (REGISTERS["selftest"].address, bank_address("selftest_frame", 0, 0)):
            assert (await access(ctx, dut, address, 1))[0] == Status.NO_REGISTER
    run(drive)


def test_selftest_frame_and_start():
    strobes = []

    async def drive(ctx, dut):
        async def strobe(names, address, value):
            ctx.set(dut.bus.address, address)
            ctx.set(dut.bus.write, 1)
            ctx.set(dut.bus.write_data, value)
            ctx.set(dut.bus.request, 1)
            while not ctx.get(dut.bus.done):
                await ctx.tick()
            strobes.append(tuple(ctx.get(getattr(dut, name)) for name in names))
            status = Status(ctx.get(dut.bus.status))
            ctx.set(dut.bus.request, 0)
            await ctx.tick().repeat(2)
            assert not ctx.get(dut.selftest_write)
            assert not ctx.get(dut.selftest_start)
            return status
        words = "selftest_write", "selftest_index", "selftest_word"
        for index in (0, 31):
            assert await strobe(words, bank_address("selftest_frame", 0, index),
                                index << 60 | 7) == Status.OK
        begin = ("selftest_start", "selftest_octets", "selftest_port", "selftest_wrong_fcs",
                 "selftest_mac_error", "selftest_times")
        ask = REGISTERS["selftest"]
        for asked in ({"octets": 256, "port": 1, "times": 9, "wrong_fcs": 1, "mac_error": 0},
                      {"octets": 1, "port": 0, "times": 65535, "wrong_fcs": 0, "mac_error": 1}):
            assert await strobe(begin, ask.address, ask.pack(**asked)) == Status.OK
        good = {"octets": 60, "port": 0, "times": 1}
        for bad in ({"octets": 0}, {"octets": 257}, {"port": 2}, {"times": 0}):
            assert await strobe(begin, ask.address, ask.pack(**{**good, **bad})) == Status.REFUSED
        ctx.set(dut.selftest_busy, 1)
        assert await strobe(begin, ask.address, ask.pack(**good)) == Status.REFUSED
    run(drive, dut=with_selftest())
    assert strobes[:4] == [(1, 0, 7), (1, 31, (31 << 60 | 7) & (1 << 64) - 1),
                           (1, 256, 1, 1, 0, 9), (1, 1, 0, 0, 1, 65535)]
    assert all(strobe[0] == 0 for strobe in strobes[4:])
