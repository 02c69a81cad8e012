"""RecordWindow: records as registers, everything else passed on."""

import random

from amaranth.hdl import Module, Value
from amaranth.sim import Simulator

from rocetap.spec.axi import AXI_REGISTERS, RECORD_WORDS, record_word
from rocetap.spec.records import RECORD_BITS
from rocetap.spec.wire import Status
from rocetap_hdl.axi.record_window import RecordWindow
from support.register_bus import RegisterMemory

LEVEL, POP = (AXI_REGISTERS[name].address for name in ("record_level", "record_pop"))


def run(drive, records=()):
    """Runs ``drive(access)`` before a queue of records; gives memory and queue."""
    m = Module()
    m.submodules.dut = dut = RecordWindow()
    memory = RegisterMemory(dut.registers, random.Random(1))
    queue = list(records)

    async def source(ctx):
        while True:
            ctx.set(dut.records.valid, bool(queue))
            ctx.set(dut.level, len(queue))
            ctx.set(Value.cast(dut.records.payload), queue[0] if queue else 0)
            _, _, ready = await ctx.tick().sample(dut.records.ready)
            if ready and queue:
                queue.pop(0)

    async def bench(ctx):
        async def access(address, data=None):
            ctx.set(dut.bus.address, address)
            ctx.set(dut.bus.write, data is not None)
            ctx.set(dut.bus.write_data, data or 0)
            ctx.set(dut.bus.request, 1)
            status, value = await ctx.tick().sample(
                dut.bus.status, dut.bus.read_data).until(dut.bus.done)
            ctx.set(dut.bus.request, 0)
            await ctx.tick()
            return Status(status), value
        await drive(access)

    sim = Simulator(m)
    sim.add_clock(1e-8)
    sim.add_testbench(bench)
    sim.add_testbench(source, background=True)
    sim.add_testbench(memory.run, background=True)
    sim.run()
    return memory, queue


def test_records_are_read_word_by_word_and_popped():
    rng = random.Random("record window")
    records = [rng.getrandbits(RECORD_BITS) for _ in range(3)]

    async def drive(access):
        for left in range(3, 0, -1):
            assert await access(LEVEL) == (Status.OK, left)
            words = list(range(RECORD_WORDS))
            rng.shuffle(words)
            read = {i: await access(record_word(i)) for i in [*words, *words]}
            assert {status for status, _ in read.values()} == {Status.OK}
            assert sum(word << 64 * i for i, (_, word) in read.items()) == records[3 - left]
            assert (await access(POP, 0))[0] == Status.OK
        assert await access(LEVEL) == (Status.OK, 0)

    memory, queue = run(drive, records)
    assert (memory.accesses, queue) == ([], [])


def test_an_empty_window_refuses():
    async def drive(access):
        assert (await access(record_word(0)))[0] == Status.REFUSED
        assert (await access(record_word(RECORD_WORDS - 1)))[0] == Status.REFUSED
        assert (await access(POP, 1))[0] == Status.REFUSED
    run(drive)


def test_what_is_no_register_of_the_window():
    async def drive(access):
        for address in (POP, LEVEL + 2, record_word(0) - 1, record_word(RECORD_WORDS - 1) + 1,
                        record_word(0) + 0x400, 0x7FF, 0x800, 0xFFFF):
            assert (await access(address))[0] == Status.NO_REGISTER, hex(address)
        for address in (LEVEL, record_word(0), LEVEL + 2):
            assert (await access(address, 1))[0] == Status.NO_REGISTER, hex(address)
    memory, queue = run(drive, [5])
    assert (memory.accesses, queue) == ([], [5])


def test_other_registers_are_passed_on():
    async def drive(access):
        assert (await access(0x11, 7))[0] == Status.OK
        assert await access(0x11) == (Status.OK, 7)
        assert (await access(0x3FF))[0] == Status.NO_REGISTER
        assert (await access(0x300, 1))[0] == Status.REFUSED
    memory, _ = run(drive, [5])
    assert memory.accesses == [(True, 0x11, 7), (False, 0x11, 0), (False, 0x3FF, 0),
                               (True, 0x300, 1)]
