"""Chooses the quarantined batches or dead letters that a run republishes."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from coordinated_bolt.streams.declared import DEAD_LETTER_STREAM
from coordinator.topology.building.letter_streams import letter_stream
from coordinator.topology.building.topology import Topology
from coordinator.transactional.machine.republication import Republication
from coordinator.transactional.options import adopted_words
from state.commits.dead_letters import DeadLetter
from state.commits.quarantine import BatchInput, QuarantineRecord
from state.errors import StateRefusedError, TopologyError
from state.printable import counted
from state.troubles import Trouble
from state.values.whole import is_whole

LetterNumber: TypeAlias = tuple[int, int]
"""A letter's id as two numbers, its txid and its number; 17.0 is (17, 0)."""
LettersGiven: TypeAlias = Sequence[str] | Sequence[LetterNumber] | str
LETTERS_PER_TRANSACTION = 100
LETTERS_PER_RUN = 20_000
"""Most letters that one run republishes: it holds them in memory."""

_LOG = logging.getLogger("txbatch")


@dataclass(frozen=True, slots=True)
class LetterChoice:
    """The dead letters to republish, through the components that refused them.

    Attributes:
        component_ids: the components whose letters are republished; None means all.
        letters: (txid, number) of the letters that are republished; None means all.
    """

    component_ids: tuple[str, ...] | None = None
    letters: tuple[LetterNumber, ...] | None = None

    @classmethod
    def of(cls, given: LettersGiven) -> LetterChoice:
        """Returns the choice that the argument `republish_letters` of `run` makes, or refuses the argument."""
        if given == "all":
            return cls()
        if not isinstance(given, str) and given:
            names = tuple(each for each in given if isinstance(each, str))
            letters = tuple(
                each for each in given if isinstance(each, tuple) and len(each) == 2 and all(map(is_whole, each))
            )
            if len(names) == len(given):
                return cls(names)
            if len(letters) == len(given):
                return cls(letters=tuple(sorted(set(letters))))
        raise TopologyError(
            f"argument republish_letters is {given!r}; give 'all', a list of component ids, or a list of letters as "
            "(txid, number)"
        )

    def takes(self, letter: DeadLetter) -> bool:
        if self.letters is not None:
            return (letter.txid, letter.number) in self.letters
        return self.component_ids is None or letter.component_id in self.component_ids

    def chosen(self, topology: Topology, letters: Iterable[DeadLetter]) -> tuple[Republication, ...]:
        """Returns transactions of the chosen letters, in order; called once at start, before the takeover (driver).

        A letter that was refused before it was emitted cannot re-enter the topology, and stays where it is.

        Raises:
            TopologyError: a component or a letter is unknown, there is no letter to republish, or a letter no longer
                fits the stream on which it was emitted.
        """
        known = {component.component_id for component in topology.components}
        unknown = sorted(set(self.component_ids or ()) - known)
        if unknown:
            raise TopologyError(
                f"topology {topology.topology_id!r} has no component {unknown[0]!r}; it has {sorted(known)}"
            )
        ways, stay = self._ways(topology, self._found(topology, letters))
        if not ways:
            raise TopologyError(
                f"topology {topology.topology_id!r} has no dead letter to republish, of {stay} looked at; bad records, "
                f"and rows that were refused within a bolt, were never emitted: fix the input instead; "
                f"`txbatch dead-letters list {topology.topology_id}` shows what there is"
            )
        if stay:
            _LOG.warning(
                "%s cannot be republished and will stay: refused before they were emitted; fix the input instead",
                counted(stay, "dead letter"),
            )
        if len(ways) == LETTERS_PER_RUN:
            _LOG.warning(
                "the first %s dead letters are republished; republish again for others", f"{LETTERS_PER_RUN:,}"
            )
        parts = [ways[at : at + LETTERS_PER_TRANSACTION] for at in range(0, len(ways), LETTERS_PER_TRANSACTION)]
        return tuple(_republication(part) for part in parts)

    def _found(self, topology: Topology, letters: Iterable[DeadLetter]) -> Iterable[DeadLetter]:
        """Returns the chosen letters; every letter named in the choice has to exist."""
        found = (letter for letter in letters if self.takes(letter))
        if self.letters is None:
            return found
        named = list(found)
        missing = sorted(set(self.letters) - {(letter.txid, letter.number) for letter in named})
        if missing:
            raise no_such_letter(topology.topology_id, missing[0])
        return named

    def _ways(
        self, topology: Topology, letters: Iterable[DeadLetter]
    ) -> tuple[list[tuple[DeadLetter, list[Any]]], int]:
        """Returns the letters to republish, each with its emission, and how many cannot be emitted."""
        ways: list[tuple[DeadLetter, list[Any]]] = []
        stay = 0
        for letter in letters:
            way = _way_of(topology, letter)
            if way is None:
                stay += 1
                continue
            ways.append((letter, way))
            if len(ways) == LETTERS_PER_RUN:
                break
        return ways, stay


