"""tests/conftest.py in a small tree of its own: skips fail under CI, tools are asked for, order."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

CONFTEST = Path(__file__).parents[1] / "conftest.py"

TESTS = """
import pytest

def test_passes():
    pass

@pytest.mark.skip(reason="no time")
def test_skipped():
    pass

@pytest.mark.xfail(reason="known", strict=False)
def test_expected_to_fail():
    assert False

@pytest.mark.xfail(reason="mended", strict=False)
def test_unexpectedly_passes():
    pass
"""


def run(folder, *arguments, **environment):
    """pytest with our conftest in `folder`, in a process of its own."""
    shutil.copy(CONFTEST, folder / "conftest.py")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = independent: needs tools\n")
    variables = {key: value for key, value in os.environ.items()
                 if key != "CI" and not key.startswith("PYTEST")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        cwd=folder, env={**variables, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **environment},
        capture_output=True, text=True, timeout=60)


def test_without_ci_a_skip_is_a_skip(tmp_path):
    (tmp_path / "test_it.py").write_text(TESTS)
    outcome = run(tmp_path)
    assert "1 passed, 1 skipped, 1 xfailed, 1 xpassed" in outcome.stdout
    assert outcome.returncode == 0


def test_under_ci_skips_and_expected_failures_fail(tmp_path):
    (tmp_path / "test_it.py").write_text(TESTS)
    outcome = run(tmp_path, CI="true")
    assert "2 failed, 1 passed, 1 error" in outcome.stdout
    assert ("test_it.py::test_skipped was skipped, which CI does not allow: Skipped: no time"
            in outcome.stdout)
    assert ("test_it.py::test_expected_to_fail is expected to fail, which CI does not allow"
            in outcome.stdout)
    assert outcome.returncode == 1


def test_under_ci_a_skipped_module_fails(tmp_path):
    (tmp_path / "test_it.py").write_text("import pytest\npytest.importorskip('no_such_module')\n")
    outcome = run(tmp_path, CI="true")
    assert "test_it.py was skipped, which CI does not allow" in outcome.stdout
    assert outcome.returncode == 2


INDEPENDENT = """
import pytest

@pytest.mark.independent
def test_against_tshark():
    assert False

def test_alone():
    pass
"""

NOTICE = ("independent: tests against tshark and ipfixDump do not run; "
          "apt-get install tshark libfixbuf-tools")


def test_missing_tools_deselect_and_say_so_twice(tmp_path):
    (tmp_path / "test_it.py").write_text(INDEPENDENT)
    outcome = run(tmp_path, PATH=str(tmp_path))
    assert outcome.stdout.splitlines().count(NOTICE) == 2
    assert "1 passed, 1 deselected" in outcome.stdout
    assert outcome.returncode == 0


def test_missing_tools_under_ci_deselect_nothing(tmp_path):
    (tmp_path / "test_it.py").write_text(INDEPENDENT)
    outcome = run(tmp_path, PATH=str(tmp_path), CI="true")
    assert NOTICE not in outcome.stdout
    assert "1 failed, 1 passed" in outcome.stdout


def test_present_tools_run(tmp_path):
    (tmp_path / "test_it.py").write_text(INDEPENDENT)
    for tool in ("tshark", "ipfixDump"):
        (tmp_path / tool).write_text("#!/bin/sh\n")
        (tmp_path / tool).chmod(0o755)
    outcome = run(tmp_path, PATH=str(tmp_path))
    assert NOTICE not in outcome.stdout
    assert "1 failed, 1 passed" in outcome.stdout


def test_fast_folders_run_first(tmp_path):
    folders = ("e2e", "host", "sim", "other", "cocotb", "hdl")
    for folder in folders:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"test_{folder}.py").write_text("def test_it():\n    pass\n")
    outcome = run(tmp_path, "-v")
    seen = [line.split("/")[0] for line in outcome.stdout.splitlines() if "PASSED" in line]
    assert seen[:2] == ["host", "hdl"]
    assert seen[-2:] == ["cocotb", "e2e"]
    assert sorted(seen) == sorted(folders)
