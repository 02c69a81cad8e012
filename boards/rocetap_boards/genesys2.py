"""Digilent Genesys 2: a Kintex-7 325T with one gigabit port (Realtek RTL8211E), MAC of ours."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import (
    ClockDomain,
    ClockSignal,
    Elaboratable,
    Instance,
    Module,
    ResetSignal,
    Signal,
)
from amaranth.lib import io
from amaranth.lib.cdc import FFSynchronizer, ResetSynchronizer
from amaranth_boards.genesys2 import Genesys2Platform

from rocetap_hdl.mac.node import Node, rx_domain
from rocetap_hdl.mac.phy import Phy

from .vivado import VivadoBoard

__all__ = ["GENESYS2"]

_CORE_HZ = 125_000_000
_RX_DELAY_TAPS = 26
"""2 ns at 78 ps a tap, IDELAYCTRL at 200 MHz (DS182, UG471)."""


class _Top(Elaboratable):
    """RGMII through IDELAYE2 and IDDR in, ODDR out with TXC a quarter of a period late."""

    def __init__(self) -> None:
        self.node = Node(ports=1, mode="tap", clock_hz=_CORE_HZ, buses=[[Phy()]], connections=1024,
                         word=256, records=256)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.node = node = self.node
        self._clocks(m, platform)
        pads = platform.request("eth_rgmii", 0, dir=dict.fromkeys((
            "rst", "mdc", "mdio", "tx_clk", "tx_ctl", "tx_data", "rx_clk", "rx_ctl", "rx_data"),
            "-"))
        self._receive(m, platform, pads)
        self._transmit(m, pads)
        m.submodules.mdc_pad = mdc = io.Buffer("o", pads.mdc)
        m.submodules.mdio_pad = mdio = io.Buffer("io", pads.mdio)
        m.submodules.rst_pad = rst = io.Buffer("o", pads.rst)
        m.submodules.mdio_cdc = FFSynchronizer(mdio.i, node.mdio[0].i)
        m.d.comb += [mdc.o.eq(node.mdio[0].mdc), mdio.o.eq(node.mdio[0].o),
                     mdio.oe.eq(node.mdio[0].oe), rst.o.eq(node.phy_reset[0])]
        uart = platform.request("uart", 0, dir="-")
        m.submodules.uart_rx = uart_rx = io.Buffer("i", uart.rx)
        m.submodules.uart_tx = uart_tx = io.Buffer("o", uart.tx)
        m.d.comb += [node.uart_rx.eq(uart_rx.i), uart_tx.o.eq(node.uart_tx)]
        for index in range(8):
            m.submodules[f"lamp{index}"] = lamp = io.Buffer(
                "o", platform.request("led", index, dir="-"))
            m.d.comb += lamp.o.eq(node.lamps[index])
        return m

    def _clocks(self, m: Module, platform: Any) -> None:
        """200 MHz to 125, 125 a quarter late, and 200 for the delay elements."""
        m.submodules.clock_pad = pad = io.Buffer("i", platform.request("clk", 0, dir="-"))
        m.domains.sync, m.domains.late, m.domains.delay = (
            ClockDomain("sync"), ClockDomain("late", reset_less=True), ClockDomain("delay"))
        loop, locked = Signal(), Signal()
        raw = [Signal(name=f"mmcm_{index}") for index in range(3)]
        m.submodules.mmcm = Instance(
            "MMCME2_BASE", p_CLKIN1_PERIOD=5.0, p_DIVCLK_DIVIDE=1, p_CLKFBOUT_MULT_F=5.0,
            p_CLKOUT0_DIVIDE_F=8.0, p_CLKOUT1_DIVIDE=8, p_CLKOUT1_PHASE=90.0, p_CLKOUT2_DIVIDE=5,
            i_CLKIN1=pad.i, i_CLKFBIN=loop, i_RST=0, i_PWRDWN=0, o_CLKFBOUT=loop,
            o_CLKOUT0=raw[0], o_CLKOUT1=raw[1], o_CLKOUT2=raw[2], o_LOCKED=locked)
        for index, domain in enumerate(("sync", "late", "delay")):
            m.submodules[f"bufg{index}"] = Instance(
                "BUFG", i_I=raw[index], o_O=ClockSignal(domain))
        m.submodules.sync_reset = ResetSynchronizer(~locked, domain="sync")
        m.submodules.delay_reset = ResetSynchronizer(~locked, domain="delay")
        m.submodules.control = Instance(
            "IDELAYCTRL", i_REFCLK=ClockSignal("delay"), i_RST=ResetSignal("delay"))

    def _receive(self, m: Module, platform: Any, pads: Any) -> None:
        domain = rx_domain(0)
        m.domains += ClockDomain(domain, reset_less=True)
        m.submodules.rxc = rxc = io.Buffer("i", pads.rx_clk)
        clock = Signal(name="rx_clock_0")
        platform.add_clock_constraint(clock, _CORE_HZ)
        m.d.comb += clock.eq(rxc.i)
        m.submodules.rxc_bufg = Instance("BUFG", i_I=clock, o_O=ClockSignal(domain))
        rx = self.node.rx[0]
        for bit, (pad, low, high) in enumerate(zip(
                [*(pads.rx_data[bit] for bit in range(4)), pads.rx_ctl],
                [*rx.low, rx.ctl_low], [*rx.high, rx.ctl_high], strict=True)):
            m.submodules[f"rx_pad{bit}"] = buffer = io.Buffer("i", pad)
            late = Signal(name=f"rx_late{bit}")
            m.submodules[f"rx_delay{bit}"] = Instance(
                "IDELAYE2", p_IDELAY_TYPE="FIXED", p_IDELAY_VALUE=_RX_DELAY_TAPS,
                p_DELAY_SRC="IDATAIN", p_REFCLK_FREQUENCY=200.0, i_C=0, i_CE=0, i_INC=0, i_LD=0,
                i_LDPIPEEN=0, i_CINVCTRL=0, i_REGRST=0, i_DATAIN=0, i_CNTVALUEIN=Signal(5),
                i_IDATAIN=buffer.i, o_DATAOUT=late)
            m.submodules[f"rx_ddr{bit}"] = Instance(
                "IDDR", p_DDR_CLK_EDGE="SAME_EDGE_PIPELINED", i_C=ClockSignal(domain), i_CE=1,
                i_R=0, i_S=0, i_D=late, o_Q1=low, o_Q2=high)

    def _transmit(self, m: Module, pads: Any) -> None:
        tx = self.node.tx[0]
        lines = [*(pads.tx_data[bit] for bit in range(4)), pads.tx_ctl]
        for bit, (pad, low, high) in enumerate(zip(
                lines, [*tx.low, tx.ctl_low], [*tx.high, tx.ctl_high], strict=True)):
            m.submodules[f"tx_ddr{bit}"] = out = io.DDRBuffer("o", pad, o_domain="sync")
            m.d.comb += [out.o[0].eq(low), out.o[1].eq(high)]
        m.submodules.txc = txc = io.DDRBuffer("o", pads.tx_clk, o_domain="late")
        m.d.comb += [txc.o[0].eq(1), txc.o[1].eq(0)]


GENESYS2 = VivadoBoard(
    name="genesys2", device="XC7K325T-2FFG900", ports="1 x 1000BASE-T (RGMII)",
    platform=Genesys2Platform, top=_Top)
