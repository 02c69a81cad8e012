"""Provisioning files: what they say, and one line with its place for each error."""

from __future__ import annotations

import io
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocetap.provisioning import (
    Connection,
    Port,
    Provisioning,
    ProvisioningError,
    parse_provisioning,
    read_provisioning,
)
from rocetap.provisioning import reading as reading_module

HEAD = """\
observation_domain = 9
observation_point = 5

[defaults]
window = 100
vlan = 3

[[port]]
name = "left"
interface = 4

"""
ONE = """\
[[connection]]
source = "192.0.2.1"
destination = "198.51.100.2"
destination_qp = 0x12
"""


def problems(text):
    with pytest.raises(ProvisioningError) as caught:
        parse_provisioning(text, "f.toml")
    assert str(caught.value) == "\n".join(caught.value.problems)
    assert caught.value.exit_code == 2
    return caught.value.problems


def test_a_whole_file_with_defaults():
    text = HEAD + ONE + "\n" + ONE + """\
partition_key = 0x8001
vlan = 0
inner_vlan = 6
window = 7
observation_point = 8
generation_verified = true
generation = 41
"""
    ends = ip_address("192.0.2.1"), ip_address("198.51.100.2")
    assert parse_provisioning(text) == Provisioning(9, 5, [Port("left", 4)], [
        Connection(*ends, 0x12, 0xFFFF, 3, 0, 100),
        Connection(*ends, 0x12, 0x8001, 0, 6, 7, 8, True, 41)])


def test_an_empty_file_and_the_documented_example():
    assert parse_provisioning("") == Provisioning(1, 1, [Port("port0", 1)], [])
    example = "".join(line[4:] + "\n" for line in (reading_module.__doc__ or "").splitlines()
                      if line.startswith("    "))
    [connection] = parse_provisioning(example).connections
    assert (connection.vlan, connection.inner_vlan, connection.observation_point) == (100, 200, 2)


@pytest.mark.parametrize(("text", "lines"), [
    ("window = 4\n", ["f.toml:1: unknown setting 'window'; known are observation_domain, "
                      "observation_point, defaults, port, connection"]),
    ("\nobservation_domian = 4\n", [
        "f.toml:2: unknown setting 'observation_domian'; is observation_domain meant?"]),
    ("observation_point = true\n", [
        "f.toml:1: observation_point is true, must be a whole number from 0 to "
        "18446744073709551615"]),
    ("connection = 3\n", ["f.toml:1: connection must be tables; write [[connection]]"]),
    ("defaults = 3\n", ["f.toml:1: defaults must be a table; write [defaults]"]),
    ("[port]\nname = 'a'\n", ["f.toml:1: port must be tables; write [[port]]"]),
    ("[defaults]\nwindow = 0\nwindows = 1\n", [
        "f.toml:3: unknown setting 'windows'; is window meant?",
        "f.toml:2: window is 0, must be a whole number from 1 to 4194304"]),
    ("[[port]]\nname = 3\n[[port]]\nname = 'b'\ninterface = -1\n", [
        "f.toml:1: this port has no interface",
        "f.toml:2: name is 3, must be a text that is not empty",
        "f.toml:5: interface is -1, must be a whole number from 0 to 4294967295"]),
    (ONE + ONE.replace("0x12", "0x1000000"), [
        "f.toml:8: destination_qp is 16777216, must be a whole number from 0 to 16777215"]),
    (ONE + "[[connection]]\nsource = '192.0.2.1/32'\n", [
        "f.toml:5: this connection has no destination",
        "f.toml:5: this connection has no destination_qp",
        "f.toml:6: source is '192.0.2.1/32', must be an IPv4 or IPv6 address in quotes"]),
    (ONE.replace('"192.0.2.1"', "3"), [
        "f.toml:2: source is 3, must be an IPv4 or IPv6 address in quotes"]),
    (ONE.replace("192.0.2.1", "fe80::1%eth0"), [
        "f.toml:2: source is 'fe80::1%eth0', must be an IPv4 or IPv6 address in quotes"]),
    (ONE.replace("192.0.2.1", "::1"), [
        "f.toml:3: source ::1 and destination 198.51.100.2 are of different families, must both "
        "be IPv4 or both IPv6"]),
    (ONE + "generation_verified = 1\n", [
        "f.toml:5: generation_verified is 1, must be true or false"]),
    (ONE + "window = 3\n\n" + ONE, [
        "f.toml:7: source, destination, QP, P_Key and VLANs are the same as of the connection at "
        "line 1; change or remove one of the two"]),
    ("[[port]]\nname='a'\ninterface=1\n[[port]]\ninterface=1\nname='a'\n", [
        "f.toml:6: name is the same as of the port at line 2; change or remove one of the two",
        "f.toml:5: interface is the same as of the port at line 3; change or remove one of the "
        "two"]),
    ("".join(f"[[port]]\nname='{n}'\ninterface={n}\n" for n in range(9)), [
        "f.toml:1: 9 ports, must be 1 to 8"]),
])
def test_one_line_for_each_error(text, lines):
    assert problems(text) == lines


