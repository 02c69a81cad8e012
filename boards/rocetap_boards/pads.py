"""RGMII at an ECP5's pads: DDR flip-flops and delay elements (FPGA-TN-02035, high-speed IO)."""

from __future__ import annotations

from amaranth.hdl import ClockSignal, Const, Instance, Module, Signal
from amaranth.lib import io, wiring
from amaranth.lib.wiring import In, Out

from rocetap_hdl.mac.signals import rgmii_rx, rgmii_tx

__all__ = ["DelayedReceiver", "DelayedTransmitter", "delay_steps"]

_STEP_PS = 25
_STEPS = 128
"""Of a DELAYG (FPGA-DS-02012, table 3.23, typical)."""


def delay_steps(picoseconds: int) -> int:
    """DEL_VALUE for a delay, rounded; ValueError beyond what the element has."""
    steps = round(picoseconds / _STEP_PS)
    if not 0 <= steps < _STEPS:
        raise ValueError(f"delay is {picoseconds} ps, must be 0 to {_STEP_PS * (_STEPS - 1)} ps")
    return steps


def _delayed(m: Module, name: str, value: Signal, steps: int) -> Signal:
    """The value behind a delay element, or itself without one."""
    if not steps:
        return value
    late = Signal(name=f"{name}_late")
    m.submodules[f"{name}_delay"] = Instance(
        "DELAYG", p_DEL_MODE="USER_DEFINED", p_DEL_VALUE=steps, i_A=value, o_Z=late)
    return late


class DelayedReceiver(wiring.Component):
    """RXD and RX_CTL, ``delay_ps`` behind their pads, in clock domain ``domain``.

    ``rx`` has what was at the pads about two clocks before.
    """

    def __init__(self, data: io.SingleEndedPort, control: io.SingleEndedPort, *, domain: str,
                 delay_ps: int) -> None:
        self._pads = [*(data[bit] for bit in range(4)), control]
        self._domain = domain
        self._steps = delay_steps(delay_ps)
        super().__init__({"rx": Out(rgmii_rx())})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        low = [*self.rx.low, self.rx.ctl_low]
        high = [*self.rx.high, self.rx.ctl_high]
        for bit, pad in enumerate(self._pads):
            m.submodules[f"pad{bit}"] = buffer = io.Buffer("i", pad)
            m.submodules[f"ddr{bit}"] = Instance(
                "IDDRX1F", i_SCLK=ClockSignal(self._domain), i_RST=Const(0),
                i_D=_delayed(m, f"pad{bit}", buffer.i, self._steps),
                o_Q0=low[bit], o_Q1=high[bit])
        return m


class DelayedTransmitter(wiring.Component):
    """TXD and TX_CTL in step with clock domain ``domain``, and TXC ``delay_ps`` behind them."""

    def __init__(self, data: io.SingleEndedPort, control: io.SingleEndedPort,
                 clock: io.SingleEndedPort, *, domain: str, delay_ps: int) -> None:
        self._pads = [*(data[bit] for bit in range(4)), control, clock]
        self._domain = domain
        self._steps = delay_steps(delay_ps)
        super().__init__({"tx": In(rgmii_tx())})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        low = [*self.tx.low, self.tx.ctl_low, Const(1)]
        high = [*self.tx.high, self.tx.ctl_high, Const(0)]
        for bit, pad in enumerate(self._pads):
            out = Signal(name=f"out{bit}")
            m.submodules[f"pad{bit}"] = buffer = io.Buffer("o", pad)
            m.submodules[f"ddr{bit}"] = Instance(
                "ODDRX1F", i_SCLK=ClockSignal(self._domain), i_RST=Const(0),
                i_D0=low[bit], i_D1=high[bit], o_Q=out)
            steps = self._steps if pad is self._pads[-1] else 0
            m.d.comb += buffer.o.eq(_delayed(m, f"pad{bit}", out, steps))
        return m
