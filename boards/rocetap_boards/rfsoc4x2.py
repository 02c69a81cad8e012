"""Real Digital RFSoC 4x2: a Zynq UltraScale+ RFSoC 48DR; its QSFP28 at 100 Gbit/s."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

from amaranth.build import Attrs, Clock, DiffPairs, Pins, Resource, Subsignal
from amaranth.hdl import Instance, Module, Signal
from amaranth.lib import io
from amaranth_boards.rfsoc4x2 import RFSoC4x2Platform

from .vivado import VivadoBoard
from .xilinx import MacPort, StreamTop

__all__ = ["RFSOC4X2"]

CLOCK_HZ = Fraction(322_265_625)

_CORES = """\
create_ip -name cmac_usplus -vendor xilinx.com -library ip -module_name qsfp_mac
set_property -dict [list CONFIG.CMAC_CAUI4_MODE {1} CONFIG.NUM_LANES {4x25} \\
    CONFIG.USER_INTERFACE {AXIS} CONFIG.GT_REF_CLK_FREQ {156.25} CONFIG.GT_DRP_CLK {100} \\
    CONFIG.INCLUDE_RS_FEC {1} CONFIG.RX_DELETE_FCS {0} CONFIG.RX_MAX_PACKET_LEN {9600} \\
    CONFIG.RX_FLOW_CONTROL {0} CONFIG.TX_FLOW_CONTROL {0}] [get_ips qsfp_mac]
generate_target all [get_ips qsfp_mac]
synth_ip [get_ips qsfp_mac]
"""


class _Platform(RFSoC4x2Platform):
    """The reference clock of bank 128, which amaranth-boards does not have; a UART on pins 1 and 2
    of the first PMOD, for the board's own is the processor's."""

    resources: ClassVar[list[Resource]] = [
        *(resource for resource in RFSoC4x2Platform.resources if resource.name != "clk_qsfp"),
        Resource("clk_qsfp", 0, DiffPairs("AA33", "AA34", dir="i"), Clock(156.25e6)),
        Resource("uart", 0, Subsignal("rx", Pins("AF16", dir="i")),
                 Subsignal("tx", Pins("AG17", dir="o")), Attrs(IOSTANDARD="LVCMOS18")),
    ]


def _mac(m: Module, platform: Any, port: MacPort) -> None:
    """The hard 100G MAC of UltraScale+ (PG203); its GTs take the pads as they are."""
    qsfp = platform.request("qsfp", 0, dir=dict.fromkeys(
        ("tx", "rx", "modsel", "rst", "modprs", "int", "lpmode"), "-"))
    reference = platform.request("clk_qsfp", 0, dir="-")
    m.submodules.free_pad = free = io.Buffer("i", platform.request("clk", 0, dir="-"))
    for name, value in (("modsel", 1), ("rst", 0), ("lpmode", 0)):
        m.submodules[f"{name}_pad"] = pad = io.Buffer("o", getattr(qsfp, name))
        m.d.comb += pad.o.eq(value)
    m.submodules.mac = Instance(
        "qsfp_mac",
        i_gt_ref_clk_p=reference.p, i_gt_ref_clk_n=reference.n, i_init_clk=free.i, i_sys_reset=0,
        o_gt_txp_out=qsfp.tx.p, o_gt_txn_out=qsfp.tx.n, i_gt_rxp_in=qsfp.rx.p,
        i_gt_rxn_in=qsfp.rx.n, o_gt_txusrclk2=port.core_clock, i_rx_clk=port.core_clock,
        i_gt_loopback_in=Signal(12), i_gtwiz_reset_tx_datapath=0, i_gtwiz_reset_rx_datapath=0,
        i_core_rx_reset=0, i_core_tx_reset=0, i_core_drp_reset=0,
        i_ctl_rx_enable=1, i_ctl_rx_force_resync=0, i_ctl_rx_test_pattern=0,
        i_ctl_rsfec_ieee_error_indication_mode=0, i_ctl_rx_rsfec_enable=1,
        i_ctl_rx_rsfec_enable_correction=1, i_ctl_rx_rsfec_enable_indication=1,
        i_ctl_tx_rsfec_enable=1, i_ctl_tx_enable=1, i_ctl_tx_send_idle=0, i_ctl_tx_send_lfi=0,
        i_ctl_tx_send_rfi=0, i_ctl_tx_test_pattern=0,
        o_stat_rx_aligned=port.up,
        o_rx_axis_tdata=port.data, o_rx_axis_tkeep=port.keep, o_rx_axis_tvalid=port.valid,
        o_rx_axis_tlast=port.last, o_rx_axis_tuser=port.bad,
        i_tx_axis_tdata=Signal(512), i_tx_axis_tkeep=Signal(64), i_tx_axis_tvalid=0,
        i_tx_axis_tlast=0, i_tx_axis_tuser=0, i_tx_preamblein=Signal(56),
        i_drp_clk=free.i, i_drp_en=0, i_drp_we=0, i_drp_addr=Signal(10), i_drp_di=Signal(16))
    m.d.comb += port.clock.eq(port.core_clock)


def _uart(platform: Any) -> tuple[Any, Any]:
    pins = platform.request("uart", 0, dir="-")
    return pins.rx, pins.tx


def _lamps(platform: Any) -> list[Any]:
    return [platform.request("led", index, dir="-") for index in range(4)]


RFSOC4X2 = VivadoBoard(
    name="rfsoc4x2", device="XCZU48DR-2FFVG1517E", ports="1 x 100GBASE-R (QSFP28, RS-FEC)",
    platform=lambda: _Platform(toolchain="Vivado"), cores=_CORES, connections=1024,
    top=lambda: StreamTop(bus_bytes=64, clock_hz=CLOCK_HZ, mac=_mac, uart=_uart, lamps=_lamps,
                          connections=1024, window=256))
