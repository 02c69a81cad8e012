"""StreamRules in its three tools, on streams that keep the rules and on one that breaks each."""

import subprocess

import pytest
from amaranth.asserts import AnySeq
from amaranth.back import rtlil
from amaranth.hdl import ClockDomain, Elaboratable, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from rocetap_sim.native import Recipe, compile_native, verilate
from rocetap_sim.toolchain import find_compiler, find_verilator
from rocetap_sim.verilog import TOP, _verilog_from_rtlil
from support.formal import prove, refute
from support.stream_rules import holds_payload, keeps_valid, never_waits, watch

PATIENCE = 3
FAULTS = {1: keeps_valid("o"), 2: holds_payload("o"), 3: never_waits("o", PATIENCE)}
"""Fault -> the message of the rule that it breaks. Fault 0 is none."""


class Source(wiring.Component):
    """Counts, one number each second clock or more; ``fault`` says how it misbehaves."""

    fault: In(2)
    o: Out(stream.Signature(4))

    def elaborate(self, platform):
        m = Module()
        number = Signal(4)
        with m.If(~self.o.valid):
            m.d.sync += self.o.valid.eq((self.fault != 3) | self.o.ready)
        with m.Elif(self.o.ready | (self.fault == 1)):
            m.d.sync += [self.o.valid.eq(0), number.eq(number + 1)]
        with m.Elif(self.fault == 2):
            m.d.sync += number.eq(number + 1)
        m.d.comb += self.o.payload.eq(number)
        return m


class WatchedSource(wiring.Component):
    """With its rules; ready in one clock of four."""

    fault: In(2)

    def elaborate(self, platform):
        m = Module()
        m.submodules.source = source = Source()
        clock = Signal(2)
        m.d.sync += clock.eq(clock + 1)
        m.d.comb += [source.fault.eq(self.fault), source.o.ready.eq(clock == 3)]
        watch(m, "o", source.o, due=1, patience=PATIENCE)
        return m


def test_simulator_takes_a_good_stream():
    simulate(0)


@pytest.mark.parametrize("fault", FAULTS)
def test_simulator_stops_at_each_fault(fault):
    with pytest.raises(AssertionError) as error:
        simulate(fault)
    assert FAULTS[fault] in str(error.value)


def simulate(fault):
    dut = WatchedSource()
    sim = Simulator(dut)
    sim.add_clock(1e-8)

    async def drive(ctx):
        ctx.set(dut.fault, fault)

    sim.add_testbench(drive)
    sim.run_until(20e-8)


class FreeSource(Elaboratable):
    """With its rules; ready as it comes."""

    def __init__(self, fault):
        self._fault = fault

    def elaborate(self, platform):
        m = Module()
        m.submodules.source = source = Source()
        m.d.comb += [source.fault.eq(self._fault), source.o.ready.eq(AnySeq(1))]
        watch(m, "o", source.o, due=1, patience=PATIENCE)
        return m


def test_prover_takes_a_good_stream():
    """By induction over 4 clocks."""
    prove(FreeSource(0), depth=4, induction=True)


def test_prover_finds_each_fault():
    """To 10 clocks."""
    refute({f"fault_{fault}": (FreeSource(fault), message)
            for fault, message in FAULTS.items()}, depth=10)


MAIN = f"""
#include <cstdlib>
#include "V{TOP}.h"
int main(int, char** arguments) {{
    VerilatedContext context;
    V{TOP} top{{&context}};
    top.fault = std::atoi(arguments[1]);
    for (int clock = 0; clock < 20; clock++) {{
        top.clk = 0; top.eval();
        top.clk = 1; top.eval();
    }}
}}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The source, watched, as native code; its argument is the fault."""
    folder = tmp_path_factory.mktemp("stream rules")
    top = Module()
    top.domains.sync = domain = ClockDomain(reset_less=True)
    top.submodules.watched = dut = WatchedSource()
    fault = Signal(2)
    top.d.comb += dut.fault.eq(fault)
    ports = {"clk": (domain.clk, None), "fault": (fault, None)}
    (folder / f"{TOP}.v").write_text(_verilog_from_rtlil(
        rtlil.convert(top, name=TOP, ports=ports, emit_src=False)))
    (folder / "main.cpp").write_text(MAIN)
    verilator, compiler = find_verilator(), find_compiler()
    recipe = Recipe(output="source", prefix=f"V{TOP}", harness=(str(folder / "main.cpp"),),
                    verilator_flags=("--assert",))
    verilate(verilator, recipe, folder)
    compile_native(verilator, compiler, recipe, folder)
    return folder / "source"


@pytest.mark.parametrize("fault", [0, *FAULTS])
def test_verilator_stops_at_each_fault(program, fault):
    done = subprocess.run([program, str(fault)], capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert (done.returncode == 0) == (fault == 0), said
    assert FAULTS.get(fault, "") in said
