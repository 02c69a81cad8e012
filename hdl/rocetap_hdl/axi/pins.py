"""The AXI interfaces at the core's edge (Arm IHI 0051A, AXI4-Stream; IHI 0022, AXI4-Lite)."""

from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from rocetap.spec.axi import ADDRESS_BITS

__all__ = ["Response", "axi_lite", "axi_stream_tap"]


class Response(enum.Enum, shape=2):
    """BRESP and RRESP (IHI 0022, A3.4.4)."""

    OKAY = 0
    SLVERR = 2
    DECERR = 3


def axi_stream_tap(bus_bytes):
    """What a tap sees of an AXI4-Stream; all flow into the tap, ``tready`` too.

    ``tdata``: octet 0, the first on the wire, is bits 7:0. ``tuser``: 1 on the frame's last beat
    says that the frame is bad.
    """
    return wiring.Signature({
        "tdata": Out(8 * bus_bytes),
        "tkeep": Out(bus_bytes),
        "tvalid": Out(1),
        "tready": Out(1),
        "tlast": Out(1),
        "tuser": Out(1),
    })


def axi_lite():
    """AXI4-Lite with 32-bit data, from the manager's side."""
    return wiring.Signature({
        "awaddr": Out(ADDRESS_BITS),
        "awprot": Out(3),
        "awvalid": Out(1),
        "awready": In(1),
        "wdata": Out(32),
        "wstrb": Out(4),
        "wvalid": Out(1),
        "wready": In(1),
        "bresp": In(Response),
        "bvalid": In(1),
        "bready": Out(1),
        "araddr": Out(ADDRESS_BITS),
        "arprot": Out(3),
        "arvalid": Out(1),
        "arready": In(1),
        "rdata": In(32),
        "rresp": In(Response),
        "rvalid": In(1),
        "rready": Out(1),
    })
