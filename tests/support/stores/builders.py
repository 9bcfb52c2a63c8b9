"""Small ways to build commits and to look at everything a server holds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from state.attempt import TransactionAttempt
from state.commits.commit import Commit
from state.commits.dead_letters import pack_letter
from state.commits.quarantine import BatchInput, PoisonCause, QuarantineRecord
from state.commits.state_writes import StateWrites
from state.commits.write_set import WriteSet
from state.kinds.state_family import PartType
from state.metadata import MetadataSum
from state.records.declared_states import DescribedState
from state.records.topology_overview import FoundTopology
from state.redis_client.function_library import STORED_FORMAT
from state.redis_owner.store import RedisStore
from state.values.state_kind import StateKind, ValueType

NONCE, GENERATION = "a" * 32, "b" * 32


def described_state(name: str, kind: StateKind = StateKind.HASH, part_type: PartType | None = None) -> DescribedState:
    return DescribedState(name, kind, ValueType.STR, ValueType.STR, part_type=part_type)


def declaring(*states: DescribedState | str) -> str:
    """The stored description of a topology with these states; a name stands for a hash."""
    described = {}
    for each in states:
        state = described_state(each) if isinstance(each, str) else each
        described[state.name] = {"kind": state.kind, "value": state.value_type, "field": state.field_type.value}
        if state.part_type:
            described[state.name]["parts"] = state.part_type
    return json.dumps({"states": described})


DESCRIPTION = declaring("counts")
EXPORTED = {
    "committed": "7",
    "source_fingerprint": "source-1",
    "topology": DESCRIPTION,
    "metadata_sum": str(MetadataSum({})),
    "format": STORED_FORMAT,
}
"""The control hash of an export without metadata."""


def attempt(txid: int, attempt_id: int | None = None) -> TransactionAttempt:
    return TransactionAttempt(txid, 1000 + txid if attempt_id is None else attempt_id)


def writes(kind: StateKind, value_type: ValueType, **changes: Any) -> StateWrites:
    return StateWrites(kind, value_type, **changes)


def counts(**increments: int) -> WriteSet:
    return WriteSet({"counts": writes(StateKind.HASH, ValueType.INT, increments=dict(increments))})


def commit_of(write_set: WriteSet, *attempts: TransactionAttempt, **more: Any) -> Commit:
    return Commit(attempts or (attempt(1),), write_set, **more)


def acquire(store: RedisStore, nonce: str = NONCE, **changes: Any) -> FoundTopology:
    given: dict[str, Any] = {
        "new_generation": GENERATION,
        "topology": DESCRIPTION,
        "source_fingerprint": "source-1",
        **changes,
    }
    return store.acquire(nonce=nonce, **given)


def owner_on(server: Any, topology_id: str = "wc", nonce: str = NONCE, **described: str) -> RedisStore:
    """A checked store that owns a topology, on a server that is given by its URL or by a client."""
    url, client = (server, None) if isinstance(server, str) else ("redis://under-test", server)
    store = RedisStore(url, topology_id, client=client)
    store.check_server()
    acquire(store, nonce, **described)
    return store


@contextmanager
def unanswered(store: RedisStore) -> Iterator[None]:
    """Lets the store forget at the end that anything was answered meanwhile, as if the connection had been cut."""
    owned, metadata_sum = store._owned.current, dict(store._metadata_sum._digests)
    value, descriptions = store._metadata_sum._sum, store._stored
    yield
    store._owned.current, store._metadata_sum._digests, store._metadata_sum._sum = owned, metadata_sum, value
    store._stored = descriptions


def all_keys(client: Any, pattern: str) -> dict[bytes, bytes]:
    """The content of keys, as `lose` puts it back."""
    return {key: client.dump(key) for key in client.keys(pattern)}


def lose(client: Any, pattern: str, then: Mapping[bytes, bytes] | None = None) -> None:
    """A server comes back empty, or as it was."""
    client.delete(*client.keys(pattern))
    for key, packed in (then or {}).items():
        client.restore(key, 0, packed)


def dump(client: Any, pattern: str = "*") -> dict[bytes, Any]:
    """Every key with its type and content."""
    found = {}
    for key in client.keys(pattern):
        kind = client.type(key)
        if kind == b"hash":
            content: Any = client.hgetall(key)
        elif kind == b"string":
            content = client.get(key)
        elif kind == b"set":
            content = client.smembers(key)
        elif kind == b"zset":
            content = client.zrange(key, 0, -1, withscores=True)
        elif kind == b"stream":
            content = client.xrange(key)
        else:
            content = client.lrange(key, 0, -1)
        found[key] = (kind, content)
    return found


@contextmanager
def unchanged(client: Any) -> Iterator[None]:
    """The server holds afterwards what it held before."""
    before = dump(client)
    yield
    assert dump(client) == before


def record_of(txid: int, **changes: Any) -> QuarantineRecord:
    """A quarantined batch; `changes` are fields of its `BatchInput`."""
    batch = BatchInput(**{"number": txid, "metadata": [txid, txid + 1], **changes})
    cause = PoisonCause("ValueError: no number", 5, "parse", 1, "Traceback\nValueError: no number", "('x',)")
    return QuarantineRecord(txid, batch, cause, 1.5, "0" * 16, "source-1")


def packed_letter(value: Any = "x", reason: str = "bad") -> bytes:
    """A tuple of `lines` with one field, as the bolt `check` has refused it."""
    names = {"source_component": "lines", "stream_id": "default"}
    return pack_letter("check", 0, fields=["line"], values=[value], reason=reason, **names)
