"""From a board with an ECP5 to its bitstream and report, with tools from PyPI alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rocetap.board.names import LOADABLE

from .ecp5 import CORE_HZ, Ecp5Board, Ecp5Top
from .flow import (
    Clock,
    Device,
    FlowError,
    Placed,
    Progress,
    place_and_route,
    run_tool,
    synthesize_ecp5,
)

__all__ = ["MARGIN", "ClockNotMet", "build", "device_of", "report_of", "slow_clocks"]

TOP: Final = "top"
MARGIN: Final = 1.0
"""What a clock's achieved frequency must be at least, in terms of its constraint."""


class ClockNotMet(FlowError):
    """The design was placed and routed, and a clock is too slow."""


@dataclass(frozen=True)
class Tried:
    """One seed's result."""

    seed: int
    placed: Placed


def device_of(platform: Any) -> Device:
    """The platform's device as nextpnr has it."""
    name = platform._nextpnr_device_options[platform.device].removeprefix("--")
    package = platform._nextpnr_package_options[platform.package].upper()
    return Device(name, int(platform.speed), package)


def _silent(stage: str, done: int, total: int) -> None:
    pass


def build(board: Ecp5Board, folder: Path, *, mode: str = "tap", seeds: Iterable[int] = (1, 2, 3),
          progress: Progress = _silent) -> dict[str, Any]:
    """Builds BOARD.bit, BOARD.svf and report.json in `folder`; gives the report.

    `seeds` are tried one after another until every clock is met. ClockNotMet when none of them is
    good enough; the files are then those of the best one all the same, so that its report can be
    looked at.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for stale in (f"{board.name}.bit", f"{board.name}.svf", "report.json"):
        (folder / stale).unlink(missing_ok=True)
    platform = board.platform()
    plan = platform.prepare(Ecp5Top(board, mode=mode), TOP)
    netlist = synthesize_ecp5(_text(plan.files[f"{TOP}.il"]), folder, top=TOP, progress=progress)
    lpf = _text(plan.files[f"{TOP}.lpf"])
    best: Tried | None = None
    for seed in seeds:
        tried = Tried(seed, place_and_route(
            netlist, device_of(platform), frequency_mhz=CORE_HZ / 1e6, seed=seed, lpf=lpf,
            progress=progress))
        if best is None or _slack(tried.placed.clocks) > _slack(best.placed.clocks):
            best = tried
        if not slow_clocks(tried.placed.clocks):
            break
    assert best is not None
    progress("bitstream", 0, 0)
    run_tool("ecppack", ["--compress", "--svf", f"{board.name}.svf", best.placed.config.name,
                         f"{board.name}.bit"], folder)
    report = report_of(board, mode, best.seed, best.placed)
    (folder / "report.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    slow = slow_clocks(best.placed.clocks)
    if slow:
        raise ClockNotMet(
            f"{board.name}: {'; '.join(slow)}; no seed of those tried is good enough, give others "
            "as SEEDS='4 5 6'")
    return report


def _text(content: str | bytes) -> str:
    return content if isinstance(content, str) else content.decode()


def _slack(clocks: Mapping[str, Clock]) -> float:
    return min((clock.achieved / clock.constraint for clock in clocks.values()), default=0.0)


def slow_clocks(clocks: Mapping[str, Clock]) -> list[str]:
    """A line for each clock that is not met."""
    return [f"clock {_plain(name)} reaches {clock.achieved:.1f} MHz, must be "
            f"{clock.constraint * MARGIN:.1f} MHz"
            for name, clock in sorted(clocks.items())
            if clock.achieved < clock.constraint * MARGIN]


def _plain(net: str) -> str:
    """A clock's name without what nextpnr puts before those on global nets."""
    return net.removeprefix("$glbnet$")


def report_of(board: Ecp5Board, mode: str, seed: int, placed: Placed) -> dict[str, Any]:
    """report.json."""
    return {
        "board": board.name, "mode": mode, "device": LOADABLE[board.name].device,
        "ports": len(board.ports), "connections": board.connections, "window": board.window,
        "seed": seed,
        "luts": placed.luts, "ffs": placed.ffs, "block_rams": placed.block_rams,
        "clocks": {_plain(name): {"achieved_mhz": round(clock.achieved, 2),
                                  "constraint_mhz": round(clock.constraint, 2)}
                   for name, clock in sorted(placed.clocks.items())},
    }
