"""What is written is read back as it was, whatever it is."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

from hypothesis import given
from hypothesis import strategies as st

from rocetap.provisioning import (
    Connection,
    Port,
    Provisioning,
    connection_text,
    parse_provisioning,
    provisioning_text,
)


def connections(address):
    return st.builds(
        Connection, address, address, st.integers(0, 0xFFFFFF), st.integers(0, 0xFFFF),
        st.integers(0, 4095), st.integers(0, 4095), st.integers(1, 1 << 22),
        st.none() | st.integers(0, 2**64 - 1), st.booleans(), st.integers(0, 2**64 - 1))


CONNECTIONS = st.lists(
    connections(st.integers(0, 2**32 - 1).map(IPv4Address))
    | connections(st.integers(0, 2**128 - 1).map(IPv6Address)),
    max_size=5, unique_by=Connection.key)
PORTS = st.lists(
    st.builds(Port, st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8),
              st.integers(0, 2**32 - 1)),
    min_size=1, max_size=8, unique_by=(lambda port: port.name, lambda port: port.interface))


@given(st.builds(Provisioning, st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1), PORTS,
                 CONNECTIONS))
def test_round_trip(provisioning):
    assert parse_provisioning(provisioning_text(provisioning)) == provisioning


def test_the_text_of_a_connection():
    connection = Connection(IPv4Address("192.0.2.1"), IPv4Address("198.51.100.2"), 0x12, vlan=7)
    assert connection_text(connection) == """\
[[connection]]
source = "192.0.2.1"
destination = "198.51.100.2"
destination_qp = 0x000012
partition_key = 0xffff
vlan = 7
window = 64
"""
