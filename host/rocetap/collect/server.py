"""The collector's server: TLS 1.3 connections in, batches into the store.

Each peer has a task of its own; peers and handshakes are bounded in number, handshakes and silence
in time, so one slow or silent peer harms no other.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field

from .session import CollectorSession
from .settings import CollectorSettings
from .store import Store, StoreError
from .tls import ServerIdentity, authorized_name, has_expired, peer_names
from .writing import StoreWriter

__all__ = ["CollectorServer", "ServerSettings"]

_log = logging.getLogger(__name__)
_Streams = tuple["_Reader", asyncio.StreamWriter]


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True)
class ServerSettings:
    """Bounds of the server."""

    peers: int = 256
    """Connections at once, those in their handshake among them."""
    handshakes: int = 64
    """Handshakes at once."""
    handshake_s: float = 10.0
    idle_s: float = 3600.0
    """A peer that sends nothing for longer is closed."""
    dead_peer_s: float = 30.0
    """A peer that vanished without a word is closed after that long (TCP keepalive, and the TCP
    user timeout)."""
    tick_s: float = 5.0
    """How often silent epochs are looked for."""
    queued_batches: int = 64
    retry_s: float = 1.0
    """Between tries of a store that failed."""
    read_octets: int = 1 << 18
    collector: CollectorSettings = field(default_factory=CollectorSettings)

    def limits(self) -> dict[str, float]:
        """All bounds by name, for operators to see."""
        own = {name: value for name, value in vars(self).items() if name != "collector"}
        return own | self.collector.limits()


class CollectorServer:
    """Accepts exporters whose certificates name one of `allowed`, and stores what they send.

    `start`, then `stop`, in one event loop; `metrics` at any time between. `counters` has what was
    refused or failed, by reason; `drops` what was passed over in the records, by reason. `clock`:
    ms since 1970-01-01 UTC.
    """

    def __init__(
        self, identity: ServerIdentity, allowed: Collection[str], store: Store,
        settings: ServerSettings | None = None, clock: Callable[[], int] = _wall_ms,
    ) -> None:
        self.settings = settings or ServerSettings()
        self.counters: Counter[str] = Counter()
        self.drops: Counter[str] = Counter()
        self._identity, self._allowed, self._store = identity, frozenset(allowed), store
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()
        self._handshaking: dict[asyncio.Task[None], str] = {}   # with the peer's address
        self.live: set[asyncio.StreamWriter] = set()
        self._sessions: set[CollectorSession] = set()
        self.sessions_begun = 0
        self._stopping = False

    async def start(self, host: str, port: int) -> int:
        """Listens on the first address of `host`; gives the port, which matters when `port` was
        0. Raises OSError when the address cannot be had."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM,
                                       flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        self._listener = socket.socket(family, kind, protocol)
        self._listener.setblocking(False)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._listener.bind(address)
            self._listener.listen(128)
        except OSError:
            self._listener.close()
            raise
        self.writer = StoreWriter(
            self._store, self.settings.queued_batches, self.settings.retry_s)
        self._acceptor = asyncio.create_task(self._accept())
        bound: int = self._listener.getsockname()[1]
        _log.info("listening on %s port %d; limits: %s", address[0], bound,
                  ", ".join(f"{name} {value:g}" for name, value in self.settings.limits().items()))
        return bound

    @property
    def peers(self) -> int:
        """Connections now, those in their handshake among them."""
        return len(self._tasks)

    @property
    def reports_written(self) -> int:
        """Sequence reports whose batch is in the store."""
        return self.writer.reports_written

    @property
    def contexts(self) -> int:
        """Epochs retained for all peers."""
        return sum(session.contexts for session in self._sessions)

    @property
    def certificate_expires_ms(self) -> int:
        """End of the validity of the certificate in use, ms since 1970-01-01 UTC."""
        return self._identity.expires_ms

    async def broken(self) -> None:
        """Returns when nothing can be stored any more; `stop` then raises why."""
        await self.writer.broken()

    def metrics(self) -> dict[str, float]:
        """Numbers for operators: connections, what was stored, refused and dropped by reason, the
        certificate's end, and the limits."""
        failed = self.counters + self.writer.counters
        return {"peers": self.peers, "reports_written": self.reports_written,
                "certificate_expires_ms": self._identity.expires_ms,
                **{f"failed.{reason}": count for reason, count in failed.items()},
                **{f"dropped.{reason}": count for reason, count in self.drops.items()},
                **{f"limit.{name}": value for name, value in self.settings.limits().items()}}

    async def stop(self, drain_s: float = 0.0) -> None:
        """Stops listening, gives peers `drain_s` to end by themselves, closes the rest, and
        returns when all that was read is in the store. Raises StoreError when it cannot be."""
        self._acceptor.cancel()
        await asyncio.gather(self._acceptor, return_exceptions=True)
        self._listener.close()
        if self._tasks and drain_s:
            await asyncio.wait(set(self._tasks), timeout=drain_s)
        self._stopping = True
        for task in list(self._handshaking):
            task.cancel()
        for writer in self.live:
            writer.transport.abort()
        stopped = asyncio.gather(*self._tasks, return_exceptions=True)
        # A full queue before a store that fails holds the tasks: let the writer give up then.
        await asyncio.wait({stopped}, timeout=0.5)
        try:
            if not stopped.done():
                self.writer.give_up()
            await stopped
            await self.writer.stop()
        finally:
            self.counters.update(self.writer.counters)
            self.writer.counters.clear()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, address = await loop.sock_accept(self._listener)
            except OSError as error:  # out of descriptors: wait for peers to go
                self.counters["accept_failed"] += 1
                _log.warning("cannot accept a connection: %s", error)
                await asyncio.sleep(0.2)
                continue
            where = f"{address[0]} port {address[1]}"
            limit = ("peers" if len(self._tasks) >= self.settings.peers else "handshakes"
                     if len(self._handshaking) >= self.settings.handshakes
                     and not self._make_room(address[0]) else None)
            if limit:
                self._refuse(where, limit)
                connection.close()
                continue
            task = asyncio.create_task(self._peer(connection, where))
            self._tasks.add(task)
            self._handshaking[task] = address[0]
            task.add_done_callback(self._done)

    def _refuse(self, where: str, limit: str) -> None:
        self.counters[f"refused_{limit}_limit"] += 1
        _log.warning("refused %s: the limit of %d %s is reached", where,
                     getattr(self.settings, limit), limit,
                     extra=_fields(address=where, reason=f"{limit} limit"))

    def _make_room(self, newcomer: str) -> bool:
        """Ends the oldest handshake of the address that has most of them, unless it is the
        newcomer's own: one host that only connects does not keep the others out."""
        counts = Counter(self._handshaking.values())
        address, most = counts.most_common(1)[0]
        if counts[newcomer] >= most:
            return False
        oldest = next(task for task, host in self._handshaking.items() if host == address)
        del self._handshaking[oldest]
        oldest.cancel()
        self._refuse(address, "handshakes")
        return True

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._handshaking.pop(task, None)
        if not task.cancelled() and task.exception() is not None:
            self.counters["internal_error"] += 1
            _log.error("a peer's task failed", exc_info=task.exception())

    async def _peer(self, connection: socket.socket, address: str) -> None:
        try:
            streams = await self._handshake(connection, address)
        except asyncio.CancelledError:
            connection.close()
            return
        if streams is None:
            return
        task = asyncio.current_task()
        assert task is not None
        self._handshaking.pop(task, None)
        self.live.add(streams[1])
        try:
            await self._authorize(streams, address)
        finally:
            self.live.discard(streams[1])
            streams[1].close()
            with suppress(OSError, ssl.SSLError, TimeoutError):
                async with asyncio.timeout(1.0):
                    await streams[1].wait_closed()

    async def _handshake(self, connection: socket.socket, address: str) -> _Streams | None:
        loop = asyncio.get_running_loop()
        _find_dead(connection, self.settings.dead_peer_s)
        reader = _Reader(limit=self.settings.read_octets)
        protocol = asyncio.StreamReaderProtocol(reader)
        try:
            transport, _ = await loop.connect_accepted_socket(
                lambda: protocol, connection, ssl=self._identity.context(),
                ssl_handshake_timeout=self.settings.handshake_s, ssl_shutdown_timeout=1.0)
        except (OSError, ssl.SSLError) as error:
            connection.close()
            self.counters["handshake_failed"] += 1
            _log.warning("refused %s: TLS handshake failed: %s", address, _reason(error),
                         extra=_fields(address=address, reason=_reason(error)))
            return None
        return reader, asyncio.StreamWriter(transport, protocol, reader, loop)

    async def _authorize(self, streams: _Streams, address: str) -> None:
        certificate = streams[1].get_extra_info("peercert") or {}
        names = peer_names(certificate)
        name = authorized_name(names, self._allowed)
        if name is None:
            self.counters["refused_name"] += 1
            _log.warning("refused %s: its certificate names %s, which is not allowed", address,
                         ", ".join(names) or "nobody",
                         extra=_fields(address=address, names=names, reason="name"))
            return
        if has_expired(certificate, self._clock()):
            self.counters["refused_expired"] += 1
            _log.warning("refused %s at %s: its certificate has expired", name, address,
                         extra=_fields(address=address, names=names, reason="expired"))
            return
        try:
            session_id = await self.writer.open_session(
                name, address, self.settings.collector.pen, self._clock())
        except StoreError as error:
            self.counters["refused_store"] += 1
            _log.error("refused %s: %s", name, error)
            return
        _log.info("%s at %s: session %d begins", name, address, session_id,
                  extra=_fields(exporter=name, address=address, session=session_id))
        session = CollectorSession(self.settings.collector)
        self._sessions.add(session)
        self.sessions_begun += 1
        try:
            reason = await self._read(streams[0], session, session_id)
        except (OSError, ssl.SSLError) as error:
            reason = "collector stopped" if self._stopping else f"broken: {_reason(error)}"
        finally:
            self._sessions.discard(session)
        batch = session.end()
        batch.ended = (self._clock(), reason)
        self.drops.update(batch.counters)
        await self.writer.put(session_id, batch)
        _log.info("%s session %d ended: %s", name, session_id, reason,
                  extra=_fields(exporter=name, session=session_id, reason=reason))

    async def _read(
        self, reader: _Reader, session: CollectorSession, session_id: int,
    ) -> str:
        """Until the session ends; why it did."""
        loop = asyncio.get_running_loop()
        heard = ticked = loop.time()
        share = self.settings.read_octets
        while True:
            octets = None
            try:
                async with asyncio.timeout(self.settings.tick_s) as pause:
                    octets = await reader.read(share)
            except TimeoutError:
                # Also what the system says of a peer that vanished.
                if not pause.expired():
                    raise
            now = loop.time()
            if octets == b"":
                return ("collector stopped" if self._stopping else
                        "closed by the exporter" if reader.broken is None else
                        f"broken: {_reason(reader.broken)}")
            if octets:
                heard = now
                batch = session.receive(octets, self._clock())
                share = _next_share(share, loop.time() - now, self.settings.read_octets)
                self.drops.update(batch.counters)
                await self.writer.put(session_id, batch)
                await asyncio.sleep(0)  # while there is more, neither of the two above waits
                if batch.error is not None:
                    return f"protocol error: {batch.error}"
            elif now - heard >= self.settings.idle_s:
                return f"idle for {self.settings.idle_s:g} s"
            if now - ticked >= self.settings.tick_s:
                ticked = now
                batch = session.tick(self._clock())
                self.drops.update(batch.counters)
                await self.writer.put(session_id, batch)


