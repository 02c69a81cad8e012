"""ButterStick r1.0: an LFE5UM5G-85F with one gigabit port (Microchip KSZ9031)."""

from __future__ import annotations

from typing import Any, ClassVar

from amaranth.build import Attrs, Pins, Resource, Subsignal
from amaranth_boards.butterstick import ButterStickPlatform

from rocetap_hdl.mac.phy import Phy

from .ecp5 import Ecp5Board, RgmiiPort

__all__ = ["BUTTERSTICK"]


class _Platform(ButterStickPlatform):
    """The board has no UART: SCL and SDA of its Qwiic connector, always 3.3 V, are one here."""

    resources: ClassVar[list[Resource]] = [
        *(resource for resource in ButterStickPlatform.resources
          if resource.name not in ("i2c", "rgb_leds_muxed")),
        Resource("uart", 0, Subsignal("rx", Pins("E14", dir="i")),
                 Subsignal("tx", Pins("C14", dir="o")),
                 Attrs(IO_TYPE="LVCMOS33", PULLMODE="UP")),
        Resource("lamps", 0, Pins("C13 D12 U2 T3 D13 E13 C16", dir="o"),
                 Attrs(IO_TYPE="LVCMOS33")),
        Resource("lamp_colour", 0, Pins("U1", dir="o"), Attrs(IO_TYPE="LVCMOS33")),
    ]


def _lamps(platform: Any) -> list[Any]:
    pads = platform.request("lamps", 0, dir="-")
    return [pads[index] for index in range(4)]


BUTTERSTICK = Ecp5Board(
    name="butterstick", platform=_Platform, clock="clk30", clock_hz=30_000_000,
    ports=(RgmiiPort(("eth_rgmii", 0), rx_delay_ps=2000, tx_delay_ps=2000),),
    buses=((0, (Phy(),)),), lamps=_lamps, modes=("tap",))
