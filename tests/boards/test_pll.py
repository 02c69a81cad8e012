"""The PLL's dividers: exact, and within what the primitive can."""

import pytest

from rocetap_boards.pll import Dividers, dividers

MHZ = 1_000_000


@pytest.mark.parametrize("input_mhz", [25, 30, 40, 50, 100, 125, 200])
def test_125_mhz_of_every_crystal(input_mhz):
    found = dividers(input_mhz * MHZ, 125 * MHZ)
    assert found.output_hz(input_mhz * MHZ) == pytest.approx(125e6, rel=1e-12)
    assert 400e6 <= found.vco_hz(input_mhz * MHZ) <= 800e6
    assert input_mhz / found.reference >= 10
    assert all(1 <= value <= 128 for value in (found.reference, found.feedback, found.output,
                                               found.loop or 1))


def test_the_boards_of_ours():
    assert dividers(100 * MHZ, 125 * MHZ) == Dividers(4, 5, 5)
    assert dividers(25 * MHZ, 125 * MHZ) == Dividers(1, 5, 5)
    # 30 MHz: no phase detector of 10 MHz or more has 125 MHz as a multiple, its VCO has.
    assert dividers(30 * MHZ, 125 * MHZ).loop > 0


def test_refuses():
    with pytest.raises(ValueError, match=r"^no dividers make 125000000 Hz of 9000000 Hz$"):
        dividers(9 * MHZ, 125 * MHZ)
