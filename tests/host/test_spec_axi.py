"""The AXI4-Lite address map: nothing twice, all within its bits, errors in one line."""

import pytest

from rocetap.spec.axi import (
    ADDRESS_BITS,
    AXI_REGISTERS,
    RECORD_WORDS,
    byte_address,
    record_word,
)
from rocetap.spec.fingerprint import layout_text
from rocetap.spec.records import RECORD_OCTETS
from rocetap.spec.registers import BANKS, MAX_PORTS, REGISTERS, bank_address


def test_every_register_has_an_address_of_its_own():
    numbers = [register.address for register in (*REGISTERS.values(), *AXI_REGISTERS.values())]
    numbers += [record_word(index) for index in range(RECORD_WORDS)]
    numbers += [bank_address(name, port, index) for name, bank in BANKS.items()
                for port in range(MAX_PORTS if bank.stride else 1) for index in range(bank.count)]
    addresses = [byte_address(number) for number in numbers]
    assert len(set(addresses)) == len(numbers)
    assert all(address % 8 == 0 and 0 <= address < 1 << ADDRESS_BITS for address in addresses)


def test_a_record_fits_its_words():
    assert 8 * (RECORD_WORDS - 1) < RECORD_OCTETS <= 8 * RECORD_WORDS


def test_the_map_is_in_the_fingerprint():
    assert "axi record_pop 0x401 w ()\n" in layout_text()
    assert f"axi record {record_word(0):#x}\n" in layout_text()


@pytest.mark.parametrize(("call", "message"), [
    (lambda: record_word(RECORD_WORDS), "record word is 11, must be 0 to 10"),
    (lambda: record_word(-1), "record word is -1, must be 0 to 10"),
    (lambda: byte_address(0x800), "register is 0x800, must be 0 to 0x7ff")])
def test_what_is_not_there(call, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        call()
