"""All of a topology's state at one moment, decoded to the declared types: for tests, checks and exports."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any

import redis
from redis.cluster import RedisCluster

from state.codec import unpack
from state.errors import StateRefusedError, StateUnreachableError
from state.html_tables import bounded_repr, section, states_table
from state.keys import Keys, split_member
from state.kinds.state_family import PartType, StateFamily, part_of_text
from state.kinds.state_handle import StateHandle
from state.records.declared_states import DescribedState
from state.redis_admin.all_records import RedisRecords, known_to_shards
from state.redis_admin.whole_replies import READ_COMMANDS, Read, WholeReply, entries_of
from state.redis_client.connection import RedisConnection
from state.redis_client.redis_errors import Remedy, remedy_of
from state.redis_owner.refusals import ReshapedError
from state.troubles import Trouble
from state.values.state_kind import StateKind, ValueType
from state.values.value_form import decode_stored

MOVED_TRIES, MOVED_PAUSE_S = 50, 0.1
"""How often, and at what interval, a cluster is asked again for a slot that is moving or has moved."""
_KEYED = (StateKind.HASH, StateKind.SET, StateKind.SORTED_SET)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state between two commits.

    Attributes:
        txid: the last committed transaction, 0 before the first.
        states: state name -> dict (hash, sorted set; of a stream, id -> fields as a dict), set, list, the value (None
            if there is none), or the count of a HyperLogLog. For a state with parts: part -> the same, of each part
            that exists.
    """

    txid: int
    states: dict[str, Any]

    def __repr__(self) -> str:
        return f"Snapshot(txid={self.txid}, states={bounded_repr(self.states)})"

    def _repr_html_(self) -> str:
        return section(states_table(self.states, caption=f"state as of txid {self.txid:,}"))


def snapshot(client: Any, topology_id: str, handles: Iterable[StateHandle[Any] | StateFamily[Any]]) -> Snapshot:
    """Reads whole states at one moment, with one MULTI, or one for each shard.

    Call it from anywhere except inside a transaction. It fetches everything at once; read large states with the
    client's own commands.

    Args:
        client: a client of the server, or of its cluster. A client with ``decode_responses=True`` cannot read binary
            values, so its settings are used for a separate connection.
        topology_id: the topology whose state to read.
        handles: the states to read, as declared: ``[StoreCounts.counts]``.

    Raises:
        StateRefusedError: a key, or a value in it, does not have the declared type; a run adds keys faster than they
            can be found; the server has applied part of a write that it had lost; or a drop or import of the topology
            has not ended.
        StateUnreachableError: the server did not answer.
    """
    wanted = list(handles)
    for is_last in (*[False] * MOVED_TRIES, True):
        try:
            control, read = _read(client, Keys(topology_id), wanted)
            break
        except (StateRefusedError, StateUnreachableError) as error:
            is_cluster, cause = isinstance(client, RedisCluster), error.__cause__
            has_moved = (
                is_cluster and isinstance(cause, redis.RedisError) and (remedy_of(cause, may_move=True) is Remedy.RETRY)
            )
            if is_last or not (has_moved or isinstance(error, ReshapedError)):
                raise
            time.sleep(MOVED_PAUSE_S)
            if is_cluster:
                client.nodes_manager.initialize()
    states: dict[str, Any] = {
        each.name: _parts(each, read) if isinstance(each, StateFamily) else _decoded(each, read[each.name])
        for each in wanted
    }
    return Snapshot(int(control.get("committed", "0")), states)


