"""`rocetap doctor`: what is installed, what is missing, what to do."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import typer

from rocetap.errors import RocetapError

__all__ = ["Finding", "doctor", "examine"]

MIN_PYTHON = (3, 11)

NEEDED_FOR_REPLAY = ("host", "hdl", "sim")
"""Extras without which `rocetap replay` does not run; `host` is what comes without any."""

EXTRAS = (*NEEDED_FOR_REPLAY, "boards", "test")
"""From the one that asks for least: an extra brings the packages of those that it builds on."""

NOT_FOR_REPLAY = ("amaranth-boards", "cocotb")
"""Packages of those extras that only boards and benches use."""

OPTIONAL_PROGRAMS = {
    "make": ("make demo, make test", "make"),
    "tshark": ("independent tests", "tshark"),
    "ipfixDump": ("independent tests", "libfixbuf-tools"),
    "nfcapd": ("independent tests", "nfdump"),
}
"""Program -> what it is for, Debian package."""

_ANSWER_S = 10.0


@dataclass(frozen=True)
class Finding:
    """One line of the report. `found` is None when it is missing or of no use."""

    what: str
    found: str | None
    needed: bool
    """Whether `rocetap replay` needs it."""
    purpose: str
    remedy: str = ""

    @property
    def state(self) -> str:
        """ok, MISSING (replay needs it) or absent."""
        return "ok" if self.found is not None else "MISSING" if self.needed else "absent"


def _python() -> Finding:
    version = platform.python_version()
    good = sys.version_info >= MIN_PYTHON
    return Finding("Python", version if good else None, True, "everything",
                   "" if good else f"this is {version}: install Python 3.11 or newer")


def requirements(lines: list[str]) -> dict[str, str]:
    """Package -> the least of EXTRAS that brings it, `host` for those without any; in that
    order."""
    packages: dict[str, str] = {}

    def rank(extra: str) -> int:
        return EXTRAS.index(extra) if extra in EXTRAS else len(EXTRAS)

    for line in lines:
        name = re.match(r"[A-Za-z0-9._-]+", line)
        extra = re.search(r"extra == ['\"]([a-z]+)['\"]", line)
        if name and name[0] != "rocetap":
            found = extra[1] if extra else "host"
            packages[name[0]] = min(found, packages.get(name[0], found), key=rank)
    return dict(sorted(packages.items(), key=lambda item: rank(item[1])))


def _packages() -> Iterator[Finding]:
    for name, extra in requirements(importlib.metadata.requires("rocetap") or []).items():
        remedy = "pip install rocetap" if extra == "host" else f"pip install 'rocetap[{extra}]'"
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found = None
        needed = extra in NEEDED_FOR_REPLAY and name not in NOT_FOR_REPLAY
        yield Finding(name, found, needed, f"package, {extra}", "" if found else remedy)


def _tool(what: str, find: Callable[[], str]) -> Finding:
    purpose = "simulated board"
    try:
        return Finding(what, find(), True, purpose)
    except RocetapError as error:
        return Finding(what, None, True, purpose, str(error))


def _toolchain() -> Iterator[Finding]:
    try:
        toolchain = importlib.import_module("rocetap_sim.toolchain")
    except ModuleNotFoundError:
        yield Finding("rocetap_sim", None, True, "simulated board", "pip install 'rocetap[sim]'")
        return
    yield _tool("Verilator", lambda: str(
        toolchain.verilator_version_text(toolchain.find_verilator().version)))
    yield _tool("C++ compiler", lambda: " ".join((
        toolchain.find_compiler().program, toolchain.find_compiler().version)))


def _program_version(path: str) -> str:
    """The first number that `--version` says, else where the program lies."""
    try:
        answer = subprocess.run([path, "--version"], stdin=subprocess.DEVNULL, capture_output=True,
                                text=True, timeout=_ANSWER_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return path
    number = re.search(r"\d+(\.\d+)+", answer.stdout + answer.stderr)
    return number[0] if number else path


def _programs() -> Iterator[Finding]:
    for program, (purpose, package) in OPTIONAL_PROGRAMS.items():
        path = shutil.which(program)
        yield Finding(program, _program_version(path) if path else None, False, purpose,
                      "" if path else f"apt-get install {package}")


def _serial_ports() -> Iterator[Finding]:
    try:
        from serial.tools import list_ports
    except ModuleNotFoundError:
        return    # reported among the packages
    devices = sorted(info.device for info in list_ports.comports())
    for device in devices:
        usable = os.access(device, os.R_OK | os.W_OK)
        yield Finding(device, "may be opened" if usable else None, False, "real board",
                      "" if usable else "sudo usermod -aG dialout $USER, then log in again")
    if not devices:
        yield Finding("serial port", None, False, "real board",
                      "none here; plug the board in, or use the simulated one")


def examine() -> list[Finding]:
    """Everything that is looked at, in the report's order."""
    return [_python(), *_packages(), *_toolchain(), *_programs(), *_serial_ports()]


def table(findings: list[Finding]) -> list[str]:
    """Lines in columns; what to do stands last, so that nothing is cut."""
    rows = [("state", "what", "found", "for", "what to do")]
    rows += [(one.state, one.what, one.found or "-", one.purpose, one.remedy) for one in findings]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return ["  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)),
                       row[4]]).rstrip() for row in rows]


def doctor() -> None:
    """Say what is installed, what is missing, and what to do.

    Ends with exit code 0 when all that `rocetap replay` needs is there, else 1.

    Example:

      rocetap doctor
    """
    findings = examine()
    for line in table(findings):
        print(line)
    missing = [one.what for one in findings if one.needed and one.found is None]
    print(f"rocetap replay lacks: {', '.join(missing)}" if missing
          else "rocetap replay has all that it needs")
    raise typer.Exit(1 if missing else 0)
