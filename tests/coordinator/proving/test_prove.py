"""Topologies that bear everything are proved; each mistake is found, and named with its line."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinator import (
    FixedBatchesSpout,
    MemoryTransactionalSpout,
    Mistake,
    OpaqueMemoryTransactionalSpout,
    Topology,
    TransactionalTopologyBuilder,
    prove,
)
from coordinator.proving import prove as module
from coordinator.proving.evidence import sentence_of
from coordinator.proving.forked import in_a_copy
from coordinator.proving.mistakes import Proof
from coordinator.sources import Follow, TextFiles
from state.attempt import TransactionAttempt
from state.errors import FailedException, TopologyError, TransactionError, UserCodeError
from state.printable import message_of
from tests.support import faulty_topologies as faulty
from tests.support.approved import approved, refusals
from tests.support.faulty_topologies import LINES, SEEN_WORDS, CountWords, StoreCounts, words


class EmitsLast(CountWords):
    """Takes the last line to arrive for the last one of the batch, in each task."""

    def execute(self, tup):
        self.last = tup["line"]

    def finish_batch(self):
        if line := getattr(self, "last", ""):
            self.collector.emit([f"ends {line}", 1])


class EmitsSet(CountWords):
    """Emits in the order of a set, which is no mistake."""

    def finish_batch(self):
        self.collector.emit_all((word, self.words[word]) for word in set(self.words))


class TakesOne(CountWords):
    """Takes the first word of a set, whichever that is in this process."""

    def finish_batch(self):
        first = next(iter({f"{word} {number}" for word in self.words for number in range(50)}), "")
        if first:
            self.collector.emit([first, 1])


def over(spout: Any, bolt: CountWords | None = None, spout_tasks: int = 2) -> Topology:
    builder = TransactionalTopologyBuilder("words", "lines", spout, parallelism=spout_tasks)
    builder.set_bolt("count", bolt or CountWords(), parallelism=2).shuffle_grouping("lines")
    builder.set_committer_bolt("store", StoreCounts(), parallelism=2).fields_grouping("count", ["word"])
    return builder.build()


def of_one_spout_task(bolt: CountWords) -> Topology:
    return over(FixedBatchesSpout(LINES, ["line"]), bolt, spout_tasks=1)


FAULTY: dict[str, tuple[Callable[[], Topology], Mistake, str, int]] = {
    "draws": (partial(words, faulty.DrawsNumbers()), Mistake.DRAWS, "# draws", 1),
    "clock": (partial(words, faulty.ReadsClock()), Mistake.DRAWS, "# reads the clock", 1),
    "class": (partial(words, faulty.KeepsInClass()), Mistake.KEEPS, "# outlasts the batch", 3),
    "module": (partial(words, faulty.KeepsInModule()), Mistake.KEEPS, "SEEN_WORDS: set", 3),
    "order": (
        partial(words, faulty.SplitLines(), faulty.KeepsLast(), in_one_task=True),
        Mistake.ORDER,
        "class KeepsLast",
        8,
    ),
    "attempts": (partial(words, None, faulty.CountsAttempts()), Mistake.ORDER, "class CountsAttempts", 4),
    "tasks": (partial(words, faulty.CountsTasks()), Mistake.TASKS, "class StoreCounts", 4),
    "order of one task": (partial(of_one_spout_task, EmitsLast()), Mistake.ORDER, "class StoreCounts", 4),
    "foreign": (partial(words, None, faulty.ReadsForeign()), Mistake.FOREIGN_READ, "# written by whichever", 3),
}
"""Name -> a topology, the mistake it makes, what is in the line, and within how many seeds schedules alone show it."""


@pytest.fixture(autouse=True)
def effects_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faulty, "EFFECTS", tmp_path / "effects.txt")


def line_at(place: str) -> str:
    file, _, line = place.rpartition(":")
    return Path(file).read_text().splitlines()[int(line) - 1]


class Silent(CountWords):
    """Emits nothing."""

    def finish_batch(self):
        pass


class Unspeakable:
    def __repr__(self) -> str:
        raise RuntimeError


def test_a_module_may_hold_what_cannot_be_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faulty, "HELD", [Unspeakable()], raising=False)
    assert prove(words, seeds=1).holds


def test_a_topology_that_bears_everything_is_proved() -> None:
    played: list[int] = []
    proof = prove(words, seeds=40, on_seed=played.append)
    assert proof.holds, proof
    assert (proof.mistakes, proof.seeds, proof.batches, proof.is_whole) == ((), 40, 4, True)
    assert played == list(range(40))
    assert str(proof) == "words: the same state under every schedule; 4 transactions, 40 seeds"


@pytest.mark.often("class", "module", "order", "attempts")
@pytest.mark.parametrize("name", FAULTY)
def test_each_mistake_is_found_and_its_line_is_named(name: str) -> None:
    topology, mistake, line, _ = FAULTY[name]
    proof = prove(topology)
    assert not proof.holds
    assert [found.mistake for found in proof.mistakes] == [mistake]
    assert line in line_at(proof.mistakes[0].place)


@pytest.mark.often("order")
@pytest.mark.parametrize("name", FAULTY)
def test_schedules_alone_show_a_state_that_differs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What quiet runs tell is left out: then the first seeds find it, and play it again."""
    topology, _, _, seeds = FAULTY[name]
    monkeypatch.setattr(module, "mistakes_in", lambda *given: [])
    proof = prove(topology, keep_hashes=True)
    assert not proof.holds
    assert proof.seeds <= seeds
    assert proof.failing_seed is not None
    again = prove(topology, **proof.again)
    assert (again.seeds, again.holds, again.faults) == (1, False, proof.faults)


