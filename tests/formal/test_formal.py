"""The runner of the proofs: what it says of designs that hold, break, and only fail induction."""

import pytest
from amaranth.hdl import Assert, Elaboratable, Module, Signal

from rocetap_hdl import loop
from support import formal
from support.formal import FormalError, mutant, prove, refute, solve


class Counter(Elaboratable):
    """Counts from 0 by ``step`` modulo 256, and never meets ``limit``."""

    def __init__(self, step, limit):
        self._step, self._limit = step, limit

    def elaborate(self, platform):
        m = Module()
        count = Signal(8)
        m.d.sync += count.eq(count + self._step)
        m.d.comb += Assert(count != self._limit, "the limit is not met")
        return m


def test_a_counterexample_has_its_property_and_trace():
    verdict = solve(Counter(2, 6), depth=5)
    assert (verdict.holds, verdict.inductive) == (False, True)
    assert verdict.broken == {("", "the limit is not met")}
    assert verdict.trace["count"] == [0, 2, 4, 6]


def test_depth_is_how_many_clocks_are_looked_at():
    assert solve(Counter(2, 6), depth=3).holds
    assert not solve(Counter(2, 6), depth=4).holds


def test_induction_alone_may_fail():
    """No even count is 7, but from any state, in two clocks, it might be."""
    verdict = solve(Counter(2, 7), depth=2, induction=True)
    assert (verdict.holds, verdict.inductive) == (False, False)
    assert str(verdict).startswith("not proved by induction: the limit is not met\n")


def test_proved_and_refuted():
    prove(Counter(2, 7), depth=9)
    with pytest.raises(AssertionError, match="broken in a reachable state: the limit is not met"):
        prove(Counter(2, 6), depth=9)
    refute({"two": (Counter(2, 6), "the limit is not met")}, depth=9)
    with pytest.raises(AssertionError) as error:
        refute({"two": (Counter(2, 6), "the limit is not met"),
                "four": (Counter(4, 6), "the limit is not met"),
                "other": (Counter(2, 6), "another property")}, depth=9)
    assert str(error.value).startswith(
        "not broken within 9 clocks: ['four: the limit is not met', 'other: another property']")


def test_too_little_time_is_no_answer():
    with pytest.raises(FormalError) as error:
        solve(Counter(2, 6), depth=9, timeout=0.01)
    assert str(error.value) == "yowasp-sby was not done within 0 s"


def test_missing_tools_are_named(monkeypatch):
    monkeypatch.setattr(formal, "TOOLS", ("yowasp-sby", "no-such-solver", "no-such-prover"))
    with pytest.raises(FormalError) as error:
        solve(Counter(2, 6), depth=3)
    assert str(error.value) == ("no-such-solver, no-such-prover not found; proofs need the test "
                                "extra: pip install 'rocetap[test]'")


def test_a_mutant_must_change_what_is_there():
    with pytest.raises(AssertionError) as error:
        mutant(loop, ("no such text", ""))
    message = "'no such text' stands 0 times in <module 'rocetap_hdl.loop' from"
    assert str(error.value).startswith(message)
    assert mutant(loop, ("latency = 3", "latency = 4")).StateLoop.latency == 4
    assert loop.StateLoop.latency == 3
