"""The ECP5's PLL: its dividers, and the primitive (FPGA-TN-02200, sysCLOCK PLL)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from amaranth.hdl import Instance, Signal

__all__ = ["Dividers", "dividers", "pll"]

_VCO_HZ = (400e6, 800e6)
_PHASE_DETECTOR_HZ = (10e6, 400e6)
_MOST = 128
"""Each divider is 1 to 128 (FPGA-DS-02012, table 3.24)."""


@dataclass(frozen=True)
class Dividers:
    """CLKI_DIV, CLKFB_DIV, CLKOP_DIV of the output, and CLKOS_DIV, from which feedback comes; where
    that is 0 it comes from the output itself."""

    reference: int
    feedback: int
    output: int
    loop: int = 0

    def vco_hz(self, input_hz: float) -> float:
        """Of an input."""
        return input_hz / self.reference * self.feedback * (self.loop or self.output)

    def output_hz(self, input_hz: float) -> float:
        """Of an input."""
        return self.vco_hz(input_hz) / self.output


def dividers(input_hz: int, output_hz: int) -> Dividers:
    """The dividers that make `output_hz` exactly, the fastest phase detector first and the VCO in
    the middle of its range, with feedback from the output where that goes; ValueError when there
    are none."""
    references = [reference for reference in range(1, _MOST + 1)
                  if _PHASE_DETECTOR_HZ[0] <= input_hz / reference <= _PHASE_DETECTOR_HZ[1]]
    outputs = [output for output in range(1, _MOST + 1)
               if _VCO_HZ[0] <= output_hz * output <= _VCO_HZ[1]]
    outputs.sort(key=lambda output: abs(output_hz * output - sum(_VCO_HZ) / 2))
    for reference in references:
        feedback, rest = divmod(output_hz * reference, input_hz)
        if outputs and not rest and 1 <= feedback <= _MOST:
            return Dividers(reference, feedback, outputs[0])
    for reference, output in product(references, outputs):
        turns, rest = divmod(output_hz * output * reference, input_hz)
        for loop in range(2, _MOST + 1):
            if not rest and turns % loop == 0 and 1 <= turns // loop <= _MOST:
                return Dividers(reference, turns // loop, output, loop)
    raise ValueError(f"no dividers make {output_hz} Hz of {input_hz} Hz")


def pll(input_hz: int, output_hz: int, *, clock: Signal, output: Signal,
        locked: Signal) -> Instance:
    """The primitive, fed with `clock`."""
    found = dividers(input_hz, output_hz)
    loop = Signal(name="pll_loop")
    secondary: dict[str, object] = {
        "p_CLKOS_ENABLE": "ENABLED", "p_CLKOS_DIV": found.loop,
        "p_CLKOS_CPHASE": found.loop - 1, "p_CLKOS_FPHASE": 0, "o_CLKOS": loop,
    } if found.loop else {"p_CLKOS_ENABLE": "DISABLED"}
    return Instance(
        "EHXPLLL",
        p_CLKI_DIV=found.reference, p_CLKFB_DIV=found.feedback, p_CLKOP_DIV=found.output,
        p_CLKOP_ENABLE="ENABLED", p_CLKOP_CPHASE=found.output - 1, p_CLKOP_FPHASE=0,
        p_CLKOS2_ENABLE="DISABLED", p_CLKOS3_ENABLE="DISABLED", **secondary,
        p_FEEDBK_PATH="CLKOS" if found.loop else "CLKOP", p_PLLRST_ENA="DISABLED",
        p_INTFB_WAKE="DISABLED", p_STDBY_ENABLE="DISABLED", p_DPHASE_SOURCE="DISABLED",
        p_OUTDIVIDER_MUXA="DIVA",
        a_FREQUENCY_PIN_CLKI=f"{input_hz / 1e6:g}", a_FREQUENCY_PIN_CLKOP=f"{output_hz / 1e6:g}",
        a_ICP_CURRENT="12", a_LPF_RESISTOR="8", a_MFG_ENABLE_FILTEROPAMP="1",
        a_MFG_GMCREF_SEL="2",
        i_RST=0, i_STDBY=0, i_PHASESEL0=0, i_PHASESEL1=0, i_PHASEDIR=1, i_PHASESTEP=1,
        i_PHASELOADREG=1, i_PLLWAKESYNC=0, i_ENCLKOP=0,
        i_CLKI=clock, i_CLKFB=loop if found.loop else output, o_CLKOP=output, o_LOCK=locked)
