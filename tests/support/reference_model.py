"""The sequence profile as the specification's table says it: slow, simple, independent.

Positions are unbounded integers; SEEN and PENDING are Python sets. Nothing here shares code with
gateware or host software. After every step the three accounting relations are asserted.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Epoch", "M", "ReferenceConnection"]

M = 1 << 24
FINAL, VIOLATION, DISCONTINUITY, EXHAUSTION, SERIAL = 0x01, 0x02, 0x04, 0x08, 0x10


@dataclass(frozen=True)
class Epoch:
    """One report of an epoch. `flags` without generationUnverified, which the host adds."""

    window: int
    flags: int = 0
    requests: int = 0
    skipped: int = 0
    filled: int = 0
    expired: int = 0
    abandoned: int = 0
    pending: int = 0
    repeated: int = 0
    late: int = 0
    first_time: int = 0
    last_time: int = 0

    @property
    def final(self) -> bool:
        return bool(self.flags & FINAL)

    def check(self) -> None:
        """The relations that MUST hold at every snapshot, and the rules on flags."""
        assert self.skipped == self.filled + self.expired + self.abandoned + self.pending, self
        assert 0 <= self.pending <= self.window - 1, self
        assert self.repeated + self.late + self.filled <= self.requests - 1, self
        assert (self.pending == 0) if self.final else (self.abandoned == 0), self
        assert self.final or not self.flags & (VIOLATION | DISCONTINUITY | EXHAUSTION | SERIAL)


@dataclass
class _State:
    """An active epoch."""

    S: int
    H: int
    seen: set[int] = field(default_factory=set)
    pending: set[int] = field(default_factory=set)
    requests: int = 1
    skipped: int = 0
    filled: int = 0
    expired: int = 0
    repeated: int = 0
    late: int = 0
    first_time: int = 0
    last_time: int = 0


class ReferenceConnection:
    """One provisioned connection. Each method returns the final reports that it caused, which
    are also kept in `results`; `snapshot` returns the report of the active epoch, or None.

    `combine` False: a capture discontinuity closes the epoch at once. True: as in a meter that
    closes a context only when it is next touched, so that a violation or a closure that comes next
    is a second cause in the same final report (Qualification Flags: causes can be combined).
    """

    def __init__(self, window: int, *, combine: bool = False) -> None:
        assert 1 <= window <= 1 << 22
        self.window = window
        self._combine = combine
        self._interrupted = False
        self.enabled = True
        self.results: list[Epoch] = []
        self._state: _State | None = None

    @property
    def active(self) -> bool:
        return self._state is not None

    def request(self, psn: int, time: int = 0) -> list[Epoch]:
        """An eligible request: Per-Request Transitions."""
        assert 0 <= psn < M
        if not self.enabled:
            return []
        closed = self.close() if self._interrupted else []
        state = self._state
        if state is None:
            self._start(psn, time)
            return closed
        u = (psn - (state.H % M)) % M
        d = u if u < M // 2 else u - M
        if u == M // 2 or d > self.window:
            closed = self.close(SERIAL)
            self._start(psn, time)
            return closed
        position = state.H + d
        state.requests += 1
        state.last_time = time
        if d >= 1:
            for skipped in range(state.H + 1, position):
                state.pending.add(skipped)
                state.skipped += 1
            state.H = position
            state.seen.add(position)
            low = self._low(state)
            for old in [p for p in state.pending if p < low]:
                state.pending.remove(old)
                state.expired += 1
            state.seen = {p for p in state.seen if p >= low}
        elif position < self._low(state):
            state.late += 1
        elif position in state.pending:
            state.pending.remove(position)
            state.seen.add(position)
            state.filled += 1
        else:
            assert position in state.seen
            state.repeated += 1
        self._check()
        return []

    def violation(self) -> list[Epoch]:
        """An unsupported or malformed request: closes, and disables until `provision`."""
        closed = self.close(VIOLATION)
        self.enabled = False
        return closed

    def capture_discontinuity(self) -> list[Epoch]:
        """Observation was interrupted; the next request starts fresh state."""
        if self._combine:
            self._interrupted = self.active
            return []
        return self.close(DISCONTINUITY)

    def provision(self, window: int | None = None) -> list[Epoch]:
        """A policy change, or the explicit reprovisioning after a violation."""
        closed = self.close(0)
        self.enabled = True
        self.window = self.window if window is None else window
        return closed

    def close(self, reasons: int = 0) -> list[Epoch]:
        """Closes the active epoch, if there is one: pending positions are abandoned."""
        if self._state is None:
            return []
        reasons |= DISCONTINUITY if self._interrupted else 0
        report = self._report(FINAL | reasons)
        report.check()
        self._state = None
        self._interrupted = False
        self.results.append(report)
        return [report]

    def snapshot(self) -> Epoch | None:
        """The report of the active epoch; it changes nothing."""
        if self._state is None:
            return None
        report = self._report(0)
        report.check()
        return report

    def _start(self, psn: int, time: int) -> None:
        self._state = _State(S=psn, H=psn, seen={psn}, first_time=time, last_time=time)
        self._check()

    def _low(self, state: _State) -> int:
        return max(state.S, state.H - self.window + 1)

    def _report(self, flags: int) -> Epoch:
        state = self._state
        assert state is not None
        left = len(state.pending)
        final = bool(flags & FINAL)
        return Epoch(
            window=self.window, flags=flags, requests=state.requests, skipped=state.skipped,
            filled=state.filled, expired=state.expired, abandoned=left if final else 0,
            pending=0 if final else left, repeated=state.repeated, late=state.late,
            first_time=state.first_time, last_time=state.last_time)

    def _check(self) -> None:
        state = self._state
        assert state is not None
        low = self._low(state)
        assert not state.seen & state.pending
        assert state.seen | state.pending == set(range(low, state.H + 1))
        self._report(0).check()
