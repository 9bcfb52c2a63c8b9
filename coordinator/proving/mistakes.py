"""The result of a proof: the mistakes it has found in a topology's code, and the evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from coordinator.watching.statistics.run_statistics import expired_when_written
from state.printable import counted

BATCHES = 20
"""Most transactions that a proof runs by default."""
KEPT_HASHES = "keep_hashes was given"


class Mistake(StrEnum):
    """The mistakes in user code that break exactly-once; `EXPLAINED` has a sentence for each."""

    DRAWS = "draws"
    KEEPS = "keeps"
    CHANGES_EMITTED = "changes-emitted"
    ORDER = "order"
    TASKS = "tasks"
    HASHES = "hashes"
    FOREIGN_READ = "foreign-read"
    EFFECT = "effect"
    RAISES = "raises"
    REPEATS = "repeats"
    CUTS = "cuts"


EXPLAINED = {
    Mistake.DRAWS: "a batch that is run again may give something else: a random number, a clock, or something outside "
    "the input; derive it from the tuple or the attempt's txid",
    Mistake.KEEPS: "something is kept in a class or module from one batch to the next, and no retry takes it back; "
    "keep it in declared state, or in the instance, which lives as long as the attempt",
    Mistake.CHANGES_EMITTED: "what was emitted is changed afterwards; receivers have what it was, so nothing is wrong "
    "unless the change was meant to arrive; emit a new object",
    Mistake.ORDER: "the result depends on the order in which tuples of different tasks arrive, on which task a "
    "shuffle deals them to, or on the attempt's id; sort them, make the operation commute, or group what has to be "
    "together",
    Mistake.TASKS: "the result depends on the number of tasks; group by the key that has to be together, declare one "
    "task, or never change the number and keep it in proofs, too",
    Mistake.HASHES: "the result depends on Python's hash seed, which is another one in each process: on the order of a "
    "set of strings, or on hash(); sort the set, or use a dict, which keeps its order",
    Mistake.FOREIGN_READ: "a task reads a field that another task writes in the same transaction, and sees it as it "
    "was before; group by the field's key",
    Mistake.EFFECT: "it reaches outside the topology, which happens again with every attempt and every retry; declare "
    "state instead, or `external_effects`",
    Mistake.RAISES: "it raises under faults that a run has to bear, and not without them",
    Mistake.REPEATS: "the result depends on what was run again: something outlasts an attempt that was given up, or an "
    "attempt reads what is not its input",
    Mistake.CUTS: "the result depends on how many rows a transaction takes: it is the same in every replay, and not "
    "with other sizes of batches; read a table that others look into as `first` of Inputs, or keep a row in state "
    "until what it needs is there",
}


@dataclass(frozen=True, slots=True)
class FoundMistake:
    """A mistake that a proof found.

    Attributes:
        mistake: its kind.
        component_id: the component; "" if it is not known.
        place: the user's file and line, "" if it is not known.
        evidence: what was seen; a sentence without a full stop.
        is_certain: whether the mistake itself was seen; otherwise it is the best explanation for results that differ.
        does_harm: whether it makes a result wrong; a harmless mistake is reported, and the proof still holds.
    """

    mistake: Mistake
    component_id: str
    place: str
    evidence: str
    is_certain: bool = True
    does_harm: bool = True

    def lines(self) -> Iterator[str]:
        """Yields the mistake as lines of text."""
        where = f" {self.component_id!r}" if self.component_id else ""
        how = "certain" if self.is_certain else "likely"
        yield f"{self.mistake}{where}: {self.evidence} ({how}{'' if self.does_harm else ', harmless'})"
        if self.place:
            yield f"  at {self.place}"
        yield f"  {EXPLAINED[self.mistake]}"


@dataclass(frozen=True, slots=True)
class Proof:
    """The result of `prove`; as text, it is a message for a test.

    Attributes:
        topology_id: the topology that was proved.
        batches: how many transactions of its input were run.
        is_whole: whether these were the whole input.
        seeds: how many seeds were played.
        mistakes: the mistakes; empty if every schedule has left the same state.
        failing_seed: the seed whose schedule has left another state; None if none has, or if no fault is needed.
        faults: the fewest faults with which that seed still fails, as `prove` takes them for `exactly`.
        story: the events of that schedule, line by line.
        keeps_tasks: whether every component has kept its number of tasks.
        expired_parts: how many parts and fields had expired when the quiet run wrote them; they are not compared.
        same_hashes: why no run had another hash seed; "" if a run had one, or a mistake was found before.
    """

    topology_id: str
    batches: int
    is_whole: bool
    seeds: int
    mistakes: tuple[FoundMistake, ...] = ()
    failing_seed: int | None = None
    faults: tuple[str, ...] = ()
    story: Sequence[str] = field(default=(), repr=False)
    keeps_tasks: bool = False
    expired_parts: int = 0
    same_hashes: str = ""

    @property
    def holds(self) -> bool:
        """Whether no mistake was found that makes a result wrong."""
        return not any(found.does_harm for found in self.mistakes)

    @property
    def again(self) -> dict[str, Any]:
        """The arguments of `prove` that play the failing seed again; empty if no seed fails."""
        if self.failing_seed is None:
            return {}
        given: dict[str, Any] = {"seeds": 1, "seed": self.failing_seed, "exactly": list(self.faults)}
        if not self.is_whole or self.batches > BATCHES:
            given["batches"] = self.batches
        given |= {"keep_tasks": True} if self.keeps_tasks else {}
        return given | ({"keep_hashes": True} if self.same_hashes == KEPT_HASHES else {})

    def __str__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.again.items())
        return "\n".join(self.lines()) + (f"\nagain: prove(topology, {arguments})" if arguments else "")

    def lines(self) -> Iterator[str]:
        """Yields the proof as lines of text, for a terminal or a test's message."""
        what = counted(self.batches, "transaction") + ("" if self.is_whole else " (the input has more)")
        held = "the same state under every schedule" if self.seeds else "quiet runs agree, and no schedule was played"
        verdict = held if self.holds else "not proved"
        yield f"{self.topology_id}: {verdict}; {what}, {counted(self.seeds, 'seed')}"
        if self.expired_parts:
            yield f"{expired_when_written(self.expired_parts)}; nothing of them was compared"
        if self.same_hashes:
            yield f"not proved for another hash seed (the order of sets of strings): {self.same_hashes}"
        for found in self.mistakes:
            yield ""
            yield from found.lines()
        if self.story:
            yield ""
            yield f"seed {self.failing_seed}, with {counted(len(self.faults), 'fault')} left:"
            yield from (f"  {line}" for line in self.story)

    def to_json(self) -> dict[str, Any]:
        """Returns the proof as plain data."""
        return {
            "topology": self.topology_id,
            "holds": self.holds,
            "batches": self.batches,
            "is_whole": self.is_whole,
            "seeds": self.seeds,
            "expired_parts": self.expired_parts,
            "same_hashes": self.same_hashes,
            "mistakes": [asdict(found) | {"explained": EXPLAINED[found.mistake]} for found in self.mistakes],
            "failing_seed": self.failing_seed,
            "faults": list(self.faults),
            "story": list(self.story),
        }
