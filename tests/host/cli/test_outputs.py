"""Every command that writes a file leaves links, FIFOs and devices where they are."""

import os
import stat
import threading

import pytest

from rocetap import pki
from rocetap.cli import main
from rocetap.cli.collect import _announced
from support.captures import pcap, record
from support.frames import roce
from support.ipfix_tools import reports
from support.store_bench import fill

COMMANDS = {
    "query table": ["query", "{}/flows.db", "--output"],
    "query jsonl": ["query", "{}/flows.db", "--format", "jsonl", "--output"],
    "query csv": ["query", "{}/flows.db", "--format", "csv", "--output"],
    "query ipfix": ["query", "{}/flows.db", "--format", "ipfix", "--output"],
    "discover": ["discover", "{}/x.pcap", "--force", "--output"],
    "synth": ["synth", "--packets", "10", "--connections", "1", "--reads", "0"],
    "verilog": ["verilog", "--output"],
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    import rocetap_hdl.axi.verilog
    from rocetap.collect.store import SqliteStore

    monkeypatch.setattr(rocetap_hdl.axi.verilog, "core_verilog", lambda core, top: "text\n")
    store = SqliteStore(tmp_path / "flows.db")
    fill(store, reports(2, flags=0x21))
    store.close()
    (tmp_path / "x.pcap").write_bytes(pcap(record(roce(psn=1))))
    return tmp_path


def names(folder):
    """But for what SQLite keeps beside a store."""
    return sorted(name for name in os.listdir(folder) if not name.startswith("flows.db"))


def run(name, folder, output):
    before = names(folder)
    with pytest.raises(SystemExit) as ended:
        main([*(part.format(folder) for part in COMMANDS[name]), str(output)])
    assert not ended.value.code
    assert names(folder) == before, "nothing is left beside it"


@pytest.mark.parametrize("name", COMMANDS)
def test_through_a_link_its_target_is_written(capsys, folder, name):
    (folder / "target").touch()
    (folder / "link").symlink_to("target")
    run(name, folder, folder / "link")
    assert (folder / "link").is_symlink()
    assert (folder / "target").stat().st_size > 3


@pytest.mark.parametrize("name", COMMANDS)
def test_into_a_fifo(capsys, folder, name):
    fifo = folder / "fifo"
    os.mkfifo(fifo)
    got = []
    reader = threading.Thread(
        target=lambda: got.append(fifo.read_bytes()), daemon=True)
    reader.start()
    run(name, folder, fifo)
    reader.join(10)
    assert len(got[0]) > 3
    assert stat.S_ISFIFO(fifo.stat().st_mode)


def test_keys_and_certificates(tmp_path):
    (tmp_path / "pki").mkdir()
    for name in ("ca.key", "ca.pem"):
        (tmp_path / name).touch(mode=0o644)
        (tmp_path / "pki" / name).symlink_to(tmp_path / name)
    pki.init(tmp_path / "pki", "probe", "collector", force=True)
    for name, mode in (("ca.key", 0o600), ("ca.pem", 0o644)):
        assert (tmp_path / "pki" / name).is_symlink()
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == mode
        assert (tmp_path / name).read_text().startswith("-----BEGIN")


def test_the_port_file_of_a_collector(tmp_path):
    (tmp_path / "link").symlink_to("port")
    with _announced(tmp_path / "link", 4740):
        assert (tmp_path / "port").read_text() == "4740\n"
    assert [path.name for path in tmp_path.iterdir()] == ["link"]
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    got = []
    reader = threading.Thread(
        target=lambda: got.append(fifo.read_bytes()), daemon=True)
    reader.start()
    with _announced(fifo, 4740):
        reader.join(10)
    assert got == [b"4740\n"]
    assert stat.S_ISFIFO(fifo.stat().st_mode)
