import pytest

from rocetap.collect.limits import server_settings
from rocetap.collect.server import ServerSettings
from rocetap.errors import RocetapError


@pytest.mark.parametrize("name", ServerSettings().limits())
def test_every_limit_can_be_set_and_moves_no_other(name):
    before = ServerSettings().limits()
    after = server_settings(limits=[f"{name}=77"]).limits()
    assert after == before | {name: 77}
    assert type(after[name]) is type(before[name])


def test_pen_and_several_limits():
    settings = server_settings(999, ["epochs.contexts=5", "peers=3"])
    assert settings.collector.pen == 999
    assert settings.collector.epochs.contexts == 5
    assert settings.peers == 3


@pytest.mark.parametrize(("text", "line"), [
    ("peers=0", "--limit peers=0: must be a whole number above 0"),
    ("peers=1.5", "--limit peers=1.5: must be a whole number above 0"),
    ("peers", "--limit peers: must be a whole number above 0"),
    ("idle_s=-1", "--limit idle_s=-1: must be a number above 0"),
    ("idle_s=nan", "--limit idle_s=nan: must be a number above 0"),
])
def test_values_that_cannot_be(text, line):
    with pytest.raises(RocetapError) as caught:
        server_settings(limits=[text])
    assert str(caught.value) == line


def test_a_name_that_is_none():
    with pytest.raises(RocetapError) as caught:
        server_settings(limits=["peer=1"])
    assert str(caught.value) == (
        "--limit peer=1: there is no limit 'peer'; they are "
        + ", ".join(ServerSettings().limits()))