def no_such_letter(topology_id: str, letter: LetterNumber) -> TopologyError:
    return TopologyError(
        f"topology {topology_id!r} has no dead letter {letter[0]}.{letter[1]}; `txbatch dead-letters list "
        f"{topology_id}` shows what there is"
    )


def _republication(part: Sequence[tuple[DeadLetter, list[Any]]]) -> Republication:
    return Republication(
        txid=part[0][0].txid,
        batch=BatchInput(0, [way for _, way in part]),
        letters=tuple(letter.member for letter, _ in part),
    )


def _way_of(topology: Topology, letter: DeadLetter) -> list[Any] | None:
    """Returns what the spout's task has to emit for a letter: stream, values, and for a direct stream the task index.

    None if the letter was never emitted and no bolt takes bad records.
    """
    if not letter.stream_id:
        repairs = any(
            (s.upstream_id, s.stream_id) == (letter.component_id, DEAD_LETTER_STREAM)
            for component in topology.components
            for s in component.subscriptions
        )
        if not repairs or letter.fields != ("place", "record"):
            return None
        return [DEAD_LETTER_STREAM, [*letter.values, letter.reason], None]
    stream_id = letter_stream(letter.component_id, letter.source_component, letter.stream_id)
    spec = topology.spout.streams.get(stream_id)
    came_from = f"stream {letter.stream_id!r} of {letter.source_component!r}"
    if spec is None:
        raise TopologyError(
            f"dead letter {letter.letter_id} cannot be republished: {letter.component_id!r} refused it on {came_from}, "
            "to which it no longer subscribes; restore the subscription, or export the letter and drop it"
        )
    if spec.fields != letter.fields:
        raise TopologyError(
            f"dead letter {letter.letter_id} cannot be republished: it has the fields {letter.fields}, and {came_from} "
            f"has {spec.fields} now; restore the fields, or export the letter and drop it"
        )
    return [stream_id, list(letter.values), letter.task_index if spec.direct else None]


@dataclass(frozen=True, slots=True)
class RepublishChoice:
    """The quarantined batches to republish.

    Attributes:
        txids: the txids under which the batches were set aside; None republishes all.
    """

    txids: tuple[int, ...] | None = None

    @classmethod
    def of(cls, given: Sequence[int] | str) -> RepublishChoice:
        """Returns the choice that the argument `republish` of `run` makes, or refuses the argument."""
        if given == "all":
            return cls()
        if isinstance(given, str) or not given or not all(is_whole(txid, 1) for txid in given):
            raise TopologyError(f"argument republish is {given!r}; give 'all', or a list of quarantined txids")
        return cls(tuple(given))

    def chosen(
        self, topology_id: str, records: Sequence[QuarantineRecord], *, source_fingerprint: str, adopt: bool | str
    ) -> tuple[Republication, ...]:
        """Returns the batches in the order of their txids; called once at start, before the takeover (driver).

        Raises:
            TopologyError: no batch is quarantined, or not every one that was asked for.
            StateRefusedError: a batch was read from another input, and the user has not accepted that.
        """
        wanted = records_of(topology_id, records, self.txids)
        for record in wanted:
            txid, stored = record.txid, record.source_fingerprint
            if stored != source_fingerprint and adopted_words(adopt) is None:
                raise StateRefusedError(
                    f"quarantined txid {txid} of topology {topology_id!r} was read from another input: stored "
                    f"fingerprint {stored!r}, given {source_fingerprint!r}; give that input, or republish from this "
                    "one with --adopt (in Python RunOptions.adopt)"
                ).about(Trouble.INPUT_CHANGED)
        return tuple(Republication(record.txid, record.batch) for record in wanted)


def records_of(
    topology_id: str, records: Sequence[QuarantineRecord], txids: Sequence[int] | None
) -> list[QuarantineRecord]:
    """Returns the quarantined batches of these txids in order; None returns all.

    Raises:
        TopologyError: a txid has no quarantined batch, or there is none at all.
    """
    known = {record.txid: record for record in records}
    missing = sorted(set(txids or ()) - known.keys())
    if missing or not known:
        asked = f"quarantined txid {', '.join(map(str, missing))}" if missing else "quarantined batch"
        raise TopologyError(
            f"topology {topology_id!r} has no {asked}; `txbatch quarantine list {topology_id}` shows what there is"
        )
    return [known[txid] for txid in sorted(known if txids is None else set(txids))]
