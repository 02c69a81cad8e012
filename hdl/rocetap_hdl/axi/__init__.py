"""The probe as a core for other designs: AXI4-Stream taps in, registers over AXI4-Lite.

:class:`.core.AxiCore` is the whole; :mod:`.verilog` writes it as one Verilog file.
"""
