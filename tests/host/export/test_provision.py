"""What a provisioning does to the board, and what it leaves alone."""

import time
from ipaddress import ip_address

import pytest

from rocetap.export.provision import BoardTooSmallError, Provisioner
from rocetap.link.driver import Driver
from rocetap.provisioning import Connection, Port, Provisioning
from rocetap.spec.registers import OperationKind
from support.fake_board import FakeBoard
from support.link_fake import FakeBoard as LineBoard
from support.link_fake import FakeLine, whole


def connection(number, window=64, **settings):
    return Connection(
        source=ip_address("192.0.2.1"), destination=ip_address("198.51.100.2"),
        destination_qp=number, partition_key=0xFFFF, window=window, **settings)


def provisioning(*numbers, **settings):
    return Provisioning(connections=[connection(number, **settings) for number in numbers])


@pytest.fixture
def board():
    return FakeBoard(contexts=4)


@pytest.fixture
def provisioner(board):
    driver = Driver(board.transport(), clock=time.monotonic)
    driver.handshake()
    one = Provisioner(driver)
    board.operations.clear()
    return one


def placed(provisioner):
    return [(one.context, one.connection.destination_qp) for one in provisioner.placements]


def test_connections_get_contexts_tags_and_windows(board, provisioner):
    changed = provisioner.apply(provisioning(7, 8))
    assert [(one.context, one.tag) for one in changed] == [(0, 1), (1, 2)]
    assert board.enabled == [True, True, False, False]
    assert (board.tag[:2], board.window[:2]) == ([1, 2], [64, 64])
    assert board.commits == 2


def test_the_same_again_touches_nothing(board, provisioner):
    provisioner.apply(provisioning(7, 8))
    board.operations.clear()
    assert provisioner.apply(provisioning(8, 7)) == []
    assert board.operations == []
    assert board.commits == 2


def test_what_went_away_is_removed_and_its_context_used_again(board, provisioner):
    provisioner.apply(provisioning(1, 2, 3))
    board.operations.clear()
    provisioner.apply(provisioning(1, 3, 9))
    assert board.operations == [(OperationKind.REMOVE, 1), (OperationKind.PROVISION, 1)]
    assert placed(provisioner) == [(0, 1), (1, 9), (2, 3)]
    assert board.tag[1] == 4


@pytest.mark.parametrize("change", [
    {"window": 32}, {"generation_verified": True}, {"observation_point": 9}, {"generation": 1}])
def test_a_changed_connection_keeps_its_context_under_a_new_tag(board, provisioner, change):
    provisioner.apply(provisioning(1, 2))
    board.operations.clear()
    changed = provisioner.apply(Provisioning(connections=[connection(1), connection(2, **change)]))
    assert [(one.context, one.tag) for one in changed] == [(1, 3)]
    assert board.operations == [(OperationKind.PROVISION, 1)]
    assert board.commits == 2


def test_tags_wrap_past_those_in_use_and_past_zero(provisioner):
    provisioner.apply(provisioning(1))
    provisioner._next_tag = 0xFFFF
    assert [one.tag for one in provisioner.apply(provisioning(1, 2, 3))] == [0xFFFF, 2]


def test_taking_over_writes_every_slot_empty(board, provisioner):
    provisioner.apply(provisioning(1, 2))
    assert len(board.slots) == 2
    driver = Driver(board.transport(), clock=time.monotonic)
    driver.handshake()
    Provisioner(driver).take_over()
    assert board.slots == {}


def test_too_many_connections_change_nothing(board, provisioner):
    provisioner.apply(provisioning(1))
    board.operations.clear()
    with pytest.raises(BoardTooSmallError) as caught:
        provisioner.apply(provisioning(2, 3, 4, 5, 6))
    assert str(caught.value) == (
        "5 connections, but the board has contexts for 4: leave some out of the provisioning, or "
        "use a board built for more")
    assert board.operations == []


def test_too_many_ports(provisioner):
    with pytest.raises(BoardTooSmallError) as caught:
        provisioner.apply(Provisioning(ports=[Port("a", 1), Port("b", 2)]))
    assert str(caught.value) == (
        "2 ports, but the board has 1: leave some out of the provisioning, or use a board built "
        "for more")


def test_too_wide_a_window(provisioner):
    with pytest.raises(BoardTooSmallError) as caught:
        provisioner.apply(provisioning(1, window=257))
    assert str(caught.value) == (
        "window 257 is more than the board was built for: give 1 to 256")


def test_a_driver_before_its_handshake_is_refused(board):
    with pytest.raises(ValueError, match=r"^no handshake yet: the number of contexts is not known$"
                       ):
        Provisioner(Driver(board.transport(), clock=time.monotonic))


@pytest.mark.parametrize(("reply_s", "least", "most"), [(0.001, 4.0, 4.4), (0.016, 65, 67)])
def test_what_taking_over_a_full_board_of_1024_connections_costs(reply_s, least, most):
    line = FakeLine(LineBoard(connections=1024), whole(reply_s))
    driver = Driver(line, clock=line.clock)
    driver.handshake()
    one = Provisioner(driver)
    begin = line.now
    one.take_over()
    one.apply(provisioning(*range(1024)))
    assert line.writes == 2048 + 2 * 1024 + 2
    assert least < line.now - begin < most
