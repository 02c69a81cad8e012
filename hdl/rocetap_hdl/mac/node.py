"""The board without its pads: probe, ports, PHY management, UART, LEDs."""

from fractions import Fraction

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rocetap.spec.registers import PORT_STATE

from ..axi.free_time import FreeTime
from ..probe import Probe
from .forward import ForwardQueue
from .lamps import LAMPS, Lamps
from .phy import PhyMonitor
from .port import ReceivePort
from .rgmii import RgmiiTransmit
from .signals import mdio_pins, rgmii_rx, rgmii_tx
from .transmit import GmiiTransmit
from .uart import UartReceive, UartTransmit, bit_clocks

__all__ = ["MODES", "Node", "rx_domain"]

MODES = ("tap", "inline")
"""tap: each port receives only. inline: what one port receives goes out on the other."""

MDC_HZ = 2_500_000
"""The fastest that every PHY takes (IEEE 802.3 22.2.2.13)."""


def rx_domain(port):
    """Clock domain of a port's RXC."""
    return f"rx{port}"


class Node(wiring.Component):
    """One or two RGMII ports and a host on a UART.

    ``clock_hz`` of the core, 125 MHz on a board. ``mode``: of `MODES`; inline needs two ports and
    takes full duplex gigabit links only, which its PHYs advertise. ``buses``: for each management
    bus its PHYs (:class:`.phy.Phy`), together one for each port in their order. ``in_band``: links
    are read from RGMII. ``baud``: of the UART. ``reset_s``, ``settle_s``, ``poll_s`` and
    ``mdc_hz``: of the PHYs' management, in seconds and Hz. The rest goes to :class:`..probe.Probe`.

    Clock domains: ``sync``, the core's; `rx_domain` of each port.

    Ports: ``rx`` and ``tx`` at the DDR flip-flops, TXC being the core's clock (``tx`` is idle in
    tap mode); ``mdio``, ``phy_reset`` for each bus; ``uart_rx``, ``uart_tx``; ``lamps`` as `LAMPS`.
    """

    def __init__(self, *, ports=2, mode="tap", clock_hz=125_000_000, baud=3_000_000, buses,
                 in_band=False, connections=512, word=256, records=64,
                 reset_s=0.01, settle_s=0.05, poll_s=0.002, mdc_hz=MDC_HZ, selftest=True):
        if mode not in MODES:
            raise ValueError(f"mode is {mode!r}, must be one of {', '.join(MODES)}")
        if ports not in (1, 2) or (mode == "inline" and ports != 2):
            raise ValueError(f"ports is {ports}, must be 2 inline, else 1 or 2")
        phys = sum(map(len, buses))
        if phys != ports:
            raise ValueError(f"buses have {phys} PHYs, must be as many as ports: {ports}")
        self.ports, self.mode, self.clock_hz, self.baud = ports, mode, clock_hz, baud
        self.connections, self.word = connections, word
        self._buses, self._in_band = tuple(map(tuple, buses)), in_band
        self._seconds = {"reset_clocks": reset_s, "settle_clocks": settle_s, "poll_clocks": poll_s}
        self._half_mdc = max(2, -(-clock_hz // (2 * mdc_hz)))
        self._bit_clocks = bit_clocks(clock_hz, baud)
        self._probe = Probe(bus_bytes=1, ports=ports, connections=connections, word=word,
                            records=records, transmit=self._inline, selftest=selftest)
        super().__init__({
            "rx": In(rgmii_rx()).array(ports),
            "tx": Out(rgmii_tx()).array(ports),
            "mdio": Out(mdio_pins()).array(len(buses)),
            "phy_reset": Out(len(buses)),
            "uart_rx": In(1, init=1),
            "uart_tx": Out(1, init=1),
            "lamps": Out(len(LAMPS)),
        })

    @property
    def _inline(self):
        return self.mode == "inline"

    def elaborate(self, platform):
        m = Module()
        m.submodules.probe = probe = self._probe
        m.submodules.time = time = FreeTime(Fraction(1_000_000_000, self.clock_hz))
        m.d.comb += probe.time.eq(time.time)

        phys = self._manage(m)
        ports = []
        for index in range(self.ports):
            port = ReceivePort(rx_domain(index), gigabit_only=self._inline, in_band=self._in_band)
            m.submodules[f"port{index}"] = port
            connect(m, flipped(self.rx[index]), port.rx)
            connect(m, port.frames, probe.frames[index])
            m.d.comb += port.state.eq(phys[index].link)
            ports.append(port)
        overflows = self._forward(m, probe, ports) if self._inline else [C(0)] * self.ports
        self._say(m, probe, ports, phys, overflows)

        m.submodules.uart_in = uart_in = UartReceive(clocks=self._bit_clocks)
        m.submodules.uart_out = uart_out = UartTransmit(clocks=self._bit_clocks)
        connect(m, uart_in.octets, probe.link_rx)
        connect(m, probe.link_tx, uart_out.octets)
        m.d.comb += [uart_in.line.eq(self.uart_rx), self.uart_tx.eq(uart_out.line)]

        m.submodules.lamps = lamps = Lamps(tick_clocks=self.clock_hz // 16)
        m.d.comb += [
            self.lamps.eq(lamps.o),
            lamps.host.eq(uart_in.octets.valid),
            lamps.lost.eq(Cat(port.lost for port in ports).any()),
            lamps.full.eq(probe.snapshot_room < probe.snapshot_level),
            lamps.usable.eq(Cat(port.usable for port in ports)),
            lamps.unsupported.eq(Cat(port.unsupported for port in ports)),
            lamps.activity.eq(Cat(port.activity for port in ports)),
        ]
        if not self._in_band:
            m.d.comb += lamps.found.eq(Cat(
                *(phy.found for phy in phys), C(1, 2 - self.ports) if self.ports < 2 else C(0, 0)))
        return m

    def _manage(self, m):
        """The PHYs' states in the ports' order."""
        clocks = {name: max(1, round(self.clock_hz * seconds))
                  for name, seconds in self._seconds.items()}
        states = []
        for bus, phys in enumerate(self._buses):
            monitor = PhyMonitor(phys, slow=not self._inline, **clocks,
                                 half=self._half_mdc)
            m.submodules[f"phys{bus}"] = monitor
            connect(m, monitor.pins, flipped(self.mdio[bus]))
            m.d.comb += self.phy_reset[bus].eq(monitor.reset)
            states += [monitor.states[index] for index in range(len(phys))]
        return states

    def _forward(self, m, probe, ports):
        """Each port's frames to the other's transmitter; sticky overflow for each receiving port.

        Only between links that both are usable: a frame for a port without one is dropped.
        """
        overflows = []
        for source, port in enumerate(ports):
            target = 1 - source
            queue, mac, rgmii = ForwardQueue(), GmiiTransmit(), RgmiiTransmit()
            m.submodules[f"queue{source}"] = queue
            m.submodules[f"mac{target}"] = mac
            m.submodules[f"rgmii{target}"] = rgmii
            connect(m, queue.o, mac.frames)
            connect(m, mac.o, rgmii.i)
            connect(m, mac.sent, probe.sent[target])
            connect(m, rgmii.tx, flipped(self.tx[target]))
            overflow = Signal(name=f"overflow{source}")
            m.d.comb += [
                queue.i.valid.eq(port.frames.valid), queue.i.payload.eq(port.frames.payload),
                mac.level.eq(queue.level), mac.up.eq(ports[target].usable),
            ]
            m.d.sync += overflow.eq(overflow | queue.overflow)
            overflows.append(overflow)
        return overflows

    def _say(self, m, probe, ports, phys, overflows):
        for index, (port, phy, overflow) in enumerate(zip(ports, phys, overflows, strict=True)):
            fields = {
                "link": port.link.link, "speed": port.link.speed,
                "full_duplex": port.link.full_duplex, "unsupported": port.unsupported,
                "found": C(1) if self._in_band else phy.found, "inline": C(self._inline),
                "overflow": overflow}
            assert fields.keys() == PORT_STATE.keys()
            m.d.comb += [
                probe.port_state[8 * index + at.low:8 * index + at.low + at.bits].eq(fields[name])
                for name, at in PORT_STATE.items()]
