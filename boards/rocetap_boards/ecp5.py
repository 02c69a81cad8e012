"""The top level of a board with an ECP5: pads, PLL, clocks, and the node between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from amaranth.hdl import ClockDomain, ClockSignal, Elaboratable, Module, Signal
from amaranth.lib import io
from amaranth.lib.cdc import FFSynchronizer, ResetSynchronizer
from amaranth.lib.wiring import connect

from rocetap_hdl.mac.node import Node, rx_domain
from rocetap_hdl.mac.phy import Phy

from .pads import DelayedReceiver, DelayedTransmitter
from .pll import pll

__all__ = ["CORE_HZ", "Ecp5Board", "Ecp5Top", "RgmiiPort"]

CORE_HZ = 125_000_000
"""One octet a clock is a gigabit a second."""


@dataclass(frozen=True)
class RgmiiPort:
    """A port's resource, and what delays the FPGA adds to what board and PHY have.

    `rx_delay_ps`: of RXD and RX_CTL behind their pads. `tx_delay_ps`: of TXC behind TXD. `control`:
    what the resource calls its control lines, "ctl" or "ctrl".
    """

    resource: tuple[str, int]
    rx_delay_ps: int
    tx_delay_ps: int
    control: str = "ctl"


@dataclass(frozen=True)
class Ecp5Board:
    """What is to know of a board.

    `platform` makes its Amaranth platform. `buses`: for each management bus the resource that has
    its pins (the first port on it), and its PHYs. `lamps(platform)`: pads of LEDs, in the order of
    :data:`rocetap_hdl.mac.lamps.LAMPS`. `uart(platform)`: pads of RX and TX. `prepare(m,
    platform)`: what the board needs besides. How it is loaded stands in
    :data:`rocetap.board.names.LOADABLE`.
    """

    name: str
    platform: Callable[[], Any]
    clock: str
    clock_hz: int
    ports: tuple[RgmiiPort, ...]
    buses: tuple[tuple[int, tuple[Phy, ...]], ...]
    lamps: Callable[[Any], list[Any]]
    baud: int = 3_000_000
    reset: str | None = None
    uart: Callable[[Any], tuple[Any, Any]] = field(
        default=lambda platform: _uart(platform))
    prepare: Callable[[Module, Any], None] = field(default=lambda m, platform: None)
    connections: int = 512
    window: int = 256
    records: int = 64
    modes: tuple[str, ...] = ("tap", "inline")

    def smaller(self, **sizes: int) -> Ecp5Board:
        """The board with other sizes of its core."""
        return replace(self, **sizes)


def _uart(platform: Any) -> tuple[Any, Any]:
    """(RX, TX) as the board has them."""
    pins = platform.request("uart", 0, dir="-")
    return pins.rx, pins.tx


class Ecp5Top(Elaboratable):
    """The whole design of `board` in one of its `modes`; `node` options override the board's."""

    def __init__(self, board: Ecp5Board, *, mode: str = "tap", **options: Any) -> None:
        self.board = board
        self.mode = mode
        self.node = Node(**{
            "ports": len(board.ports), "mode": mode, "clock_hz": CORE_HZ, "baud": board.baud,
            "buses": [phys for _, phys in board.buses], "connections": board.connections,
            "word": board.window, "records": board.records, **options})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        board, node = self.board, self.node
        m.submodules.node = node
        self._clocks(m, platform)

        pins = [platform.request(*port.resource, dir={name: "-" for name in (
            "rst", "mdc", "mdio", "tx_clk", f"tx_{port.control}", "tx_data", "rx_clk",
            f"rx_{port.control}", "rx_data") if _has(platform, port.resource, name)})
            for port in board.ports]
        for index, (port, pads) in enumerate(zip(board.ports, pins, strict=True)):
            self._port(m, platform, index, port, pads)
        for bus, (first, _) in enumerate(board.buses):
            pads = pins[first]
            m.submodules[f"mdc{bus}"] = mdc = io.Buffer("o", pads.mdc)
            m.submodules[f"mdio{bus}"] = mdio = io.Buffer("io", pads.mdio)
            m.submodules[f"reset{bus}"] = reset = io.Buffer("o", pads.rst)
            m.submodules[f"mdio{bus}_cdc"] = FFSynchronizer(mdio.i, node.mdio[bus].i)
            m.d.comb += [mdc.o.eq(node.mdio[bus].mdc), mdio.o.eq(node.mdio[bus].o),
                         mdio.oe.eq(node.mdio[bus].oe), reset.o.eq(node.phy_reset[bus])]

        rx, tx = board.uart(platform)
        m.submodules.uart_rx = uart_rx = io.Buffer("i", rx)
        m.submodules.uart_tx = uart_tx = io.Buffer("o", tx)
        m.d.comb += [node.uart_rx.eq(uart_rx.i), uart_tx.o.eq(node.uart_tx)]
        for index, pad in enumerate(board.lamps(platform)):
            m.submodules[f"lamp{index}"] = lamp = io.Buffer("o", pad)
            m.d.comb += lamp.o.eq(node.lamps[index].replicate(len(pad)))
        board.prepare(m, platform)
        return m

    def _clocks(self, m: Module, platform: Any) -> None:
        """The core's clock from the board's; its reset until the PLL has locked."""
        board = self.board
        m.domains.sync = ClockDomain()
        m.submodules.clock_pad = pad = io.Buffer("i", platform.request(board.clock, dir="-"))
        clock, locked, reset = Signal(name="clock_in"), Signal(), Signal()
        platform.add_clock_constraint(clock, board.clock_hz)
        core_clock = Signal(name="core_clock")
        platform.add_clock_constraint(core_clock, CORE_HZ)
        m.d.comb += [clock.eq(pad.i), ClockSignal().eq(core_clock), reset.eq(~locked)]
        m.submodules.pll = pll(board.clock_hz, CORE_HZ, clock=clock, output=core_clock,
                               locked=locked)
        if board.reset is not None:
            m.submodules.reset_pad = button = io.Buffer("i", platform.request(board.reset, dir="-"))
            m.d.comb += reset.eq(~locked | button.i)
        m.submodules.reset_cdc = ResetSynchronizer(reset, domain="sync")

    def _port(self, m: Module, platform: Any, index: int, port: RgmiiPort, pads: Any) -> None:
        domain = rx_domain(index)
        m.domains += ClockDomain(domain, reset_less=True)
        m.submodules[f"rxc{index}"] = clock_pad = io.Buffer("i", pads.rx_clk)
        clock = Signal(name=f"rx_clock_{index}")
        platform.add_clock_constraint(clock, CORE_HZ)
        m.d.comb += [clock.eq(clock_pad.i), ClockSignal(domain).eq(clock)]
        control = {way: getattr(pads, f"{way}_{port.control}") for way in ("rx", "tx")}
        m.submodules[f"receiver{index}"] = receiver = DelayedReceiver(
            pads.rx_data, control["rx"], domain=domain, delay_ps=port.rx_delay_ps)
        m.submodules[f"transmitter{index}"] = transmitter = DelayedTransmitter(
            pads.tx_data, control["tx"], pads.tx_clk, domain="sync", delay_ps=port.tx_delay_ps)
        connect(m, receiver.rx, self.node.rx[index])
        connect(m, self.node.tx[index], transmitter.tx)


def _has(platform: Any, resource: tuple[str, int], name: str) -> bool:
    return any(sub.name == name for sub in platform.lookup(*resource).ios)
