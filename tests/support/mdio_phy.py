"""A PHY's end of the management bus, bit by bit (IEEE 802.3 22.2.4.5)."""

from __future__ import annotations

__all__ = ["MdioPhy"]

PREAMBLE_BITS = 32


class MdioPhy:
    """Registers at `address`. `rising(line)` takes what the station drives at each rising edge of
    MDC, None where it drives nothing; `line` is what this PHY pulls the bus to: 0, or 1 where it
    leaves it alone. `bad_frames`: what had no valid ST and OP, or a bus driven by both ends.
    `on_read(register, value)` gives what is read, `on_write(register, value)` what is kept.
    """

    def __init__(self, address: int) -> None:
        self.address = address
        self.registers: dict[int, int] = dict.fromkeys(range(32), 0)
        self.bad_frames = 0
        self.reads: list[int] = []
        self.writes: list[tuple[int, int]] = []
        self.power_up()

    def power_up(self) -> None:
        """Forgets the frame that it is in."""
        self.line = 1
        self._ones = 0
        self._bits: list[int] | None = None
        self._reply: list[int] = []

    @property
    def replying(self) -> bool:
        """Whether the bus is this PHY's now."""
        return bool(self._reply)

    def on_read(self, register: int) -> int:
        return self.registers[register]

    def on_write(self, register: int, value: int) -> None:
        self.registers[register] = value

    def rising(self, line: int | None) -> None:
        bit = 1 if line is None else line
        if self._reply:
            if line is not None:
                self.bad_frames += 1
            self.line = self._reply.pop(0)
            if not self._reply:
                self._bits, self._ones = None, 0
            return
        self.line = 1
        if self._bits is None:
            if bit:
                self._ones += 1
            elif self._ones >= PREAMBLE_BITS:
                self._bits = [0]
            else:
                self._ones = 0
            return
        self._bits.append(bit)
        self._look()

    def _look(self) -> None:
        bits = self._bits
        assert bits is not None
        if len(bits) == 4 and (bits[1] != 1 or bits[2] == bits[3]):
            self.bad_frames += 1
            self._bits, self._ones = None, 0
        if len(bits) < 14:
            return
        read = bits[2] == 1
        address = int("".join(map(str, bits[4:9])), 2)
        register = int("".join(map(str, bits[9:14])), 2)
        if read and len(bits) == 14:
            if address == self.address:
                self.reads.append(register)
                value = self.on_read(register)
                # What it drives behind a rising edge the station looks at with the next one: the
                # first of these is the turnaround's second bit.
                self._reply = [0, *(value >> n & 1 for n in reversed(range(16))), 1]
        elif len(bits) == 32:
            if not read and address == self.address:
                if bits[14:16] != [1, 0]:
                    self.bad_frames += 1
                value = int("".join(map(str, bits[16:])), 2)
                self.writes.append((register, value))
                self.on_write(register, value)
            self._bits, self._ones = None, 0
