"""Commands set up logging for their process; here each test gives it back as it was."""

import logging

import pytest


@pytest.fixture(autouse=True)
def _logging_as_before():
    loggers = [logging.getLogger(name) for name in (None, "rocetap", "asyncio")]
    before = [(one, one.level, list(one.handlers)) for one in loggers]
    yield
    for one, level, handlers in before:
        one.setLevel(level)
        one.handlers[:] = handlers