def test_an_effect_is_found_before_it_is_repeated_under_faults(tmp_path: Path) -> None:
    proof = prove(words(faulty.HasEffects()))
    (found,) = proof.mistakes
    assert (found.mistake, found.component_id, proof.seeds) == (Mistake.EFFECT, "count", 0)
    assert "effects.txt' to write" in found.evidence
    assert "# happens again and again" in line_at(found.place)


def test_a_result_that_depends_on_the_order_of_a_set_is_found_in_a_new_interpreter() -> None:
    proof = prove(partial(words, TakesOne()))
    (found,) = proof.mistakes
    assert (found.mistake, found.component_id, found.is_certain, proof.seeds) == (Mistake.HASHES, "count", True, 0)
    assert found.evidence.startswith("with another hash seed, txid 1 emits [")
    assert "state counts differs" in found.evidence
    assert "class TakesOne" in line_at(found.place)


def test_the_order_of_a_set_is_no_mistake_unless_the_result_depends_on_it() -> None:
    proof = prove(partial(words, EmitsSet()), seeds=2)
    assert (proof.holds, proof.mistakes, proof.same_hashes) == (True, (), "")


HELD: list[str] = []


class NeedsThisProcess(CountWords):
    """Pickles, and can be made only where something is held in memory."""

    def __reduce__(self):
        return made_here, ()


def made_here() -> NeedsThisProcess:
    assert HELD, "nothing is held here"
    return NeedsThisProcess()


@pytest.mark.nightly
def test_a_proof_says_why_no_run_had_another_hash_seed() -> None:
    HELD.append("something")
    proof = prove(words(NeedsThisProcess()), seeds=1)
    assert proof.holds
    assert str(proof).splitlines()[1] == (
        "not proved for another hash seed (the order of sets of strings): a new interpreter cannot make it "
        "(AssertionError: nothing is held here)"
    )
    assert prove(words(), seeds=0, keep_hashes=True).same_hashes == "keep_hashes was given"


def patched(bolt: CountWords) -> None:
    bolt.collector.emit(["patched", 1])


@pytest.mark.nightly
def test_what_this_process_has_changed_is_not_taken_for_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CountWords, "finish_batch", patched)
    proof = prove(words(), seeds=1)
    assert proof.holds
    assert proof.same_hashes.startswith("in every new interpreter, txid 1 emits ['patched', 1], and then [")


SCRIPT = """
from coordinator import prove
from tests.support.faulty_topologies import CountWords, words

class Own(CountWords):
    def finish_batch(self):
        self.collector.emit([next(iter({f"{word} {n}" for word in self.words for n in range(50)}), ""), 1])

print(prove(words(Own())))
"""


