"""LinkSession: serial numbers, the account of credit, and the bound on what is held."""

import pytest

from rocetap.link import session as session_module
from rocetap.link.errors import LinkLocalError
from rocetap.link.framing import encode_frame
from rocetap.link.messages import Read, RecordMessage, Reply
from rocetap.link.session import LinkSession
from rocetap.spec.wire import Status


def frames(*serials):
    return b"".join(encode_frame(RecordMessage(serial, bytes([1]) + bytes(87)).encode())
                    for serial in serials)


def test_a_request_begins_and_ends_with_a_delimiter():
    octets = LinkSession().send(Read(1, 2, 3))
    assert octets[0] == octets[-1] == 0
    assert octets[1:] == encode_frame(Read(1, 2, 3).encode())


def test_replies_and_records_in_one_piece():
    session = LinkSession()
    reply = Reply(9, Status.OK, (1,))
    assert session.receive(frames(5) + encode_frame(reply.encode()) + frames(6)) == [reply]
    assert session.records_held == 2
    assert session.take_records().shape == (2,)
    assert session.records_held == 0


@pytest.mark.parametrize(("serials", "missed"), [
    ([7, 8, 9], 0), ([7, 9], 1), ([65534, 65535, 0, 1], 0), ([65534, 2], 3), ([0, 0], 65535)])
def test_gaps_in_the_numbers(serials, missed):
    session = LinkSession()
    session.receive(frames(*serials))
    assert session.records_missed == missed
    assert session.records_received == len(serials)


def test_credit_is_used_by_records_that_came_and_by_those_that_did_not():
    session = LinkSession()
    session.granted(10)
    session.receive(frames(0, 1))
    assert session.credit_outstanding == 8
    session.receive(frames(5))
    assert session.credit_outstanding == 4
    session.receive(frames(20))
    assert session.credit_outstanding == 0
    session.granted(3)
    session.credit_gone()
    assert session.credit_outstanding == 0
    session.granted(65535)
    session.granted(65535)
    assert session.credit_outstanding == 65535
    with pytest.raises(LinkLocalError, match=r"^credit is 65536, must be 0 to 65535$"):
        session.granted(65536)


def test_a_restarted_board_numbers_from_zero_without_credit():
    session = LinkSession()
    session.granted(10)
    session.receive(frames(100))
    session.restarted()
    assert session.credit_outstanding == 0
    session.receive(frames(2))
    assert session.records_missed == 2
    assert session.records_held == 2


def test_what_is_held_is_bounded_and_the_rest_counted(monkeypatch):
    monkeypatch.setattr(session_module, "MAX_HELD_RECORDS", 3)
    session = LinkSession()
    session.receive(frames(*range(5)))
    assert session.records_held == 3
    assert session.records_discarded == 2
    assert session.records_received == 5
