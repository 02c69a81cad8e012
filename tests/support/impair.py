"""Random PSN sequences with impairments, for tests of the window; the same seed, the same list."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

__all__ = ["edge_distances", "impaired_psns"]

M = 1 << 24

_WEIGHTS = {
    "next": 60, "gap": 8, "window": 3, "beyond": 1, "far": 0.3, "half": 0.3, "fill": 10,
    "repeat": 10, "before": 4, "very late": 1,
}


def edge_distances(window: int) -> tuple[int, ...]:
    """Every distance from the high-water position at which the algorithm changes its mind."""
    return (0, 1, 2, window - 1, window, window + 1, M // 2 - 1, M // 2, M // 2 + 1, -1,
            1 - window, -window, -window - 1)


def impaired_psns(count: int, window: int, seed: int, *, start: int | None = None) -> list[int]:
    """`count` PSNs: in order, gaps, late ones inside W, repeats, late ones before the window and
    before the first, jumps of W, W+1, M/2-1, M/2 and M/2+1; a start that wraps every other time.
    """
    return list(_walk(count, window, Random(seed), start))


def _walk(count: int, window: int, rng: Random, start: int | None) -> Iterator[int]:
    if start is None:
        start = rng.randrange(M - 40, M) if rng.random() < 0.5 else rng.randrange(M)
    high, kinds = start, list(_WEIGHTS)
    for index in range(count):
        if index == 0:
            yield high % M
            continue
        kind = rng.choices(kinds, list(_WEIGHTS.values()))[0]
        distance = _distance(kind, window, rng)
        yield (high + distance) % M
        wrapped = distance % M
        if 0 < wrapped < M // 2 or wrapped == M // 2:
            high += wrapped


def _distance(kind: str, window: int, rng: Random) -> int:
    if kind == "next":
        return 1
    if kind == "gap":
        return 1 + rng.randrange(1, max(2, min(window, 12)))
    if kind == "window":
        return rng.choice((window, max(1, window - 1)))
    if kind == "beyond":
        return window + rng.randrange(1, 4)
    if kind == "far":
        return rng.choice((M // 2 - 1, M // 2 + 1, rng.randrange(window + 1, M // 2)))
    if kind == "half":
        return M // 2
    if kind == "fill":
        return -rng.randrange(0, min(window, 16))
    if kind == "repeat":
        return -rng.choice((0, 0, 1, window - 1))
    if kind == "before":
        return -rng.randrange(window, window + 20)
    return -rng.randrange(1, M // 2)
