import pytest

from rocetap.collect.settings import CollectorSettings, EpochLimits


@pytest.mark.parametrize("name", ["contexts", "inactivity_ms", "closed_retention_ms"])
def test_limits_are_finite_and_positive(name):
    with pytest.raises(ValueError, match=f"^{name} is 0, must be 1 or more$"):
        EpochLimits(**{name: 0})


def test_every_limit_can_be_shown():
    """Collectors expose their limits to their operators (Collector Processing)."""
    assert CollectorSettings().limits() == {
        "raw_records": 100_000, "raw_octets": 64 << 20,
        "epochs.contexts": 100_000, "epochs.inactivity_ms": 3_600_000,
        "epochs.closed_retention_ms": 60_000, "ipfix.domains": 64, "ipfix.templates": 1024,
        "ipfix.template_fields": 1024, "ipfix.malformed_messages": 1000}
