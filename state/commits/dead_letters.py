"""Dead letters: single tuples that a bolt or a source refused, kept with their transaction.

A task packs a letter when it is refused and reports it with its attempt. The driver numbers the letters of a
transaction and adds them to the write set that publishes it, so they are stored exactly once, or not at all. They form
a sorted set: the score is the txid, and a member begins with txid and number, so equal letters are different members
and the server keeps all of them in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from state.codec import CodecError, pack, unpack
from state.commits.write_set import DeadLetterWrites, WriteSet
from state.errors import StateRefusedError, TopologyError
from state.troubles import Trouble
from state.values.whole import is_whole

DEAD_LETTERS_STATE = "txbatch:dead_letters"
"""State name that no user's state can have, because names cannot contain a colon."""

REASON_LIMIT = 1_000
"""Most characters of a reason; longer reasons are cut, and end in an ellipsis."""

PER_TRANSACTION_MAX = 100_000
TOTAL_MAX = 10_000_000
LETTER_BYTES_MAX = 64 * 1024 * 1024
_NUMBER_DIGITS = 6


def _check(name: str, value: object, most: int) -> None:
    if not is_whole(value, 1, most):
        raise TopologyError(f"dead letters: {name} is {value!r}; give an integer from 1 to {most:,}")


@dataclass(frozen=True, slots=True)
class LetterLimits:
    """How many dead letters a topology may keep; a transaction that exceeds a limit is not committed.

    Attributes:
        per_transaction: most letters of one transaction.
        total: most letters stored at a time.
        letter_bytes: largest letter, packed.

    Raises:
        TopologyError: a limit is not an integer within its range.
    """

    per_transaction: int = 1_000
    total: int = 100_000
    letter_bytes: int = 64 * 1024

    def __post_init__(self) -> None:
        _check("per_transaction", self.per_transaction, PER_TRANSACTION_MAX)
        _check("total", self.total, TOTAL_MAX)
        _check("letter_bytes", self.letter_bytes, LETTER_BYTES_MAX)


DEFAULT_LETTER_LIMITS = LetterLimits()


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One refused tuple, as stored.

    Attributes:
        txid: its transaction.
        number: its number within the transaction, from 0, in order of component, task and call.
        component_id: the component that refused it.
        task_index: the task of that component, from 0.
        source_component: the component that emitted the tuple; the same as `component_id` if it was never emitted.
        stream_id: the stream on which it was emitted; empty if it was never emitted.
        fields: the names of its values.
        values: its values, of types that tuples may carry.
        reason: why it was refused.
        member: the stored bytes of the letter.
    """

    txid: int
    number: int
    component_id: str
    task_index: int
    source_component: str
    stream_id: str
    fields: tuple[str, ...]
    values: tuple[Any, ...]
    reason: str
    member: bytes = field(default=b"", repr=False, compare=False)

    @property
    def letter_id(self) -> str:
        """Names the letter within its topology, such as ``17.0``."""
        return f"{self.txid}.{self.number}"

    def __getitem__(self, field: str) -> Any:
        """Returns the value of a field.

        Raises:
            KeyError: the tuple had no such field.
        """
        if field not in self.fields:
            raise KeyError(f"dead letter {self.letter_id} has no field {field!r}; it has {self.fields}")
        return self.values[self.fields.index(field)]


def pack_letter(
    component_id: str,
    task_index: int,
    *,
    source_component: str,
    stream_id: str,
    fields: Sequence[str],
    values: Sequence[Any],
    reason: str,
) -> bytes:
    """Packs a letter where it is refused (executor); its txid and number are added when it is published."""
    said = reason if len(reason) <= REASON_LIMIT else reason[: REASON_LIMIT - 1] + "…"
    valid = said.encode("utf-8", "backslashreplace").decode()
    return pack([component_id, task_index, source_component, stream_id, list(fields), list(values), valid])


def letter_of(txid: int, member: bytes) -> DeadLetter:
    """Returns the letter in a member of the sorted set."""
    letter_id, _, packed = member.partition(b":")
    try:
        component_id, task_index, source_component, stream_id, fields, values, reason = unpack(packed)
        return DeadLetter(
            txid,
            int(letter_id.partition(b".")[2]),
            component_id,
            task_index,
            source_component,
            stream_id,
            tuple(fields),
            tuple(values),
            reason,
            member,
        )
    except (CodecError, ValueError, TypeError) as error:
        raise StateRefusedError(f"a dead letter of txid {txid} cannot be read: {error}; restore the data").about(
            Trouble.DAMAGED
        ) from error


def add_letters(
    write_set: WriteSet,
    letters: Iterable[tuple[int, Sequence[tuple[int, Sequence[bytes]]]]],
    total_max: int,
    *,
    taken: Sequence[bytes] = (),
) -> None:
    """Adds the letters of a group to its write set; called by the driver, once per commit.

    Args:
        write_set: the group's write set.
        letters: for each transaction its txid and the letters of each task id, in order.
        total_max: most letters that may be stored afterwards.
        taken: stored letters that the group republishes; they must still exist, and are removed.
    """
    added: dict[bytes, float] = {}
    for txid, by_task in letters:
        packed = [letter for _, of_task in sorted(by_task) for letter in of_task]
        added.update((_member(txid, number, letter), float(txid)) for number, letter in enumerate(packed))
    if added or taken:
        write_set.letters = DeadLetterWrites(added, taken, total_max)


def letter_count(write_set: WriteSet) -> int:
    return 0 if write_set.letters is None else len(write_set.letters.added)


def too_many_letters(count: int, most: int) -> str:
    """Returns the message about a transaction with too many letters."""
    return (
        f"one transaction has {count:,} dead letters or more, and the limit is {most:,}; if so much of the input is "
        "bad, fix the input or the bolt, else raise the limit with "
        f"builder.set_dead_letters(per_transaction={2 * most})"
    )


def _member(txid: int, number: int, packed: bytes) -> bytes:
    return b"%d.%0*d:%b" % (txid, _NUMBER_DIGITS, number, packed)