def test_what_is_not_toml_is_told_with_its_line():
    assert problems("\na = [1,\n") == [
        "f.toml: is not TOML: Invalid value (at end of document)"]
    [line] = problems("\n\nb c = 1\n")
    assert line.startswith("f.toml:3: is not TOML: Expected '='")


def test_errors_behind_a_good_table_do_not_hide_each_other():
    text = HEAD.replace("window = 100", "window = -5") + ONE.replace("0x12", "-2") + ONE
    assert problems(text) == [
        "f.toml:5: window is -5, must be a whole number from 1 to 4194304",
        "f.toml:15: destination_qp is -2, must be a whole number from 0 to 16777215"]


def test_files(tmp_path, monkeypatch):
    path = tmp_path / "p.toml"
    with pytest.raises(ProvisioningError) as caught:
        read_provisioning(str(path))
    assert str(caught.value) == (
        f"{path}: no such file; write one with: rocetap discover CAPTURE --output {path}")
    path.write_bytes(b"a = '\xff'")
    with pytest.raises(ProvisioningError) as caught:
        read_provisioning(str(path))
    assert str(caught.value) == f"{path}: octet 5 is not UTF-8; save the file as UTF-8 text"
    with pytest.raises(ProvisioningError) as caught:
        read_provisioning(str(tmp_path))
    assert str(caught.value) == f"{tmp_path}: cannot be read: Is a directory"
    path.write_text(ONE)
    assert len(read_provisioning(str(path)).connections) == 1
    monkeypatch.setattr("sys.stdin", io.StringIO(ONE))
    assert len(read_provisioning("-").connections) == 1


@pytest.mark.parametrize(("number", "line"), [
    ("0x" + "f" * 5000, "f.toml:4: destination_qp is a number of 20000 bits, must be a whole "
     "number from 0 to 16777215"),
    ("9" * 5000, "f.toml: is not TOML: Exceeds the limit")])
def test_a_number_without_end_is_one_line(number, line):
    text = ('[[connection]]\nsource = "192.0.2.1"\ndestination = "192.0.2.2"\n'
            f'destination_qp = {number}\n')
    with pytest.raises(ProvisioningError) as caught:
        parse_provisioning(text, "f.toml")
    problem, = caught.value.problems
    assert problem.startswith(line)


WORDS = ["[[connection]]\n", "[[port]]\n", "[defaults]\n", "window = 3\n", "vlan = 'x'\n",
         "source = '192.0.2.1'\n", "destination = '::1'\n", "destination_qp = 5\n", "name = 'a'\n",
         "interface = 1\n", "x = [[[]]]\n", "port = {}\n", "connection = [1]\n", "\n", "# c\n"]


@given(st.lists(st.sampled_from(WORDS) | st.text(max_size=8), max_size=12).map("".join))
def test_any_text_is_read_or_refused(text):
    lines = ["f.toml: "]
    try:
        assert parse_provisioning(text, "f.toml").ports
    except ProvisioningError as error:
        lines = error.problems
    assert lines
    assert all(line.startswith("f.toml") and "\n" not in line for line in lines)
