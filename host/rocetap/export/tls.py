"""The exporter's end of a TLS 1.3 session (RFC 8446; RFC 7011, 10.4): one TCP stream, out only.

With TLS 1.3 the client's handshake returns before the server has judged the client's certificate;
a refusal comes on a later read. So a session starts unproved, and no record counts as sent before
`Session.prove_acceptance` has returned:

1. *Ticket.* A server sends NewSessionTicket only after it has verified the client's Finished and
   with it the client's certificate (RFC 8446, 4.6.1). OpenSSL lets us see that one has arrived.
   The collector may still refuse the name in the certificate, and then closes at once: the
   session must stay open for `settle` seconds more.
2. *Grace.* A collector that sends no tickets gives no such proof. The session must then stay open
   for `grace` seconds, in which a refusal would have arrived. This is a rule, not a proof.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
from dataclasses import dataclass

from rocetap.errors import RocetapError
from rocetap.export.endpoint import Endpoint
from rocetap.pki import Credentials, PkiError

__all__ = [
    "IdentityError", "Limits", "RefusedError", "Session", "SessionEndedError", "SessionError",
    "UnreachableError", "client_context", "connect",
]

_WRITE_BUFFER = 1 << 18
_TICKET_POLL_S = 0.005


class SessionError(RocetapError):
    """A session that did not come about or has ended."""


class UnreachableError(SessionError):
    """Nobody answers there, or what answers speaks no TLS 1.3. May pass: tried again."""


class IdentityError(SessionError):
    """The collector's certificate is not the one we were told to expect."""


class RefusedError(SessionError):
    """The collector closed the session before it was proved to accept us."""


class SessionEndedError(SessionError):
    """An accepted session has ended: closed by the collector, broken, or dead."""


@dataclass(frozen=True)
class Limits:
    """Bounds of a session, in seconds."""

    connect: float = 10.0
    """For the TCP connection to one address, and again for the handshake."""
    dead_peer: float = 30.0
    """A peer that acknowledges or takes nothing for so long is dead."""
    grace: float = 2.0
    settle: float = 0.25
    close: float = 5.0
    """For the collector to answer our close."""


def client_context(files: Credentials) -> ssl.SSLContext:
    """A TLS 1.3 context with the exporter's certificate that trusts the authority in `files`
    alone. Raises PkiError if OpenSSL does not take the files."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.hostname_checks_common_name = False
    try:
        context.load_verify_locations(files.authority)
        context.load_cert_chain(files.certificate, files.key)
    except (OSError, ssl.SSLError) as error:
        raise PkiError(f"{files.certificate} with {files.key} and {files.authority}: "
                       f"{_reason(error)}") from None
    return context


def _reason(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.lower().replace("_", " ")
    if isinstance(error, socket.gaierror):
        return error.strerror or str(error)
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    if isinstance(error, ConnectionError) and not str(error):
        return "closed by the peer"
    return str(error) or type(error).__name__


def _set_liveness(connection: socket.socket, dead_peer: float) -> None:
    """Keepalive for an idle session, the user timeout for unacknowledged data (RFC 5482)."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    probes = 4
    idle = max(1, int(dead_peer / 3))
    interval = max(1, int((dead_peer - idle) / probes))
    for option, value in (("TCP_KEEPIDLE", idle), ("TCP_KEEPINTVL", interval),
                          ("TCP_KEEPCNT", probes), ("TCP_USER_TIMEOUT", int(dead_peer * 1000))):
        if hasattr(socket, option):  # Linux has them all
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


async def _open_socket(endpoint: Endpoint, limits: Limits) -> socket.socket:
    """A TCP connection to the first address that takes one; names are resolved on each call."""
    loop = asyncio.get_running_loop()
    try:
        found = await asyncio.wait_for(
            loop.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM),
            limits.connect)
    except (OSError, TimeoutError) as error:
        raise UnreachableError(
            f"collector {endpoint}: the name cannot be resolved: {_reason(error)}") from None
    reasons = []
    for family, kind, protocol, _, address in dict.fromkeys(found):
        connection = socket.socket(family, kind, protocol)
        try:
            connection.setblocking(False)
            _set_liveness(connection, limits.dead_peer)
            await asyncio.wait_for(loop.sock_connect(connection, address), limits.connect)
        except TimeoutError:
            connection.close()
            reasons.append(f"{address[0]}: no answer in {limits.connect:g} s")
        except OSError as error:
            connection.close()
            reasons.append(f"{address[0]}: {_reason(error)}")
        except BaseException:
            connection.close()
            raise
        else:
            return connection
    raise UnreachableError(f"collector {endpoint} cannot be reached: {'; '.join(reasons)}")


