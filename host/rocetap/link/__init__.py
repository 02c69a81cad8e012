"""The host's end of the link to a board.

Sans-IO: :mod:`.cobs`, :mod:`.framing`, :mod:`.messages`, :mod:`.records`, :mod:`.session`. On an
abstract transport: :mod:`.driver`, :mod:`.poll`, :mod:`.table`. At the edge: :mod:`.transport`.
Pure, beside them: :mod:`.counters`.
"""

from .counters import CounterTracker, CounterUpdate
from .driver import BoardInfo, Driver, Transport
from .errors import (
    BoardRestarted,
    LayoutMismatch,
    LinkError,
    LinkLocalError,
    LinkRemoteError,
    LinkTimeout,
    NotABoard,
    RequestFailed,
    TableFull,
    TransportClosed,
    TransportOpenError,
)
from .poll import BoardCounters, read_counters
from .records import RECORD_DTYPE, RecordArray
from .table import ConnectionTable, SlotWrite, apply_writes
from .transport import open_transport

__all__ = [
    "RECORD_DTYPE", "BoardCounters", "BoardInfo", "BoardRestarted", "ConnectionTable",
    "CounterTracker", "CounterUpdate", "Driver", "LayoutMismatch", "LinkError", "LinkLocalError",
    "LinkRemoteError", "LinkTimeout", "NotABoard", "RecordArray", "RequestFailed", "SlotWrite",
    "TableFull", "Transport", "TransportClosed", "TransportOpenError", "apply_writes",
    "open_transport", "read_counters",
]