def test_classes_of_a_script_run_in_a_new_interpreter_and_the_script_runs_once(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    here = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    shown = subprocess.run([sys.executable, script], env=here, capture_output=True, text=True, check=True).stdout
    assert shown.count("not proved") == 1
    assert "hashes 'count': with another hash seed" in shown


class MayDraw(CountWords):
    """Counts words, one of them by chance in one of the components of this class."""

    def __init__(self, draws):
        self.draws = draws

    def finish_batch(self):
        self.words["luck"] = random.randrange(10**6) if self.draws else 1
        super().finish_batch()


def test_a_mistake_is_that_of_the_component_even_if_another_has_the_same_class() -> None:
    builder = TransactionalTopologyBuilder("twins", "lines", FixedBatchesSpout(LINES, ["line"]))
    for name, draws in (("wild", True), ("calm", False)):
        builder.set_bolt(name, MayDraw(draws)).shuffle_grouping("lines")
    store = builder.set_committer_bolt("store", StoreCounts())
    store.fields_grouping("wild", ["word"]).fields_grouping("calm", ["word"])
    (found,) = prove(builder.build(), seeds=1).mistakes
    assert (found.mistake, found.component_id) == (Mistake.DRAWS, "wild")
    assert "random.randrange" in found.evidence


TO_TIME_NS = "calls time.time_ns(); two runs a moment apart did the same, at another time they may not"


@pytest.mark.parametrize(
    ("bolt", "mistake", "evidence", "line"),
    [
        (faulty.ChangesEmitted(), Mistake.CHANGES_EMITTED, None, "self.collector.emit(row)"),
        (faulty.ReadsDate(), Mistake.DRAWS, TO_TIME_NS, "# another one tomorrow"),
    ],
    ids=["what is changed after it was emitted", "a clock that two runs a second apart read alike"],
)
def test_what_may_do_harm_and_does_none_is_reported(bolt: CountWords, mistake: Any, evidence: Any, line: str) -> None:
    proof = prove(words(bolt), seeds=5)
    (found,) = proof.mistakes
    assert (found.mistake, found.component_id) == (mistake, "count")
    assert (found.does_harm, proof.holds, proof.seeds) == (False, True, 5)
    assert evidence is None or found.evidence == evidence
    assert line in line_at(found.place)


def test_a_clock_of_seconds_is_found_by_quiet_runs() -> None:
    (found,) = prove(words(faulty.ReadsSeconds())).mistakes
    assert (found.mistake, found.is_certain) == (Mistake.DRAWS, True)
    assert "# another one in a second" in line_at(found.place)


@pytest.mark.nightly
def test_a_clock_that_moves_on_while_schedules_are_played_is_not_taken_for_their_fault() -> None:
    try:
        proof = prove(words(faulty.ReadsSlowClock()), on_seed=faulty.DAYS_LATER.append)
    finally:
        faulty.DAYS_LATER.clear()
    (found,) = proof.mistakes
    assert (found.mistake, found.does_harm, proof.holds, proof.faults) == (Mistake.DRAWS, True, False, ())
    assert "# two clocks" in line_at(found.place)


@pytest.mark.nightly
def test_a_number_of_tasks_that_is_kept_is_no_mistake() -> None:
    assert prove(words(faulty.CountsTasks()), keep_tasks=True).holds
    assert prove(words(faulty.CountsTasks(), tasks=1)).holds  # one task may rely on being alone


def test_a_story_tells_the_fewest_faults_that_show_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "mistakes_in", lambda *given: [])
    proof = prove(words(faulty.KeepsInClass()), seed=110, keep_hashes=True)
    assert "class StoreCounts" in line_at(proof.mistakes[0].place)
    approved(str(proof), "proof", PLACE=proof.mistakes[0].place)


def test_nothing_of_a_proof_stays_in_this_process() -> None:
    SEEN_WORDS.clear()
    prove(words(faulty.KeepsInModule()))
    assert not SEEN_WORDS


@pytest.mark.nightly
def test_code_may_take_as_long_as_the_topology_lets_it_and_longer_while_it_is_watched(monkeypatch) -> None:
    given: list[float] = []

    def noted(run: Callable[[], Any], *, returns_within_s: float) -> Any:
        given.append(returns_within_s)
        return in_a_copy(run, returns_within_s=returns_within_s)

    monkeypatch.setattr(module, "in_a_copy", noted)
    prove(replace(words(), message_timeout_s=300.0), seeds=0)
    prove(replace(words(), message_timeout_s=0.5), seeds=0)
    assert given == [3_000.0, *4 * [300.0], 600.0, *4 * [60.0]]  # the last two of each are other cuts of the input


def test_no_schedule_begins_after_its_time() -> None:
    proof = prove(words, minutes=0.0)
    assert (proof.seeds, proof.holds) == (0, True)
    assert str(proof) == "words: quiet runs agree, and no schedule was played; 4 transactions, 0 seeds"


# Bolts that fail ----------------------------------------------------------------------------------------------


class Raises(CountWords):
    def execute(self, tup):
        raise ValueError("as always")