def _read(client: Any, keys: Keys, wanted: Sequence[StateHandle[Any] | StateFamily[Any]]) -> Read:
    """Reads all states at one moment, from the nodes that the client names."""
    with ExitStack() as opened:
        nodes: dict[int, RedisConnection] = {}

        def connected(own: Keys) -> RedisConnection:
            node, follows = _node_of(client, own.control), hasattr(client, "owner_of")
            if follows:
                opened.enter_context(closing(node))
            if id(node) not in nodes:
                raw, timeout_s = opened.enter_context(_of_bytes(node)), MOVED_TRIES * MOVED_PAUSE_S if follows else 0.0
                nodes[id(node)] = RedisConnection(raw, f"of topology {keys.topology_id!r}", timeout_s=timeout_s)
            return nodes[id(node)]

        records = RedisRecords(connected(keys), keys)
        if records.shard_count() > 1:
            from state.redis_admin.sharded_records import ShardedRecords  # few topologies need it

            records = ShardedRecords(records, lambda count: [connected(keys.shard(each)) for each in range(count)])
        control, read = records.at_moment(records.sought(map(_described, wanted)), READ_COMMANDS)
        if not control and (any(whole.reply for whole in read.values()) or known_to_shards(records, connected)):
            raise StateRefusedError(
                f"topology {keys.topology_id!r} has lost its record at home, and states of it are there; run it, which "
                "takes back what its shards have kept, or says what is lost"
            ).about(Trouble.REGRESSED)
        return control, read


def _described(handle: StateHandle[Any] | StateFamily[Any]) -> DescribedState:
    """Returns a state for the search: any text after its name may be a part, which `_parts` parses."""
    part_type = PartType.STR if isinstance(handle, StateFamily) else None
    return DescribedState(handle.name, handle.kind, handle.value_type, handle.field_type, part_type=part_type)


def _parts(family: StateFamily[Any], read: Mapping[str, WholeReply]) -> dict[Any, Any]:
    parts: dict[Any, Any] = {}
    for name, whole in sorted(read.items()):
        state_name, text = split_member(name)
        if state_name != family.name or text is None or not whole.reply:  # another state's, or gone since the search
            continue
        try:
            part = part_of_text(text, family.part_type)
        except ValueError:
            raise StateRefusedError(
                f"state {family.name!r} has a key for the {family.part_name} {text!r}, but is declared with one for "
                f"each {family.part_type.value}; remove the key, or declare the type it has"
            ) from None
        parts[part] = _decoded(family.member(text), whole)
    return parts


def _node_of(client: Any, key: str) -> Any:
    """Returns the client; for a cluster, a client of the node that has the key, which can list neighbouring keys."""
    if hasattr(client, "owner_of"):
        return client.owner_of(key)
    if not isinstance(client, RedisCluster):
        return client
    return client.get_redis_connection(client.get_node_from_key(key))  # type: ignore[no-untyped-call] # redis-py's own


@contextmanager
def _of_bytes(client: Any) -> Iterator[Any]:
    """Yields the client, or one with the same settings that returns bytes."""
    pool: Any = getattr(client, "connection_pool", None)
    settings = getattr(pool, "connection_kwargs", {})
    if not settings.get("decode_responses"):
        yield client
        return
    own = redis.ConnectionPool(connection_class=pool.connection_class, **{**settings, "decode_responses": False})
    with closing(redis.Redis(connection_pool=own)) as raw:
        try:
            yield raw
        finally:
            own.disconnect()


def _decoded(handle: StateHandle[Any], whole: WholeReply) -> Any:
    if handle.kind is StateKind.HYPERLOGLOG:
        return int(whole.reply)
    where = f"state {handle.name!r}"
    entries = entries_of(handle.kind, whole.reply)
    if handle.kind is StateKind.STREAM:
        return {entry_id.decode(): _fields(handle, packed, where) for entry_id, packed in entries}
    fields = [decode_stored(field, handle.field_type, where) for field, _ in entries if handle.kind in _KEYED]
    values = [
        decode_stored(value, handle.value_type, where, handle.scale)
        for _, value in entries
        if handle.kind is not StateKind.SET
    ]
    match handle.kind:
        case StateKind.VALUE:
            return values[0] if values else None
        case StateKind.LIST:
            return values
        case StateKind.SET:
            return set(fields)
    return dict(zip(fields, values, strict=True))


def _fields(handle: StateHandle[Any], packed: bytes, where: str) -> dict[str, Any]:
    fields = unpack(packed)
    values = [decode_stored(value, handle.value_type, where, handle.scale) for value in fields[1::2]]
    return dict(zip((decode_stored(name, ValueType.STR, where) for name in fields[::2]), values, strict=True))