async def connect(endpoint: Endpoint, collector_name: str, context: ssl.SSLContext,
                  limits: Limits = Limits()) -> Session:
    """A session whose server certificate carries `collector_name`, a DNS name or an address, as a
    subject alternative name. The client's own certificate is not judged yet.

    Raises UnreachableError, IdentityError or RefusedError.
    """
    connection = await _open_socket(endpoint, limits)
    try:
        reader, writer = await asyncio.open_connection(
            sock=connection, ssl=context, server_hostname=collector_name,
            ssl_handshake_timeout=limits.connect, ssl_shutdown_timeout=limits.close)
    except ssl.SSLCertVerificationError as error:
        raise IdentityError(
            f"collector {endpoint} has no valid certificate for {collector_name!r}: "
            f"{error.verify_message.rstrip('.')}") from None
    except ssl.SSLError as error:
        raise UnreachableError(
            f"collector {endpoint} does not agree to TLS 1.3: {_reason(error)}") from None
    except (OSError, TimeoutError) as error:
        raise UnreachableError(
            f"collector {endpoint}: no TLS 1.3 handshake: {_reason(error)}") from None
    return Session(endpoint, reader, writer, limits)


class Session:
    """One session. Messages go out whole and in order; what comes in is thrown away."""

    def __init__(self, endpoint: Endpoint, reader: asyncio.StreamReader,
                 writer: asyncio.StreamWriter, limits: Limits) -> None:
        self._endpoint = endpoint
        self._reader = reader
        self._writer = writer
        self._limits = limits
        self._accepted = False
        writer.transport.set_write_buffer_limits(high=_WRITE_BUFFER)
        self._ended: asyncio.Task[str] = asyncio.create_task(self._watch())

    async def _watch(self) -> str:
        """Reads until the collector ends the session; the reason, empty for an orderly end."""
        try:
            while await self._reader.read(1 << 16):
                pass
        except (OSError, ssl.SSLError) as error:
            return _reason(error)
        return ""

    @property
    def ended(self) -> bool:
        """Whether the collector has ended the session, as far as is known here."""
        return self._ended.done()

    def _error(self) -> SessionError:
        reason = self._ended.result()
        why = f": {reason}" if reason else ""
        if self._accepted:
            return SessionEndedError(f"collector {self._endpoint} ended the session{why}")
        return RefusedError(
            f"collector {self._endpoint} closed the session before accepting it{why}; it refuses "
            "this exporter's certificate or name, or it is stopping")

    async def _wait_for_end(self, seconds: float) -> None:
        await asyncio.wait([self._ended], timeout=seconds)
        if self._ended.done():
            raise self._error()

    def _has_ticket(self) -> bool:
        tls = self._writer.get_extra_info("ssl_object")
        session = tls.session if tls is not None else None
        return bool(session is not None and session.has_ticket)

    async def prove_acceptance(self) -> str:
        """Returns how the collector showed that it accepts us: "ticket" or "grace", see above.
        Raises RefusedError if it ended the session instead."""
        loop = asyncio.get_running_loop()
        start = loop.time()
        while not self._has_ticket() and loop.time() - start < self._limits.grace:
            await self._wait_for_end(_TICKET_POLL_S)
        proof = "ticket" if self._has_ticket() else "grace"
        await self._wait_for_end(self._limits.settle if proof == "ticket" else 0)
        self._accepted = True
        return proof

    async def send(self, messages: list[bytes]) -> None:
        """Hands whole messages to the session; returns when the buffer has room again.

        Raises SessionEndedError (RefusedError before acceptance) if the session has ended or the
        collector takes nothing for `dead_peer` seconds.
        """
        if self._ended.done():
            raise self._error()
        self._writer.write(b"".join(messages))
        drained = asyncio.ensure_future(self._writer.drain())
        try:
            await asyncio.wait([drained, self._ended], timeout=self._limits.dead_peer,
                               return_when=asyncio.FIRST_COMPLETED)
            if self._ended.done():
                raise self._error()
            if not drained.done():
                raise SessionEndedError(
                    f"collector {self._endpoint} takes nothing for {self._limits.dead_peer:g} s")
            if drained.exception() is not None:
                await self._wait_for_end(self._limits.close)
                raise SessionEndedError(f"collector {self._endpoint} ended the session: "
                                        f"{drained.exception()}")
        finally:
            drained.cancel()
            with contextlib.suppress(asyncio.CancelledError, OSError):
                await drained

    async def wait_ended(self) -> SessionError:
        """Waits until the collector ends the session; the error that says so."""
        await asyncio.wait([self._ended])
        return self._error()

    async def close(self) -> bool:
        """Ends the session in order: everything out, then close_notify, then the collector's own
        close. False if that did not come in `close` seconds; the last messages are then in doubt.
        """
        orderly = not self._ended.done()
        self._writer.close()
        try:
            async with asyncio.timeout(self._limits.close + 1):
                await self._writer.wait_closed()
        except (OSError, TimeoutError):
            orderly = False
        await self.abort()
        return orderly

    async def abort(self) -> None:
        """Drops the session at once."""
        self._writer.transport.abort()
        self._ended.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._ended
