"""Real boards from the host's side: loading their bitstream, finding their port, their self-test.

`names` knows the boards, `loader` and `ports` are the edges (openFPGALoader, USB), `selftest`
works on any driver.
"""
