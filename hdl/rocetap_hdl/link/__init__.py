"""The board's end of the link: COBS frames with a CRC-32, register access, pushed records.

``rx`` -> :mod:`.cobs` -> :mod:`.frame` -> :mod:`.requests` -> register bus; replies and
:mod:`.records` -> :mod:`.frame` -> :mod:`.cobs` -> ``tx``. :mod:`.link` joins them. The messages
are those of :mod:`rocetap.spec.wire`.
"""

from .link import HostLink

__all__ = ["HostLink"]
