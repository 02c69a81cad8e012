import pytest

from rocetap.wording import counted


@pytest.mark.parametrize(("count", "noun", "text"), [
    (0, "epoch", "0 epochs"), (1, "epoch", "1 epoch"), (2, "epoch", "2 epochs"),
    (1, "part of epochs", "1 part of epochs"), (3, "part of epochs", "3 parts of epochs"),
    (2, "entry", "2 entries"), (2, "key", "2 keys"), (2, "PFC reading", "2 PFC readings"),
    (2, "address", "2 addresses")])
def test_a_number_and_its_noun(count, noun, text):
    assert counted(count, noun) == text
