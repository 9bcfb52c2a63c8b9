"""The metadata that a source stores for each txid, and its checks at the next start. Pure.

A checksum over all entries is updated with every write of the owner and stored next to the revision. It shows the next
owner whether the entries are unchanged since the last write. Whether they are readable is a separate question: altered
entries may still be readable, and if other software wrote entries and checksum, unreadable ones may match it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from state.codec import CodecError, digest64, unpack
from state.errors import ProtocolError, StateRefusedError
from state.keys import Keys, is_chain, metadata_field, parse_metadata_field
from state.printable import counted
from state.troubles import Trouble


@dataclass(frozen=True, slots=True)
class MetadataChanges:
    """Metadata to store, field -> value, and fields to delete; for `RedisStore.store_metadata` and `Commit`."""

    puts: dict[str, Any] = field(default_factory=dict)
    forgets: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.puts or self.forgets)


class TransactionalState:
    """Values by scope and txid, made from the metadata that `RedisStore.acquire` returned (driver); never does I/O.

    The coordinator and the emitters of a topology each own a scope ("coordinator", "partition.3"). The driver takes the
    recorded changes and stores them in one fenced call, before anything is emitted.

    Source: backtype.storm.transactional.state.TransactionalState.
    Differs from Storm: holds the values and records changes instead of writing to ZooKeeper one by one.
    """

    def __init__(self, metadata: Mapping[str, Any] | None = None) -> None:
        self._scopes: dict[str, dict[int, Any]] = {}
        self._puts: dict[str, Any] = {}
        self._forgets: dict[str, bool] = {}
        for name, value in (metadata or {}).items():
            scope, txid = parse_metadata_field(name)
            self._scopes.setdefault(scope, {})[txid] = value

    def scopes(self) -> list[str]:
        return sorted(scope for scope, values in self._scopes.items() if values)

    def values(self, scope: str) -> Mapping[int, Any]:
        """Values of one scope by txid, in no particular order."""
        return self._scopes.get(scope, {})

    def put(self, scope: str, txid: int, value: Any) -> None:
        self._scopes.setdefault(scope, {})[txid] = value
        name = metadata_field(scope, txid)
        self._forgets.pop(name, None)
        self._puts[name] = value

    def remove(self, scope: str, txids: Iterable[int]) -> None:
        """Removes values and records the changes; skips txids without a value."""
        values = self._scopes.get(scope, {})
        for txid in list(txids):
            if txid in values:
                del values[txid]
                name = metadata_field(scope, txid)
                self._puts.pop(name, None)
                self._forgets[name] = True

    def take_changes(self) -> MetadataChanges:
        """Returns the changes since the last call, each field once; the caller must store them."""
        changes = MetadataChanges(self._puts, tuple(self._forgets))
        self._puts, self._forgets = {}, {}
        return changes


StateInitializer = Callable[[int, Any], Any]
"""(txid, value of the greatest lower txid or None) -> value for txid."""


class RotatingTransactionalState:
    """The sorted map txid -> value of one scope; used by the coordinator, and by emitters for each partition.

    Once a txid has a value, every replay gets that value. None is a value too: it means that a later batch was already
    emitted, so this one must be empty. A strict state makes values in txid order from 1 without gaps; any other order
    is a ProtocolError.

    Source: backtype.storm.transactional.state.RotatingTransactionalState.
    """

    def __init__(self, state: TransactionalState, scope: str, *, is_strict: bool = True) -> None:
        self._state, self._scope, self._is_strict = state, scope, is_strict

    def get_state(self, txid: int, initialize: StateInitializer) -> Any:
        """Returns the value of a txid; `initialize` makes it on the first call.

        If a greater txid has a value, `initialize` is not called and the value is None.
        """
        values = self._state.values(self._scope)
        if txid in values:
            return values[txid]
        previous_txid = max((known for known in values if known < txid), default=None)
        has_greater = any(known > txid for known in values)
        if self._is_strict:
            self._check_order(txid, previous_txid, has_greater=has_greater)
        value = None
        if not has_greater:
            value = initialize(txid, None if previous_txid is None else values[previous_txid])
        self._state.put(self._scope, txid, value)
        return value

    def get_state_or_create(self, txid: int, initialize: StateInitializer) -> Any:
        """Returns the value of a txid if it has one; otherwise makes it and returns None."""
        values = self._state.values(self._scope)
        if txid in values:
            return values[txid]
        self.get_state(txid, initialize)
        return None

    def has_cache(self, txid: int) -> bool:
        return txid in self._state.values(self._scope)

    def cleanup_before(self, txid: int) -> None:
        """Removes every lower txid; called once committed transactions no longer need them."""
        self._state.remove(self._scope, [known for known in self._state.values(self._scope) if known < txid])

    def _check_order(self, txid: int, previous_txid: int | None, *, has_greater: bool) -> None:
        follows = txid == 1 if previous_txid is None else previous_txid == txid - 1
        if not follows:
            last = "none" if previous_txid is None else str(previous_txid)
            raise ProtocolError(f"txid {txid} of {self._scope!r} is initialised out of order; the last known is {last}")
        if has_greater:
            raise ProtocolError(f"txid {txid} of {self._scope!r} is initialised after a greater one")


@dataclass(frozen=True, slots=True)
class MetadataSumChange:
    """One write's change of a `MetadataSum`: the new sum, and field -> digest of its new entry, 0 if deleted."""

    sum_after: int
    digests: Mapping[str, int]

    def __str__(self) -> str:
        return f"{self.sum_after:016x}"


