"""Addresses are taken or refused when the configuration is read, with the exact reason."""

import pytest

from rocetap.export.endpoint import Endpoint, EndpointError, parse_endpoint

GOOD = {
    "[::1]:4740": Endpoint("::1", 4740),
    "192.0.2.1:4740": Endpoint("192.0.2.1", 4740),
    "collector:4740": Endpoint("collector", 4740),
    "collector.example.:1": Endpoint("collector.example.", 1),
    "[fe80::1%lo]:65535": Endpoint("fe80::1%lo", 65535),
}

AMBIGUOUS = ("more than one colon is ambiguous; put an IPv6 address in brackets, "
             "as in [::1]:4740")
BAD = {
    "": "empty; give HOST:PORT, IPV4:PORT or [IPV6]:PORT",
    "::1": AMBIGUOUS,
    "::1:4740": AMBIGUOUS,
    "a:b:c": AMBIGUOUS,
    "fe80::1%lo": AMBIGUOUS,
    "[::1": "'[' without ']'",
    "[::1]x": "'x' follows ']', which takes :PORT only",
    "[::1]": "no port; give HOST:PORT, IPV4:PORT or [IPV6]:PORT",
    "[collector]:4740": "'collector' in brackets is no IPv6 address",
    "[192.0.2.1]:4740": "'192.0.2.1' in brackets is no IPv6 address",
    "4740": "a port without a host; give HOST:4740, such as 127.0.0.1:4740",
    "host:": "no port after the colon",
    "host": "no port; give HOST:PORT, IPV4:PORT or [IPV6]:PORT",
    ":4740": "no host before the port; give HOST:PORT, IPV4:PORT or [IPV6]:PORT",
    "192.0.2.300:4740": "'192.0.2.300' is no IPv4 address",
    "two words:4740": "'two words' is no host name",
    "-x:4740": "'-x' is no host name",
    "host:http": "port 'http' is no number",
    "host:-1": "port '-1' is no number",
    "host:0": "port 0 is out of range, 1 to 65535",
    "host:65536": "port 65536 is out of range, 1 to 65535",
    "host:99999999999999999999": "port 99999999999999999999 is out of range, 1 to 65535",
}


@pytest.mark.parametrize("text", GOOD)
def test_good_addresses(text):
    endpoint = parse_endpoint(text)
    assert endpoint == GOOD[text]
    assert str(endpoint) == text


@pytest.mark.parametrize("text", BAD)
def test_bad_addresses_are_refused_with_the_reason(text):
    with pytest.raises(EndpointError) as caught:
        parse_endpoint(text)
    assert str(caught.value) == f"address {text!r}: {BAD[text]}"


def test_port_zero_is_for_listening_only():
    assert parse_endpoint("127.0.0.1:0", allow_port_zero=True) == Endpoint("127.0.0.1", 0)


@pytest.mark.parametrize(("host", "literal"), [("::1", True), ("192.0.2.1", True),
                                               ("fe80::1%lo", True), ("collector", False)])
def test_literals_are_told_from_names(host, literal):
    assert Endpoint(host, 1).is_literal is literal
