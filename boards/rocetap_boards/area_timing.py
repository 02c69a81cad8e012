"""What the probe takes and how fast it is: place and route for the ECP5, synthesis for UltraScale+.

``rocetap bench gateware`` prints the rows. The probe stands alone, without MACs and a UART: its
inputs come from a chain of registers behind one pin, its outputs go into a register that is moved
out at another. Neither is in the way of its own paths; about two registers an input and one an
output are counted with it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from amaranth.back import rtlil
from amaranth.hdl import Cat, ClockDomain, Const, Module, Signal, Value
from amaranth.lib import wiring

from rocetap_boards.flow import Device, Progress, place_and_route, synthesize, synthesize_ecp5
from rocetap_hdl.probe import Probe

__all__ = [
    "PLACED", "SEEDS", "SYNTHESIZED", "AreaEstimate", "AreaTiming", "Configuration",
    "area_estimate", "area_timing", "design_text",
]

TOP = "area_timing_top"


@dataclass(frozen=True)
class Configuration:
    """A probe: octets a beat, ports, connections, largest window, and the clock of its MACs."""

    bus_bytes: int
    ports: int
    connections: int
    window: int
    clock_mhz: float

    def probe(self) -> Probe:
        """The gateware."""
        return Probe(bus_bytes=self.bus_bytes, ports=self.ports, connections=self.connections,
                     word=self.window)

    def __str__(self) -> str:
        return f"{self.bus_bytes} octets a beat"


PLACED: Final = (
    (Device("85k", 8, "CABGA756"), Configuration(8, 1, 1024, 256, 156.25)),
    (Device("um-45k", 8, "CABGA381"), Configuration(1, 2, 512, 256, 125.0)),
)
"""10 GbE at one port; 1 GbE at two, as the Versa ECP5 has them."""

SEEDS: Final = (1, 2, 3)

SYNTHESIZED: Final = (Configuration(64, 1, 1024, 256, 322.265625),)
"""100 GbE. No device of that size can be placed with free tools."""


@dataclass(frozen=True)
class AreaTiming:
    """A row. `luts` are LUT4, those of carry chains and LUT RAM included; clocks are in MHz."""

    device: str
    connections: int
    window: int
    bus_bytes: int
    ports: int
    seed: int
    luts: int
    ffs: int
    block_rams: int
    achieved_mhz: float
    constraint_mhz: float


@dataclass(frozen=True)
class AreaEstimate:
    """A row. `luts` are LUT6, those of LUT RAM and shift registers included; `block_rams` are of
    36 kbit, a half one counts half. `basis` says how good the figures are."""

    device: str
    connections: int
    window: int
    bus_bytes: int
    ports: int
    luts: int
    ffs: int
    block_rams: float
    basis: str


def design_text(component: wiring.Component) -> str:
    """RTLIL of a component between registers, its top `TOP` with the pins clk, si and so."""
    m = Module()
    sync = ClockDomain("sync", reset_less=True)
    m.domains += sync
    m.submodules.dut = component
    inputs: list[Value] = []
    outputs: list[Value] = []
    for _, member, value in component.signature.flatten(component):
        port = Value.cast(value)
        if not isinstance(port, Const):          # the ready of a stream that is always ready
            (inputs if member.flow is wiring.In else outputs).append(port)
    pins_in, pins_out = Cat(inputs), Cat(outputs)
    shift_in, shift_out = Signal(name="si"), Signal(name="so")
    chain, held = Signal(len(pins_in)), Signal(len(pins_in))
    seen = Signal(len(pins_out))
    m.d.sync += [
        chain.eq(Cat(shift_in, chain)),
        held.eq(chain),
        seen.eq(seen.rotate_left(1) ^ pins_out),
        shift_out.eq(seen[-1]),
    ]
    m.d.comb += pins_in.eq(held)
    return rtlil.convert(m, name=TOP, emit_src=False, ports=[sync.clk, shift_in, shift_out])


def _silent(stage: str, done: int, total: int) -> None:
    pass


def area_timing(progress: Progress = _silent, *,
                placed: Iterable[tuple[Device, Configuration]] = PLACED,
                seeds: Iterable[int] = SEEDS) -> list[AreaTiming]:
    """Each configuration with each seed: some ten minutes of one core for every row."""
    rows = []
    for device, configuration in placed:
        def step(stage: str, done: int, total: int, what: str = f"{configuration}") -> None:
            progress(f"{what}, {stage}", done, total)

        with tempfile.TemporaryDirectory(prefix="rocetap-area-") as folder:
            netlist = synthesize_ecp5(design_text(configuration.probe()), Path(folder), top=TOP,
                                      progress=step)
            for seed in seeds:
                result = place_and_route(netlist, device, seed=seed, progress=step,
                                         frequency_mhz=configuration.clock_mhz)
                (clock,) = result.clocks.values()
                rows.append(AreaTiming(
                    str(device), configuration.connections, configuration.window,
                    configuration.bus_bytes, configuration.ports, seed, result.luts, result.ffs,
                    result.block_rams, round(clock.achieved, 2), configuration.clock_mhz))
    return rows


def area_estimate(progress: Progress = _silent, *,
                  synthesized: Iterable[Configuration] = SYNTHESIZED) -> list[AreaEstimate]:
    """What Yosys makes of configurations for UltraScale+; some minutes of one core each."""
    rows = []
    for configuration in synthesized:
        def step(stage: str, done: int, total: int, what: str = f"{configuration}") -> None:
            progress(f"{what}, {stage}", done, total)

        with tempfile.TemporaryDirectory(prefix="rocetap-area-") as folder:
            netlist = synthesize(design_text(configuration.probe()), Path(folder), top=TOP,
                                 script=f"synth_xilinx -family xcup -noiopad -top {TOP}",
                                 progress=step)
        luts = (netlist.count(r"LUT\d", "SRL.*")
                + 4 * netlist.count("RAM32M", "RAM64M") + 8 * netlist.count("RAM32M16", "RAM64M8")
                + 2 * netlist.count("RAM(32|64)X1D") + 4 * netlist.count("RAM128X1D"))
        rows.append(AreaEstimate(
            "UltraScale+", configuration.connections, configuration.window,
            configuration.bus_bytes, configuration.ports, luts, netlist.count("FD[CPRS]E"),
            netlist.count("RAMB36E2") + netlist.count("RAMB18E2") / 2,
            "synthesis estimate by Yosys, without timing"))
    return rows
