"""The command line as a whole: help that is quick, errors that are one line."""

import importlib.metadata
import subprocess
import sys

import pytest

from rocetap import cli
from rocetap.errors import RocetapError
from rocetap.provisioning import ProvisioningError


def run(*arguments, **settings):
    return subprocess.run([sys.executable, "-m", "rocetap.cli", *arguments], capture_output=True,
                          text=True, check=False, timeout=60, **settings)


def test_help_lists_every_command():
    done = run("--help")
    assert done.returncode == 0
    for name in cli.COMMANDS:
        assert f"\n  {name} " in done.stdout


def test_help_loads_no_command():
    code = ("import sys, rocetap.cli; rocetap.cli.make_app(None); "
            "print([name for name in ('numpy', 'cryptography', 'serial', 'rich.table', "
            "'rocetap.export') if name in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_help_with_examples(name):
    done = run(name, "--help")
    assert done.returncode == 0, done.stderr
    assert "Example" in done.stdout
    assert f"rocetap {name}" in done.stdout


def test_without_arguments_the_help_is_shown():
    assert "Commands:" in run().stdout + run().stderr


@pytest.mark.parametrize(("arguments", "line"), [
    (["zzz"], "no such command 'zzz'; see rocetap --help"),
    (["--zzz"], "no such option: --zzz; see rocetap --help"),
    (["query"], "missing argument 'store'; see rocetap query --help"),
    (["query", "x", "--format", "y"], "invalid value for '--format': 'y' is not one of 'table', "
                                      "'jsonl', 'csv', 'ipfix'; see rocetap query --help"),
    (["bench", "host", "--scale", "0"], "invalid value for '--scale': must be greater than or "
                                        "equal to 0.01; see rocetap bench host --help"),
    (["pki", "init"], "missing option '--dir'; see rocetap pki init --help"),
])
def test_a_wrong_use_is_one_line_and_fails(arguments, line):
    done = run(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"rocetap: error: {line}\n")


def test_a_command_that_is_nearly_one_is_named():
    done = run("replai")
    assert done.returncode == 2
    assert "'replay'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_version():
    done = run("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"rocetap {importlib.metadata.version('rocetap')}\n"


@pytest.mark.parametrize(("error", "code", "lines"), [
    (RocetapError("what, where, what to do"), 2, ["what, where, what to do"]),
    (RocetapError("cut", exit_code=3), 3, ["cut"]),
    (ProvisioningError(["one", "two"]), 2, ["one", "two"]),
])
def test_an_error_is_its_lines_and_its_exit_code(monkeypatch, capsys, error, code, lines):
    def fails(chosen):
        raise error

    monkeypatch.setattr(cli, "make_app", fails)
    with pytest.raises(SystemExit) as caught:
        cli.main(["replay"])
    assert caught.value.code == code
    captured = capsys.readouterr()
    assert captured.err.splitlines() == [f"rocetap: error: {line}" for line in lines]
    assert captured.out == ""


def test_output_that_cannot_be_written_is_one_line():
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "rocetap.cli", "--help"], stdout=full,
                              stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (
        2, "rocetap: error: cannot write to standard output: No space left on device; free space "
           "there, or write somewhere else\n")
