"""LambdaConcept ECPIX-5 with an LFE5UM5G-85F: one gigabit port (Microchip KSZ9031)."""

from __future__ import annotations

from typing import Any

from amaranth_boards.ecpix5 import ECPIX585Platform

from rocetap_hdl.mac.phy import Phy

from .ecp5 import Ecp5Board, RgmiiPort

__all__ = ["ECPIX5"]


def _lamps(platform: Any) -> list[Any]:
    """Of two RGB LEDs: green for alive and blue for the host; green for the link and red for its
    trouble."""
    rgb = [platform.request("rgb_led", index, dir="-") for index in range(2)]
    return [rgb[0].g, rgb[0].b, rgb[1].g, rgb[1].r]


ECPIX5 = Ecp5Board(
    name="ecpix5", platform=ECPIX585Platform, clock="clk100", clock_hz=100_000_000, reset="rst",
    ports=(RgmiiPort(("eth_rgmii", 0), rx_delay_ps=0, tx_delay_ps=2000, control="ctrl"),),
    buses=((0, (Phy(),)),), lamps=_lamps, modes=("tap",))
