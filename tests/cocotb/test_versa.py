"""The Versa at its pins: the benches of support/versa_bench.py on the very top that is
synthesized."""

import os
import xml.etree.ElementTree as ElementTree

import pytest
from cocotb_tools.runner import get_runner

from rocetap_sim.verilog import TOP
from support.versa_build import build_versa_bench

BENCHES = 3
"""Tests in support/versa_bench.py; a runner that finds none of them would pass."""


@pytest.mark.timeout(900)
def test_versa_at_its_pins(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTHONHOME", raising=False)
    for name in [name for name in os.environ if name.startswith("COCOTB_")]:
        monkeypatch.delenv(name)
    program = build_versa_bench("inline")
    results = get_runner("verilator").test(
        hdl_toplevel=TOP, hdl_toplevel_lang="verilog", test_module="support.versa_bench",
        build_dir=program, test_dir=tmp_path, results_xml=str(tmp_path / "results.xml"), seed=11)
    cases = ElementTree.parse(results).getroot().findall(".//testcase")
    bad = [case.get("name") for case in cases
           if {child.tag for child in case} & {"failure", "error", "skipped"}]
    assert bad == []
    assert len(cases) == BENCHES
