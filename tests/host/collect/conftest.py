import pytest

from support.certificates import Authority


@pytest.fixture(scope="session")
def shared_authority(tmp_path_factory):
    """One PKI for tests that only read it."""
    return Authority.make(tmp_path_factory.mktemp("pki"))


@pytest.fixture
def authority(tmp_path):
    """A PKI of the test's own."""
    return Authority.make(tmp_path / "pki")
