"""What holds for the whole suite: order, independent tools, and no silent skips.

Fast tests run first: tests/host, tests/hdl, then the rest, and what builds the simulated board
last. Tests marked ``independent`` need tshark and ipfixDump; without them they are deselected, and
the run says so at its start and its end. With CI set nothing is deselected, and a test that is
skipped or expected to fail counts as failed.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

INDEPENDENT_TOOLS = {"tshark": "tshark", "ipfixDump": "libfixbuf-tools"}
"""Program -> Debian package."""

ORDER = ("host", "hdl", "boards", "formal", "sim", "cocotb", "e2e")
"""Folders of tests/ in the order they run; any other comes before sim."""

_HERE = Path(__file__).parent


def _strict() -> bool:
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def _missing_tools() -> list[str]:
    return [package for tool, package in INDEPENDENT_TOOLS.items() if shutil.which(tool) is None]


def _deselection_notice(missing: list[str]) -> str:
    return ("independent: tests against tshark and ipfixDump do not run; "
            f"apt-get install {' '.join(missing)}")


def pytest_report_header() -> str | None:
    missing = _missing_tools()
    return _deselection_notice(missing) if missing and not _strict() else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    missing = _missing_tools()
    if missing and not _strict():
        terminalreporter.write_line(_deselection_notice(missing), yellow=True)


def _rank(item: pytest.Item) -> int:
    try:
        folder = item.path.relative_to(_HERE).parts[0]
    except ValueError:
        folder = ""
    return ORDER.index(folder) if folder in ORDER else ORDER.index("sim")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if _missing_tools() and not _strict():
        independent = [item for item in items if item.get_closest_marker("independent")]
        if independent:
            config.hook.pytest_deselected(items=independent)
            items[:] = [item for item in items if item not in independent]
    items.sort(key=_rank)


def _fail_if_skipped(report: pytest.TestReport | pytest.CollectReport, node: str) -> None:
    expected_to_fail = hasattr(report, "wasxfail")
    if report.outcome == "skipped" or expected_to_fail:
        what = "is expected to fail" if expected_to_fail else "was skipped"
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{node} {what}, which CI does not allow: {reason}"
        if expected_to_fail:
            del report.wasxfail


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item):
    report = yield
    if _strict():
        _fail_if_skipped(report, item.nodeid)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report(collector: pytest.Collector):
    report = yield
    if _strict():
        _fail_if_skipped(report, collector.nodeid)
    return report
