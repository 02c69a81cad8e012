from rocetap.ipfix.packing import MessageWriter
from rocetap.ipfix.templates import Field, Template


def _sets(message):
    found, position = [], 16
    while position < len(message):
        set_id = int.from_bytes(message[position:position + 2], "big")
        length = int.from_bytes(message[position + 2:position + 4], "big")
        found.append((set_id, message[position + 4:position + length]))
        position += length
    return found


def _sequence(message):
    return int.from_bytes(message[8:12], "big")


def test_a_run_is_cut_where_a_message_is_full():
    writer = MessageWriter(domain=9, sequence=0, max_message=16 + 4 + 30, export_time=5)
    writer.run(300, memoryview(bytes(range(100))), 10)
    messages = writer.finish()
    assert [[(i, len(body)) for i, body in _sets(m)] for m in messages] == [
        [(300, 30)], [(300, 30)], [(300, 30)], [(300, 10)]]
    assert [_sequence(m) for m in messages] == [0, 3, 6, 9]
    assert writer.sequence == 10
    assert b"".join(body for m in messages for _, body in _sets(m)) == bytes(range(100))
    assert all(int.from_bytes(m[2:4], "big") == len(m) for m in messages)


def test_room_of_a_message_is_used_by_the_next_set():
    writer = MessageWriter(1, 0, 16 + 14 + 14, 5)
    writer.run(300, memoryview(bytes(10)), 10)
    writer.run(301, memoryview(bytes(20)), 10)
    assert [[i for i, _ in _sets(m)] for m in writer.finish()] == [[300, 301], [301]]


def test_records_of_any_length():
    writer = MessageWriter(1, 0, 16 + 4 + 8, 5)
    writer.records(300, [b"aaaa", b"bbb", b"ccc", b"dddddddd"])
    assert [_sets(m) for m in writer.finish()] == [
        [(300, b"aaaabbb")], [(300, b"ccc")], [(300, b"dddddddd")]]
    assert writer.sequence == 4


def test_nothing_gives_no_message_and_no_empty_set():
    writer = MessageWriter(1, 0, 512, 5)
    writer.records(300, [])
    writer.run(300, memoryview(b""), 10)
    assert writer.finish() == []


def test_each_template_has_a_set_of_its_own():
    writer = MessageWriter(1, 0, 512, 5)
    writer.template(Template(256, (Field(8, 4),)))
    writer.template(Template(257, (Field(8, 4),), scope=1))
    assert [(i, body.hex()) for i, body in _sets(writer.finish()[0])] == [
        (2, "0100000100080004"), (3, "01010001000100080004")]


def test_the_sequence_number_wraps_at_32_bits():
    """RFC 7011, 3.1; a count from near the end, with Templates and messages not counting."""
    writer = MessageWriter(1, (1 << 32) - 4, 16 + 4 + 40, 5)
    writer.template(Template(256, (Field(8, 4),)))
    writer.flush()
    writer.run(256, memoryview(bytes(12)), 4)
    writer.flush()
    writer.run(256, memoryview(bytes(20)), 4)
    writer.flush()
    writer.run(256, memoryview(bytes(4)), 4)
    assert [_sequence(m) for m in writer.finish()] == [
        (1 << 32) - 4, (1 << 32) - 4, (1 << 32) - 1, 4]
