"""A TCP relay that keeps every octet of both directions, and writes them as a capture."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

__all__ = ["Relay"]

_SEGMENT = 1400


class Relay:
    """Between one client and a server on loopback. `pieces`: (from the client, octets) in order."""

    def __init__(self, port: int) -> None:
        self.pieces: list[tuple[bool, bytes]] = []
        self._port = port
        self._tasks: set[asyncio.Task] = set()

    async def __aenter__(self) -> Relay:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *error: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, onward = await asyncio.open_connection("127.0.0.1", self._port)
        ways = [asyncio.create_task(self._carry(True, reader, onward)),
                asyncio.create_task(self._carry(False, there, writer))]
        self._tasks.update(ways)
        await asyncio.gather(*ways, return_exceptions=True)
        for one in (writer, onward):
            one.close()
            with contextlib.suppress(OSError):
                await one.wait_closed()

    async def _carry(
        self, from_client: bool, reader: asyncio.StreamReader, writer: asyncio.StreamWriter,
    ) -> None:
        while octets := await reader.read(1 << 16):
            self.pieces.append((from_client, octets))
            writer.write(octets)
            await writer.drain()
        with contextlib.suppress(OSError):
            writer.write_eof()

    def capture(self, path: Path, server_port: int) -> Path:
        """The connection as a pcap file: real octets under made-up TCP headers."""
        sequence = {True: 1001, False: 5001}
        frames = [self._frame(True, server_port, "S", 1000, 0, b""),
                  self._frame(False, server_port, "SA", 5000, 1001, b""),
                  self._frame(True, server_port, "A", 1001, 5001, b"")]
        for from_client, octets in self.pieces:
            for begin in range(0, len(octets), _SEGMENT):
                part = octets[begin:begin + _SEGMENT]
                frames.append(self._frame(from_client, server_port, "PA", sequence[from_client],
                                          sequence[not from_client], part))
                sequence[from_client] += len(part)
        wrpcap(str(path), frames)
        return path

    @staticmethod
    def _frame(from_client: bool, port: int, flags: str, sequence: int, answer: int,
               octets: bytes) -> Ether:
        ends = [("192.0.2.1", 40000), ("192.0.2.2", port)]
        (source, sport), (destination, dport) = ends if from_client else ends[::-1]
        return (Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
                / IP(src=source, dst=destination)
                / TCP(sport=sport, dport=dport, flags=flags, seq=sequence, ack=answer) / octets)
