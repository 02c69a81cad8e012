"""The contract that gateware and host software share.

Every number that crosses from one to the other (opcodes, flags, frame classes, the register map,
the snapshot record, the link's messages, the connection key and its hash) is a plain Python table
here. Gateware, driver and documentation derive from these tables, and :mod:`.fingerprint` hashes
them: the driver refuses a board whose hash differs. This package imports nothing of ours.
"""
