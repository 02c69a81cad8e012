"""What the exporter's tests share."""

import socket

import pytest

from rocetap import pki
from support.fake_board import FakeBoard


@pytest.fixture
def unused_port():
    """A TCP port on 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A PKI of its own for the module."""
    directory = tmp_path_factory.mktemp("pki")
    pki.init(directory, "probe", "collector.example")
    return directory


@pytest.fixture
def board():
    """A board with four contexts."""
    return FakeBoard(contexts=4)
