"""rocetap synth, as a command of its own."""

from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from rocetap.capture.synth import SynthSettings, write_synthetic
from rocetap.capture.traffic import Impairments
from rocetap.cli.synth import synth
from rocetap.errors import RocetapError

APP = typer.Typer()
APP.command()(synth)


def run(*arguments):
    return CliRunner().invoke(APP, [str(argument) for argument in arguments])


def test_the_options_are_the_settings(tmp_path):
    result = run(tmp_path / "a.pcap", "--packets", 900, "--connections", 4, "--seed", 3,
                 "--gap", 0.01, "--repeat", 0.02, "--late", 0.03, "--jump", 0.04, "--reads", 2,
                 "--cnp", 0.05, "--pfc", 0.06, "--other", 0.07, "--payload", "small", "--micro")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith(f"{tmp_path}/a.pcap: 900 frames (")
    assert "2 reads" in result.stderr
    write_synthetic(tmp_path / "b.pcap", SynthSettings(
        900, 4, 3, Impairments(0.01, 0.02, 0.03, 0.04), 2, 0.05, 0.06, 0.07, "small"),
        nanoseconds=False)
    assert (tmp_path / "a.pcap").read_bytes() == (tmp_path / "b.pcap").read_bytes()


def test_the_defaults_are_those_of_the_settings(tmp_path):
    assert run(tmp_path / "a.pcap", "--packets", 500).exit_code == 0
    write_synthetic(tmp_path / "b.pcap", SynthSettings(packets=500))
    assert (tmp_path / "a.pcap").read_bytes() == (tmp_path / "b.pcap").read_bytes()


def test_errors_are_left_to_the_main_command(tmp_path):
    result = run(tmp_path / "a.pcap", "--packets", 0)
    assert isinstance(result.exception, RocetapError)
    assert str(result.exception) == "packets is 0, must be 1 to 1099511627776"
    assert not (tmp_path / "a.pcap").exists()


@pytest.mark.parametrize("wanted", ["Examples:", "rocetap synth sample.pcap"])
def test_help_has_examples(wanted):
    assert wanted in run("--help").stdout