class RaisesIfRepeated(CountWords):
    """Bears no second attempt, though the same batch is the same."""

    begun: set[tuple[int, int]] = set()

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        if (context.task_index, attempt.txid) in self.begun:
            raise ValueError("again")
        self.begun.add((context.task_index, attempt.txid))


class NeverSucceedsAgain(CountWords):
    """Has a batch replayed for ever once it was begun twice."""

    begun: list[int] = []

    def finish_batch(self):
        self.begun.append(self.attempt.txid)
        super().finish_batch()
        if self.begun.count(4) > 4:
            raise FailedException("again and again")


class Fails(CountWords):
    """Has every first batch replayed, as a bolt may."""

    failed: set[int] = set()

    def finish_batch(self):
        super().finish_batch()
        if self.attempt.attempt_id % 3 == 0:
            raise FailedException("by chance")


class EndsProcess(CountWords):
    def finish_batch(self):
        os._exit(3)


@pytest.mark.often("bolt0")
@pytest.mark.parametrize("bolt", [RaisesIfRepeated(), NeverSucceedsAgain()])
def test_an_error_that_only_faults_lead_to_is_found(bolt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "mistakes_in", lambda *given: [])
    (found,) = prove(words(bolt), keep_hashes=True).mistakes
    assert (found.mistake, found.is_certain) == (Mistake.RAISES, False)
    assert "again" in found.evidence
    assert isinstance(bolt, NeverSucceedsAgain) or line_at(found.place).strip() == 'raise ValueError("again")'


def test_a_second_run_in_one_process_that_raises_is_a_mistake() -> None:
    (found,) = prove(words(RaisesIfRepeated())).mistakes
    assert found.mistake is Mistake.KEEPS
    assert found.evidence.startswith(
        "run again in the same process, it ends: component 'count' raised ValueError: again;"
    )
    assert line_at(found.place).strip() == "begun: set[tuple[int, int]] = set()"


FIRST, SECOND = set[int](), set[int]()  # two in one line


class RaisesForModule(CountWords):
    """Bears no second attempt; what it keeps is set in a line with something else."""

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        if attempt.txid * 10 + context.task_index in SECOND:
            raise ValueError("again")
        SECOND.add(attempt.txid * 10 + context.task_index)


class RaisesForHidden(CountWords):
    """The same, with what no module or class shows."""

    def prepare(self, conf, context, collector, attempt, begun=set()):  # noqa: B006 - the mistake
        super().prepare(conf, context, collector, attempt)
        if (context.task_index, attempt.txid) in begun:
            raise ValueError("again")
        begun.add((context.task_index, attempt.txid))


@pytest.mark.parametrize(
    ("bolt", "name", "line"),
    [
        (RaisesForModule(), "SECOND has changed", "# two in one line"),
        (RaisesForHidden(), "again", 'ValueError("again")'),
    ],
)
def test_what_is_kept_is_named_with_line_and_component_if_the_second_run_raises(bolt, name, line) -> None:
    (found,) = prove(words(bolt)).mistakes
    assert (found.mistake, found.component_id) == (Mistake.KEEPS, "count")
    assert found.evidence.endswith(name)
    assert line in line_at(found.place)


FAULTS_THAT_DO_NOT_STRIKE: dict[str, dict[str, Any]] = {
    "unknown": {"exactly": ["server.sleeps:1"]},
    "lost": {"seed": 3, "seeds": 1, "exactly": ["wave.is_lost:9"]},
    "another order": {"seed": 3, "seeds": 1, "exactly": ["tuples.come_in_another_order:1"]},
    "other tasks": {"exactly": ["tasks.are_other:0"], "keep_tasks": True},
}


@pytest.mark.nightly
def test_a_fault_that_does_not_strike_proves_nothing_and_is_refused() -> None:
    cases = {name: partial(prove, words, **given) for name, given in FAULTS_THAT_DO_NOT_STRIKE.items()}
    approved(refusals(cases, TopologyError), "faults-that-do-not-strike")


def test_what_is_printed_plays_as_many_batches_again() -> None:
    proof = Proof("words", 40, True, 3, failing_seed=2, faults=("wave.is_lost:1",), keeps_tasks=True)
    again = "prove(topology, seeds=1, seed=2, exactly=['wave.is_lost:1'], batches=40, keep_tasks=True)"
    assert str(proof).endswith(f"again: {again}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\n    ^^^\nValueError: no',
            "ValueError: no",
        ),
        ('  File "a.py", line 1, in f\n    g()\nV: 1 error\nfield\n  missing [more]\n    see there', "V: 1 error"),
        ('  File "a.py", line 1, in f\nKeyError: 1\n\nDuring that:\n\n  File "a.py", line 2, in f\nV: 2', "V: 2"),
    ],
)
def test_an_error_is_told_by_the_line_that_names_it(text: str, said: str) -> None:
    error = UserCodeError(component_id="count", traceback_text=text)
    assert sentence_of(error) == f"component 'count' raised {said}"


