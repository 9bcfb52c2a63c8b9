"""What a transaction is and where its effects are kept."""

from state.attempt import MAX_TXID, TransactionAttempt
from state.codec import CodecError, digest64, pack, pack_exact, unpack
from state.commit import COMMIT_OPERATIONS_LIMIT, Commit, CommitReply, CommitStatus
from state.errors import (
    EngineError,
    FailedException,
    FencedError,
    Interruption,
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
from state.handles import (
    HashState,
    ListState,
    SetState,
    SortedSetState,
    ValueState,
    bind_states,
    declared_states,
)
from state.keys import Keys, check_name, metadata_field, parse_metadata_field
from state.own_copy import own_copy
from state.printable import SENTENCE_LIMIT, block, one_line, said_by
from state.receipt import Receipt
from state.redis_address import redact, secrets_in
from state.redis_connection import RedisConnection, connect
from state.redis_embedded import EmbeddedServer
from state.redis_encryption import PLAINTEXT_VARIABLE, require_encryption
from state.redis_in_memory import in_memory_client
from state.redis_reader import URL_VARIABLE, RedisReader, load_redis_url, save_redis_url
from state.redis_rights import acl_rules
from state.redis_server import ServerFacts
from state.redis_snapshot import Snapshot, snapshot
from state.redis_store import RECEIPTS_KEPT, RedisStore, state_not_as_left
from state.redis_watch import ServerWatch
from state.rotating_transactional_state import RotatingTransactionalState
from state.session import StateReader, StateSession
from state.state_handle import StateHandle
from state.stored_topology import Acquired, FoundTopology, TopologyStatus
from state.transactional_state import MetadataChanges, TransactionalState
from state.write_set import (
    MAX_INTEGER,
    VALUE_FIELD,
    Field,
    OrderMattersError,
    StateKind,
    StateWrites,
    ValueType,
    WriteSet,
    compose,
)

__all__ = [
    "Acquired",
    "COMMIT_OPERATIONS_LIMIT",
    "CodecError",
    "Commit",
    "CommitReply",
    "CommitStatus",
    "EmbeddedServer",
    "EngineError",
    "FailedException",
    "FencedError",
    "Field",
    "FoundTopology",
    "HashState",
    "Interruption",
    "Keys",
    "ListState",
    "MAX_INTEGER",
    "MAX_TXID",
    "MetadataChanges",
    "OrderMattersError",
    "PLAINTEXT_VARIABLE",
    "ProtocolError",
    "RECEIPTS_KEPT",
    "Receipt",
    "RedisConnection",
    "RedisReader",
    "RedisStore",
    "ReplayLimitError",
    "RotatingTransactionalState",
    "SENTENCE_LIMIT",
    "ServerFacts",
    "ServerWatch",
    "SetState",
    "Snapshot",
    "SortedSetState",
    "SourceError",
    "StaleReadError",
    "StateError",
    "StateHandle",
    "StateKind",
    "StateReader",
    "StateRefusedError",
    "StateSession",
    "StateUnreachableError",
    "StateWrites",
    "TopologyError",
    "TopologyStatus",
    "TransactionAttempt",
    "TransactionError",
    "TransactionTooLargeError",
    "TransactionalState",
    "URL_VARIABLE",
    "UserCodeError",
    "VALUE_FIELD",
    "ValueState",
    "ValueType",
    "WaveCrashError",
    "WriteSet",
    "acl_rules",
    "bind_states",
    "block",
    "check_name",
    "compose",
    "connect",
    "declared_states",
    "digest64",
    "in_memory_client",
    "load_redis_url",
    "metadata_field",
    "one_line",
    "own_copy",
    "pack",
    "pack_exact",
    "parse_metadata_field",
    "redact",
    "require_encryption",
    "said_by",
    "save_redis_url",
    "secrets_in",
    "snapshot",
    "state_not_as_left",
    "unpack",
]
