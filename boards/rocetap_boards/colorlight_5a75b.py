"""Colorlight 5A-75B v7.0: an LED receiver card with two gigabit ports (Broadcom B50612D)."""

from __future__ import annotations

from typing import Any, ClassVar

from amaranth.build import Attrs, Pins, PinsN, Resource, Subsignal
from amaranth_boards.colorlight_5a75b_r7_0 import Colorlight_5A75B_R70Platform

from rocetap_hdl.mac.phy import Phy

from .ecp5 import Ecp5Board, RgmiiPort

__all__ = ["COLORLIGHT_5A75B"]


class _Platform(Colorlight_5A75B_R70Platform):
    """Both PHYs share reset and management bus, so only the first port has them here; the LED and
    the button are the UART's lines on J19."""

    resources: ClassVar[list[Resource]] = [
        *(resource for resource in Colorlight_5A75B_R70Platform.resources
          if resource.name not in ("eth_rgmii", "led", "button")),
        Resource("eth_rgmii", 0,
                 Subsignal("rst", PinsN("P5", dir="o")),
                 Subsignal("mdc", Pins("P3", dir="o")),
                 Subsignal("mdio", Pins("T2", dir="io")),
                 Subsignal("tx_clk", Pins("M2", dir="o")),
                 Subsignal("tx_ctl", Pins("M3", dir="o")),
                 Subsignal("tx_data", Pins("L1 L3 P2 L4", dir="o")),
                 Subsignal("rx_clk", Pins("M1", dir="i")),
                 Subsignal("rx_ctl", Pins("N6", dir="i")),
                 Subsignal("rx_data", Pins("N1 M5 N5 M6", dir="i")),
                 Attrs(IO_TYPE="LVCMOS33")),
    ]


def _no_lamps(platform: Any) -> list[Any]:
    return []


# One port: the FPGA is too small for two. Its delays are those that LiteX found for this board.
COLORLIGHT_5A75B = Ecp5Board(
    name="colorlight_5a75b", platform=_Platform, clock="clk25", clock_hz=25_000_000,
    ports=(RgmiiPort(("eth_rgmii", 0), rx_delay_ps=2000, tx_delay_ps=0),),
    buses=((0, (Phy(address=0),)),), lamps=_no_lamps, connections=64, modes=("tap",))
