import datetime

import pytest

from rocetap.wording import as_toml, counted


@pytest.mark.parametrize(("count", "noun", "text"), [
    (0, "epoch", "0 epochs"), (1, "epoch", "1 epoch"), (2, "epoch", "2 epochs"),
    (1, "part of epochs", "1 part of epochs"), (3, "part of epochs", "3 parts of epochs"),
    (2, "entry", "2 entries"), (2, "key", "2 keys"), (2, "PFC reading", "2 PFC readings"),
    (2, "address", "2 addresses")])
def test_a_number_and_its_noun(count, noun, text):
    assert counted(count, noun) == text


@pytest.mark.parametrize(("value", "text"), [
    (True, "true"), ("x", "'x'"), ("it's", '"it\'s"'), ("a\nb", "'a\\nb'"), (1.5, "1.5"),
    ([1, "a", False], "[1, 'a', false]"), ({"a": {"b": []}}, "{a = {b = []}}"),
    (1 << 256, "a number of 257 bits"), (-5, "-5"),
    (datetime.date(2026, 1, 31), "2026-01-31")])
def test_values_as_in_a_file(value, text):
    assert as_toml(value) == text
