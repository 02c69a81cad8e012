"""What can go wrong on the link, by whose fault it is.

`LinkLocalError`: this program asked for something that cannot be. `LinkRemoteError`: the board
said something that it must not say. The rest lies between the two: no answer, no line.
"""

from __future__ import annotations

from ..spec.wire import Status

__all__ = [
    "BoardRestarted", "LayoutMismatch", "LinkError", "LinkLocalError", "LinkRemoteError",
    "LinkTimeout", "NotABoard", "RequestFailed", "TableFull", "TransportClosed",
    "TransportOpenError",
]


class LinkError(Exception):
    """Any failure of the link; its text is one line for the user."""


class LinkLocalError(LinkError, ValueError):
    """The caller's mistake: an unknown register, a value out of range."""


class TableFull(LinkLocalError):
    """The connection table has no room for one more key."""


class TransportOpenError(LinkLocalError):
    """The port or address cannot be opened."""


class TransportClosed(LinkError):
    """The line is gone: unplugged, reset or closed at the other end."""


class LinkTimeout(LinkError):
    """The board did not answer in time, however often it was asked."""


class LinkRemoteError(LinkError):
    """The board broke the protocol, or it refused."""


class RequestFailed(LinkRemoteError):
    """The board answered with another status than OK."""

    def __init__(self, text: str, status: Status) -> None:
        super().__init__(text)
        self.status = status


class NotABoard(LinkRemoteError):
    """What answers is no rocetap board."""


class LayoutMismatch(LinkRemoteError):
    """The board was built from other tables than this software."""


class BoardRestarted(LinkError):
    """The board's boot id is not the one of the handshake: it was reset or powered again since.

    Its credit, its connection table and its epochs are gone; its counters began at zero again.
    """
