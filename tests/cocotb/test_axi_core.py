"""The AXI core at its pins: the benches of support/axi_core_bench.py against the Verilog that
`rocetap verilog` writes."""

import os
import xml.etree.ElementTree as ElementTree

import pytest
from cocotb_tools.runner import get_runner

from rocetap_sim.verilog import TOP
from support.axi_build import build_axi_bench

BENCHES = (
    "the_driver_finds_its_core", "records_are_the_models", "beats_count_where_both_say_so",
    "accesses_that_fail_say_so", "times_are_those_of_the_core",
    "a_core_that_stands_still_does_not_hang_the_bus", "a_reset_of_the_core_is_seen_by_the_driver")
OWN_CLOCKS = (
    "a_reset_of_a_tap_is_a_capture_discontinuity", "a_core_that_is_too_slow_says_what_it_lost")
TRANSMITTED = ("transmitted_pfc_is_counted_where_it_was_emitted",)

SMALL = ("--connections", "32", "--window", "64", "--records", "128")
CORES = {
    "10G, two ports, each its clock": (
        (*SMALL, "--bus-bytes", "8", "--ports", "2", "--tap-clocks", "own",
         "--transmitted"), BENCHES + OWN_CLOCKS + TRANSMITTED),
    "100G, shared clock, own time": (
        (*SMALL, "--bus-bytes", "64", "--clock-mhz", "322.265625"), BENCHES),
}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", CORES)
def test_core_at_its_pins(tmp_path, monkeypatch, name):
    monkeypatch.delenv("PYTHONHOME", raising=False)
    for variable in [variable for variable in os.environ if variable.startswith("COCOTB_")]:
        monkeypatch.delenv(variable)
    options, benches = CORES[name]
    program = build_axi_bench(*options)
    results = get_runner("verilator").test(
        hdl_toplevel=TOP, hdl_toplevel_lang="verilog", test_module="support.axi_core_bench",
        testcase=list(benches), build_dir=program, test_dir=tmp_path,
        results_xml=str(tmp_path / "results.xml"), seed=7)
    cases = ElementTree.parse(results).getroot().findall(".//testcase")
    bad = [case.get("name") for case in cases
           if {child.tag for child in case} & {"failure", "error", "skipped"}]
    assert bad == []
    assert sorted(case.get("name") for case in cases) == sorted(benches)
