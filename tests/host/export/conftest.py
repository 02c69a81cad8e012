"""What the exporter's tests share."""

import socket

import pytest


@pytest.fixture
def unused_port():
    """A TCP port on 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
