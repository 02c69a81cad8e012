"""rocetap replay: what is refused before a board is built."""

import pytest

from rocetap.cli import main
from support import frames as packets
from support.captures import block, enhanced, interface, pcap, record, section

TOML = """
[[connection]]
source = "192.0.2.1"
destination = "198.51.100.2"
destination_qp = 1
"""


def fails(capsys, *arguments):
    with pytest.raises(SystemExit) as caught:
        main(["replay", *map(str, arguments)])
    assert caught.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    [line] = captured.err.splitlines()
    return line.removeprefix("rocetap: error: ")


@pytest.fixture
def capture(tmp_path):
    path = tmp_path / "capture.pcap"
    path.write_bytes(pcap(record(packets.roce())))
    return path


def test_no_such_file(capsys, tmp_path):
    assert fails(capsys, tmp_path / "no") == (
        f"{tmp_path}/no: no such file; give the path of a pcap or pcapng capture")


def test_an_empty_file(capsys, tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    assert fails(capsys, tmp_path / "empty").startswith(f"{tmp_path}/empty: is empty")


def test_an_unknown_link_type(capsys, tmp_path):
    (tmp_path / "erf.pcap").write_bytes(pcap(link_type=197))
    assert fails(capsys, tmp_path / "erf.pcap").startswith(f"{tmp_path}/erf.pcap: link type 197")


@pytest.mark.parametrize("window", [0, -1, 257])
def test_a_window_out_of_range(capsys, capture, window):
    assert fails(capsys, capture, "--window", window) == (
        f"window {window} is out of range: this board takes 1 to 256")


def test_more_streams_than_contexts(capsys, tmp_path):
    path = tmp_path / "many.pcap"
    path.write_bytes(pcap(*(record(packets.roce(qp=number)) for number in range(1025))))
    assert fails(capsys, path) == (
        "the capture has 1025 request streams, but the board has contexts for 1024: give "
        "--provision FILE with those to watch (rocetap discover writes one)")


def many_interfaces(path, number):
    path.write_bytes(section() + interface() * (number + 1)
                     + enhanced(packets.roce(), number=number) + block(0x0BAD, b""))
    return path


def test_more_interfaces_than_ports(capsys, tmp_path):
    assert fails(capsys, many_interfaces(tmp_path / "c.pcapng", 8)) == (
        "the capture has frames of interface 8, but a board has at most 8 ports: split the capture")


def test_a_provisioning_with_too_few_ports(capsys, tmp_path):
    (tmp_path / "probe.toml").write_text(TOML)
    assert fails(capsys, many_interfaces(tmp_path / "c.pcapng", 2), "--provision",
                 tmp_path / "probe.toml") == (
        "the capture has frames of interface 2, but the provisioning names 1 ports: add [[port]] "
        "tables, one for each interface of the capture")


def test_a_provisioned_window_out_of_range(capsys, tmp_path, capture):
    (tmp_path / "probe.toml").write_text(TOML + "window = 300\n")
    assert fails(capsys, capture, "--provision", tmp_path / "probe.toml") == (
        "window 300 is out of range: this board takes 1 to 256")


def test_no_simulator(capsys, capture, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "rocetap_sim.board", None)
    line = fails(capsys, capture)
    assert line.startswith("the simulated board is not installed (")
    assert line.endswith(": install rocetap with its extra [sim]")
