"""Collects the tuples that one task refuses in one attempt, packed and within the topology's limits."""

from __future__ import annotations

from collections.abc import Mapping

from coordinated_bolt.streams.tuples import Tuple, cut
from coordinated_bolt.wiring import TaskWiring
from state.codec import CodecError
from state.commits.dead_letters import pack_letter, too_many_letters
from state.errors import BadInputError, TopologyError, TransactionError
from state.troubles import Trouble


class RefusedTuples:
    """The dead letters of one attempt on one task; they travel with the task's report on the attempt.

    Args:
        wiring: the task.

    Attributes:
        letters: the letters, packed, in the order of the calls.
    """

    def __init__(self, wiring: TaskWiring) -> None:
        self._wiring = wiring
        self._refusal: TransactionError | TypeError | None = None
        self.letters: list[bytes] = []

    def add(self, refused: object, reason: str) -> None:
        """Packs one letter, with its values at this moment.

        Raises:
            TypeError: `refused` is neither a tuple nor a mapping, or the reason is not a string.
            CodecError: a value cannot be stored.
            BadInputError: the letter is too large, or the transaction has too many.
            TopologyError: this bolt runs outside transactions.
        """
        try:
            self._add(refused, reason)
        except (TransactionError, TypeError) as error:
            self._refusal = error
            raise

    def check(self) -> None:
        """Raises the error of `add` again: the attempt must fail even if the bolt handled it, or a letter is lost."""
        if self._refusal is not None:
            raise self._refusal

    def _add(self, refused: object, reason: str) -> None:
        wiring = self._wiring
        if wiring.coordination is not None:
            raise TopologyError(outside_transactions(wiring.component_id))
        if not isinstance(reason, str):
            raise TypeError(f"dead_letter got the reason {cut(reason)}; give a string, such as str(error)")
        if len(self.letters) >= wiring.letter_limits.per_transaction:
            raise BadInputError(too_many_letters(len(self.letters) + 1, wiring.letter_limits.per_transaction)).about(
                Trouble.DEAD_LETTER_LIMIT
            )
        packed = self._packed(refused, reason)
        if len(packed) > wiring.letter_limits.letter_bytes:
            raise BadInputError(
                f"a dead letter of component {wiring.component_id!r} has {len(packed):,} bytes, more than the limit of "
                f"{wiring.letter_limits.letter_bytes:,}; raise it with "
                f"builder.set_dead_letters(letter_bytes={2 * len(packed)}), or refuse a smaller tuple that says "
                "where the record is"
            )
        self.letters.append(packed)

    def _packed(self, refused: object, reason: str) -> bytes:
        component_id, task_index = self._wiring.component_id, self._wiring.task_index
        if isinstance(refused, Tuple):
            source, stream, fields, values = (
                refused.source_component,
                refused.stream_id,
                refused.fields,
                refused.values,
            )
        elif isinstance(refused, Mapping) and all(isinstance(name, str) for name in refused):
            source, stream, fields, values = component_id, "", tuple(refused), list(refused.values())
        else:
            raise TypeError(
                f"dead_letter got {cut(refused)} of type {type(refused).__name__}; give the tuple that execute "
                "received, or a mapping of field names to values"
            )
        try:
            return pack_letter(
                component_id,
                task_index,
                source_component=source,
                stream_id=stream,
                fields=fields,
                values=values,
                reason=reason,
            )
        except CodecError as error:
            raise CodecError(
                f"component {component_id!r} refused {cut(refused)}, but one of its values {error}"
            ) from None


def outside_transactions(component_id: str) -> str:
    """Returns the message about a dead letter outside transactions."""
    return (
        f"component {component_id!r} called dead_letter outside transactions, where no state could keep the tuple "
        "exactly once; emit it on a stream of your own that a bolt subscribes to, or build the topology with a "
        "TransactionalTopologyBuilder"
    )
