"""What the tops of boards with AMD FPGAs share."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from amaranth.hdl import ClockDomain, ClockSignal, Elaboratable, Module, Signal
from amaranth.lib import io
from amaranth.lib.cdc import ResetSynchronizer

from rocetap_hdl.mac.node import rx_domain
from rocetap_hdl.mac.stream_node import StreamNode

__all__ = ["MacPort", "StreamTop"]


class MacPort:
    """What a vendor's MAC gives a top: its clock, whether its link is up, its stream."""

    def __init__(self, bus_bytes: int) -> None:
        self.clock = Signal(name="mac_clock")
        self.core_clock = Signal(name="core_clock")
        self.up = Signal(name="mac_up")
        self.data = Signal(8 * bus_bytes, name="mac_data")
        self.keep = Signal(bus_bytes, name="mac_keep")
        self.valid = Signal(name="mac_valid")
        self.last = Signal(name="mac_last")
        self.bad = Signal(name="mac_bad")


class StreamTop(Elaboratable):
    """One port behind a vendor's MAC, a UART and LEDs.

    `mac(m, platform, port)` makes the MAC. Its clocks are the design's: ``core_clock`` of
    `clock_hz`, and the receiver's. `uart(platform)`: pads of RX and TX; `lamps(platform)`: of LEDs.
    """

    def __init__(self, *, bus_bytes: int, clock_hz: Fraction | int,
                 mac: Callable[[Module, Any, MacPort], None],
                 uart: Callable[[Any], tuple[Any, Any]], lamps: Callable[[Any], list[Any]],
                 connections: int, window: int) -> None:
        self._bus_bytes = bus_bytes
        self._mac, self._uart, self._lamps = mac, uart, lamps
        self.node = StreamNode(bus_bytes=bus_bytes, clock_hz=clock_hz, connections=connections,
                               word=window)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.node = node = self.node
        port = MacPort(self._bus_bytes)
        self._mac(m, platform, port)
        m.domains.sync = ClockDomain()
        m.domains += ClockDomain(rx_domain(0), reset_less=True)
        # The MAC's own constraints make its clocks.
        m.d.comb += [ClockSignal().eq(port.core_clock), ClockSignal(rx_domain(0)).eq(port.clock)]
        started = Signal(4, reset_less=True)
        m.d.sync += started.eq(started << 1 | 1)
        m.submodules.reset_cdc = ResetSynchronizer(~started[-1], domain="sync")
        tap = node.taps[0]
        m.d.comb += [
            tap.tdata.eq(port.data), tap.tkeep.eq(port.keep), tap.tvalid.eq(port.valid),
            tap.tready.eq(1), tap.tlast.eq(port.last), tap.tuser.eq(port.bad),
            node.up.eq(port.up)]

        rx, tx = self._uart(platform)
        m.submodules.uart_rx = uart_rx = io.Buffer("i", rx)
        m.submodules.uart_tx = uart_tx = io.Buffer("o", tx)
        m.d.comb += [node.uart_rx.eq(uart_rx.i), uart_tx.o.eq(node.uart_tx)]
        for index, pad in enumerate(self._lamps(platform)):
            m.submodules[f"lamp{index}"] = lamp = io.Buffer("o", pad)
            m.d.comb += lamp.o.eq(node.lamps[index])
        return m


