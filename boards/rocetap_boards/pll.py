"""The ECP5's PLL: its dividers, and the primitive (FPGA-TN-02200, sysCLOCK PLL)."""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.hdl import Instance, Signal

__all__ = ["Dividers", "dividers", "pll"]

_VCO_HZ = (400e6, 800e6)
_PHASE_DETECTOR_HZ = (10e6, 400e6)
_MOST = 128
"""Each divider is 1 to 128 (FPGA-DS-02012, table 3.24)."""


@dataclass(frozen=True)
class Dividers:
    """CLKI_DIV, CLKFB_DIV and CLKOP_DIV, with feedback from CLKOP."""

    reference: int
    feedback: int
    output: int


def dividers(input_hz: int, output_hz: int) -> Dividers:
    """The dividers that make `output_hz` exactly, the fastest phase detector first and the VCO in
    the middle of its range; ValueError when there are none."""
    for reference in range(1, _MOST + 1):
        if not _PHASE_DETECTOR_HZ[0] <= input_hz / reference <= _PHASE_DETECTOR_HZ[1]:
            continue
        feedback, rest = divmod(output_hz * reference, input_hz)
        if rest or not 1 <= feedback <= _MOST:
            continue
        outputs = [output for output in range(1, _MOST + 1)
                   if _VCO_HZ[0] <= output_hz * output <= _VCO_HZ[1]]
        if outputs:
            return Dividers(reference, feedback, outputs[len(outputs) // 2])
    raise ValueError(f"no dividers make {output_hz} Hz of {input_hz} Hz")


def pll(input_hz: int, output_hz: int, *, clock: Signal, output: Signal,
        locked: Signal) -> Instance:
    """The primitive, fed with `clock`."""
    found = dividers(input_hz, output_hz)
    return Instance(
        "EHXPLLL",
        p_CLKI_DIV=found.reference, p_CLKFB_DIV=found.feedback, p_CLKOP_DIV=found.output,
        p_CLKOP_ENABLE="ENABLED", p_CLKOP_CPHASE=found.output - 1, p_CLKOP_FPHASE=0,
        p_CLKOS_ENABLE="DISABLED", p_CLKOS2_ENABLE="DISABLED", p_CLKOS3_ENABLE="DISABLED",
        p_FEEDBK_PATH="CLKOP", p_PLLRST_ENA="DISABLED", p_INTFB_WAKE="DISABLED",
        p_STDBY_ENABLE="DISABLED", p_DPHASE_SOURCE="DISABLED", p_OUTDIVIDER_MUXA="DIVA",
        a_FREQUENCY_PIN_CLKI=f"{input_hz / 1e6:g}", a_FREQUENCY_PIN_CLKOP=f"{output_hz / 1e6:g}",
        a_ICP_CURRENT="12", a_LPF_RESISTOR="8", a_MFG_ENABLE_FILTEROPAMP="1",
        a_MFG_GMCREF_SEL="2",
        i_RST=0, i_STDBY=0, i_PHASESEL0=0, i_PHASESEL1=0, i_PHASEDIR=1, i_PHASESTEP=1,
        i_PHASELOADREG=1, i_PLLWAKESYNC=0, i_ENCLKOP=0,
        i_CLKI=clock, i_CLKFB=output, o_CLKOP=output, o_LOCK=locked)
