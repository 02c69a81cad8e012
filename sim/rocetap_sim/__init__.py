"""The simulated board: the very gateware, Verilated into a native library, behind the same link.

:class:`rocetap_sim.board.SimulatedBoard` feeds it frames and carries the link's octets;
:mod:`rocetap_sim.server` offers it to pyserial's ``socket://``. The first use builds the library
(:mod:`rocetap_sim.build`), later ones load it.
"""
