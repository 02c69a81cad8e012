"""The probe at its pins: the benches of support/probe_bench.py, in a simulator of their own."""

import os
import xml.etree.ElementTree as ElementTree

import pytest
from cocotb_tools.runner import get_runner

from rocetap_sim.build import build_cocotb
from rocetap_sim.design import Design
from rocetap_sim.verilog import TOP

BENCHES = 6
"""Tests in support/probe_bench.py; a runner that finds none of them would pass."""

PROBE = Design("rocetap_hdl.probe", "Probe", (
    ("bus_bytes", 8), ("ports", 2), ("connections", 16), ("word", 64), ("records", 64)))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [1, 2])
def test_probe_at_its_pins(tmp_path, monkeypatch, seed):
    monkeypatch.delenv("PYTHONHOME", raising=False)
    for name in [name for name in os.environ if name.startswith("COCOTB_")]:
        monkeypatch.delenv(name)
    program = build_cocotb(PROBE)
    results = get_runner("verilator").test(
        hdl_toplevel=TOP, hdl_toplevel_lang="verilog", test_module="support.probe_bench",
        build_dir=program, test_dir=tmp_path, results_xml=str(tmp_path / "results.xml"), seed=seed)
    cases = ElementTree.parse(results).getroot().findall(".//testcase")
    bad = [case.get("name") for case in cases
           if {child.tag for child in case} & {"failure", "error", "skipped"}]
    assert bad == []
    assert len(cases) == BENCHES
