from __future__ import annotations

from rocetap.capture.notes import Notes


def test_the_first_of_each_kind_in_words_and_the_rest_counted():
    notes = Notes()
    assert notes.lines() == []
    notes.add("a", "record 3 is odd")
    notes.add("b", "no time")
    notes.add("a", "record 9 is odd", 4)
    assert notes.lines() == ["record 3 is odd (4 more alike)", "no time"]
