"""Gateware of rocetap in Amaranth: one component a file, data flows one way.

``frame`` -> ``parser`` -> ``table`` -> ``window`` -> ``fifo`` -> ``link``; ``probe`` joins them.
"""
