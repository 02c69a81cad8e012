"""Connections to a collector under test, and waiting for what it does."""

from __future__ import annotations

import asyncio

__all__ = ["connect", "until"]


async def connect(authority, port, name="exporter"):
    """A TLS connection with the certificate of `name`; its writer."""
    _, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=authority.client(name), server_hostname="collector.example",
        ssl_shutdown_timeout=1.0)
    return writer


async def until(condition, seconds=60.0):
    """Returns when the condition holds; TimeoutError when it does not in time."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)
