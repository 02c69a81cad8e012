"""Log lines as text and as JSON; a state that stays bad gives few of them."""

import json
import logging
import re

import pytest

from rocetap.telemetry.logs import LogFormat, StateLog, set_up_logging

LOG = logging.getLogger("rocetap.test")


@pytest.fixture(autouse=True)
def _logging_as_before():
    loggers = [logging.getLogger(name) for name in (None, "asyncio")]
    before = [(one, one.level, list(one.handlers)) for one in loggers]
    yield
    for one, level, handlers in before:
        one.setLevel(level)
        one.handlers[:] = handlers


def test_text(capsys):
    set_up_logging()
    LOG.info("a %s line", "good", extra={"fields": {"count": 1}})
    LOG.debug("not shown")
    assert re.fullmatch(r"\S+ \S+ INFO rocetap\.test: a good line\n", capsys.readouterr().err)


def test_json(capsys):
    set_up_logging(LogFormat.json, verbose=True)
    LOG.debug("a \"%s\"\nline", "bad", extra={"fields": {"count": 1, "path": LogFormat.text}})
    [line] = capsys.readouterr().err.splitlines()
    row = json.loads(line)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", row.pop("time"))
    assert row == {"level": "debug", "logger": "rocetap.test", "message": 'a "bad"\nline',
                   "count": 1, "path": "text"}


def test_json_keeps_a_traceback_on_the_line(capsys):
    set_up_logging(LogFormat.json)
    try:
        raise ValueError("broken")
    except ValueError:
        LOG.exception("failed")
    [line] = capsys.readouterr().err.splitlines()
    assert json.loads(line)["exception"].endswith("ValueError: broken")


class TestStateLog:
    def run(self, caplog, failures, seconds):
        now = [0.0]
        log = StateLog(LOG, lambda: now[0], first_wait=60, longest_wait=240)
        with caplog.at_level(logging.INFO):
            for number in range(failures):
                now[0] = number * seconds
                log.bad("board", f"board lost: reason {number}")
        return log, now, [one.message for one in caplog.records]

    def test_one_line_for_many_failures(self, caplog):
        _, _, lines = self.run(caplog, 50, 1.0)
        assert lines == ["board lost: reason 0"]

    def test_lines_grow_slower_than_failures(self, caplog):
        _, _, lines = self.run(caplog, 1000, 1.0)
        assert lines == ["board lost: reason 0",
                         "board lost: reason 60 (59 like it in 60 s)",
                         "board lost: reason 180 (119 like it in 180 s)",
                         "board lost: reason 420 (239 like it in 420 s)",
                         "board lost: reason 660 (239 like it in 660 s)",
                         "board lost: reason 900 (239 like it in 900 s)"]

    def test_back_is_said_once_and_the_next_failure_at_once(self, caplog):
        log, now, _ = self.run(caplog, 3, 1.0)
        caplog.clear()
        assert log.is_bad("board")
        now[0] = 5.0
        with caplog.at_level(logging.INFO):
            log.good("board", "board is back", boot_id=7)
            log.good("board", "board is back")
            log.bad("board", "lost again")
            log.bad("collector", "another thing")
        assert [one.message for one in caplog.records] == [
            "board is back after 5.0 s", "lost again", "another thing"]
        assert caplog.records[0].fields == {
            "what": "board", "times": 3, "seconds": 5.0, "boot_id": 7}
        assert log.is_bad("board")
