"""What a host must know of each board to load it and to find it again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["LOADABLE", "Loadable"]


@dataclass(frozen=True)
class Loadable:
    """`idcode` of the FPGA, as JTAG reads it (IEEE 1149.1, 12.1). `cable`: what openFPGALoader is
    told to reach it. `usb`: vendor and product of the board's UART, and the interface of it, or
    None where an adapter of the user's own is used."""

    title: str
    device: str
    idcode: int
    cable: tuple[str, ...]
    usb: tuple[int, int, int] | None


_VERSA_CABLE: Final = ("--cable", "ft2232", "--misc-device", "0x00191043,8,ispclock")
"""The clock chip of the Versa is in the chain, unless a jumper takes it out."""

LOADABLE: Final[dict[str, Loadable]] = {
    "versa_ecp5": Loadable("Lattice Versa ECP5", "LFE5UM-45F", 0x01112043, _VERSA_CABLE,
                           (0x0403, 0x6010, 1)),
    "versa_ecp5_5g": Loadable("Lattice Versa ECP5-5G", "LFE5UM5G-45F", 0x81112043, _VERSA_CABLE,
                              (0x0403, 0x6010, 1)),
    "colorlight_5a75b": Loadable("Colorlight 5A-75B v7.0", "LFE5U-25F", 0x41111043,
                                 ("--cable", "ft232"), None),
    "butterstick": Loadable("ButterStick r1.0", "LFE5UM5G-85F", 0x81113043,
                            ("--cable", "ft232"), None),
    "ecpix5": Loadable("LambdaConcept ECPIX-5 (85F)", "LFE5UM5G-85F", 0x81113043,
                       ("--board", "ecpix5"), (0x0403, 0x6010, 1)),
}
"""Boards that openFPGALoader loads; those with a vendor's project have the vendor's programmer."""