class MetadataSum:
    """The xor of one digest per entry, so order does not matter; starts from all entries, field -> packed value."""

    def __init__(self, entries: Mapping[str, bytes]) -> None:
        self._digests: dict[str, int] = {}
        self._sum = 0
        self.accept(self.change(entries, ()))

    def change(self, puts: Mapping[str, bytes], forgets: Iterable[str]) -> MetadataSumChange:
        """Returns the change made by storing `puts` and then deleting `forgets`, which need not exist."""
        digests = {field: digest64(field.encode(), packed) for field, packed in puts.items()}
        digests |= dict.fromkeys(forgets, 0)
        sum_after = self._sum
        for name, digest in digests.items():
            sum_after ^= self._digests.get(name, 0) ^ digest
        return MetadataSumChange(sum_after, digests)

    def accept(self, change: MetadataSumChange) -> None:
        self._sum = change.sum_after
        for name, digest in change.digests.items():
            if digest:
                self._digests[name] = digest
            else:
                self._digests.pop(name, None)

    def __str__(self) -> str:
        return f"{self._sum:016x}"


_FIELD = re.compile(r".+:(0|[1-9][0-9]{0,15})", re.DOTALL)
_NUMBER = re.compile(r"0|[1-9][0-9]{0,15}")


def verified_metadata(keys: Keys, items: Sequence[Any], stored_sum: str) -> tuple[dict[str, bytes], MetadataSum]:
    """Returns stored metadata, field -> packed value, and its checksum; `items` alternates fields and values."""
    packed = {str(items[i], "utf-8", "backslashreplace"): bytes(items[i + 1]) for i in range(0, len(items), 2)}
    found_sum = MetadataSum(packed)
    if str(found_sum) != stored_sum:
        raise StateRefusedError(
            f"topology {keys.topology_id!r} cannot start: the server has lost or altered some of its stored metadata; "
            "restore a copy taken at one moment; "
            f"the checksum over {counted(len(packed), 'field')} is {found_sum}, expected {stored_sum}"
            f"{unreadable_metadata(packed)}; without a copy, start over with `txbatch drop {keys.topology_id}`"
        ).about(Trouble.DAMAGED)
    return packed, found_sum


def unpack_metadata(keys: Keys, packed: Mapping[str, bytes]) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    for name, value in packed.items():
        fault, metadata[name] = _read(name, value)
        if fault:
            raise StateRefusedError(f"topology {keys.topology_id!r} cannot start: {fault}{damage_remedy(keys)}").about(
                Trouble.DAMAGED
            )
    return metadata


def unreadable_metadata(packed: Mapping[str, bytes]) -> str:
    """Returns the part of an error message that names unreadable entries, "" if there are none."""
    faults = [fault for field, value in packed.items() if (fault := _read(field, value)[0])]
    more = f", and {len(faults) - 3} more" if len(faults) > 3 else ""
    return f"; {', '.join(faults[:3])}{more}" if faults else ""


def chain_of(packed: Mapping[str, bytes]) -> str:
    """Returns the chain of a topology over many slots, from home's metadata; "" before the first group."""
    return "".join(str(unpack(value)) for field, value in packed.items() if is_chain(field))


def checked_control(keys: Keys, control: dict[str, str]) -> dict[str, str]:
    for name in ("committed", "revision"):
        if name in control:
            _number(keys, name, control[name])
    return control


def _number(keys: Keys, field: str, text: str) -> None:
    if not _NUMBER.fullmatch(text):
        raise StateRefusedError(
            f"topology {keys.topology_id!r} cannot be used: field {field!r} of key {keys.control!r} holds {text!r}, "
            f"which is not a whole number{damage_remedy(keys)}"
        ).about(Trouble.DAMAGED)


def _read(field: str, value: bytes) -> tuple[str, Any]:
    """Returns the fault of an entry, "" if there is none, and its value."""
    if not _FIELD.fullmatch(field):
        return f"metadata field {field!r} does not end in a colon and a txid, as txbatch's do", None
    try:
        return "", unpack(value)
    except CodecError as error:
        return f"metadata field {field!r} holds {value[:40]!r}, which cannot be read ({error})", None


def damage_remedy(keys: Keys) -> str:
    """Returns the remedy, to end a sentence about stored data that txbatch cannot have written."""
    return (
        "; other software wrote it, or the server's data is damaged; restore the data from a copy taken at one "
        f"moment, or start over with `txbatch drop {keys.topology_id}`"
    )
