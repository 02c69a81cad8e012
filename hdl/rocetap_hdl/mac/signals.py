"""What flows between the MAC's parts."""

from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["FORWARDED", "LINK_STATE", "Speed", "gmii", "mdio_pins", "rgmii_rx", "rgmii_tx"]


class Speed(enum.IntEnum, shape=2):
    """Speed of a link, as RGMII's in-band status has it (RGMII 2.0, 3.4.1)."""

    MBIT_10 = 0
    MBIT_100 = 1
    MBIT_1000 = 2


LINK_STATE = data.StructLayout({"link": 1, "speed": 2, "full_duplex": 1})
"""In-band status in its wire's order; from MDIO just the same. ``speed``: a `Speed`, or 3."""

FORWARDED = data.StructLayout({"data": 8, "first": 1, "last": 1, "error": 1})
"""One octet of a frame on its way to a transmitter. ``error``, when ``last``: the frame is bad."""


def gmii():
    """One octet, or one clock without (IEEE 802.3 35.2.2), where ``enable`` is up."""
    return wiring.Signature({
        "enable": Out(1),
        "valid": Out(1),     # RX_DV, TX_EN
        "error": Out(1),     # RX_ER, TX_ER
        "data": Out(8),
    })


def rgmii_rx():
    """An RGMII receiver behind its DDR flip-flops, in the clock domain of RXC: what was there at
    the rising edge, and at the falling one after it."""
    return wiring.Signature({
        "low": Out(4), "high": Out(4), "ctl_low": Out(1), "ctl_high": Out(1)})


def rgmii_tx():
    """An RGMII transmitter before its DDR flip-flops; TXC is the clock itself."""
    return rgmii_rx()


def mdio_pins():
    """A management bus from the station's side; ``o`` drives where ``oe`` is up."""
    return wiring.Signature({"mdc": Out(1), "o": Out(1), "oe": Out(1), "i": In(1)})