@pytest.mark.parametrize("text", ["", "  | ExceptionGroup: two (2 sub-exceptions)\n  +-+---------------- 1"])
def test_an_error_in_another_form_is_told_as_a_whole(text: str) -> None:
    error = UserCodeError(component_id="count", traceback_text=text)
    assert sentence_of(error) == message_of(error)


@pytest.mark.parametrize(
    ("bolt", "error", "said"),
    [
        (Raises(), UserCodeError, "as always"),
        (EndsProcess(), TransactionError, "has ended the process in which it ran, with code 3"),
    ],
    ids=["raises", "ends the process"],
)
def test_what_fails_without_faults_is_raised_as_a_run_raises_it(bolt: CountWords, error: Any, said: str) -> None:
    with pytest.raises(error, match=said):
        prove(words(bolt))


@pytest.mark.nightly
def test_a_bolt_that_may_fail_is_replayed() -> None:
    assert prove(words(Fails()), seeds=8).holds


# Other inputs -------------------------------------------------------------------------------------------------


ROWS = [[["to be"], ["or not"], ["to be"]], [["be"], ["not"]]]


@pytest.mark.often("MemoryTransactionalSpout")
@pytest.mark.parametrize("kind", [MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout])
def test_spouts_with_partitions_can_be_proved(kind: Any) -> None:
    proof = prove(over(kind(ROWS, ["line"], take=1)), seeds=10)
    assert proof.holds, proof


@pytest.mark.parametrize("follow", [False, Follow(complete="marker", done="delete")])
@pytest.mark.often("False")
def test_the_first_batches_of_a_longer_or_endless_input_can_be_proved(tmp_path: Path, follow: bool | Follow) -> None:
    """Nothing is told to a spout, so none of its files is removed."""
    (tmp_path / "lines.txt").write_text("to be\nor not\n" * 8)
    (tmp_path / "lines.txt.done").touch()
    proof = prove(over(TextFiles(str(tmp_path / "*.txt"), 2, follow=follow)), seeds=5, batches=3)
    assert proof.holds, proof
    assert (proof.batches, proof.is_whole) == (3, False)
    assert "3 transactions (the input has more)" in str(proof)
    assert (tmp_path / "lines.txt").exists()


class Mails(StoreCounts):
    external_effects = True


class Forgets(BaseBatchBolt):
    def execute(self, tup):
        pass


def without_state() -> Topology:
    builder = TransactionalTopologyBuilder("words", "lines", FixedBatchesSpout([[["a"]]], ["line"]))
    builder.set_bolt("count", Forgets()).shuffle_grouping("lines")
    return builder.build()


def endless_opaque() -> Topology:
    return over(OpaqueMemoryTransactionalSpout(ROWS, ["line"], take=1))


UNPROVABLE: dict[str, Callable[[], Any]] = {
    "no topology": lambda: 3,
    "external effects": partial(words, None, Mails()),
    "no state": without_state,
    "nothing written": lambda: words(Silent()),
    "no batch": lambda: over(FixedBatchesSpout([], ["line"])),
}


def test_what_cannot_be_proved_is_refused() -> None:
    cases = {name: partial(prove, make) for name, make in UNPROVABLE.items()}
    cases["an opaque input without an end"] = partial(prove, endless_opaque(), batches=2)
    approved(refusals(cases, TopologyError), "topologies-that-cannot-be-proved")
    with pytest.raises(TopologyError, match=r"'lines' cuts txid 1 otherwise each time: \d+, then \d"):
        prove(lambda: over(faulty.CutsByChance([], ["line"])))


def away_at_first(attempt: TransactionAttempt) -> list[int]:
    """Depends on the attempt, so each schedule takes another number of transactions."""
    return [attempt.attempt_id % 2] if attempt.attempt_id % 3 else []


@pytest.mark.nightly
def test_every_schedule_of_an_opaque_input_is_played_to_its_end() -> None:
    """Played as far as a quiet run came, the rest of a partition that was away would be missing."""
    proof = prove(over(OpaqueMemoryTransactionalSpout(ROWS, ["line"], take=1, unavailable=away_at_first)), seeds=10)
    assert proof.holds, proof
