"""rocetap collect: what is wrong at the start is one line."""

import pytest

from rocetap import pki
from rocetap.cli import main


@pytest.fixture
def folder(tmp_path):
    pki.init(tmp_path, "probe", "collector.example")
    return tmp_path


def fails(capsys, folder, *more, listen="127.0.0.1:0", store=None):
    with pytest.raises(SystemExit) as caught:
        main(["collect", "--pki", str(folder), "--listen", listen, "--store",
              str(store or folder / "flows.db"), "--allow", "probe", *more])
    assert caught.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    errors = [line for line in captured.err.splitlines() if line.startswith("rocetap: error: ")]
    assert "Traceback" not in captured.err
    [line] = errors
    return line.removeprefix("rocetap: error: ")


def test_no_pki(capsys, tmp_path):
    assert fails(capsys, tmp_path) == (
        f"{tmp_path}/ca.pem not found: make a development PKI with "
        f"`rocetap pki init --dir {tmp_path} --exporter NAME --collector NAME`")


def test_an_expired_certificate(capsys, folder):
    pki.issue(folder, "collector", days=-1, force=True)
    assert fails(capsys, folder).startswith(f"{folder}/collector.pem expired on ")


def test_an_address_without_a_port(capsys, folder):
    assert fails(capsys, folder, listen="localhost") == (
        "--listen is localhost, no port; give HOST:PORT, IPV4:PORT or [IPV6]:PORT")


def test_a_store_in_a_folder_that_is_not_there(capsys, folder):
    line = fails(capsys, folder, store=folder / "no" / "flows.db")
    assert line.startswith(f"store {folder}/no/flows.db: ")


def test_a_port_file_that_cannot_be_written(capsys, folder):
    assert fails(capsys, folder, "--port-file", str(folder / "no" / "port")) == (
        f"cannot write {folder}/no/port: No such file or directory")


@pytest.mark.parametrize("name", ["collector.pem", "flows.db"])
def test_a_port_file_that_is_read_or_written_already(capsys, folder, name):
    (folder / "flows.db").touch()
    before = (folder / name).read_bytes()
    assert fails(capsys, folder, "--port-file", str(folder / name)) == (
        f"--port-file {folder}/{name}: is read or written already; give another file")
    assert (folder / name).read_bytes() == before


@pytest.mark.parametrize("name", ["flows.db", "flows.db.lock", "flows.db-wal", "flows.db-shm"])
def test_a_port_file_that_would_be_a_part_of_the_store(capsys, folder, name):
    """None of them is there yet: the store is opened later."""
    (folder / name).unlink(missing_ok=True)
    assert fails(capsys, folder, "--port-file", str(folder / name)) == (
        f"--port-file {folder}/{name}: is read or written already; give another file")
    assert not (folder / name).exists()


def test_a_limit_that_is_none(capsys, folder):
    assert fails(capsys, folder, "--limit", "peers=none") == (
        "--limit peers=none: must be a whole number above 0")


def test_every_limit_of_a_file_that_is_none_is_told_with_its_line(capsys, folder):
    file = folder / "rocetap.toml"
    file.write_text('[collect]\nstore = "f.db"\nallow = ["probe", ""]\n'
                    'limit = ["peers=0",\n  "idle_s=x",\n  "peer=3"]\nlisten = "4740"\n')
    with pytest.raises(SystemExit) as caught:
        main(["collect", "--config", str(file), "--pki", str(folder)])
    assert caught.value.code == 2
    *lines, last = [line.removeprefix("rocetap: error: ")
                    for line in capsys.readouterr().err.splitlines()]
    assert lines == [
        f"{file}:3: allow '': must not be empty",
        f"{file}:7: listen is 4740, a port without a host; give HOST:4740, such as "
        "127.0.0.1:4740",
        f"{file}:4: limit peers=0: must be a whole number above 0",
        f"{file}:5: limit idle_s=x: must be a number above 0"]
    assert last.startswith(f"{file}:6: limit peer=3: there is no limit 'peer'; they are ")


def test_a_metrics_address_without_a_port(capsys, folder):
    assert fails(capsys, folder, "--metrics", "127.0.0.1") == (
        "--metrics is 127.0.0.1, no port; give HOST:PORT, IPV4:PORT or [IPV6]:PORT")


def test_every_error_of_a_file_is_a_line(capsys, folder):
    (folder / "rocetap.toml").write_text('[collect]\nallow = []\nlisten = "x"\nstor = "f"\n')
    with pytest.raises(SystemExit) as caught:
        main(["collect", "--config", str(folder / "rocetap.toml"), "--pki", str(folder)])
    assert caught.value.code == 2
    assert capsys.readouterr().err.splitlines() == [f"rocetap: error: {line}" for line in (
        f"{folder}/rocetap.toml:4: unknown setting 'stor'; is store meant?",
        f"no store: give --store or ROCETAP_STORE, or store in [collect] of {folder}/rocetap.toml",
        f"{folder}/rocetap.toml:2: allow is [], must have a name",
        f"{folder}/rocetap.toml:3: listen is x, no port; give HOST:PORT, IPV4:PORT or "
        "[IPV6]:PORT")]
