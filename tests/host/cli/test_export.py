"""rocetap export: what is wrong at the start is one line, before anything is opened."""

import pytest

from rocetap import pki
from rocetap.cli import main

TOML = """
[[connection]]
source = "192.0.2.1"
destination = "198.51.100.2"
destination_qp = 1
"""


@pytest.fixture
def folder(tmp_path):
    pki.init(tmp_path, "probe", "collector.example")
    (tmp_path / "probe.toml").write_text(TOML)
    return tmp_path


def fails(capsys, folder, **changes):
    options = {"board": "/dev/no-such-board", "pki": folder, "collector": "127.0.0.1:4740",
               "collector-name": "collector.example", "provision": folder / "probe.toml",
               **{name.replace("_", "-"): value for name, value in changes.items()}}
    arguments = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    with pytest.raises(SystemExit) as caught:
        main(["export", *arguments])
    assert caught.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    errors = [line for line in captured.err.splitlines() if line.startswith("rocetap: error: ")]
    assert captured.err.splitlines()[-1] == errors[-1]
    return [line.removeprefix("rocetap: error: ") for line in errors]


def test_no_board(capsys, folder):
    [line] = fails(capsys, folder)
    assert line.startswith("cannot open /dev/no-such-board: no such port")


def test_an_ambiguous_collector(capsys, folder):
    assert fails(capsys, folder, collector="::1:4740") == [
        "--collector is ::1:4740, more than one colon is ambiguous; put an IPv6 address in "
        "brackets, as in [::1]:4740"]


@pytest.mark.parametrize(("option", "value", "line"), [
    ("interval", "0", "--interval is 0.0, must be 0.05 to 86400"),
    ("queue", "0", "--queue is 0, must be 1 to 10000000"),
    ("domain", "-1", "--domain is -1, must be 0 to 4294967295"),
    ("pen", "-1", "--pen is -1, must be 0 to 4294967295"),
])
def test_numbers_out_of_range(capsys, folder, option, value, line):
    assert fails(capsys, folder, **{option: value}) == [line]


def test_an_expired_certificate(capsys, folder):
    pki.issue(folder, "exporter", days=-1, force=True)
    [line] = fails(capsys, folder)
    assert line.startswith(f"{folder}/exporter.pem expired on ")


def test_a_foreign_certificate(capsys, folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    pki.init(other, "probe", "collector.example")
    for name in ("exporter.pem", "exporter.key"):
        (folder / name).write_bytes((other / name).read_bytes())
    assert fails(capsys, folder) == [
        f"{folder}/exporter.pem was not issued by {folder}/ca.pem: both must come from one "
        "authority"]


def test_every_error_of_a_provisioning_is_a_line(capsys, folder):
    (folder / "probe.toml").write_text(TOML + "window = 0\nwindou = 3\n")
    lines = fails(capsys, folder)
    assert len(lines) == 2
    assert all(line.startswith(f"{folder}/probe.toml:") for line in lines)
