"""What surrounds the Versa's FPGA: PHYs on RGMII and MDIO, a host on the UART."""

from __future__ import annotations

import random
from collections import deque

from cocotb.clock import Clock
from cocotb.task import resume
from cocotb.triggers import Event, FallingEdge, First, RisingEdge, Timer
from cocotb.utils import get_sim_time
from cocotbext.eth import GmiiFrame, RgmiiSink, RgmiiSource

import cocotb
from rocetap.link.driver import Driver
from support.mdio_phy import MdioPhy
from support.versa_build import BAUD

__all__ = ["CopperPhy", "Versa"]

CORE_PS = 8000
TX_DELAY_PS = 2000
"""What the PHYs give TXC (RGMII 2.0, RGMII-ID)."""
RXC_PS = (7998, 8002)
"""Both ends of what two crystals may differ by, and more: 250 parts in a million each."""

_BIT_PS = round(1e12 / BAUD)
_LINK = 1 << 2
_PARTNER = {1000: (0x45E1, 0x0800), 100: (0x01E1, 0), 10: (0x0061, 0)}


class CopperPhy(MdioPhy):
    """A gigabit PHY: identifier, auto-negotiation, a link status that latches low."""

    def __init__(self, address: int) -> None:
        super().__init__(address)
        self.registers.update({1: 0x7949, 2: 0x0141, 3: 0x0DD1})
        self.negotiations = 0
        self.resets = 0
        self._fell = False

    def on_read(self, register: int) -> int:
        value = self.registers[register]
        if register == 1 and self._fell:
            self._fell = False
            return value & ~_LINK
        return value

    def on_write(self, register: int, value: int) -> None:
        self.registers[register] = value
        if register == 0 and value & 0x0200:
            self.negotiations += 1

    def connect(self, speed: int) -> None:
        """The partner is there, with all speeds up to this one."""
        self.registers[5], self.registers[10] = _PARTNER[speed]
        self.registers[1] |= _LINK

    def disconnect(self) -> None:
        self.registers[1] &= ~_LINK
        self._fell = True


