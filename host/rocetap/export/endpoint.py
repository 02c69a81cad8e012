"""HOST:PORT as text, read once when a configuration is checked."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from rocetap.errors import RocetapError

__all__ = ["Endpoint", "EndpointError", "parse_endpoint"]

_LABEL = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)")
_FORMS = "HOST:PORT, IPV4:PORT or [IPV6]:PORT"


class EndpointError(RocetapError):
    """The text is no endpoint; the message says why."""


@dataclass(frozen=True)
class Endpoint:
    """A host and a TCP port. `host` is a name or an address without brackets."""

    host: str
    port: int

    @property
    def is_literal(self) -> bool:
        """Whether `host` is an address, not a name."""
        return _address(self.host) is not None

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _host_and_rest(text: str) -> tuple[str, str]:
    """The host and what follows it, from its colon on."""
    def refuse(reason: str) -> EndpointError:
        return EndpointError(f"address {text!r}: {reason}")

    if text.startswith("["):
        inside, bracket, rest = text[1:].partition("]")
        if not bracket:
            raise refuse("'[' without ']'")
        address = _address(inside)
        if not isinstance(address, ipaddress.IPv6Address):
            raise refuse(f"{inside!r} in brackets is no IPv6 address")
        if rest and not rest.startswith(":"):
            raise refuse(f"{rest!r} follows ']', which takes :PORT only")
        return inside, rest
    if text.count(":") > 1:
        raise refuse("more than one colon is ambiguous; put an IPv6 address in brackets, "
                     "as in [::1]:4740")
    host, colon, port = text.partition(":")
    return host, colon + port


def parse_endpoint(text: str, *, allow_port_zero: bool = False) -> Endpoint:
    """The endpoint that `text` names. Port 0, "any free one", only where one listens.

    Raises EndpointError with the exact reason; nothing ambiguous is guessed at.
    """
    def refuse(reason: str) -> EndpointError:
        return EndpointError(f"address {text!r}: {reason}")

    if not text:
        raise refuse(f"empty; give {_FORMS}")
    if text.isascii() and text.isdigit():
        raise refuse(f"a port without a host; give HOST:{text}, such as 127.0.0.1:{text}")
    host, rest = _host_and_rest(text)
    if not host:
        raise refuse(f"no host before the port; give {_FORMS}")
    if _address(host) is None:
        if re.fullmatch(r"[0-9.]+", host):
            raise refuse(f"{host!r} is no IPv4 address")
        labels = host.removesuffix(".").split(".")
        if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
            raise refuse(f"{host!r} is no host name")
    if not rest:
        raise refuse(f"no port; give {_FORMS}")
    digits = rest[1:]
    if not digits:
        raise refuse("no port after the colon")
    if not (digits.isascii() and digits.isdigit()):
        raise refuse(f"port {digits!r} is no number")
    lowest = 0 if allow_port_zero else 1
    if len(digits) > 5 or not lowest <= int(digits) <= 65535:
        raise refuse(f"port {digits} is out of range, {lowest} to 65535")
    return Endpoint(host, int(digits))
