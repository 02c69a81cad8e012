"""Lattice Versa ECP5 and ECP5-5G: PCIe cards with two gigabit ports (Marvell 88E1512)."""

from __future__ import annotations

from typing import Any

from amaranth_boards.versa_ecp5 import VersaECP5Platform
from amaranth_boards.versa_ecp5_5g import VersaECP55GPlatform

from rocetap_hdl.mac.phy import Phy

from .ecp5 import Ecp5Board, RgmiiPort

__all__ = ["VERSA_ECP5", "VERSA_ECP5_5G"]


def _lamps(platform: Any) -> list[Any]:
    return [platform.request("led", index, dir="-") for index in range(8)]


# Both delays are the PHY's: its strapping has internal delays on for RXC and TXC.
_COMMON: dict[str, Any] = {
    "clock": "clk100", "clock_hz": 100_000_000, "reset": "rst",
    "ports": (RgmiiPort(("eth_rgmii", 0), rx_delay_ps=0, tx_delay_ps=0),
              RgmiiPort(("eth_rgmii", 1), rx_delay_ps=0, tx_delay_ps=0, control="ctrl")),
    "buses": ((0, (Phy(),)), (1, (Phy(),))),
    "lamps": _lamps,
}

VERSA_ECP5 = Ecp5Board(name="versa_ecp5", platform=VersaECP5Platform, **_COMMON)

VERSA_ECP5_5G = Ecp5Board(name="versa_ecp5_5g", platform=VersaECP55GPlatform, **_COMMON)
