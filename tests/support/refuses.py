"""Constructor errors of components."""

from __future__ import annotations

import gc
import re
import warnings
from collections.abc import Callable

import pytest
from amaranth.hdl import UnusedElaboratable

__all__ = ["refuses"]


def refuses(message: str, construct: Callable[[], object]) -> None:
    """Asserts that `construct` raises ValueError with just this message.

    The half-made component is never elaborated, which is right here: Amaranth's warning about it
    comes when it is collected, so it is collected under a filter.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnusedElaboratable)
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            construct()
        gc.collect()
