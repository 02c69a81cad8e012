"""ALINX AX7325B: a Kintex-7 325T; its first SFP+ at 10 Gbit/s."""

from __future__ import annotations

from typing import Any, ClassVar

from amaranth.build import Clock, DiffPairs, Resource
from amaranth.hdl import Instance, Module, Signal
from amaranth.lib import io
from amaranth_boards.alinx_ax7325b import AX7325BPlatform

from .vivado import VivadoBoard
from .xilinx import MacPort, StreamTop

__all__ = ["AX7325B"]

CLOCK_HZ = 156_250_000

# PG157: receiver enabled, VLAN frames, FCS kept, jumbo frames; control frame and length/type checks
# off, for the probe has its own.
_RX_CONFIGURATION = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 8 | 1 << 9

_CORES = """\
create_ip -name axi_10g_ethernet -vendor xilinx.com -library ip -module_name sfp_mac
set_property -dict [list CONFIG.Management_Interface {false} CONFIG.base_kr {BASE-R} \\
    CONFIG.SupportLevel {1} CONFIG.DClkRate {100.0} CONFIG.Statistics_Gathering {0}] \\
    [get_ips sfp_mac]
generate_target all [get_ips sfp_mac]
synth_ip [get_ips sfp_mac]
"""


class _Platform(AX7325BPlatform):
    """The reference clock of a transceiver has no I/O standard."""

    resources: ClassVar[list[Resource]] = [
        *(resource for resource in AX7325BPlatform.resources if resource.name != "clk_sfp"),
        Resource("clk_sfp", 0, DiffPairs("G8", "G7", dir="i"), Clock(156.25e6)),
    ]


def _mac(m: Module, platform: Any, port: MacPort) -> None:
    """AMD's 10G Ethernet Subsystem; its GT takes the pads as they are."""
    sfp = platform.request("sfp", 0, dir={
        "tx": "-", "rx": "-", "tx_dis": "-", "loss": "-"})
    reference = platform.request("clk_sfp", 0, dir="-")
    free = platform.request("clk", 0, dir="-")
    m.submodules.free_pad = free_pad = io.Buffer("i", free)
    m.submodules.dis_pad = disable = io.Buffer("o", sfp.tx_dis)
    m.submodules.loss_pad = loss = io.Buffer("i", sfp.loss)
    good, status = Signal(), Signal(8)
    half = Signal(name="dclk")
    m.submodules.dclk = Instance("BUFR", p_BUFR_DIVIDE="2", i_I=free_pad.i, i_CE=1, i_CLR=0,
                                 o_O=half)
    m.submodules.mac = Instance(
        "sfp_mac",
        i_refclk_p=reference.p, i_refclk_n=reference.n, i_dclk=half, i_reset=0,
        o_txp=sfp.tx.p, o_txn=sfp.tx.n, i_rxp=sfp.rx.p, i_rxn=sfp.rx.n,
        i_signal_detect=~loss.i, i_tx_fault=0, o_tx_disable=disable.o, i_sim_speedup_control=0,
        i_tx_axis_aresetn=1, i_rx_axis_aresetn=1, i_tx_ifg_delay=Signal(8),
        i_mac_tx_configuration_vector=Signal(80),
        i_mac_rx_configuration_vector=Signal(80, init=_RX_CONFIGURATION),
        i_pcs_pma_configuration_vector=Signal(536), o_pcspma_status=status,
        o_coreclk_out=port.core_clock,
        i_s_axis_tx_tdata=Signal(64), i_s_axis_tx_tkeep=Signal(8), i_s_axis_tx_tlast=0,
        i_s_axis_tx_tuser=0, i_s_axis_tx_tvalid=0, i_s_axis_pause_tdata=Signal(16),
        i_s_axis_pause_tvalid=0,
        o_m_axis_rx_tdata=port.data, o_m_axis_rx_tkeep=port.keep, o_m_axis_rx_tlast=port.last,
        o_m_axis_rx_tuser=good, o_m_axis_rx_tvalid=port.valid)
    # The receiver's stream is in the core's clock: this MAC has the elastic buffer.
    m.d.comb += [port.clock.eq(port.core_clock), port.bad.eq(~good), port.up.eq(status[0])]


def _uart(platform: Any) -> tuple[Any, Any]:
    pins = platform.request("uart", 0, dir="-")
    return pins.rx, pins.tx


def _lamps(platform: Any) -> list[Any]:
    return [platform.request("led", index, dir="-") for index in range(4)]


AX7325B = VivadoBoard(
    name="ax7325b", device="XC7K325T-2FFG900", ports="1 x 10GBASE-R (SFP+)",
    platform=lambda: _Platform(toolchain="Vivado"), cores=_CORES,
    top=lambda: StreamTop(bus_bytes=8, clock_hz=CLOCK_HZ, mac=_mac, uart=_uart, lamps=_lamps,
                          connections=1024, window=256))
