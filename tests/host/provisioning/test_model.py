"""Each value is checked when it is made, the whole when it is put together."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from rocetap.provisioning import Connection, Port, Provisioning, ProvisioningError
from rocetap.spec.keys import unpack_key
from rocetap.wording import as_toml

A4, B4 = ip_address("192.0.2.1"), ip_address("198.51.100.2")
A6, B6 = ip_address("2001:db8::1"), ip_address("2001:db8::2")


def problems(make, *args, **fields):
    with pytest.raises(ProvisioningError) as caught:
        make(*args, **fields)
    assert str(caught.value) == "\n".join(caught.value.problems)
    return caught.value.problems


@pytest.mark.parametrize(("source", "destination", "ipv6"), [(A4, B4, 0), (A6, B6, 1)])
def test_the_key_has_every_part_in_its_place(source, destination, ipv6):
    key = Connection(source, destination, 0xABCDEF, 0x7FFF, vlan=5, inner_vlan=4095).key()
    assert unpack_key(key) == {
        "qp": 0xABCDEF, "pkey": 0x7FFF, "inner_vid": 4095, "outer_vid": 5, "vni": 0,
        "tunnelled": 0, "ipv6": ipv6, "destination": int(destination), "source": int(source)}


@pytest.mark.parametrize(("field", "good", "bad"), [
    ("destination_qp", (0, 0xFFFFFF), (-1, 0x1000000, True, 1.0, "1")),
    ("partition_key", (0, 0xFFFF), (-1, 0x10000)),
    ("generation", (0, 2**64 - 1), (-1, 2**64)),
    ("vlan", (0, 4095), (-1, 4096)), ("inner_vlan", (0, 4095), (-1, 4096)),
    ("window", (1, 4194304), (0, 4194305)),
    ("observation_point", (0, 2**64 - 1), (-1, 2**64))])
def test_limits_of_a_connection(field, good, bad):
    limits = {"destination_qp": 0xFFFFFF, "partition_key": 0xFFFF, "vlan": 4095, "inner_vlan": 4095,
              "window": 4194304, "observation_point": 2**64 - 1, "generation": 2**64 - 1}
    for value in good:
        assert getattr(Connection(A4, B4, **{"destination_qp": 1, field: value}), field) == value
    for value in bad:
        assert problems(Connection, A4, B4, **{"destination_qp": 1, field: value}) == [
            f"{field} is {as_toml(value)}, must be a whole number from {int(field == 'window')} to "
            f"{limits[field]}"]


def test_all_bad_values_of_a_connection_are_told():
    assert len(problems(Connection, A4, B4, -1, vlan=9999, window=0)) == 3


def test_families_must_not_be_mixed():
    assert problems(Connection, A4, B6, 1) == [
        "source 192.0.2.1 and destination 2001:db8::2 are of different families, must both be "
        "IPv4 or both IPv6"]


def test_ports():
    assert problems(Port, "", 1) == ["name is '', must be a text that is not empty"]
    assert problems(Port, "a", 2**32) == [
        "interface is 4294967296, must be a whole number from 0 to 4294967295"]


def test_the_whole_is_checked():
    one, same = Connection(A4, B4, 1), Connection(A4, B4, 1, window=9)
    assert problems(Provisioning, observation_domain=2**32) == [
        "observation_domain is 4294967296, must be a whole number from 0 to 4294967295"]
    assert problems(
        Provisioning, ports=[Port("a", 1), Port("b", 1), Port("a", 2)],
        connections=[one, Connection(A4, B4, 2), same]) == [
            "port 3 has the name of port 1, 'a'; change one",
            "port 2 has the interface of port 1, 1; change one",
            "connection 3 has the source, destination, QP, P_Key and VLANs of connection 1; "
            "remove one of the two"]
    assert problems(Provisioning, ports=[]) == ["0 ports, must be 1 to 8"]
    assert problems(Provisioning, ports=[Port(str(n), n) for n in range(9)]) == [
        "9 ports, must be 1 to 8"]


def test_the_observation_point_of_a_connection():
    own, shared = Connection(A4, B4, 1, observation_point=0), Connection(A4, B4, 2)
    whole = Provisioning(observation_point=7, connections=[own, shared])
    assert (whole.point_of(own), whole.point_of(shared)) == (0, 7)
    assert whole.ports == [Port("port0", 1)]
