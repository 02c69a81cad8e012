"""TLS 1.3 with required client certificates, and who a peer is (RFC 7011, 11.3; RFC 9525)."""

from __future__ import annotations

import datetime
import logging
import os
import ssl
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..errors import RocetapError
from ..pki import Credentials, PkiError, check_credentials

__all__ = ["ServerIdentity", "TlsError", "authorized_name", "has_expired", "peer_names"]

_log = logging.getLogger(__name__)


class TlsError(RocetapError):
    """A certificate, key or CA file cannot be used; the text says which and why."""


def _state(files: Credentials) -> tuple[tuple[int, int, int], ...]:
    """Changes whenever a file is replaced or written."""
    stats = [os.stat(path) for path in (files.authority, files.certificate, files.key)]
    return tuple((stat.st_mtime_ns, stat.st_size, stat.st_ino) for stat in stats)


def _load(files: Credentials, tickets: bool) -> tuple[ssl.SSLContext, int]:
    """The context, and the end of the certificate's validity in ms."""
    try:
        certificate = check_credentials(files, datetime.datetime.now(datetime.UTC))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        context.num_tickets = int(tickets)
        context.load_verify_locations(files.authority)
        context.load_cert_chain(files.certificate, files.key)
    except PkiError as error:
        raise TlsError(str(error)) from error
    except (ssl.SSLError, OSError) as error:
        raise TlsError(f"{files.certificate} with {files.key} and {files.authority} cannot be "
                       f"used: {error}") from error
    return context, int(certificate.not_valid_after_utc.timestamp() * 1000)


class ServerIdentity:
    """The collector's certificate, key and CA; read again when the files change.

    Raises TlsError when they cannot be used at first. Later a set that does not fit together
    (say, a new certificate beside the old key) leaves the one before in use, with one warning.

    `tickets`: whether a session ticket is sent. It proves to an exporter at once that its
    certificate was accepted; but one that never reads closes with a reset then, and what its
    system had not sent yet is gone.
    """

    def __init__(self, ca: Path | str, certificate: Path | str, key: Path | str, *,
                 tickets: bool = True) -> None:
        self._files = Credentials(Path(ca), Path(certificate), Path(key))
        self._tickets = tickets
        self._context, self.expires_ms = _load(self._files, tickets)
        """End of the certificate's validity, ms since 1970-01-01 UTC."""
        self._seen: object = _state(self._files)

    def context(self) -> ssl.SSLContext:
        """For the next handshake."""
        try:
            seen: object = _state(self._files)
        except OSError as error:
            seen = str(error)
        if seen == self._seen:
            return self._context
        self._seen = seen
        try:
            self._context, self.expires_ms = _load(self._files, self._tickets)
        except TlsError as error:
            _log.warning("the certificate in use stays, what is on disk cannot be used: %s", error)
        else:
            _log.info("%s was read again", self._files.certificate)
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


def has_expired(certificate: Mapping[str, Any], now_ms: int) -> bool:
    """Whether a verified peer certificate is valid no more. A handshake finds that by itself, but
    not one that resumes an earlier session (RFC 8446, 2.2): that rests on the certificate as it
    was judged then."""
    return ssl.cert_time_to_seconds(certificate["notAfter"]) * 1000 < now_ms


def authorized_name(names: Iterable[str], allowed: Iterable[str]) -> str | None:
    """The first of a peer's names that is allowed: whole names, upper and lower case alike, no
    wildcards."""
    wanted = {name.lower() for name in allowed}
    return next((name for name in names if name.lower() in wanted), None)

