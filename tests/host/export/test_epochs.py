"""Epoch and report ids against a slow model, and the rules one by one."""

import ipaddress
import random
from collections import Counter

import numpy as np
import pytest

from rocetap.export.clock import BoardClock, Pairing
from rocetap.export.epochs import EpochBook
from rocetap.ipfix.records import SEQUENCE_REPORT
from rocetap.link.records import RECORD_DTYPE
from rocetap.provisioning import Connection
from rocetap.spec.flags import SequenceFlag
from rocetap.spec.records import RecordKind

FINAL = int(SequenceFlag.finalEpoch)
UNVERIFIED = int(SequenceFlag.generationUnverified)
MS = 1_000_000


def record(context, epoch, *, tag=None, flags=0, kind=RecordKind.SEQUENCE, **fields):
    row = np.zeros(1, RECORD_DTYPE)
    row["kind"], row["context"], row["epoch"], row["flags"] = kind, context, epoch, flags
    row["tag"] = context + 1 if tag is None else tag
    for name, value in fields.items():
        row[name] = value
    return row


def connection(number=0, **settings):
    return Connection(
        source=ipaddress.ip_address("192.0.2.1"),
        destination=ipaddress.ip_address("198.51.100.2"), destination_qp=0x10 + number,
        partition_key=0xFFFF, window=64, **settings)


def book(contexts=4, clock=None, **limits):
    one = EpochBook(contexts, clock or BoardClock.identity(), **limits)
    for context in range(contexts):
        one.provision(context, context + 1, connection(context), 7)
    return one


def serialize(one, *records):
    return one.serialize(np.concatenate(records))


def ids(reports):
    return [(int(r["qp"]) - 0x10, int(r["epoch_id"]), int(r["report_id"])) for r in reports]


def test_ids_count_from_one_in_the_order_of_serialization():
    one = book()
    assert ids(serialize(one, record(2, 1), record(0, 1), record(2, 1), record(1, 5))) == [
        (2, 1, 1), (0, 2, 1), (2, 1, 2), (1, 3, 1)]
    assert ids(serialize(one, record(0, 1), record(3, 1), record(2, 1))) == [
        (0, 2, 2), (3, 4, 1), (2, 1, 3)]
    assert (one.epochs_given, one.open_epochs) == (4, 4)


def test_a_final_and_the_next_epoch_in_one_batch():
    one = book()
    reports = serialize(one, record(0, 1), record(0, 1, flags=FINAL), record(0, 2), record(1, 1))
    assert ids(reports) == [(0, 1, 1), (0, 1, 2), (0, 2, 1), (1, 3, 1)]
    assert reports["flags"].tolist() == [UNVERIFIED, UNVERIFIED | FINAL, UNVERIFIED, UNVERIFIED]
    assert one.open_epochs == 2


def test_an_epoch_number_that_moved_without_a_final_is_a_new_epoch():
    one = book()
    assert ids(serialize(one, record(0, 1))) == [(0, 1, 1)]
    assert ids(serialize(one, record(0, 3))) == [(0, 2, 1)]


def test_nothing_extends_an_epoch_after_its_final():
    one = book()
    reports = serialize(one, record(0, 1, flags=FINAL), record(0, 1), record(0, 1, flags=FINAL))
    assert ids(reports) == [(0, 1, 1)]
    assert ids(serialize(one, record(0, 1), record(0, 2))) == [(0, 2, 1)]
    assert one.drops == {"after_final": 3}


def test_a_new_tag_is_a_new_epoch_of_the_new_connection():
    one = book()
    serialize(one, record(0, 1))
    one.provision(0, 77, connection(9), 8)
    reports = serialize(one, record(0, 1, flags=FINAL), record(0, 2, tag=77))
    assert ids(reports) == [(0, 1, 2), (9, 2, 1)]
    assert reports["observation_point"].tolist() == [7, 8]


def test_records_of_no_provisioned_connection_are_dropped_and_counted():
    one = book()
    assert ids(serialize(one, record(0, 1, tag=999), record(1, 1, tag=1), record(0, 1))) == [
        (0, 1, 1)]
    assert one.drops == {"unknown_tag": 2}


def test_markers_and_disabled_contexts_are_no_reports():
    one = book()
    reports = serialize(one, record(0, 0, tag=1, kind=RecordKind.MARKER),
                        record(0, 0, kind=RecordKind.DISABLED))
    assert reports.shape == (0,)
    assert reports.dtype == SEQUENCE_REPORT
    assert not one.drops


def test_a_board_restart_ends_epochs_without_a_final():
    one = book()
    serialize(one, record(0, 1), record(1, 1))
    one.board_restarted()
    assert one.open_epochs == 0
    assert ids(serialize(one, record(0, 1))) == [(0, 3, 1)]


