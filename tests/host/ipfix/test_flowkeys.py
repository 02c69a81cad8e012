from rocetap.ipfix.flowkeys import flow_key_record, flow_keys_template, key_indicator
from rocetap.spec.elements import (
    DOT1Q_CUSTOMER_VLAN_ID,
    DOT1Q_VLAN_ID,
    SEQUENCE_IPV4,
    SEQUENCE_IPV6,
)


def test_keys_are_addresses_qp_partition_epoch_and_observation_point_but_not_the_report_id():
    names = [element.name for index, element in enumerate(SEQUENCE_IPV4)
             if key_indicator(SEQUENCE_IPV4) >> index & 1]
    assert names == ["observationPointId", "sourceIPv4Address", "destinationIPv4Address",
                     "rdmaDestinationQP", "rdmaPartitionKey", "rdmaSequenceEpochId"]
    assert key_indicator(SEQUENCE_IPV6) == key_indicator(SEQUENCE_IPV4) == 0b1001_1111


def test_namespace_keys_are_keys():
    fields = (*SEQUENCE_IPV4, DOT1Q_VLAN_ID, DOT1Q_CUSTOMER_VLAN_ID)
    assert key_indicator(fields) == 0b11 << 19 | 0b1001_1111


def test_the_options_template_and_its_record():
    template = flow_keys_template(263)
    assert template.scope == 1
    assert [(field.number, field.length) for field in template.fields] == [(145, 2), (173, 8)]
    assert flow_key_record(257, SEQUENCE_IPV4) == bytes.fromhex("0101 000000000000009f")
