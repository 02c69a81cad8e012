import ipaddress

import pytest

from rocetap.collect.filters import KINDS, Filters
from rocetap.collect.outcomes import Outcome
from rocetap.collect.store import SqliteStore
from support.ipfix_tools import address, readings, reports
from support.store_bench import fill

T0 = 1_700_000_000_000


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Two exporters: epochs 1 to 6 of connections that differ in every filter."""
    store = SqliteStore(tmp_path_factory.mktemp("store") / "store.db")
    rows = reports(6, flags=[0x21, 0x25, 0x20, 0x23, 0x21, 0x21], qp=[1, 2, 3, 4, 5, 6],
                   pkey=[0xFFFF, 0xFFFF, 0x8001, 0xFFFF, 0xFFFF, 0xFFFF])
    rows["flow_start_ms"] = T0 + 1000 * rows["epoch_id"]
    rows["flow_end_ms"] = rows["flow_start_ms"] + 500
    rows["source"][1] = address(10, 1, 2, 3)
    rows["destination"][4] = address(10, 1, 2, 4)
    rows["ipv6"][5] = 1
    fill(store, rows, pfc=readings(8, interface=[1, 1, 1, 1, 2, 2, 2, 2],
                                   time_ms=[T0 + n for n in range(8)]))
    again = reports(1, first_epoch=3, report_id=2, requests=20)
    fill(store, rows[:2], reports(1, first_epoch=3), again, again, exporter="probe-2.example",
         domain=9)
    yield store
    store.close()


def _epochs(store, **filters):
    return [(row["transportSession"], row["rdmaSequenceEpochId"])
            for row in store.sequence_rows(Filters(**filters))]


def _net(*texts):
    return tuple(map(ipaddress.ip_network, texts))


FIRST = [(1, n) for n in range(1, 7)]
SECOND = [(2, n) for n in range(1, 4)]


@pytest.mark.parametrize(("filters", "expected"), [
    ({}, [*FIRST, *SECOND]),
    ({"addresses": _net("10.1.2.0/24")}, [(1, 2), (1, 5), (2, 2)]),
    ({"addresses": _net("10.1.2.3")}, [(1, 2), (2, 2)]),
    ({"addresses": _net("10.1.2.3", "10.1.2.4")}, [(1, 2), (1, 5), (2, 2)]),
    ({"addresses": _net("::c000:201")}, [(1, 6)]),
    ({"addresses": _net("203.0.113.0/24")}, []),
    ({"qps": (3, 4)}, [(1, 3), (1, 4)]),
    ({"pkeys": (0x8001,)}, [(1, 3)]),
    ({"outcomes": (Outcome.incomplete,)}, [(1, 3), (2, 3)]),
    ({"flags": 0x04}, [(1, 2), (2, 2)]),
    ({"flags": 0x03}, [(1, 4)]),
    ({"since_ms": T0 + 4500}, [(1, 4), (1, 5), (1, 6)]),
    ({"since_ms": T0 + 4501}, [(1, 5), (1, 6)]),
    ({"until_ms": T0 + 2000}, [(1, 1), (2, 1), (2, 3)]),
    ({"until_ms": T0 + 2001}, [(1, 1), (1, 2), *SECOND]),
    ({"exporters": ("probe-2.example",)}, SECOND),
    ({"sessions": (1,), "qps": (1,)}, [(1, 1)]),
    ({"domains": (9,)}, SECOND),
    ({"exporters": ("nobody",)}, []),
])
def test_epochs(store, filters, expected):
    assert _epochs(store, **filters) == expected


@pytest.mark.parametrize(("filters", "count"), [
    ({}, 8), ({"interfaces": (2,)}, 4), ({"priorities": (0, 7)}, 2), ({"since_ms": T0 + 6}, 2),
    ({"until_ms": T0 + 6}, 6), ({"exporters": ("probe-2.example",)}, 0),
])
def test_readings(store, filters, count):
    assert len(list(store.pfc_rows(Filters(**filters)))) == count


def test_times_of_64_bits_are_later_than_all_others(tmp_path):
    store = SqliteStore(tmp_path / "store.db")
    far = (1 << 63) + 5
    fill(store, reports(3, flow_start_ms=[T0, T0, far], flow_end_ms=[T0, far, far]),
         pfc=readings(2, time_ms=[T0, far]))
    for filters, epochs, count in (({"since_ms": T0 + 1}, [(1, 2), (1, 3)], 1),
                                   ({"until_ms": T0 + 1}, [(1, 1), (1, 2)], 1)):
        assert _epochs(store, **filters) == epochs
        assert len(list(store.pfc_rows(Filters(**filters)))) == count
    store.close()


@pytest.mark.parametrize(("filters", "sessions"), [
    ({}, [1, 2]), ({"exporters": ("probe-1.example",)}, [1]), ({"sessions": (2,)}, [2]),
    ({"since_ms": 3000}, [1, 2]), ({"since_ms": 3001}, []), ({"until_ms": 1000}, []),
    ({"until_ms": 1001}, [1, 2]),
])
def test_sessions_drops_and_raw_records(store, filters, sessions):
    reader = store.reader()
    assert [row["id"] for row in reader.sessions(Filters(**filters))] == sessions
    dropped = list(reader.dropped(Filters(**filters)))
    assert {row["session_id"] for row in dropped} <= set(sessions)
    assert (2 in sessions) == any(row["reason"] == "report.repeat" for row in dropped)


@pytest.mark.parametrize("kind", KINDS)
def test_filters_that_say_nothing_about_a_kind_are_named(kind):
    idle = set(Filters(addresses=_net("192.0.2.1"), priorities=(1,), qps=(1,), domains=(1,),
                       exporters=("x",), since_ms=0).idle(kind))
    everything = {"addresses", "priorities", "qps", "domains", "exporters", "since_ms"}
    applies = {"sequence": everything - {"priorities"},
               "pfc": {"priorities", "domains", "exporters", "since_ms"},
               "raw": {"domains", "exporters", "since_ms"}}.get(kind, {"exporters", "since_ms"})
    assert idle == everything - applies
