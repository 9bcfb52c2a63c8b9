"""Encodes a write as the keys and arguments that the function library reads, and decodes its answer.

Integer increments are sent as blocks (`packed_writes`), most of them packed by commit tasks already; everything else is
flat here, and `packed_call` packs it if it is large. No section is larger than Lua can unpack at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from sys import getsizeof
from typing import Any

from state.codec import digest64, pack
from state.commits.commit import COMMIT_OPERATIONS_LIMIT, Commit, CommitReply, CommitStatus, RefusalCause
from state.commits.dead_letters import DEAD_LETTERS_STATE
from state.commits.packed_writes import SECTION_LIMIT, IncrementBlock, PackedWrites, increment_blocks, unpacked
from state.commits.quarantine import QuarantineChange
from state.commits.state_writes import StateWrites
from state.commits.write_set import DeadLetterWrites, WriteSet
from state.errors import TransactionError
from state.keys import Keys
from state.redis_client.connection import text_of
from state.redis_client.packed_call import Argument
from state.values.state_kind import KEEP_ALL, MAX_INTEGER, Field, KeptEnd, Retention, StateKind, ValueType

_PUT = {None: "put", KeptEnd.LAST: "put", KeptEnd.HIGHEST: "raise", KeptEnd.LOWEST: "lower"}

BYTES_LIMIT = 256 * 1024 * 1024
"""Size of the largest call: servers drop a connection whose query buffer exceeds 1 GiB."""


@dataclass(frozen=True, slots=True)
class Ownership:
    """The owner's identity and position, which each of its calls carries.

    Attributes:
        fence: identifies the owner.
        generation: identifies this life of the topology; drawn when it was first started.
        revision: the exact number of writes that the server must have applied before this call.
    """

    fence: str
    generation: str
    revision: int

    def arguments(self) -> list[Argument]:
        return [self.fence, self.generation, str(self.revision)]

    def after_write(self) -> Ownership:
        return Ownership(self.fence, self.generation, self.revision + 1)


@dataclass(frozen=True, slots=True)
class Descriptions:
    """A run's input and topology, described as they are stored with the results."""

    source_fingerprint: str
    topology: str

    def changes(self, stored: Descriptions) -> list[Argument]:
        """Returns the descriptions for a write to carry; "" for one that equals the stored one."""
        source, topology = self.source_fingerprint, self.topology
        return [
            "" if source == stored.source_fingerprint else source,
            "" if topology == stored.topology else topology,
        ]


class CommitTooLargeError(TransactionError):
    """A commit cannot be sent: too many operations or bytes, or an increment beyond ±(2^53-1)."""


def commit_arguments(
    keys: Keys, commit: Commit, packed_metadata: Mapping[str, bytes]
) -> tuple[list[str], list[Argument]]:
    """Returns a commit's keys and arguments, without the owner's; called by `RedisStore.commit`.

    Equal commits give equal arguments, so their digest distinguishes a repeated call from a different write.
    """
    operations = commit.write_set.operations()
    if operations > COMMIT_OPERATIONS_LIMIT:
        raise CommitTooLargeError(
            f"commit has {operations} operations, more than the limit of {COMMIT_OPERATIONS_LIMIT}; "
            "cut smaller transactions"
        )
    write_set = commit.write_set
    names = [keys.control, keys.metadata, keys.receipts, keys.history, *map(keys.state, write_set.states)]
    attempts = commit.attempts
    notified = "" if commit.notified_txid is None else str(commit.notified_txid)
    content: list[Argument] = [notified, str(commit.history), str(attempts[0].txid), str(len(attempts))]
    content += [f"{attempt.attempt_id:016x}" for attempt in attempts]
    content += metadata_arguments(packed_metadata, commit.forget)
    content += state_sections(write_set, first_key=len(names) - len(write_set.states) + 1, is_group=len(attempts) > 1)
    if write_set.letters is not None:
        names.append(keys.state(DEAD_LETTERS_STATE))
        content += _letters(len(names), write_set.letters)
    if commit.quarantine is not None:
        names.append(keys.quarantine)
        content += _quarantine(len(names), commit.quarantine)
    refuse_bytes(sum(map(len, content)), write_set)
    return names, content


def refuse_bytes(size: int, write_set: WriteSet) -> None:
    """Refuses a call that is too large for any server."""
    if size > BYTES_LIMIT:
        raise CommitTooLargeError(
            f"commit has {size} bytes, more than the limit of {BYTES_LIMIT}{_heaviest(write_set)}; cut smaller "
            "transactions"
        )


