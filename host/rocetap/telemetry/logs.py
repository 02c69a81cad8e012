"""Log lines: text or JSON on standard error, and a bound on those that repeat."""

from __future__ import annotations

import datetime
import json
import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

__all__ = ["LogFormat", "StateLog", "set_up_logging"]

_TEXT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class LogFormat(StrEnum):
    """`text`: time, level, name, message. `json`: an object a line, with the line's fields."""

    text = "text"
    json = "json"


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        when = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
        row: dict[str, Any] = {
            "time": when.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(), "logger": record.name,
            "message": record.getMessage(), **getattr(record, "fields", {})}
        if record.exc_info:
            row["exception"] = self.formatException(record.exc_info)
        return json.dumps(row, default=str)


def set_up_logging(form: LogFormat = LogFormat.text, *, verbose: bool = False) -> None:
    """Log lines of this process on stderr. Fields: `logger.info(text, extra={"fields": {...}})`
    stand in JSON lines only, so `text` must say it all."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        _JsonFormatter() if form is LogFormat.json else logging.Formatter(_TEXT))
    logging.basicConfig(level=logging.DEBUG if verbose else logging.INFO, handlers=[handler],
                        force=True)
    logging.getLogger("asyncio").setLevel(logging.WARNING)


@dataclass
class _Trouble:
    since: float
    times: int = 0
    unsaid: int = 0
    next_line: float = 0.0
    wait: float = 0.0


@dataclass
class StateLog:
    """One line when a thing goes bad and one when it is well again, not one a try.

    While it stays bad, later failures give a line after `first_wait` seconds, then after twice as
    long and so on up to `longest_wait`, which says how many were not logged. `monotonic`: seconds.
    """

    logger: logging.Logger
    monotonic: Callable[[], float]
    first_wait: float = 60.0
    longest_wait: float = 3600.0
    _bad: dict[str, _Trouble] = field(default_factory=dict)

    def bad(self, what: str, line: str, **fields: Any) -> None:
        """`what` has failed (again), as `line` says."""
        now = self.monotonic()
        trouble = self._bad.setdefault(what, _Trouble(now))
        trouble.times += 1
        if now < trouble.next_line:
            trouble.unsaid += 1
            return
        rest = f" ({trouble.unsaid} like it in {now - trouble.since:.0f} s)" * bool(trouble.unsaid)
        trouble.unsaid = 0
        trouble.wait = min(self.longest_wait, max(self.first_wait, 2 * trouble.wait))
        trouble.next_line = now + trouble.wait
        self.logger.warning("%s%s", line, rest, extra={"fields": {
            "what": what, "times": trouble.times, **fields}})

    def good(self, what: str, line: str, **fields: Any) -> bool:
        """`what` is well; a line only when it was bad before. Whether there was one."""
        trouble = self._bad.pop(what, None)
        if trouble is not None:
            seconds = self.monotonic() - trouble.since
            self.logger.info("%s after %.1f s", line, seconds, extra={"fields": {
                "what": what, "times": trouble.times, "seconds": round(seconds, 3), **fields}})
        return trouble is not None

    def is_bad(self, what: str) -> bool:
        """Whether the latest word on `what` was `bad`."""
        return what in self._bad
