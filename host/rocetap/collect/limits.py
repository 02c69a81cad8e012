"""The collector's limits by name, as operators set and see them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ..errors import RocetapError
from ..spec.elements import DEFAULT_PEN
from .server import ServerSettings
from .settings import CollectorSettings

__all__ = ["server_settings"]


def server_settings(pen: int = DEFAULT_PEN, limits: Iterable[str] = ()) -> ServerSettings:
    """Settings with limits given as NAME=VALUE, the names as in ServerSettings.limits.

    Raises RocetapError for a name that is none, or a value that is no positive number of its kind.
    """
    settings: Any = ServerSettings(collector=CollectorSettings(pen=pen))
    known = settings.limits()
    for text in limits:
        name, _, value = text.partition("=")
        if name not in known:
            raise RocetapError(f"--limit {text}: there is no limit {name!r}; they are "
                               f"{', '.join(known)}")
        kind = type(known[name])
        try:
            number = kind(value)
        except ValueError:
            number = kind(0)
        if not 0 < number < 1 << 62:
            raise RocetapError(f"--limit {text}: must be a "
                               f"{'whole ' * (kind is int)}number above 0")
        settings = _with(settings, name.split("."), number)
    checked: ServerSettings = settings
    return checked


def _with(settings: Any, path: list[str], value: float) -> Any:
    """A copy with one field set; limits of the parts below stand under `collector`."""
    first = path[0]
    if not hasattr(settings, first):
        return replace(settings, collector=_with(settings.collector, path, value))
    if len(path) == 1:
        return replace(settings, **{first: value})
    return replace(settings, **{first: _with(getattr(settings, first), path[1:], value)})
