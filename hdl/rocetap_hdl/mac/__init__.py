"""What lies between a board's pins and the probe: Ethernet MACs, PHY management, UART, LEDs.

:class:`.node.Node` is the whole. DDR flip-flops, delays, PLLs and pads are the platform's and stand
in rocetap_boards.
"""
