"""Verilog to native code: Verilator writes C++, the compiler makes one shared object or program.

Verilator's own program and the compiler are run directly, with lists of arguments and relative
paths: no make and no shell, so folders may have spaces in their names, and no environment but
VERILATOR_ROOT matters.
"""

from __future__ import annotations

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from .toolchain import Compiler, ToolchainError, Verilator
from .verilog import TOP

__all__ = ["Recipe", "compile_native", "verilate"]

_GENERATED = "verilated"
"""Folder of the C++ that Verilator writes, below the build folder."""

_SPLIT = 20_000
"""Nodes in one generated file: enough files for two compilers at once."""

_LARGE = 100_000
"""Octets from which a generated file is compiled on its own."""

_FAST, _SLOW = "-O1", "-O0"
"""Optimization of what runs every clock (-O2, -O3 and -march=native are no faster), and once."""


@dataclass(frozen=True)
class Recipe:
    """How one kind of native code is made from the Verilog."""

    output: str
    """File name of the result, in the build folder."""
    prefix: str
    """Class name of the Verilated model."""
    harness: tuple[str, ...]
    """C++ files to compile with it; absolute paths."""
    verilator_flags: tuple[str, ...] = ()
    control: str = ""
    """Verilator control file, such as what stays visible to VPI."""
    compile_flags: tuple[str, ...] = ()
    link_flags: tuple[str, ...] = ()


def _run(command: list[str], folder: Path, what: str, environment: dict[str, str]) -> None:
    outcome = subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                             capture_output=True, text=True, check=False)
    if outcome.returncode:
        first = next((line for line in (outcome.stderr + outcome.stdout).splitlines()
                      if "rror" in line), f"exit code {outcome.returncode}")
        raise ToolchainError(f"{what} failed: {first.strip()}")


def verilate(verilator: Verilator, recipe: Recipe, folder: Path) -> None:
    """Writes C++ for `folder`/probe.v into `folder`/verilated."""
    (folder / "control.vlt").write_text(f"`verilator_config\n{recipe.control}")
    _run([str(verilator.program), "--cc", "--top-module", TOP, "--prefix", recipe.prefix,
          "--Mdir", _GENERATED, "-O3", "--no-timing", "--x-assign", "fast", "--x-initial", "fast",
          "--output-split", str(_SPLIT), "-Wno-fatal", "-Wno-lint", "-Wno-style",
          *recipe.verilator_flags, "control.vlt", f"{TOP}.v"],
         folder, "Verilator", {**os.environ, "VERILATOR_ROOT": str(verilator.root)})


def _support_files(folder: Path, recipe: Recipe) -> list[str]:
    """The parts of Verilator's run-time that the model uses, as its generated makefile lists them.
    """
    text = (folder / _GENERATED / f"{recipe.prefix}_classes.mk").read_text()
    names: list[str] = []
    for variable in ("VM_GLOBAL_FAST", "VM_GLOBAL_SLOW"):
        match = re.search(rf"^{variable} \+= \\\n((?:\s+\w+ \\\n)*)", text, re.MULTILINE)
        names += re.findall(r"\w+", match[1]) if match else []
    return names


def _gather(folder: Path, name: str, sources: list[Path]) -> str:
    """One file that includes `sources`: the headers they share are read once."""
    (folder / name).write_text("".join(f'#include "{path}"\n' for path in sources))
    return name


def _units(folder: Path, recipe: Recipe, include: Path) -> list[tuple[str, str]]:
    """(source, optimization) of every file to compile, the long ones first."""
    generated = sorted((folder / _GENERATED).glob("*.cpp"), key=lambda path: -path.stat().st_size)
    slow = [path for path in generated if "__Slow" in path.name or "__Syms" in path.name]
    fast = [path for path in generated if path not in slow]
    large = [path for path in fast if path.stat().st_size > _LARGE]
    small = [Path(path.name) for path in fast if path not in large]
    support = [include / f"{name}.cpp" for name in _support_files(folder, recipe)]
    return [
        *((str(path.relative_to(folder)), _FAST) for path in large),
        (_gather(folder, "slow.cpp", [Path(path.name) for path in slow]), _SLOW),
        (_gather(folder, "support.cpp", support), _SLOW),
        (_gather(folder, "model.cpp", [*map(Path, recipe.harness), *small]), _FAST),
    ]


def compile_native(verilator: Verilator, compiler: Compiler, recipe: Recipe, folder: Path) -> Path:
    """Compiles and links what `verilate` wrote; gives the path of the result."""
    include = verilator.root / "include"
    common = ["-std=c++17", "-fPIC", "-w", "-DVERILATOR=1", f"-I{_GENERATED}", "-I.",
              f"-I{include}", f"-I{include / 'vltstd'}", *recipe.compile_flags]
    environment = dict(os.environ)

    def one(numbered: tuple[int, tuple[str, str]]) -> str:
        number, (source, optimization) = numbered
        target = f"{number}.o"
        _run([compiler.program, *common, optimization, "-c", source, "-o", target],
             folder, f"compiling {Path(source).name}", environment)
        return target

    with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
        objects = list(pool.map(one, enumerate(_units(folder, recipe, include))))
    _run([compiler.program, *objects, "-pthread", *recipe.link_flags, "-o", recipe.output],
         folder, "linking", environment)
    return folder / recipe.output
