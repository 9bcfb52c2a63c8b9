"""Proves a topology: quiet runs have to agree, and every schedule of faults has to leave the same state as they do."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from coordinator.plain.plain_topology import PlainTopology
from coordinator.proving.evidence import (
    first_difference,
    mistakes_in,
    place_of_class,
    place_of_error,
    sentence_of,
    watched_runs,
)
from coordinator.proving.forked import ResultT, in_a_copy
from coordinator.proving.fresh import fresh_run, packed
from coordinator.proving.mistakes import BATCHES, KEPT_HASHES, FoundMistake, Mistake, Proof
from coordinator.proving.quiet_run import Kept, QuietRun, QuietTransaction, quiet_run
from coordinator.proving.same_state import differences
from coordinator.proving.schedule import OTHER_ORDER, OTHER_TASKS, Played, Schedule, faults_of
from coordinator.proving.stage_play import StagePlay
from coordinator.proving.subject import PROVE_INSTEAD, provable
from coordinator.proving.tuple_play import play_by_tuples
from coordinator.spouts.spout_kind import SpoutKind
from coordinator.testing.simulated.fault_plan import Strike
from coordinator.testing.simulated.shrinking import fewest
from coordinator.topology.building.topology import DEFAULT_MESSAGE_TIMEOUT_S, Topology
from state.errors import TopologyError, UserCodeError
from state.kinds.handles import declared_states
from state.printable import counted, one_line
from state.redis_owner.store import RedisStore
from state.redis_server.in_memory import in_memory_client

SEEDS = 20
SLOWER_WATCHED = 10.0
"""How many times longer user code may take while it is watched."""
HASH_SEED = 34
TRIES = 8
"""How many orders, numbers of tasks or hash seeds are tried without faults, to find one that explains a failure."""


def prove(
    topology: Topology | PlainTopology | Callable[[], Topology | PlainTopology],
    *,
    seeds: int = SEEDS,
    seed: int = 0,
    batches: int = BATCHES,
    minutes: float | None = None,
    keep_tasks: bool = False,
    keep_hashes: bool = False,
    exactly: Iterable[str] | None = None,
    on_seed: Callable[[int], None] | None = None,
) -> Proof:
    """Plays a topology over its sample input under random faults, and compares the states that are left.

    Called by users' tests, and by ``txbatch prove``. Everything runs in copies of this process, without Spark and
    without a server, in virtual time. Your code runs many times, and so do its effects outside declared state. First
    the topology runs without faults, and is watched: a bolt that uses random numbers or a clock, keeps values between
    batches, changes a tuple after emitting it, reads a field that another task writes, or reaches outside, is named
    with its line. It also runs in a new interpreter, where strings have other hashes: a result that depends on the
    order of a set differs there. Then each seed draws a schedule: tasks retried, run twice or lost, frames lost,
    doubled or altered, drivers killed, a server that loses answers or its last writes, tuples in another order, and
    other numbers of tasks for components that were declared with several. Every schedule has to leave the same state
    and the same dead letters. The first one that does not is reduced to the fewest faults and printed as a story. Last,
    an input of files or fixed rows is cut into other transactions, and a result that depends on the cuts is named.

        proof = prove(topology("tests/sample/*.jsonl"), seeds=20)
        assert proof.holds, proof

    Args:
        topology: a transactional topology over a small input, or its factory.
        seeds: how many schedules to play; none is played if a quiet run shows a mistake already.
        seed: the first seed.
        batches: how many transactions of the input to run at most.
        minutes: no schedule begins after this time.
        keep_tasks: keep every component's number of tasks.
        keep_hashes: start no new interpreter, for example in a test that has patched what the topology's code calls.
        exactly: the faults that strike, as `Proof.faults` names them, instead of random ones.
        on_seed: called with the number of each seed that was played.

    Raises:
        TopologyError: the topology cannot be proved; the message says why.
        TransactionError: a run without faults fails, for example with a bolt's `UserCodeError`.
    """
    made = provable(topology)
    given = KEPT_HASHES if keep_hashes else packed(topology)
    return _Proving(made, given, batches, keep_tasks=keep_tasks).proof(
        range(seed, seed + seeds), minutes, exactly, on_seed or (lambda _: None)
    )


@dataclass(frozen=True, slots=True)
class _Judged:
    """A schedule that was played, compared with a quiet run.

    Attributes:
        differing: (state, sentence) for each state that differs from the quiet run's.
    """

    schedule: Schedule
    played: Played
    differing: list[tuple[str, str]]

    def has_not_struck(self) -> str:
        """Returns a fault that was given exactly but has not struck; "" if there is none."""
        return next((str(each) for each in sorted(self.schedule.exactly or ()) if each not in self.played.struck), "")


class _Proving:
    """The proof of one topology.

    Args:
        given: the topology, pickled for a new interpreter, or the reason why it cannot be pickled.
    """

    def __init__(self, topology: Topology, given: bytes | str, batches: int, *, keep_tasks: bool) -> None:
        self._topology, self._given = topology, given
        self._limit_s = max(topology.message_timeout_s, DEFAULT_MESSAGE_TIMEOUT_S)
        self._batches, self._keep_tasks = batches, keep_tasks
        self._last_txid: int | None = None
        self._is_whole, self._expired_parts, self._same_hashes = True, 0, ""
        self._by_stages: Kept | None = None

    def proof(
        self, seeds: range, minutes: float | None, exactly: Iterable[str] | None, on_seed: Callable[[int], None]
    ) -> Proof:
        RedisStore("redis://memory", "any", client=in_memory_client()).check_server()  # loads it for all copies
        end_s = time.monotonic() + 60 * minutes if minutes is not None else None
        quiet, found = self._quietly()
        harmless = [each for each in found if not each.does_harm]
        if len(harmless) < len(found):
            return self._proved(0, found)
        faults = None if exactly is None else faults_of(exactly)
        if self._keep_tasks and any(each.fault == OTHER_TASKS for each in faults or ()):
            raise TopologyError(f"{OTHER_TASKS} cannot strike while all components keep their tasks; leave one out")
        played = 0
        for seed in seeds:
            if end_s is not None and time.monotonic() > end_s:
                break
            schedule = Schedule(seed, self._keep_tasks, faults)
            judged = self._judged(schedule, quiet)
            played += 1
            on_seed(seed)
            if judged.differing:
                return self._explained(schedule, judged, quiet, played, harmless)
            if fault := judged.has_not_struck():
                raise TopologyError(
                    f"{fault} has not struck: seed {seed} leads to no such moment, and nothing is proved"
                )
        return self._proved(played, [*harmless, *self._with_other_cuts(quiet)])

    def _quietly(self) -> tuple[Kept, list[FoundMistake]]:
        """Runs the topology without faults in two processes; returns the state it leaves, and the mistakes found."""
        topology = self._topology
        runs = self._in_a_copy(partial(watched_runs, topology, self._batches), slower=SLOWER_WATCHED)
        if any(not seen.what.startswith("random.") for seen in runs.seen.draws):
            time.sleep(1 - time.time() % 1)  # the other run meets another second
        other: QuietRun = self._in_a_copy(partial(quiet_run, topology, self._batches))
        self._batches, self._is_whole = len(runs.first.transactions), runs.first.is_whole
        self._expired_parts = runs.first.expired_parts
        if not self._batches:
            raise TopologyError(f"the input of {topology.topology_id!r} has no batch, or none for now: nothing was run")
        if not any(each.has_written() for each in runs.first.transactions) and not runs.first.kept.letters:
            raise TopologyError(
                f"{counted(self._batches, 'transaction')} of {topology.topology_id!r} changed no state: nothing can be "
                f"compared, so nothing is proved; tuples emitted: {_emitted(runs.first)}"
            )
        is_opaque = SpoutKind(topology.spout.spec).is_opaque
        if is_opaque and not self._is_whole:
            raise TopologyError(
                f"the input of {topology.topology_id!r} has more than {self._batches} batches, and its spout is "
                "opaque: a batch that is repeated may hold other rows; give a smaller input, or allow more batches"
            )
        self._last_txid = None if is_opaque else self._batches  # the cuts of an opaque spout depend on failures
        if cut := self._cut_otherwise(runs.first, other):
            raise TopologyError(
                f"{cut}; a run stores what was cut, but a proof has to compare the same batches: {PROVE_INSTEAD}"
            )
        found = list(mistakes_in(runs, other, topology))
        if not any(each.does_harm for each in found):
            found.extend(self._with_other_hashes(runs.first))
        return runs.first.kept, found

    def _with_other_cuts(self, quiet: Kept) -> Iterator[FoundMistake]:
        """Runs the whole input in smaller and in larger transactions; yields a difference as a harmless mistake."""
        calm = Schedule(0, self._keep_tasks, frozenset())
        spout, *others = self._topology.components
        recut: Callable[[bool], Any] | None = getattr(spout.spec, "recut", None)
        if recut is None or not self._is_whole:
            return
        for is_coarser in (False, True):
            topology = replace(self._topology, components=(replace(spout, spec=recut(is_coarser)), *others))
            played = self._in_a_copy(partial(play_by_tuples, topology, calm, None))
            differing = [] if played.kept is None else self._compared(played, quiet, is_rearranged=True)
            if differing:
                found = self._mistake(Mistake.CUTS, _Judged(calm, played, differing))
                evidence = f"with {'larger' if is_coarser else 'smaller'} transactions, {found.evidence}"
                yield replace(found, evidence=evidence, is_certain=True, does_harm=False)
                return

    def _cut_otherwise(self, one: QuietRun, other: QuietRun) -> str:
        spout = self._topology.spout.component_id
        for txid, (a, b) in enumerate(zip(one.transactions, other.transactions, strict=False), start=1):
            if a.metadata != b.metadata and a.emitted[spout] != b.emitted[spout]:
                return f"component {spout!r} cuts txid {txid} otherwise each time: {_shown(a)}, then {_shown(b)}"
        return ""

    def _with_other_hashes(self, quiet: QuietRun) -> Iterator[FoundMistake]:
        """Runs the topology in a new interpreter; if the result differs, further ones show whether hashes are why."""
        found = self._in_new_interpreter(HASH_SEED)
        if isinstance(found, str):
            self._same_hashes = found
        elif cut := self._cut_otherwise(quiet, found):
            self._same_hashes = cut
        elif differing := self._differing(quiet, found):
            component_id, evidence = differing
            place = place_of_class(component_id, self._topology)
            if self._differing(found, self._in_new_interpreter(HASH_SEED)):
                yield FoundMistake(Mistake.DRAWS, component_id, place, f"run again in a new interpreter, {evidence}")
            elif any(self._differing(found, self._in_new_interpreter(HASH_SEED + more)) for more in range(1, TRIES)):
                yield FoundMistake(Mistake.HASHES, component_id, place, f"with another hash seed, {evidence}")
            else:
                self._same_hashes = f"in every new interpreter, {evidence}; what the code uses was changed in this one"

    def _in_new_interpreter(self, hash_seed: int) -> QuietRun | str:
        if isinstance(self._given, str):
            return self._given
        return self._in_a_copy(partial(fresh_run, self._given, self._batches, self._limit_s, hash_seed))

    def _differing(self, one: QuietRun, other: QuietRun | str) -> tuple[str, str] | None:
        """Returns the component that differs first, and how; None if the results do not differ."""
        if isinstance(other, str):
            return None
        states = differences(one.kept, other.kept, self._topology.states, is_rearranged=True)
        first = first_difference(one, other)
        if not states or first is None:  # tuples may be emitted in another order: receivers have to cope with any
            return None
        who, component_id, how = first
        return component_id, "; ".join((f"{who} {how}", *(sentence for _, sentence in states)))

    def _judged(self, schedule: Schedule, quiet: Kept) -> _Judged:
        """Plays a schedule; if it fails even without its faults, returns that play."""
        expected = quiet
        if schedule.is_by_stages:
            if self._by_stages is None:
                without = schedule.with_faults(())
                calm = self._play(without)
                differing = self._compared(calm, quiet, is_rearranged=True)
                if differing:
                    return _Judged(without, calm, differing)
                self._by_stages = calm.kept
            assert self._by_stages is not None
            expected = self._by_stages
        played = self._play(schedule)
        return _Judged(schedule, played, self._compared(played, expected, is_rearranged=played.is_rearranged))

    def _compared(self, played: Played, expected: Kept, *, is_rearranged: bool) -> list[tuple[str, str]]:
        if played.kept is None:
            assert played.error is not None
            return [("", f"a run ends with an error: {sentence_of(played.error)}")]
        return differences(expected, played.kept, self._topology.states, is_rearranged=is_rearranged)

    def _play(self, schedule: Schedule) -> Played:
        if schedule.is_by_stages:
            return self._in_a_copy(lambda: StagePlay(self._topology, schedule, self._last_txid).play())
        return self._in_a_copy(partial(play_by_tuples, self._topology, schedule, self._last_txid))

    def _in_a_copy(self, run: Callable[[], ResultT], *, slower: float = 1) -> ResultT:
        return in_a_copy(run, returns_within_s=slower * self._limit_s)

    def _explained(
        self, schedule: Schedule, failed: _Judged, quiet: Kept, played: int, harmless: list[FoundMistake]
    ) -> Proof:
        """Reduces a failing seed to the fewest faults, and returns a proof with the mistake that explains it."""
        clocks = [replace(each, does_harm=True) for each in harmless if each.mistake is Mistake.DRAWS]
        if clocks and (calm := self._judged(schedule.with_faults(()), quiet)).differing:
            return self._proved(played, clocks, calm)
        if self._play(failed.schedule).kept != failed.played.kept:
            calm = self._judged(schedule.with_faults(()), quiet)
            sentence = "played again, the same schedule leaves something else"
            shown = calm if calm.differing else failed
            drawn = replace(shown, differing=[*shown.differing, ("", sentence)])
            return self._proved(played, [self._mistake(Mistake.DRAWS, drawn), *harmless], drawn)
        for alone, mistake in ((OTHER_ORDER, Mistake.ORDER), (OTHER_TASKS, Mistake.TASKS)):
            for seed in (schedule.seed, *range(TRIES)):
                rearranged = replace(schedule, seed=seed, exactly=frozenset({Strike(alone, 0)}))
                found = self._judged(rearranged, quiet)
                if found.differing and found.played.kept is not None:
                    is_order = mistake is Mistake.ORDER or self._depends_on_order(found, quiet)
                    cause = Mistake.ORDER if is_order else mistake
                    return self._proved(played, [self._mistake(cause, found), *harmless], found)
        smallest = failed

        def still_fails(faults: list[Strike]) -> bool:
            nonlocal smallest
            tried = self._judged(schedule.with_faults(faults), quiet)
            if not tried.differing or (tried.played.kept is None) != (failed.played.kept is None):
                return False
            smallest = tried
            return True

        faults = fewest(failed.played.struck, still_fails)
        smallest = replace(smallest, schedule=schedule.with_faults(faults))
        left = Mistake.REPEATS if faults else Mistake.ORDER
        mistake = Mistake.RAISES if smallest.played.kept is None else left
        return self._proved(played, [self._mistake(mistake, smallest), *harmless], smallest)

    def _depends_on_order(self, found: _Judged, quiet: Kept) -> bool:
        """Returns whether the same states differ with the declared tasks, too, if tuples arrive in random order.

        Other numbers of tasks also change the order of tuples. With the declared tasks, the tuples of one task arrive
        in order, so a result that depends on their order alone might never differ.
        """
        names = {name for name, _ in found.differing}
        for seed in range(TRIES):
            shaken = replace(found.schedule, seed=seed, exactly=frozenset({Strike(OTHER_ORDER, 0)}))
            played = self._in_a_copy(
                partial(play_by_tuples, self._topology, shaken, self._last_txid, keeps_order=False)
            )
            if names <= {name for name, _ in self._compared(played, quiet, is_rearranged=True)}:
                return True
        return False

    def _mistake(self, mistake: Mistake, failed: _Judged) -> FoundMistake:
        evidence, error = "; ".join(sentence for _, sentence in failed.differing), failed.played.error
        if isinstance(error, UserCodeError):
            return FoundMistake(mistake, error.component_id, place_of_error(error), evidence, is_certain=False)
        names = {name for name, _ in failed.differing}
        component_id = next(
            (
                component.component_id
                for component in self._topology.components
                if any(state.name in names for state in declared_states(component.spec).values())
            ),
            "",
        )
        place = place_of_class(component_id, self._topology)
        return FoundMistake(mistake, component_id, place, evidence, is_certain=False)

    def _proved(self, seeds: int, found: list[FoundMistake], failed: _Judged | None = None) -> Proof:
        proof = Proof(
            self._topology.topology_id,
            self._batches,
            self._is_whole,
            seeds,
            tuple(found),
            keeps_tasks=self._keep_tasks,
            expired_parts=self._expired_parts,
            same_hashes=self._same_hashes,
        )
        if failed is None:
            return proof
        faults = failed.played.struck if failed.schedule.exactly is None else sorted(failed.schedule.exactly)
        return replace(
            proof, failing_seed=failed.schedule.seed, faults=tuple(map(str, faults)), story=failed.played.story
        )


def _emitted(run: QuietRun) -> str:
    """Returns how many tuples each component emitted."""
    counts = Counter[str]()
    for transaction in run.transactions:
        for component_id, emitted in transaction.emitted.items():
            counts[component_id] += len(emitted)
    return ", ".join(f"{count:,} ({component_id})" for component_id, count in counts.items())


def _shown(transaction: QuietTransaction) -> str:
    return one_line(", ".join(map(repr, transaction.metadata.values())))
