"""rocetap pki: what it writes and says."""

import pytest

from rocetap.cli import main


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as caught:
        main(["pki", *map(str, arguments)])
    captured = capsys.readouterr()
    return caught.value.code, captured.out, captured.err


def test_init_and_issue(tmp_path, capsys):
    code, out, err = run(capsys, "init", "--dir", tmp_path / "pki", "--exporter", "probe",
                         "--collector", "collector.example")
    assert code == 0
    assert sorted(out.split()) == [str(tmp_path / "pki" / name) for name in (
        "ca.key", "ca.pem", "collector.key", "collector.pem", "exporter.key", "exporter.pem")]
    assert err == "This is a development PKI: its authority's key is not encrypted.\n"
    code, out, err = run(capsys, "issue", "--dir", tmp_path / "pki", "--name", "probe-2",
                         "--days", 2)
    assert (code, err) == (0, "")
    assert (tmp_path / "pki" / "probe-2.pem").exists()


def test_a_second_init_is_refused_in_one_line(tmp_path, capsys):
    arguments = ("init", "--dir", tmp_path, "--exporter", "a", "--collector", "b")
    assert run(capsys, *arguments)[0] == 0
    assert run(capsys, *arguments) == (
        2, "", f"rocetap: error: {tmp_path}/ca.pem exists: give --force to replace it\n")
    assert run(capsys, *arguments, "--force")[0] == 0