_TURN_S = 0.05
"""What one peer's octets may take before the other peers have their turn."""
_LEAST_SHARE = 4096


def _next_share(share: int, took_s: float, most: int) -> int:
    """How many octets of a peer are taken at once, from what the last `share` of them took: few of
    a peer whose messages are slow to read, so that others need not wait for it."""
    if took_s > _TURN_S:
        return min(share, max(_LEAST_SHARE, share // 4))
    return min(most, 2 * share) if took_s < _TURN_S / 4 else share


class _Reader(asyncio.StreamReader):
    """Gives all octets that came before a connection broke, then its end. An exporter that never
    reads and closes makes its own system send a reset, for our session tickets were not read."""

    broken: Exception | None = None

    def set_exception(self, exc: Exception) -> None:
        self.broken = exc
        self.feed_eof()


_LONGEST_PROBE_S = 32_767.0
"""The longest time that TCP_KEEPIDLE takes (tcp(7))."""


def _find_dead(connection: socket.socket, seconds: float) -> None:
    """Has the system close the connection when nothing answers for `seconds`, 3 at the least."""
    connection.setblocking(False)
    seconds = min(seconds, _LONGEST_PROBE_S)
    idle, interval = max(1, int(seconds / 3)), max(1, int(seconds / 6))
    for level, option, value in (
            (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
            (socket.IPPROTO_TCP, getattr(socket, "TCP_KEEPIDLE", 0), idle),
            (socket.IPPROTO_TCP, getattr(socket, "TCP_KEEPINTVL", 0), interval),
            (socket.IPPROTO_TCP, getattr(socket, "TCP_KEEPCNT", 0),
             max(1, int((seconds - idle) / interval))),
            (socket.IPPROTO_TCP, getattr(socket, "TCP_USER_TIMEOUT", 0), int(1000 * seconds))):
        if option:
            with suppress(OSError):
                connection.setsockopt(level, option, value)


def _fields(**fields: object) -> dict[str, object]:
    """What a log line says, for programs that read it."""
    return {"fields": fields}


def _reason(error: BaseException) -> str:
    return str(getattr(error, "verify_message", None) or getattr(error, "reason", None)
               or getattr(error, "strerror", None) or str(error) or type(error).__name__)
