"""What a transaction is and where its effects are kept."""

from state.attempt import TransactionAttempt
from state.codec import CodecError
from state.errors import (
    EngineError,
    FailedException,
    FencedError,
    ProtocolError,
    ReplayLimitError,
    SourceError,
    StaleReadError,
    StateError,
    StateRefusedError,
    StateUnreachableError,
    TopologyError,
    TransactionError,
    TransactionTooLargeError,
    UserCodeError,
    WaveCrashError,
)
from state.handles import HashState, ListState, SetState, SortedSetState, ValueState
from state.redis_embedded import EmbeddedServer
from state.redis_snapshot import Snapshot, snapshot

__all__ = [
    "CodecError",
    "EmbeddedServer",
    "EngineError",
    "FailedException",
    "FencedError",
    "HashState",
    "ListState",
    "ProtocolError",
    "ReplayLimitError",
    "SetState",
    "Snapshot",
    "SortedSetState",
    "SourceError",
    "StaleReadError",
    "StateError",
    "StateRefusedError",
    "StateUnreachableError",
    "TopologyError",
    "TransactionAttempt",
    "TransactionError",
    "TransactionTooLargeError",
    "UserCodeError",
    "ValueState",
    "WaveCrashError",
    "snapshot",
]