def _heaviest(write_set: WriteSet) -> str:
    """Names the state with the most bytes, and the field with the longest value if values were put."""
    sizes = {
        name: sum(map(len, state_sections(WriteSet({name: writes}), first_key=1, is_group=False)))
        for name, writes in write_set.states.items()
    }
    if not sizes:
        return ""
    name = max(sizes, key=sizes.__getitem__)
    puts = unpacked(write_set.states[name]).puts
    field = max(puts, key=lambda each: getsizeof(puts[each]), default=None)
    longest = "" if field is None else f", with the longest value in field {field!r:.100}"
    return f": {sizes[name]} for state {name!r}{longest}"


def state_sections(write_set: WriteSet, *, first_key: int, is_group: bool) -> list[Argument]:
    """Returns a commit's changes to the user's states, whose keys are numbered from `first_key` on.

    Raises:
        CommitTooLargeError: an increment cannot be sent, or may leave its range between two transactions of a group.
    """
    content: list[Argument] = []
    for index, (name, writes) in enumerate(write_set.states.items(), start=first_key):
        if is_group and writes.reach > (MAX_INTEGER if isinstance(writes, PackedWrites) else writes.most()):
            raise CommitTooLargeError(f"state {name!r} may leave its range between two transactions of this commit")
        if isinstance(writes, PackedWrites):
            content += _packed_sections(index, writes, writes.reach if is_group else 0)
            continue
        if is_group:
            _append_checks(content, index, writes)
        _append_state(content, index, name, writes, writes.reach if is_group else 0)
    return content


def metadata_arguments(packed: Mapping[str, bytes], forget: Sequence[str]) -> list[Argument]:
    """Returns the puts and deletes of metadata fields, each preceded by their number."""
    arguments: list[Argument] = [str(len(packed))]
    for item in packed.items():
        arguments += item
    return [*arguments, str(len(forget)), *forget]


def call_digest(arguments: Sequence[Argument]) -> str:
    """Returns 16 hexadecimal digits that distinguish a write from any other of the owner at the same revision."""
    return f"{digest64(pack(list(arguments))):016x}"


def reply_of(reply: Sequence[Any]) -> CommitReply:
    """Returns the library's reply to a write as a value: a status, a sentence and perhaps a cause."""
    status, sentence, *causes = map(text_of, reply)
    return CommitReply(CommitStatus(status), sentence, cause=RefusalCause("".join(causes)))


def float_text(number: float) -> str:
    """Returns the shortest form of 15, 16 or 17 digits that reads back equal, as the Lua library writes it."""
    for digits in (15, 16):
        text = f"{number:.{digits}g}"
        if float(text) == number:
            return text
    return f"{number:.17g}"


def _packed_sections(index: int, writes: PackedWrites, reach: float) -> list[Argument]:
    head: list[Argument] = [str(index), writes.kind.value, writes.value_type.value]
    content: list[Argument] = []
    for block in writes.blocks:
        content += [*head, "increment", *block.arguments(), str(reach)]
    return content if writes.retention is KEEP_ALL else content + _retained(head, writes.retention)


def _letters(index: int, letters: DeadLetterWrites) -> list[Argument]:
    """Returns the sections that limit the number of letters, add letters and remove the republished ones."""
    head: list[Argument] = [str(index), StateKind.SORTED_SET.value, ValueType.FLOAT.value]
    content = [*head, "bound", "1", str(letters.total_max), str(len(letters.added) - len(letters.taken))]
    for part in _parts(list(letters.added.items())):
        content += [*head, "put", str(len(part))]
        for member, txid in part:
            content += [member, float_text(txid)]
    for part in _parts(list(dict.fromkeys(letters.taken))):
        content += [*head, "take", str(len(part)), *part]
    return content


def _append_checks(content: list[Argument], index: int, writes: StateWrites) -> None:
    """Adds the checks that make the server refuse a group if it would refuse one of its transactions alone."""
    for part in _parts(list(writes.overwritten)):
        reach = max(writes.overwritten[field] for field in part)
        content += [str(index), writes.kind.value, writes.value_type.value, "check", str(len(part)), *_fields(part)]
        content.append(float_text(reach) if isinstance(reach, float) else str(reach))


