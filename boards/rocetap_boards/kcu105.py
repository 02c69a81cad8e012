"""AMD KCU105: a Kintex UltraScale 040; its first SFP+ at 10 Gbit/s."""

from __future__ import annotations

from typing import Any, ClassVar

from amaranth.build import Attrs, Clock, DiffPairs, Pins, Resource, Subsignal
from amaranth.hdl import Instance, Module, Signal
from amaranth.lib import io
from amaranth_boards.kcu105 import KCU105Platform

from .vivado import VivadoBoard
from .xilinx import MacPort, StreamTop

__all__ = ["KCU105"]

CLOCK_HZ = 156_250_000

_CORES = """\
create_ip -name xxv_ethernet -vendor xilinx.com -library ip -module_name sfp_mac
set_property -dict [list CONFIG.LINE_RATE {10} CONFIG.NUM_OF_CORES {1} \\
    CONFIG.BASE_R_KR {BASE-R} CONFIG.INCLUDE_AXI4_INTERFACE {0} \\
    CONFIG.GT_REF_CLK_FREQ {156.25} CONFIG.GT_DRP_CLK {125.00}] [get_ips sfp_mac]
generate_target all [get_ips sfp_mac]
synth_ip [get_ips sfp_mac]
"""


class _Platform(KCU105Platform):
    """amaranth-boards has the clock and the LEDs; the rest is from AMD's UG917."""

    resources: ClassVar[list[Resource]] = [
        *KCU105Platform.resources,
        Resource("uart", 0, Subsignal("rx", Pins("G25", dir="i")),
                 Subsignal("tx", Pins("K26", dir="o")), Attrs(IOSTANDARD="LVCMOS18")),
        Resource("clk_sfp", 0, DiffPairs("P6", "P5", dir="i"), Clock(156.25e6)),
        Resource("sfp", 0,
                 Subsignal("tx", DiffPairs("U4", "U3", dir="o")),
                 Subsignal("rx", DiffPairs("T2", "T1", dir="i")),
                 Subsignal("enable", Pins("AL8", dir="o"), Attrs(IOSTANDARD="LVCMOS18")),
                 Subsignal("loss", Pins("K21", dir="i"), Attrs(IOSTANDARD="LVCMOS18"))),
    ]


def _mac(m: Module, platform: Any, port: MacPort) -> None:
    """AMD's 10G/25G Ethernet Subsystem (PG210); its GT takes the pads as they are."""
    sfp = platform.request("sfp", 0, dir={"tx": "-", "rx": "-", "enable": "-", "loss": "-"})
    reference = platform.request("clk_sfp", 0, dir="-")
    m.submodules.free_pad = free = io.Buffer("i", platform.request("clk125", 0, dir="-"))
    m.submodules.enable_pad = enable = io.Buffer("o", sfp.enable)
    m.d.comb += enable.o.eq(1)
    m.submodules.mac = Instance(
        "sfp_mac",
        i_gt_refclk_p=reference.p, i_gt_refclk_n=reference.n, i_dclk=free.i, i_sys_reset=0,
        o_gt_txp_out=sfp.tx.p, o_gt_txn_out=sfp.tx.n, i_gt_rxp_in=sfp.rx.p, i_gt_rxn_in=sfp.rx.n,
        o_tx_clk_out_0=port.core_clock, o_rx_clk_out_0=port.clock,
        i_rx_core_clk_0=port.clock, i_rx_reset_0=0, i_tx_reset_0=0,
        i_txoutclksel_in_0=Signal(3, init=0b101), i_rxoutclksel_in_0=Signal(3, init=0b101),
        i_gtwiz_reset_tx_datapath_0=0, i_gtwiz_reset_rx_datapath_0=0, i_qpllreset_in_0=0,
        i_gt_loopback_in_0=Signal(3),
        i_ctl_rx_enable_0=1, i_ctl_rx_delete_fcs_0=0, i_ctl_rx_ignore_fcs_0=0,
        i_ctl_rx_check_preamble_0=0, i_ctl_rx_check_sfd_0=1, i_ctl_rx_force_resync_0=0,
        i_ctl_rx_process_lfi_0=0, i_ctl_rx_test_pattern_0=0, i_ctl_rx_test_pattern_enable_0=0,
        i_ctl_rx_data_pattern_select_0=0, i_ctl_rx_max_packet_len_0=Signal(15, init=9600),
        i_ctl_rx_min_packet_len_0=Signal(8, init=64), i_ctl_rx_custom_preamble_enable_0=0,
        o_stat_rx_status_0=port.up,
        o_rx_axis_tdata_0=port.data, o_rx_axis_tkeep_0=port.keep, o_rx_axis_tvalid_0=port.valid,
        o_rx_axis_tlast_0=port.last, o_rx_axis_tuser_0=port.bad,
        i_ctl_tx_enable_0=1, i_ctl_tx_fcs_ins_enable_0=1, i_ctl_tx_ignore_fcs_0=0,
        i_ctl_tx_send_idle_0=0, i_ctl_tx_send_lfi_0=0, i_ctl_tx_send_rfi_0=0,
        i_tx_axis_tdata_0=Signal(64), i_tx_axis_tkeep_0=Signal(8), i_tx_axis_tvalid_0=0,
        i_tx_axis_tlast_0=0, i_tx_axis_tuser_0=0)


def _uart(platform: Any) -> tuple[Any, Any]:
    pins = platform.request("uart", 0, dir="-")
    return pins.rx, pins.tx


def _lamps(platform: Any) -> list[Any]:
    return [platform.request("led", index, dir="-") for index in range(8)]


KCU105 = VivadoBoard(
    name="kcu105", device="XCKU040-2FFVA1156E", ports="1 x 10GBASE-R (SFP+)",
    platform=lambda: _Platform(toolchain="Vivado"), cores=_CORES,
    top=lambda: StreamTop(bus_bytes=8, clock_hz=CLOCK_HZ, mac=_mac, uart=_uart, lamps=_lamps,
                          connections=1024, window=256))
