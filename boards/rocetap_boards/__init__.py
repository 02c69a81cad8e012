"""Boards: platforms, pins, clocks and top levels, no logic. None is here yet.

A board's top instantiates :class:`rocetap_hdl.probe.Probe` and gives it what the board has: a frame
stream from each MAC (:func:`rocetap_hdl.layouts.frame_stream`), a clock in nanoseconds, and the
octets of a UART.
"""