def _append_state(content: list[Argument], index: int, name: str, writes: StateWrites, reach: float) -> None:
    kind, value_type = writes.kind, writes.value_type
    head: list[Argument] = [str(index), kind.value, value_type.value]
    for part in _parts(list(writes.puts)):
        content += [*head, _PUT[writes.retention.side], str(len(part))]
        if kind is StateKind.SET or kind is StateKind.HYPERLOGLOG:
            content += _values(part, value_type)
        elif kind is StateKind.VALUE:
            content += _values(map(writes.puts.__getitem__, part), value_type)
        else:
            values = _values(map(writes.puts.__getitem__, part), value_type)
            content += [item for pair in zip(_fields(part), values, strict=True) for item in pair]
    content += _expiries(head, writes)
    if value_type is ValueType.INT:
        for block in _blocks(name, writes):
            content += [*head, "increment", *block.arguments(), str(reach)]
    else:
        for part in _parts(list(writes.increments)):
            content += [*head, "increment", *_floats(name, part, writes)]
    for part in _parts(list(writes.deletes)):
        content += [*head, "delete", str(len(part)), *_fields(part)]
    content += _appends(head, writes)
    if writes.retention is not KEEP_ALL:
        content += _retained(head, writes.retention)


def _expiries(head: list[Argument], writes: StateWrites) -> list[Argument]:
    """Returns the sections that set the expiry of fields that were put: one for each time."""
    content: list[Argument] = []
    fields_at: dict[int, list[Field]] = {}
    for field, expires_ms in writes.expiries.items():
        fields_at.setdefault(expires_ms, []).append(field)
    for expires_ms, fields in fields_at.items():
        for part in _parts(fields):
            content += [*head, "expire_fields", str(len(part)), str(expires_ms), *_fields(part)]
    return content


def _appends(head: list[Argument], writes: StateWrites) -> list[Argument]:
    """Returns the sections that append items to a list, or entries to a stream: one per entry, in order of ids.

    Entries that the same commit trims are added too: readers detect missed entries by the stream's counter.
    """
    content: list[Argument] = []
    if writes.kind is StateKind.LIST:
        for part in _parts(writes.appends):
            content += [*head, "append", str(len(part)), *_values(part, writes.value_type)]
        return content
    for txid, number, *fields in sorted(writes.appends, key=itemgetter(0, 1)):
        names, values = fields[::2], _values(fields[1::2], writes.value_type)
        pairs = chain.from_iterable(zip(names, values, strict=True))
        content += [*head, "append", str(len(names)), f"{txid}-{number}", *pairs]
    return content


def _retained(head: list[Argument], retention: Retention) -> list[Argument]:
    """Returns the sections that enforce retention and set the key's expiry; they do not count as operations."""
    content: list[Argument] = []
    most = retention.most
    match retention.side:
        case KeptEnd.HIGHEST:
            content += [*head, "trim", "1", "0", str(-most - 1)]
        case KeptEnd.LOWEST:
            content += [*head, "trim", "1", str(most), "-1"]
        case KeptEnd.LAST if head[1] == StateKind.STREAM.value:
            content += [*head, "trim", "1", str(most)]
        case KeptEnd.LAST:
            content += [*head, "trim", "1", str(-most), "-1"]
    if retention.expires_ms is not None:
        content += [*head, "expire", "1", str(retention.expires_ms)]
    return content


def _quarantine(index: int, change: QuarantineChange) -> list[Argument]:
    """Returns the section of quarantined batches; it does not count as an operation."""
    return [str(index), StateKind.HASH.value, ValueType.BYTES.value, *change.operation()]


def _parts(items: list[Any]) -> Iterable[list[Any]]:
    return (items[start : start + SECTION_LIMIT] for start in range(0, len(items), SECTION_LIMIT))


def _floats(name: str, part: list[Field], writes: StateWrites) -> list[Argument]:
    texts = [" ".join(map(repr, writes.increments[field])) for field in part]
    for field, text in zip(part, texts, strict=True):
        if "n" in text:  # inf, nan
            worst = next(number for number in writes.increments[field] if not math.isfinite(number))
            raise CommitTooLargeError(
                f"state {name!r}, field {field!r:.100}: {worst} is added, which is not a finite number"
            )
    return [str(len(part)), *_fields(part), *texts]


def _blocks(name: str, writes: StateWrites) -> list[IncrementBlock]:
    amounts = writes.increments.values()
    worst = max(max(amounts, default=0), min(amounts, default=0), key=abs)
    if abs(worst) > MAX_INTEGER:
        field = next(field for field, amount in writes.increments.items() if amount == worst)
        raise CommitTooLargeError(
            f"state {name!r}, field {field!r:.100}: {worst} is added, outside ±{MAX_INTEGER}; use a str or float state"
        )
    return increment_blocks(writes.increments)


def _fields(part: list[Field]) -> list[Argument]:
    if int in set(map(type, part)):
        return [str(field) if isinstance(field, int) else field for field in part]
    return part  # type: ignore[return-value]  # no integers among them


def _values(values: Iterable[Any], value_type: ValueType) -> list[Argument]:
    if value_type is ValueType.INT:
        return list(map(str, values))
    if value_type is ValueType.FLOAT:
        return list(map(float_text, values))
    return list(values)
