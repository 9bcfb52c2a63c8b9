"""Puts exported state back: everything at once, or nothing.

Entries are staged under separate keys, which nothing else reads. One function call then takes the topology over,
deletes its old keys, moves the staged keys into place, and writes the control hash; see functions/import.lua. Until
that call no reader sees a change, and an import that ends before it leaves only keys that the next import or a drop
deletes. Each import stages under its own names, so a delayed call that deletes another import's keys cannot touch them.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import NamedTuple, Protocol

from state.codec import unpack
from state.errors import StateRefusedError, TopologyError
from state.fault_points import reached
from state.keys import Keys, split_member
from state.records.declared_states import OwnedKeys
from state.records.stored_records import StoredPiece
from state.redis_client.connection import ENTRIES_AT_ONCE, RedisConnection, text_of, texts_by_name
from state.troubles import Trouble
from state.values.state_kind import StateKind

KEYS_MAX = 100_000
"""Most keys in one import: one call puts them into place, and then blocks the server for half a second."""
TRIES = 20
VANISHING = "~"
"""Precedes the expiry of a staged key that may be gone."""


class AsOf(NamedTuple):
    """The owner and revision that a control hash shows."""

    fence: str
    revision: str

    @classmethod
    def of(cls, control: Mapping[str, str]) -> AsOf:
        return cls(control.get("fence", ""), control.get("revision", ""))


class StateImport(Protocol):
    """One import of exported state, into one slot or many; made by `RedisTopology.importer`.

    Attributes:
        left: the keys below the topology's tag that were not its own at the last search, sorted.
    """

    @property
    def left(self) -> tuple[str, ...]: ...
    def existing(self) -> list[str]:
        """Returns the keys that the topology owns, without leftovers of an unfinished import."""
        ...

    def begin(self) -> None:
        """Deletes the leftovers of unfinished imports, and begins this one."""

    def stage(self, piece: StoredPiece) -> None:
        """Stages entries of one key."""

    def restore(self, control: Mapping[str, str], *, generation: str, replaces: bool, as_of: AsOf | None = None) -> int:
        """Puts everything staged into place, and returns how many keys it replaced."""
        ...


class RedisImport:
    """One import into a topology (driver); `nonce` is 128 random bits in hexadecimal, new for each import."""

    def __init__(self, connection: RedisConnection, keys: Keys, *, nonce: str) -> None:
        self._connection, self._keys, self._nonce = connection, keys, nonce
        self._staged: dict[str, tuple[str, int | None]] = {}
        self._vanishing: set[str] = set()  # staged keys that may be gone once all of their fields have expired
        self._groups: set[bytes] = set()
        self._calls = 0
        self.left: tuple[str, ...] = ()
        """The keys below the topology's tag that were not its own at the last search, sorted."""

    def existing(self) -> list[str]:
        """Returns the keys that the topology owns, without leftovers of an unfinished import."""
        return self._existing(self._control())

    def _control(self) -> dict[str, str]:
        return texts_by_name(self._connection.call("HGETALL", self._keys.control) or [])

    def _existing(self, control: Mapping[str, str]) -> list[str]:
        owned, keys = OwnedKeys.of(control.get("topology", "")), self._keys
        found = sorted(self._scanned(keys.pattern))
        self.left = tuple(key for key in found if not owned.has(keys, key))
        return [key for key in found if owned.has(keys, key) and not key.startswith(keys.staging)]

    def refuse_taken(self) -> None:
        """Refuses a name that both a shard and a topology would have; called before anything is written.

        Raises:
            TopologyError: the name is taken.
        """
        if int(self._connection.call("EXISTS", self._keys.other_control)):
            raise TopologyError(
                f"topology {self._keys.topology_id!r} cannot be imported: a shard and a topology would have that name; "
                "nothing was changed; choose another topology id"
            ).about(Trouble.IMPORT_REFUSED)

    def begin(self) -> None:
        """Deletes the leftovers of unfinished imports, and begins this one; raises as `refuse_taken`."""
        self.refuse_taken()
        self._staged, self._vanishing, self._groups, self._calls = {}, set(), set(), 0
        left = [key for key in self._scanned(self._keys.pattern) if key.startswith(f"{self._keys.staging}:")]
        for start in range(0, len(left), ENTRIES_AT_ONCE):
            self._connection.call("UNLINK", *left[start : start + ENTRIES_AT_ONCE])
        self._stage(self._keys.staging, "begin", [])

    def stage(self, piece: StoredPiece) -> None:
        known = self._staged.get(piece.name)
        if known is None:
            if len(self._staged) == KEYS_MAX:
                raise StateRefusedError(f"the import has more than {KEYS_MAX:,} keys, which cannot be put in at once")
            key = f"{self._keys.staging}:{self._nonce}:{len(self._staged)}"
            known = self._staged[piece.name] = (key, piece.expires_ms)
        match piece.kind:
            case StateKind.HASH:
                items = [*chain.from_iterable(piece.entries)]
            case StateKind.SORTED_SET:
                items = [part for member, score in piece.entries for part in (score, member)]
            case StateKind.SET:
                items = [member for member, _ in piece.entries]
            case StateKind.STREAM if piece.position is not None:
                self._stage(known[0], "position", [piece.position.last_id.encode(), b"%d" % piece.position.added])
                return
            case StateKind.STREAM:
                items = []
                for entry_id, packed in piece.entries:
                    fields = unpack(packed)
                    items += [entry_id, b"%d" % (len(fields) // 2), *fields]
            case _:
                items = [value for _, value in piece.entries]
        if self._keys.state(piece.name) == self._keys.receipts:
            self._groups.update(receipt.partition(b" ")[2] for _, receipt in piece.entries)
        self._stage(known[0], piece.kind.redis_type, items)
        if piece.expiries:
            self._vanishing.add(known[0])
            times = ((b"%d" % at, field) for field, at in piece.expiries.items())
            self._stage(known[0], "expire_fields", [*chain.from_iterable(times)], f"state {piece.name!r}: ")
        reached("import.staged")

    def restore(self, control: Mapping[str, str], *, generation: str, replaces: bool, as_of: AsOf | None = None) -> int:
        """Puts everything staged into place, in one step or not at all, and returns how many keys it replaced.

        Args:
            control: fields of the control hash to write.
            generation: 128 random bits in hexadecimal: the topology begins a new life.
            replaces: whether to replace an existing topology; a running one is fenced out.
            as_of: owner and revision that must be unchanged, if the import was derived from the topology's own state.

        Raises:
            TopologyError: the topology exists, and `replaces` is false.
            StateRefusedError: the topology has been written, or taken over, since `as_of`.
        """
        for _ in range(TRIES):
            found = self._control()
            if as_of is not None and AsOf.of(found) != as_of:
                raise StateRefusedError(
                    f"topology {self._keys.topology_id!r} was written meanwhile; nothing was changed; stop its run, "
                    "then try again"
                )
            old = [key for key in self._existing(found) if key != self._keys.control]
            if (old or found) and not replaces:
                raise TopologyError(
                    f"topology {self._keys.topology_id!r} exists; give --replace to delete what it holds"
                )
            status, detail = self._restore(control, found, old, generation)
            reached("import.restored")
            if status in ("OK", "ALREADY"):
                return len(old) + bool(found)
            if status == "FOREIGN":
                also = split_member(self._keys.state_name(detail))[0]
                raise TopologyError(
                    f"topology {self._keys.owner_id!r} was not imported: the server holds {detail!r}; rename or "
                    "delete that key; the export would replace it, and no record says that it is the topology's own; "
                    "nothing was changed; if it is the topology's: `txbatch drop "
                    f"{self._keys.owner_id} --also {also}`, then import"
                ).about(Trouble.IMPORT_REFUSED)
            if status != "RACED":
                raise StateRefusedError(
                    f"topology {self._keys.topology_id!r} was not imported: {detail}; nothing was changed, so import "
                    "again"
                )
        raise StateRefusedError(
            f"topology {self._keys.topology_id!r} keeps being written; stop its run, then import again"
        )

    def _restore(
        self, control: Mapping[str, str], found: Mapping[str, str], old: list[str], generation: str
    ) -> tuple[str, str]:
        staged = [key for key, _ in self._staged.values()]
        targets = [self._keys.state(name) for name in self._staged]
        names = [self._keys.control, self._keys.staging, *staged, *targets, *old]
        expiries = [
            (VANISHING if key in self._vanishing else "") + ("" if expires_ms is None else str(expires_ms))
            for key, expires_ms in self._staged.values()
        ]
        head = [self._nonce, generation, found.get("fence", ""), found.get("revision", ""), str(self._calls)]
        head.append(str(len(self._groups)))
        fields = [*chain.from_iterable(control.items())]
        reply = self._connection.function(
            "restore", str(len(names)), *names, *head, str(len(staged)), *expiries, *fields
        )
        status, detail = map(text_of, reply)
        return status, detail

    def _stage(self, key: str, kind: str, items: list[bytes], about: str = "") -> None:
        self._calls += 1
        reply = self._connection.function(
            "stage", "2", self._keys.staging, key, self._nonce, str(self._calls), kind, *items
        )
        status, detail = map(text_of, reply)
        if status not in ("OK", "ALREADY"):
            what_now = "into a server that takes it" if status == "LIMIT" else "again"
            raise StateRefusedError(
                f"topology {self._keys.topology_id!r} was not imported: {about}{detail}; nothing was changed, so "
                f"import {what_now}"
            )

    def _scanned(self, pattern: str) -> list[str]:
        return sorted({text_of(key) for piece in self._connection.keys_like(pattern) for key in piece})
