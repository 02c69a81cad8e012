"""Errors name the party: ours, or the peer's."""

from __future__ import annotations

__all__ = ["FramingLostError", "IpfixError", "LocalError", "MalformedMessageError", "RemoteError"]


class IpfixError(Exception):
    """Any error of this package."""


class LocalError(IpfixError, ValueError):
    """The caller asked for something that cannot be sent."""


class RemoteError(IpfixError):
    """The peer sent something that ends the session."""


class FramingLostError(RemoteError):
    """Version or length of a message header cannot be, so the next message cannot be found."""


class MalformedMessageError(RemoteError):
    """One message is malformed (RFC 7011, 9); the next one can still be found.

    `reason` is a short name to count by.
    """

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason
