"""A board on a line in virtual time: `FakeLine` is the transport, `clock` its time.

An independent, plain model of the board's end of the link, for tests of what a line may do to
octets. The gateware itself stands in `support.link_bench.SimulatedLink`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush

from rocetap.link.errors import LinkRemoteError, TransportClosed
from rocetap.link.framing import FrameDecoder, encode_frame
from rocetap.link.messages import Credit, Read, RecordMessage, Reply, Write, decode_from_host
from rocetap.spec.fingerprint import layout_hash
from rocetap.spec.registers import BANKS, LAYOUT_VERSION, MAGIC, REGISTERS, bank_address
from rocetap.spec.wire import Status

Delivery = Iterable[tuple[float, bytes]]


class FakeBoard:
    """Registers of a whole board, credit, records and the rule of the last sequence number."""

    def __init__(self, *, ports: int = 2, connections: int = 64, max_window: int = 256) -> None:
        self.ports = ports
        self.capacity = REGISTERS["capacity"].pack(
            connections=connections, ports=ports, bus_bytes=8, max_window=max_window,
            version=LAYOUT_VERSION)
        self.records: list[bytes] = []
        self.refused: set[int] = set()
        self.writes: list[tuple[int, int]] = []
        self.requests: list[object] = []
        self.reset()

    def reset(self) -> None:
        self.registers = {item.address: 0 for item in REGISTERS.values() if "r" in item.access}
        for name, bank in BANKS.items():
            if "r" in bank.access:
                for port in range(self.ports):
                    for index in range(bank.count):
                        self.registers[bank_address(name, port, index)] = 0
        self.registers[REGISTERS["magic"].address] = MAGIC
        self.registers[REGISTERS["layout"].address] = layout_hash()
        self.registers[REGISTERS["capacity"].address] = self.capacity
        self.writable = {item.address for item in REGISTERS.values() if "w" in item.access}
        key = BANKS["table_key"]
        self.writable |= {key.base + index for index in range(key.count)}
        self.credit = 0
        self.serial = 0
        self.last: tuple[int, Status] | None = None
        self.decoder = FrameDecoder()

    def receive(self, octets: bytes) -> list[Reply]:
        replies = []
        for message in self.decoder.receive(octets):
            try:
                request = decode_from_host(message)
            except LinkRemoteError:
                continue
            self.requests.append(request)
            replies.append(self._do(request))
        return replies

    def push(self) -> list[RecordMessage]:
        """The records that credit allows now."""
        pushed = []
        while self.records and self.credit:
            self.credit -= 1
            pushed.append(RecordMessage(self.serial, self.records.pop(0)))
            self.serial = (self.serial + 1) % 65536
        self.registers[REGISTERS["snapshot_level"].address] = len(self.records)
        return pushed

    def _do(self, request: Read | Write | Credit) -> Reply:
        if isinstance(request, Read):
            self.last = None
            addresses = range(request.address, request.address + request.count)
            if any(address not in self.registers for address in addresses):
                return Reply(request.sequence, Status.NO_REGISTER)
            return Reply(request.sequence, Status.OK,
                         tuple(self.registers[address] for address in addresses))
        if self.last is None or self.last[0] != request.sequence:
            self.last = request.sequence, self._change(request)
        return Reply(*self.last)

    def _change(self, request: Write | Credit) -> Status:
        if isinstance(request, Credit):
            self.credit = min(65535, self.credit + request.amount)
            return Status.OK
        for address, value in enumerate(request.values, request.address):
            if address not in self.writable:
                return Status.NO_REGISTER
            if address in self.refused:
                return Status.REFUSED
            self.writes.append((address, value))
            if address in self.registers:
                self.registers[address] = value
        return Status.OK


def whole(delay: float) -> Callable[[bytes], Delivery]:
    """Each frame whole, after `delay` seconds."""
    return lambda frame: [(delay, frame)]


def in_pieces(gap: float) -> Callable[[bytes], Delivery]:
    """One octet each `gap` seconds."""
    return lambda frame: [(gap * (index + 1), bytes([octet])) for index, octet in enumerate(frame)]


class FakeLine:
    """The transport to a FakeBoard. `deliver` says when which octets of a frame arrive."""

    def __init__(self, board: FakeBoard, deliver: Callable[[bytes], Delivery] | None = None
                 ) -> None:
        self.board = board
        self.deliver = deliver or whole(0.001)
        self.now = 0.0
        self.writes = 0
        self.closed = False
        self.drop_requests = 0
        self._due: list[tuple[float, int, bytes]] = []
        self._order = 0

    def clock(self) -> float:
        return self.now

    def write(self, data: bytes, /) -> None:
        if self.closed:
            raise TransportClosed("fake: closed at the other end")
        self.writes += 1
        if self.drop_requests:
            self.drop_requests -= 1
            return
        for reply in self.board.receive(data):
            self.send(encode_frame(reply.encode()))
        self.push()

    def push(self) -> None:
        for record in self.board.push():
            self.send(encode_frame(record.encode()))

    def send(self, frame: bytes) -> None:
        for delay, octets in self.deliver(frame):
            self._order += 1
            heappush(self._due, (self.now + delay, self._order, octets))

    def read(self, max_octets: int, timeout_s: float, /) -> bytes:
        if self.closed:
            raise TransportClosed("fake: closed at the other end")
        end = self.now + timeout_s
        if not self._due or self._due[0][0] > end:
            self.now = end
            return b""
        self.now = max(self.now, self._due[0][0])
        octets = b""
        while self._due and self._due[0][0] <= self.now and len(octets) < max_octets:
            octets += heappop(self._due)[2]
        return octets

    def close(self) -> None:
        self.closed = True
