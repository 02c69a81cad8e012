"""The systemd units and the example of a settings file that come with the source."""

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from rocetap.cli import collect, export
from rocetap.cli.configuration import load

PACKAGING = Path(__file__).parents[3] / "packaging"
NAMES = ("export", "collect")
SYSTEMD = shutil.which("systemd-analyze")


class Repeated(dict):
    """Keys of a unit may repeat: their values as lines."""

    def __setitem__(self, key, value):
        if key in self and isinstance(value, list):
            value = self[key] + value
        super().__setitem__(key, value)


def unit(name):
    parser = configparser.ConfigParser(strict=False, interpolation=None, dict_type=Repeated,
                                       delimiters=("=",), comment_prefixes=("#",))
    parser.optionxform = str
    parser.read(PACKAGING / "systemd" / f"rocetap-{name}.service")
    return parser


@pytest.mark.parametrize("name", NAMES)
def test_a_unit_runs_its_command_and_is_told_how_it_goes(name):
    service = unit(name)["Service"]
    words = service["ExecStart"].split()
    assert words[1:] == [name, "--config", "/etc/rocetap/rocetap.toml"]
    assert (service["Type"], service["Restart"]) == ("notify", "on-failure")
    assert service["ExecReload"] == "/bin/kill -HUP $MAINPID"
    assert int(service["WatchdogSec"]) >= 30


@pytest.mark.parametrize(("name", "files"), [
    ("export", {"ca.pem", "exporter.pem", "exporter.key"}),
    ("collect", {"ca.pem", "collector.pem", "collector.key"})])
def test_keys_come_as_credentials_under_the_names_that_the_command_looks_for(name, files):
    loaded = unit(name)["Service"]["LoadCredential"].split("\n")
    assert {line.partition(":")[0] for line in loaded} == files
    assert "ROCETAP_PKI=%d" in unit(name)["Service"]["Environment"].split("\n")


@pytest.mark.parametrize("name", NAMES)
def test_hardening(name):
    service = unit(name)["Service"]
    wanted = {"NoNewPrivileges": "yes", "ProtectSystem": "strict", "ProtectHome": "yes",
              "PrivateTmp": "yes", "DynamicUser": "yes", "CapabilityBoundingSet": "",
              "RestrictNamespaces": "yes", "RestrictSUIDSGID": "yes"}
    assert {key: service[key] for key in wanted} == wanted


@pytest.mark.parametrize(("name", "settings", "environment"), [
    ("export", export.SETTINGS, {"ROCETAP_PKI": "keys"}),
    ("collect", collect.SETTINGS, {"ROCETAP_PKI": "keys", "ROCETAP_STORE": "f.db"})])
def test_the_example_is_a_whole_configuration(name, settings, environment):
    values = load(name, settings, {}, PACKAGING / "rocetap.toml", environment)
    assert values["pki"] == Path("keys")
    assert values["metrics"]


@pytest.mark.parametrize(("command", "settings"), [
    (export.export, export.SETTINGS), (collect.collect, collect.SETTINGS)])
def test_every_option_is_a_setting(command, settings):
    import inspect
    options = set(inspect.signature(command).parameters) - {"config"}
    assert options == {one.name for one in settings}


if SYSTEMD:
    @pytest.fixture
    def runnable(tmp_path):
        """The units with a program that is there, for systemd looks for it."""
        for name in NAMES:
            text = (PACKAGING / "systemd" / f"rocetap-{name}.service").read_text()
            text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", text, flags=re.MULTILINE)
            (tmp_path / f"rocetap-{name}.service").write_text(text)
        return tmp_path

    @pytest.mark.parametrize("name", NAMES)
    def test_systemd_accepts_the_unit(runnable, name):
        done = subprocess.run([SYSTEMD, "verify", "--man=no", runnable / f"rocetap-{name}.service"],
                              capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, done.stdout + done.stderr) == (0, "")

    @pytest.mark.parametrize("name", NAMES)
    def test_systemd_finds_little_exposed(runnable, name):
        done = subprocess.run(
            [SYSTEMD, "security", "--offline=true", "--threshold=25", "--no-pager",
             runnable / f"rocetap-{name}.service"],
            capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stdout
