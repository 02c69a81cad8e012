"""A TLS 1.3 peer around the collector's own decoder, which keeps all that it was sent."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time

import numpy as np

from rocetap import pki
from rocetap.collect.session import CollectorSession
from rocetap.export.endpoint import Endpoint
from rocetap.ipfix.collecting import CollectingSession, DataSet

__all__ = ["Heard", "collector_context", "listening"]


class Heard:
    """What one connection brought. `reports`: rows as dictionaries of element names; `epochs` and
    `counters` as the collector's own session judged them; `first_sequence`: of its header."""

    def __init__(self):
        self.octets = bytearray()
        self.reports = []
        self.readings = []
        self.epochs = []
        self.counters = {}
        self.error = None
        self.ended = False
        self.client_serial = None
        self._ipfix = CollectingSession()
        self._session = CollectorSession()

    @property
    def first_sequence(self):
        return int.from_bytes(self.octets[8:12], "big")

    def take(self, octets):
        self.octets += octets
        for event in self._ipfix.receive(octets):
            if isinstance(event, DataSet):
                names = event.records.dtype.names
                if "rdmaSequenceEpochId" in names:
                    self.reports += [dict(zip(names, row, strict=True))
                                     for row in event.records.tolist()]
                elif "pfcPriority" in names:
                    self.readings += [dict(zip(names, row, strict=True))
                                      for row in event.records.tolist()]
        self._keep(self._session.receive(octets, time.time_ns() // 1_000_000))

    def end(self):
        self._keep(self._session.end())
        self.ended = True

    def _keep(self, batch):
        self.epochs += [np.array(rows) for _, rows in batch.epochs]
        for reason, count in batch.counters.items():
            self.counters[reason] = self.counters.get(reason, 0) + count
        self.error = self.error or batch.error


def collector_context(folder, name=pki.COLLECTOR):
    """A server context that wants a client certificate of the same authority."""
    files = pki.credentials(folder, name)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(files.certificate, files.key)
    context.load_verify_locations(files.authority)
    context.verify_mode = ssl.CERT_REQUIRED
    return context


@contextlib.asynccontextmanager
async def listening(context, *, host="127.0.0.1", port=0, reads=True, receive_buffer=0):
    """Yields the endpoint and the list of connections heard; ends them all at the end.

    `reads` may be an asyncio.Event: nothing is read before it is set. `receive_buffer`: octets
    that system and TLS hold for a connection that is not read; 0: their own choice.
    """
    heard, writers = [], []

    async def serve(reader, writer):
        one = Heard()
        one.client_serial = writer.get_extra_info("peercert")["serialNumber"]
        heard.append(one)
        writers.append(writer)
        with contextlib.suppress(OSError, asyncio.CancelledError):
            if receive_buffer:
                writer.transport.set_read_buffer_limits(receive_buffer)
            if reads is not True:
                await reads.wait()
            while octets := await reader.read(1 << 16):
                one.take(octets)
        one.end()
        writer.close()

    server = await asyncio.start_server(serve, host, port, ssl=context,
                                        limit=receive_buffer or 1 << 16)
    if receive_buffer:
        for one in server.sockets:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    try:
        yield Endpoint(host, server.sockets[0].getsockname()[1]), heard
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()
        await asyncio.sleep(0.01)
