"""The metrics server: answers, refusals, bounds."""

import asyncio
import contextlib
import json

import pytest
from prometheus_client import CollectorRegistry, Gauge

from rocetap.errors import RocetapError
from rocetap.export.endpoint import Endpoint
from rocetap.telemetry import server as module
from rocetap.telemetry.server import Health, serve_metrics

HERE = Endpoint("127.0.0.1", 0)


async def close(writer):
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


async def ask(server, text):
    reader, writer = await asyncio.open_connection("127.0.0.1", server.endpoint.port)
    writer.write(text)
    octets = b""
    with contextlib.suppress(ConnectionError):  # a server that closes without reading resets
        octets = await asyncio.wait_for(reader.read(), 10)
    await close(writer)
    head, _, body = octets.partition(b"\r\n\r\n")
    return head.decode().split("\r\n"), body


def get(path, *headers, method="GET"):
    return "".join(f"{line}\r\n" for line in (f"{method} {path} HTTP/1.1", *headers, "")).encode()


def served(use, health=lambda: Health(True)):
    async def run():
        registry = CollectorRegistry()
        gauge = Gauge("rocetap_thing", "A thing.", registry=registry)
        gauge.set(3)
        server = await serve_metrics(HERE, registry, health)
        try:
            return await use(server)
        finally:
            await server.close()
    return asyncio.run(run())


def test_metrics():
    head, body = served(lambda server: ask(server, get("/metrics?x=1")))
    assert head[0] == "HTTP/1.1 200 OK"
    assert any(line.startswith("Content-Type: text/plain; version=") for line in head)
    assert f"Content-Length: {len(body)}" in head
    assert body == (b"# HELP rocetap_thing A thing.\n# TYPE rocetap_thing gauge\n"
                    b"rocetap_thing 3.0\n")


def test_open_metrics_when_asked_for():
    head, body = served(lambda server: ask(server, get(
        "/metrics", "Accept: application/openmetrics-text; version=1.0.0")))
    assert any("application/openmetrics-text" in line for line in head)
    assert body.endswith(b"# EOF\n")


@pytest.mark.parametrize(("healthy", "status"), [
    (True, "HTTP/1.1 200 OK"), (False, "HTTP/1.1 503 Service Unavailable")])
def test_health(healthy, status):
    head, body = served(lambda server: ask(server, get("/healthz")),
                        lambda: Health(healthy, {"board": "up", "age": 1.5}))
    assert head[0] == status
    assert json.loads(body) == {"healthy": healthy, "board": "up", "age": 1.5}


@pytest.mark.parametrize(("request_octets", "status", "body"), [
    (get("/"), "HTTP/1.1 404 Not Found", b"here are /metrics and /healthz\n"),
    (get("/metrics", method="POST"), "HTTP/1.1 405 Method Not Allowed", b"GET or HEAD only\n"),
    (get("/healthz", method="HEAD"), "HTTP/1.1 200 OK", b""),
    (b"nonsense\r\n\r\n", "HTTP/1.1 400 Bad Request", b"not HTTP/1.1\n"),
    (b"GET / SPDY/3\r\n\r\n", "HTTP/1.1 400 Bad Request", b"not HTTP/1.1\n"),
])
def test_other_requests(request_octets, status, body):
    head, got = served(lambda server: ask(server, request_octets))
    assert (head[0], got) == (status, body)


def test_a_head_that_does_not_end_is_bounded():
    head, body = served(lambda server: ask(server, b"GET /metrics HTTP/1.1\r\nX: " + b"a" * 20_000))
    assert (head, body) == ([""], b"")


def test_a_silent_client_is_dropped_and_harms_nobody(monkeypatch):
    monkeypatch.setattr(module, "_REQUEST_S", 0.1)

    async def use(server):
        silent, writer = await asyncio.open_connection("127.0.0.1", server.endpoint.port)
        head, _ = await ask(server, get("/healthz"))
        assert head[0] == "HTTP/1.1 200 OK"
        assert await asyncio.wait_for(silent.read(), 5) == b""
        await close(writer)

    served(use)


def test_closing_beside_an_open_connection_logs_nothing(caplog):
    async def use(server):
        _, writer = await asyncio.open_connection("127.0.0.1", server.endpoint.port)
        await ask(server, get("/healthz"))  # by then the one before is served
        return writer

    async def run():
        server = await serve_metrics(HERE, CollectorRegistry(), lambda: Health(True))
        writer = await use(server)
        await server.close()
        await asyncio.sleep(0)
        await close(writer)
    asyncio.run(run())
    assert not caplog.records


def test_connections_are_bounded(monkeypatch):
    monkeypatch.setattr(module, "_CONNECTIONS", 2)

    async def use(server):
        silent = [await asyncio.open_connection("127.0.0.1", server.endpoint.port)
                  for _ in range(2)]
        await asyncio.sleep(0.05)
        assert (await ask(server, get("/healthz")))[0] == [""]
        for _, writer in silent:
            await close(writer)

    served(use)


def test_an_address_in_use_is_one_line():
    async def use(server):
        with pytest.raises(RocetapError) as caught:
            await serve_metrics(server.endpoint, CollectorRegistry(), lambda: Health(True))
        return server.endpoint, str(caught.value)

    endpoint, line = served(use)
    assert line.startswith(f"cannot serve metrics on {endpoint}: ")
    assert line.endswith("; choose another address, or port 0 for a free one")
    assert "\n" not in line
