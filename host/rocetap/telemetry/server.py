"""Serves /metrics (Prometheus) and /healthz (JSON) over HTTP/1.1, in the running event loop.

It answers from the loop that does the work, so a loop that hangs gives no answer, and no number is
read while it changes. One request a connection; time, octets and connections are bounded.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from rocetap.errors import RocetapError
from rocetap.export.endpoint import Endpoint

__all__ = ["Health", "MetricsServer", "serve_metrics"]

_REQUEST_S: Final = 5.0
_REQUEST_OCTETS: Final = 8192
_CONNECTIONS: Final = 32
_PLAIN: Final = "text/plain; charset=utf-8"
_JSON: Final = "application/json"


@dataclass(frozen=True)
class Health:
    """`healthy` decides between status 200 and 503; `details` stand in the JSON object."""

    healthy: bool
    details: Mapping[str, Any] = field(default_factory=dict)


class MetricsServer:
    """Serves until `close`. `endpoint`: with the port that was taken."""

    def __init__(self, registry: CollectorRegistry, health: Callable[[], Health]) -> None:
        self._registry = registry
        self._health = health
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()
        self.endpoint = Endpoint("", 0)

    async def start(self, address: Endpoint) -> None:
        """Listens; RocetapError when that is not possible."""
        try:
            self._server = await asyncio.start_server(
                self._serve, address.host, address.port, limit=_REQUEST_OCTETS)
        except OSError as error:
            raise RocetapError(f"cannot serve metrics on {address}: {error.strerror or error}; "
                               "choose another address, or port 0 for a free one") from None
        self.endpoint = Endpoint(address.host, self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Frees the port and ends open connections."""
        if self._server is not None:
            self._server.close()
            for task in self._open:
                task.cancel()
            await asyncio.gather(*self._open, return_exceptions=True)
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            if len(self._open) > _CONNECTIONS:
                return
            async with asyncio.timeout(_REQUEST_S):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._answer(head))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError,
                asyncio.CancelledError):    # by `close` alone, which waits for the end of it
            pass
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            self._open.discard(task)

    def _answer(self, head: bytes) -> bytes:
        lines = head.decode("latin-1").split("\r\n")
        words = lines[0].split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return _response(HTTPStatus.BAD_REQUEST, _PLAIN, b"not HTTP/1.1\n")
        method, path = words[0], words[1].partition("?")[0]
        if path not in ("/metrics", "/healthz"):
            return _response(HTTPStatus.NOT_FOUND, _PLAIN, b"here are /metrics and /healthz\n")
        if method not in ("GET", "HEAD"):
            return _response(HTTPStatus.METHOD_NOT_ALLOWED, _PLAIN, b"GET or HEAD only\n",
                             "Allow: GET, HEAD\r\n")
        if path == "/metrics":
            accept = next((line.partition(":")[2].strip() for line in lines[1:]
                           if line.lower().startswith("accept:")), "")
            encode, kind = choose_encoder(accept)
            status, body = HTTPStatus.OK, encode(self._registry)
        else:
            health = self._health()
            status = HTTPStatus.OK if health.healthy else HTTPStatus.SERVICE_UNAVAILABLE
            kind, body = _JSON, json.dumps({"healthy": health.healthy, **health.details}).encode()
        return _response(status, kind, body, with_body=method == "GET")


def _response(status: HTTPStatus, kind: str, body: bytes, headers: str = "", *,
              with_body: bool = True) -> bytes:
    head = (f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {kind}\r\n"
            f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\n"
            f"Connection: close\r\n{headers}\r\n")
    return head.encode("latin-1") + (body if with_body else b"")


async def serve_metrics(address: Endpoint, registry: CollectorRegistry,
                        health: Callable[[], Health]) -> MetricsServer:
    """Serves `registry` and `health` at `address` in the running event loop; port 0 takes a free
    one, which is then in the result's `endpoint`. `health` is called for each request of /healthz.

    Raises RocetapError when the address cannot be listened on.
    """
    server = MetricsServer(registry, health)
    await server.start(address)
    return server
