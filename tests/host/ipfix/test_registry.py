from rocetap.ipfix.registry import Registry
from rocetap.ipfix.templates import Field


def test_elements_are_known_under_their_enterprise_only():
    registry = Registry(4242)
    assert registry.name(Field(15, 1, 4242)) == "pfcPriority"
    assert registry.name(Field(15, 1, 32473)) == "e32473.15"
    assert registry.name(Field(15, 4)) == "ie15"
    assert registry.name(Field(8, 4)) == "sourceIPv4Address"
    assert registry.name(Field(8, 8, 4242)) == "abandonedPsnTotalCount"
    assert registry.element(Field(173, 8)).name == "flowKeyIndicator"
    assert registry.element(Field(9999, 8)) is None
