"""An in-memory map from scope and txid to a value, which records its changes for the driver.

The coordinator and the emitters of a topology each own a scope ("coordinator", "partition.3"). The
driver takes the recorded changes and stores them in one fenced call, before anything is emitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from state.keys import metadata_field, parse_metadata_field


@dataclass(frozen=True, slots=True)
class MetadataChanges:
    """Metadata to store and to delete, in the form `RedisStore.store_metadata` and `Commit` take.

    Attributes:
        puts: metadata field -> value.
        forgets: metadata fields to delete.
    """

    puts: dict[str, Any] = field(default_factory=dict)
    forgets: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.puts or self.forgets)


class TransactionalState:
    """Values by scope and txid; lives in the driver (or in a test), never does I/O.

    Args:
        metadata: what was stored, as `RedisStore.acquire` returned it.

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
        """Every scope that holds a value, sorted."""
        return sorted(scope for scope, values in self._scopes.items() if values)

    def values(self, scope: str) -> Mapping[int, Any]:
        """Values of one scope by txid, in no particular order."""
        return self._scopes.get(scope, {})

    def put(self, scope: str, txid: int, value: Any) -> None:
        """Sets a value and records the change."""
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
