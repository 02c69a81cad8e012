"""What other decoders make of our octets: libfixbuf's ipfixDump, and tshark."""

import re
from xml.etree import ElementTree

import pytest

from rocetap.spec.elements import ENTERPRISE_ELEMENTS, SEQUENCE_IPV4, SEQUENCE_IPV6
from support.ipfix_tools import address, dump, opened, pcap_of, readings, reports, run, tool

pytestmark = pytest.mark.independent
NOW = 1_700_000_000
V6 = address(0x20, 0x01, 0x0D, 0xB8, *[0] * 11, 1)

VALUES = {"skipped": 1 << 40, "filled": (1 << 40) - 10, "expired": 4, "pending": 6,
          "requests": (1 << 63) + 5, "repeated": 3, "late": 2, "report_id": 1, "window": 256}


def _stream():
    session, start = opened()
    rows = reports(4, **VALUES)
    rows["ipv6"] = [0, 1, 0, 1]
    rows["source"][[1, 3]] = V6
    rows["vid"] = [0, 0, 100, 200]
    rows["cvid"] = [0, 0, 0, 300]
    return start + b"".join([*session.sequence(rows, NOW),
                             *session.pfc(readings(16, transmitted=[0] * 8 + [1] * 8), NOW)])


def _records(text):
    """The data records of ipfixDump's text, each a dictionary by element name."""
    records = []
    for block in re.split(r"--- (?:template|options template|data) record \d+ ---.*\n", text)[1:]:
        pairs = re.findall(r"^\t\(([\d/]+)\)(?: \(S\))?\s*(\w+) : (?:\(len: \d+\) )?(.*)$", block,
                           re.MULTILINE)
        records.append({name: value for _, name, value in pairs})
    return records


@pytest.fixture
def element_file(tmp_path):
    """Our elements in the XML form that ipfixDump loads."""
    root = ElementTree.Element("registry", {
        "xmlns": "http://www.iana.org/assignments",
        "xmlns:cert": "http://www.cert.org/ipfix", "id": "ipfix"})
    inner = ElementTree.SubElement(root, "registry", {"id": "ipfix-information-elements"})
    for element in ENTERPRISE_ELEMENTS:
        record = ElementTree.SubElement(inner, "record")
        for tag, text in (("name", element.name), ("dataType", element.data_type.name),
                          ("dataTypeSemantics", element.semantics.name),
                          ("elementId", str(element.number)), ("status", "current"),
                          ("cert:enterpriseId", "32473")):
            ElementTree.SubElement(record, tag).text = text
    path = tmp_path / "elements.xml"
    ElementTree.ElementTree(root).write(path)
    return path


def _check(records):
    sequence = [record for record in records if "rdmaSequenceEpochId" in record]
    assert [record["rdmaSequenceEpochId"] for record in sequence] == ["1", "2", "3", "4"]
    for record in sequence:
        fields = SEQUENCE_IPV6 if "sourceIPv6Address" in record else SEQUENCE_IPV4
        assert list(record)[:19] == [element.name for element in fields]
        assert record["skippedPsnTotalCount"] == str(1 << 40)
        assert record["filledPsnTotalCount"] == str((1 << 40) - 10)
        assert record["expiredPsnTotalCount"] == "4"
        assert record["pendingPsnCount"] == "6"
        assert record["requestPacketTotalCount"] == str((1 << 63) + 5)
        assert record["rdmaDestinationQP"] == str(0x012345)
        assert record["rdmaPartitionKey"] == "65535"
        assert record["rdmaSequenceFlags"] == "32"
        assert record["rdmaSequenceWindow"] == "256"
        assert record["flowStartMilliseconds"] == "2023-11-14 22:13:20.000"
        assert record["flowEndMilliseconds"] == "2023-11-14 22:13:20.500"
    assert [record.get("dot1qVlanId") for record in sequence] == [None, None, "100", "200"]
    assert [record.get("dot1qCustomerVlanId") for record in sequence] == [None, None, "0", "300"]
    assert sequence[0]["sourceIPv4Address"] == "192.0.2.1"
    assert sequence[1]["sourceIPv6Address"] in ("2001:0db8::0001", "2001:db8::1",
                                                "2001:0db8::1")
    pfc = [record for record in records if "pfcPriority" in record]
    assert [record["pfcPriority"] for record in pfc] == [str(n % 8) for n in range(16)]
    assert [record["pfcControlFrameTotalCount"] for record in pfc] == [
        str(1000 * n) for n in range(16)]
    assert ["egressPhysicalInterface" in record for record in pfc] == [False] * 8 + [True] * 8


def test_ipfixdump_learns_our_elements_from_the_type_records(tmp_path):
    _check(_records(dump(_stream(), tmp_path, "--rfc5610", "--data")))


def test_ipfixdump_reads_them_by_an_element_file(tmp_path, element_file):
    _check(_records(dump(_stream(), tmp_path, "--data", "--element-file", str(element_file))))


def test_ipfixdump_counts_as_we_do(tmp_path):
    text = dump(_stream(), tmp_path, "--rfc5610")
    assert "4 Messages, 40 Data Records, 8 Template Records" in text


@pytest.mark.parametrize("size", [512, 4096, 65_535])
def test_ipfixdump_reads_messages_of_any_size(tmp_path, size):
    session, stream = opened(max_message=size)
    rows = reports(1500, ipv6=[0] * 700 + [1] * 800)
    stream += b"".join([*session.sequence(rows, NOW), *session.pfc(readings(3000), NOW)])
    text = dump(stream, tmp_path, "--rfc5610", "--stats")
    assert f"{session.records_sent} Data Records" in text
    records = _records(dump(stream, tmp_path, "--rfc5610", "--data"))
    assert [int(r["rdmaSequenceEpochId"]) for r in records if "rdmaSequenceEpochId" in r] == list(
        range(1, 1501))
    assert [int(r["pfcControlFrameTotalCount"]) for r in records if "pfcPriority" in r] == [
        1000 * n for n in range(3000)]


def test_tshark_finds_nothing_wrong_and_all_values(tmp_path):
    session, start = opened()
    stream = start + b"".join(session.sequence(reports(600, **VALUES), NOW))
    text = run(tool("tshark"), "-r", str(pcap_of(stream, tmp_path)), "-V",
               "-d", "tcp.port==4739,cflow")
    assert "Expert Info (Error" not in text
    assert "Malformed" not in text
    assert re.findall(r"FlowSequence: (\d+)", text) == ["0", "16", "20", "565"]
    assert text.count("SrcAddr: 192.0.2.1") == 600
    octets = {number: set(re.findall(rf"Type {number}: Value \(hex bytes\): ([0-9a-f ]+)", text))
              for number in range(2, 15)}
    assert octets == {
        2: {"00 00 00 00 00 00 00 01"}, 3: {"00 00 01 00"}, 4: {"00 20"},
        5: {"00 00 01 00 00 00 00 00"}, 6: {"00 00 00 ff ff ff ff f6"},
        7: {"00 00 00 00 00 00 00 04"}, 8: {"00 00 00 00 00 00 00 00"}, 9: {"00 00 00 06"},
        10: {"00 00 00 00 00 00 00 03"}, 11: {"80 00 00 00 00 00 00 05"},
        12: {"00 00 00 00 00 00 00 02"}, 13: {"00 01 23 45"}, 14: {"ff ff"}}
    epochs = re.findall(r"Type 1: Value \(hex bytes\): ([0-9a-f ]+)", text)
    assert [int(epoch.replace(" ", ""), 16) for epoch in epochs] == list(range(1, 601))
