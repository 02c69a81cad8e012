"""The exporter's certificate, key and authority: read again when the files change."""

from __future__ import annotations

import datetime
import logging
import os
import ssl
from collections.abc import Callable

from rocetap.export.tls import client_context
from rocetap.pki import Credentials, PkiError, check_credentials, expiry_times

__all__ = ["ClientIdentity"]

_LOG = logging.getLogger("rocetap.export")


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


class ClientIdentity:
    """What the next handshake uses. Raises PkiError when the files cannot be used at first.

    Later, files that do not fit together (a new certificate beside the old key, while they are
    being replaced) leave those in use in use, with one warning for each state of the files. A
    session that is open goes on with what it began with, also beyond its certificate's end: TLS
    1.3 looks at certificates in handshakes only. `now`: for the validity, UTC.
    """

    def __init__(self, files: Credentials, now: Callable[[], datetime.datetime] = _now) -> None:
        self._files = files
        self._now = now
        self._seen = self._state()
        self._context = self._load()
        self.reloads = 0
        self.failed_reloads = 0

    def _state(self) -> object:
        """Changes whenever a file is written or replaced."""
        try:
            stats = [os.stat(path) for path in
                     (self._files.authority, self._files.certificate, self._files.key)]
        except OSError as error:
            return f"{error.filename}: {error.strerror}"
        return [(one.st_mtime_ns, one.st_size, one.st_ino) for one in stats]

    def _load(self) -> ssl.SSLContext:
        check_credentials(self._files, self._now())
        context = client_context(self._files)
        self.expires = expiry_times(self._files)
        """Seconds since 1970 at which what is in use ends, by "certificate" and "authority"."""
        return context

    def context(self) -> ssl.SSLContext:
        """For the next handshake, after a look at the files."""
        seen = self._state()
        if seen != self._seen:
            self._seen = seen
            try:
                self._context = self._load()
            except PkiError as error:
                self.failed_reloads += 1
                _LOG.warning("the certificate in use stays, what is on disk cannot be used: %s",
                             error, extra={"fields": {"what": "certificate"}})
            else:
                self.reloads += 1
                _LOG.info("%s was read again; it expires on %s UTC", self._files.certificate,
                          datetime.datetime.fromtimestamp(
                              self.expires["certificate"], datetime.UTC).strftime("%F %T"),
                          extra={"fields": {"what": "certificate", **self.expires}})
        return self._context
