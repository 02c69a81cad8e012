"""The collector's limits by name, as operators set and see them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..errors import RocetapError
from ..spec.elements import DEFAULT_PEN
from .server import ServerSettings
from .settings import CollectorSettings

__all__ = ["limit_problem", "server_settings"]


def limit_problem(text: str) -> str | None:
    """What is wrong with a limit given as NAME=VALUE: a name that is none, or a value that is no
    positive number of its kind; None when nothing is."""
    return _parsed(text, ServerSettings().limits())[1]


def server_settings(pen: int = DEFAULT_PEN, limits: Iterable[str] = ()) -> ServerSettings:
    """Settings with limits given as NAME=VALUE, the names as in ServerSettings.limits.

    Raises RocetapError with what `limit_problem` says.
    """
    settings: Any = ServerSettings(collector=CollectorSettings(pen=pen))
    known = settings.limits()
    for text in limits:
        number, problem = _parsed(text, known)
        if problem is not None:
            raise RocetapError(f"--limit {text}: {problem}")
        settings = _with(settings, text.partition("=")[0].split("."), number)
    checked: ServerSettings = settings
    return checked


def _parsed(text: str, known: Mapping[str, float]) -> tuple[float, str | None]:
    name, _, value = text.partition("=")
    if name not in known:
        return 0, f"there is no limit {name!r}; they are {', '.join(known)}"
    kind = type(known[name])
    try:
        number = kind(value)
    except ValueError:
        number = kind(0)
    if not 0 < number < 1 << 62:
        return 0, f"must be a {'whole ' * (kind is int)}number above 0"
    return number, None


def _with(settings: Any, path: list[str], value: float) -> Any:
    """A copy with one field set; limits of the parts below stand under `collector`."""
    first = path[0]
    if not hasattr(settings, first):
        return replace(settings, collector=_with(settings.collector, path, value))
    if len(path) == 1:
        return replace(settings, **{first: value})
    return replace(settings, **{first: _with(getattr(settings, first), path[1:], value)})
