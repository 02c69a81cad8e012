import pytest

from rocetap.collect.settings import EpochLimits


@pytest.mark.parametrize("name", ["contexts", "inactivity_ms", "closed_retention_ms"])
def test_limits_are_finite_and_positive(name):
    with pytest.raises(ValueError, match=f"^{name} is 0, must be 1 or more$"):
        EpochLimits(**{name: 0})
