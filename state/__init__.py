"""Transactions as values, and the storage of their effects.

Only the `redis_` folders talk to a server, and only `keys` spells key names. Nothing here runs bolts or decides which
transaction commits next.
"""

from typing import TYPE_CHECKING

from state.lazy_exports import hand_on_lazily

if TYPE_CHECKING:
    from state.attempt import TransactionAttempt
    from state.commits.dead_letters import DeadLetter
    from state.errors import (
        BadInputError,
        EngineError,
        FailedException,
        FencedError,
        NotDurableError,
        NotRepublishableError,
        QuarantineFullError,
        ReplayLimitError,
        SourceError,
        StateRefusedError,
        StateUnreachableError,
        TopologyError,
        TransactionError,
        TransactionTooLargeError,
        UserCodeError,
        WaveCrashError,
    )
    from state.kinds.hash_state import HashState
    from state.kinds.member_states import HyperLogLogState, SetState, SortedSetState
    from state.kinds.state_family import StateFamily
    from state.kinds.stream_state import StreamState
    from state.kinds.value_states import ListState, ValueState
    from state.redis_admin.snapshots import Snapshot, snapshot
    from state.redis_server.embedded import EmbeddedServer

hand_on_lazily(__name__)

__all__ = [
    "BadInputError",
    "DeadLetter",
    "EmbeddedServer",
    "EngineError",
    "FailedException",
    "FencedError",
    "HashState",
    "HyperLogLogState",
    "ListState",
    "NotDurableError",
    "NotRepublishableError",
    "QuarantineFullError",
    "ReplayLimitError",
    "SetState",
    "Snapshot",
    "SortedSetState",
    "SourceError",
    "StateFamily",
    "StateRefusedError",
    "StateUnreachableError",
    "StreamState",
    "TopologyError",
    "TransactionAttempt",
    "TransactionError",
    "TransactionTooLargeError",
    "UserCodeError",
    "ValueState",
    "WaveCrashError",
    "snapshot",
]