def test_every_field_arrives():
    one = EpochBook(1, BoardClock.identity())
    one.provision(0, 5, Connection(
        source=ipaddress.ip_address("2001:db8::1"), destination=ipaddress.ip_address("2001:db8::2"),
        destination_qp=0xABCDEF, partition_key=0x8001, window=100, vlan=10, inner_vlan=20,
        generation_verified=True), 1 << 40)
    values = {"window": 100, "pending": 3, "abandoned": 4, "first_time": 5_999_999,
              "last_time": 9_000_000, "requests": 7, "skipped": 8, "filled": 9, "expired": 10,
              "repeated": 11, "late": 12}
    report = serialize(one, record(0, 1, tag=5, flags=FINAL | 0x10, **values))[0]
    for field in ("window", "pending", "abandoned", "requests", "skipped", "filled", "expired",
                  "repeated", "late"):
        assert report[field] == values[field], field
    assert report["source"].tobytes() == ipaddress.ip_address("2001:db8::1").packed
    assert report["destination"].tobytes() == ipaddress.ip_address("2001:db8::2").packed
    assert report["observation_point"] == 1 << 40
    assert (report["qp"], report["pkey"], report["vid"], report["cvid"], report["ipv6"]) == (
        0xABCDEF, 0x8001, 10, 20, True)
    assert (report["flow_start_ms"], report["flow_end_ms"]) == (5, 9)
    assert report["flags"] == FINAL | 0x10


def test_an_ipv4_address_stands_in_the_last_four_octets():
    report = serialize(book(), record(0, 1))[0]
    assert report["source"].tobytes() == bytes(12) + bytes([192, 0, 2, 1])
    assert not report["ipv6"]


def test_undefined_flag_bits_never_leave():
    assert serialize(book(), record(0, 1, flags=0xFFC0))["flags"].tolist() == [UNVERIFIED]


def test_flow_start_is_fixed_in_an_epoch_when_the_clock_map_moves():
    clock = BoardClock()
    clock.pair(Pairing(10**18, 0, 10**18))
    one = book(clock=clock)
    first = serialize(one, record(0, 1, first_time=5 * MS, last_time=5 * MS))[0]
    clock.restart()
    clock.pair(Pairing(10**18 - 10**12, 6 * MS, 10**18 - 10**12))
    second = serialize(one, record(0, 1, first_time=5 * MS, last_time=9 * MS))[0]
    assert second["flow_start_ms"] == first["flow_start_ms"] == 10**12 + 5
    assert second["flow_end_ms"] >= second["flow_start_ms"]


class TestExhaustion:
    def test_the_last_report_id_is_kept_for_the_final(self):
        one = book(max_report_id=4)
        assert ids(serialize(one, record(0, 1), record(0, 1))) == [(0, 1, 1), (0, 1, 2)]
        assert one.contexts_to_close() == []
        assert ids(serialize(one, record(0, 1))) == [(0, 1, 3)]
        assert one.contexts_to_close() == [0]
        reports = serialize(one, record(0, 1), record(0, 1), record(0, 1, flags=FINAL))
        assert ids(reports) == [(0, 1, 4)]
        assert reports["flags"].tolist() == [FINAL | UNVERIFIED]
        assert one.drops == {"report_ids": 2}
        assert one.contexts_to_close() == []

    def test_no_epoch_id_is_given_twice_or_beyond_the_last(self):
        one = book(max_epoch_id=2)
        reports = serialize(one, record(3, 1), record(1, 1), record(0, 1), record(3, 1))
        assert ids(reports) == [(3, 1, 1), (1, 2, 1), (3, 1, 2)]
        assert one.exhausted
        assert ids(serialize(one, record(0, 1), record(0, 2), record(1, 1))) == [(1, 2, 2)]
        assert one.drops == {"epoch_ids": 3}


def slow_model(batches, max_report_id):
    """The same rules, one record at a time, in dictionaries."""
    latest, out, next_id, drops = {}, [], 1, Counter()
    for batch in batches:
        for row in batch:
            context, epoch, tag = int(row["context"]), int(row["epoch"]), int(row["tag"])
            final = bool(row["flags"] & FINAL)
            if tag != context + 1:
                drops["unknown_tag"] += 1
                continue
            now = latest.get(context)
            if now is None or now["epoch"] != epoch:
                now = latest[context] = {"epoch": epoch, "id": next_id, "report": 0, "over": False}
                next_id += 1
            if now["over"]:
                drops["after_final"] += 1
            elif not final and now["report"] + 1 >= max_report_id:
                drops["report_ids"] += 1
            else:
                now["report"] += 1
                now["over"] = final
                out.append((context, now["id"], now["report"]))
    return out, drops


@pytest.mark.parametrize("seed", range(40))
def test_random_batches_equal_the_slow_model(seed):
    rng = random.Random(seed)
    epochs, batches = [1] * 4, []
    for _ in range(20):
        rows = []
        for _ in range(rng.randrange(1, 30)):
            context = rng.randrange(4)
            if rng.random() < 0.2:
                epochs[context] += rng.randrange(1, 3)
            tag = 99 if rng.random() < 0.05 else None
            rows.append(record(context, epochs[context], tag=tag,
                               flags=FINAL if rng.random() < 0.15 else 0))
        batches.append(np.concatenate(rows))
    one = book(max_report_id=12)
    got = [row for batch in batches for row in ids(one.serialize(batch))]
    expected, drops = slow_model(batches, 12)
    assert got == expected
    assert one.drops == drops
