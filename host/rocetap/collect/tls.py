"""TLS 1.3 with required client certificates, and who a peer is (RFC 7011, 11.3; RFC 9525)."""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography import x509

from ..errors import RocetapError

__all__ = ["ServerIdentity", "TlsError", "authorized_name", "peer_names"]

_log = logging.getLogger(__name__)


class TlsError(RocetapError):
    """A certificate, key or CA file cannot be used; the text says which and why."""


@dataclass(frozen=True)
class _Files:
    ca: Path
    certificate: Path
    key: Path

    def state(self) -> tuple[tuple[int, int, int], ...]:
        """Changes whenever a file is replaced or written."""
        stats = [os.stat(path) for path in (self.ca, self.certificate, self.key)]
        return tuple((stat.st_mtime_ns, stat.st_size, stat.st_ino) for stat in stats)

    def context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        _load(self.ca, "CA", lambda: context.load_verify_locations(self.ca))
        _load(self.certificate, f"certificate (with key {self.key})",
              lambda: context.load_cert_chain(self.certificate, self.key))
        return context


class ServerIdentity:
    """The collector's certificate, key and CA; read again when the files change.

    Raises TlsError when they cannot be used at first. Later a set that does not fit together
    (say, a new certificate beside the old key) leaves the one before in use, with one warning.
    """

    def __init__(self, ca: Path | str, certificate: Path | str, key: Path | str) -> None:
        self._files = _Files(Path(ca), Path(certificate), Path(key))
        self._context = self._files.context()
        self._state: object = self._files.state()
        self.expires_ms = _expiry_ms(self._files.certificate)
        """End of the certificate's validity, ms since 1970-01-01 UTC."""

    def context(self) -> ssl.SSLContext:
        """For the next handshake."""
        try:
            state = self._files.state()
            if state != self._state:
                self._state = state
                context = self._files.context()
                self.expires_ms = _expiry_ms(self._files.certificate)
                self._context = context
                _log.info("certificate read again from %s", self._files.certificate)
        except (TlsError, OSError) as error:
            if self._state != str(error):
                _log.warning("certificate on disk is not used, the one before stays: %s", error)
            if isinstance(error, OSError):
                self._state = str(error)
        return self._context


def peer_names(certificate: Mapping[str, Any]) -> list[str]:
    """The names of a verified peer certificate, as ssl.SSLSocket.getpeercert gives it: its DNS
    names and addresses, or its common name when there is none."""
    names = [value for kind, value in certificate.get("subjectAltName", ())
             if kind in ("DNS", "IP Address")]
    if not names:
        names = [value for attributes in certificate.get("subject", ())
                 for kind, value in attributes if kind == "commonName"]
    return names


def authorized_name(names: Iterable[str], allowed: Iterable[str]) -> str | None:
    """The first of a peer's names that is allowed: whole names, upper and lower case alike, no
    wildcards."""
    wanted = {name.lower() for name in allowed}
    return next((name for name in names if name.lower() in wanted), None)


def _load(path: Path, what: str, load: Any) -> None:
    try:
        load()
    except FileNotFoundError as error:
        raise TlsError(f"{what} {path}: no such file") from error
    except (ssl.SSLError, OSError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
        raise TlsError(f"{what} {path}: cannot be used: {reason}") from error


def _expiry_ms(path: Path) -> int:
    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
    except ValueError as error:
        raise TlsError(f"certificate {path}: cannot be used: {error}") from error
    return int(certificate.not_valid_after_utc.timestamp() * 1000)