class Versa:
    """`rx` sends to a port, `tx` takes what it emits; `phys` are their PHYs."""

    def __init__(self, dut) -> None:
        self.dut = dut
        self.rng = random.Random(cocotb.RANDOM_SEED)
        self.phys = [CopperPhy(1), CopperPhy(0)]
        self.received = bytearray()
        self._now_s = 0.0
        self._came, self._wanted = Event(), Event()
        self._queue: deque[int] = deque()
        self.rx = [RgmiiSource(self._pin("rx_data", port), self._pin("rx_ctl", port),
                               self._pin("rx_clk", port)) for port in range(2)]
        self.tx = [RgmiiSink(self._pin("tx_data", port), self._pin("tx_ctl", port),
                             dut.late_clk) for port in range(2)]
        for one in (*self.rx, *self.tx):
            one.log.setLevel("WARNING")

    def _pin(self, name: str, port: int):
        return getattr(self.dut, f"{name}_{port}")

    async def start(self) -> None:
        """Power on: clocks run, the PLL locks, the FPGA starts its PHYs."""
        dut = self.dut
        dut.uart_rx.value = 1
        dut.clk100.value = 0        # the PLL's model needs none
        dut.reset_button_n.value = 1
        dut.pll_locked.value = 0
        Clock(dut.core_clk, CORE_PS, "ps").start()
        await Timer(TX_DELAY_PS, "ps")
        Clock(dut.late_clk, CORE_PS, "ps").start()
        for port in range(2):
            Clock(self._pin("rx_clk", port), RXC_PS[port], "ps").start()
            self._pin("mdio_pull", port).value = 0
            cocotb.start_soon(self._manage(port))
            cocotb.start_soon(self._reset(port))
        cocotb.start_soon(self._send())
        cocotb.start_soon(self._receive())
        await Timer(300, "ns")
        dut.pll_locked.value = 1
        await Timer(200, "ns")

    async def link_up(self, port: int, speed: int = 1000) -> None:
        """Waits until the PHY was told to negotiate, connects it, and waits for a poll or two."""
        while not self.phys[port].negotiations:
            await Timer(5, "us")
        self.phys[port].connect(speed)
        await self.polled()

    async def polled(self) -> None:
        await Timer(60, "us")

    # The management buses

    async def _reset(self, port: int) -> None:
        while True:
            await FallingEdge(self._pin("phy_reset_n", port))
            self.phys[port].resets += 1

    async def _manage(self, port: int) -> None:
        phy, line, pull = self.phys[port], self._pin("mdio_line", port), self._pin(
            "mdio_pull", port)
        while True:
            await RisingEdge(self._pin("mdc", port))
            if not int(self._pin("phy_reset_n", port).value):
                phy.power_up()
                continue
            phy.rising(None if phy.replying else int(line.value))
            pull.value = 1 - phy.line

    # The UART

    async def _send(self) -> None:
        while True:
            while not self._queue:
                self._wanted.clear()
                await self._wanted.wait()
            octet = self._queue.popleft()
            for bit in (0, *(octet >> n & 1 for n in range(8)), 1):
                self.dut.uart_rx.value = bit
                await Timer(_BIT_PS, "ps")

    async def _receive(self) -> None:
        line = self.dut.uart_tx
        while True:
            await FallingEdge(line)
            await Timer(_BIT_PS + _BIT_PS // 2, "ps")
            octet = 0
            for bit in range(8):
                octet |= int(line.value) << bit
                await Timer(_BIT_PS, "ps")
            assert int(line.value) == 1, "no stop bit"
            self.received.append(octet)
            self._came.set()

    # The driver's transport; these are called from the bridge's thread.

    def write(self, data: bytes, /) -> None:
        resume(self._enqueue)(data)

    async def _enqueue(self, data: bytes) -> None:
        self._queue.extend(data)
        self._wanted.set()

    def read(self, max_octets: int, timeout_s: float, /) -> bytes:
        return resume(self._read)(max_octets, timeout_s)

    async def _read(self, max_octets: int, timeout_s: float) -> bytes:
        if not self.received and timeout_s > 0:
            self._came.clear()
            await First(self._came.wait(), Timer(max(1, round(timeout_s * 1e12)), "ps"))
        self._now_s = get_sim_time("ps") * 1e-12
        octets = bytes(self.received[:max_octets])
        del self.received[:max_octets]
        return octets

    def close(self) -> None:
        pass

    def seconds(self) -> float:
        return self._now_s

    def driver(self) -> Driver:
        """Shaken hands with nobody yet. An answer takes 0.3 ms at most on the line."""
        return Driver(self, clock=self.seconds, timeout_s=0.001, tries=2, credit_window=64)

    # Frames

    async def send(self, port: int, frames, *, gap: int = 12, preamble: int = 7,
                   errors: frozenset[int] = frozenset()) -> None:
        """Frames with their FCS, back to back. `errors`: numbers of those with RX_ER inside."""
        source = self.rx[port]
        source.ifg = gap
        for number, frame in enumerate(frames):
            octets = b"\x55" * preamble + b"\xd5" + frame
            marks = [0] * len(octets)
            if number in errors:
                marks[len(octets) - len(frame) // 2] = 1
            source.send_nowait(GmiiFrame(bytearray(octets), marks))
        await source.wait()
        await Timer(3, "us")

    def emitted(self, port: int) -> list[tuple[bytes, bool]]:
        """Frames that the port has emitted, behind their SFD, and whether TX_ER was up."""
        frames = []
        while not self.tx[port].empty():
            frame = self.tx[port].recv_nowait(compact=False)
            octets = bytes(frame.data)
            assert octets[:8] == b"\x55" * 7 + b"\xd5"
            frames.append((octets[8:], any(frame.error or ())))
        return frames
