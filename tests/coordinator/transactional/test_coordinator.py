"""The driver's loop, step by step: a scripted engine and store, an injected clock."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from committers.committer import ICommitter
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinator import RunOptions, SpoutCoordinator, TransactionalTopologyBuilder
from coordinator.transactional.assembly import fitting, has_external_effects
from coordinator.transactional.coordinator import BUSY_WAIT_S, CUT_WAIT_S, IDLE_WAIT_S
from coordinator.transactional.engine import GroupExecuted, WaveProcessed
from state.commits.commit import CommitReply, CommitStatus
from state.errors import (
    FencedError,
    ProtocolError,
    ReplayLimitError,
    StateRefusedError,
    StateUnreachableError,
    UserCodeError,
)
from tests.support.runs.answers import Endless, committing_fails_at, everything, failing_at, once, with_metadata
from tests.support.runs.scripted import Run, failed
from tests.support.topologies.components import Commit, Count, Lines, LinesCoordinator, Pass, build


def test_a_run_from_the_first_transaction_to_the_end_of_the_input():
    run = Run(5, max_spout_pending=4)
    run()
    assert run.story() == (
        "store coordinator:1 coordinator:2 coordinator:3 coordinator:4; process 1 [1, 2]; commit 1 [1, 2]; "
        "process 2 [3, 4]; publish [1, 2]; release 1; store coordinator:5; commit 2 [3, 4]; process 3 [5]; "
        "publish [3, 4]; release 2; commit 3 [5]; publish [5]; release 3"
    )
    assert run.store.states == everything(5)


def test_an_input_without_transactions_ends_at_once():
    assert Run(0)() == []


def done(by, batches, **counts):
    """What a component has done, by the name of a count: of its one stream or input, or how often."""
    run = {"count": "lines/default", "lines": "default"}[by]
    by_stream = ("emitted", "transferred", "executed", "acked", "failed", "execute_ns", "ack_ns")
    found = {name: {run: counts[name]} if name in counts else {} for name in by_stream}
    return {**found, "finish_ns": counts.get("finish_ns", 0), "batches": batches, "dead_letters": 0}


def test_the_statistics_tell_what_was_done():
    run = Run(5, max_spout_pending=4)
    statistics = run.coordinator.run()
    assert statistics.to_dict("test") == {
        "topology": "test",
        "committed": 5,
        "last_txid": 5,
        "tuples": 50,
        "seconds": 0.0,
        "attempts": 5,
        "failed_attempts": 0,
        "waves": 3,
        "commit_groups": 3,
        "changes": 5,
        "counters": {"finished": 5, "lines": 50},
        "components": {
            "count": done("count", 5, executed=50, acked=50, execute_ns=350, finish_ns=25),
            "lines": done("lines", 5, emitted=50, transferred=50),
        },
    }
    assert run.progress[-1] == (5, 0)


def test_work_of_attempts_that_failed_or_were_dropped_in_processing_is_counted_as_well():
    run = Run(3, max_spout_pending=6)
    run.engine.on_wave = failing_at(run, 2)
    components = run.coordinator.run().to_dict("test")["components"]
    # 1 2 3, of which 2 failed and 3 was dropped with it; then 2 3 again
    assert components["lines"]["emitted"] == {"default": 50}
    assert (components["count"]["acked"], components["count"]["failed"]) == ({"lines/default": 30}, {})


def test_tuples_executed_in_a_commit_phase_that_failed_count_as_failed():
    run = Run(3, max_spout_pending=6)
    run.engine.on_group = committing_fails_at(run, 2)
    components = run.coordinator.run().to_dict("test")["components"]
    found = [components["count"][name] for name in ("failed", "acked", "executed")]
    assert found == [{"lines/default": 10}, {"lines/default": 30}, {"lines/default": 40}]
    assert components["lines"]["batches"] == 5


def test_what_arrives_while_only_a_commit_phase_runs_is_soon_noticed():
    source = LinesCoordinator(1)
    run = Run(source=source, max_spout_pending=4)
    begun_at_s: dict[int, float] = {}
    executed: list[GroupExecuted] = []

    def on_wave(wave_id, attempts):
        begun_at_s[wave_id] = run.engine.now_s
        return run.engine.processed(wave_id, attempts)

    def on_group(wave_id, attempts, composed):
        group = run.engine.executed(wave_id, attempts, composed)
        if wave_id > 1:
            return group
        executed.append(group)
        return None

    run.engine.on_wave, run.engine.on_group = on_wave, on_group
    run.engine.waits.append(lambda: setattr(source, "count", 2))
    run.engine.waits.append(lambda: None)
    run.engine.waits.append(lambda: run.engine.events.append(executed[0]))
    run()
    assert begun_at_s == {1: 0.0, 2: IDLE_WAIT_S}
    assert run.committed() == [[1], [2]]


@pytest.mark.parametrize(("window", "wait_s"), [(4, CUT_WAIT_S), (1, BUSY_WAIT_S)])
def test_what_arrives_while_a_wave_is_processed_is_cut_meanwhile_if_the_window_has_room(window, wait_s):
    source = LinesCoordinator(1)
    run = Run(source=source, max_spout_pending=window)
    seen: list[tuple[float, int]] = []

    def on_wave(wave_id, attempts):
        return run.engine.processed(wave_id, attempts) if wave_id > 1 else None

    def look():
        seen.append((run.engine.now_s, len(source.cut)))

    def end_wave():
        look()
        run.engine.events.append(run.engine.processed(1, run.coordinator._waves[1][0]))

    run.engine.on_wave = on_wave
    run.engine.waits += [lambda: setattr(source, "count", 2), end_wave]
    run()
    assert seen == [(2 * wait_s, 2 if window > 1 else 1)]
    assert run.committed() == [[1], [2]]


def test_a_restart_goes_on_after_the_last_commit_with_what_is_stored():
    stored = {"coordinator:3": "lines of 3", "coordinator:4": "lines of 4", "coordinator:5": "lines of 5"}
    source = LinesCoordinator(6)
    run = Run(source=source, currtx=4, stored=stored, max_spout_pending=8)
    assert run()[:2] == [("store", "coordinator:6"), ("process", 1, [4, 5, 6])]
    assert source.cut == [(6, "lines of 5")]
    assert run.coordinator.statistics.last_txid == 6
    assert run.coordinator.statistics.committed == 3


# Stored before told


@pytest.mark.case(id="P-08")
def test_metadata_is_stored_before_anything_of_it_is_emitted():
    run = Run(9, max_spout_pending=4)
    run()
    stored: set[str] = set()
    for kind, *arguments in run.log:
        if kind == "store":
            stored |= set(arguments)
        elif kind == "process":
            assert {f"coordinator:{txid}" for txid in arguments[1]} <= stored


@pytest.mark.case(id="P-08")
def test_what_emitters_cut_is_stored_before_the_commit_phase():
    run = Run(4, max_spout_pending=4)
    run.engine.on_wave = with_metadata(run)
    run()
    assert run.story("store", "commit") == (
        "store coordinator:1 coordinator:2 coordinator:3 coordinator:4; store partition.0:1 partition.0:2; "
        "commit 1 [1, 2]; store partition.0:3 partition.0:4; commit 2 [3, 4]"
    )
    assert run.engine.stored == [{}, {"partition.0": {1: [1, 1], 2: [2, 2]}}]
    forgotten = [call[1:] for call in run.store.calls if call[0] == "commit"]
    assert forgotten == [
        ([1, 2], ("coordinator:1", "partition.0:1")),
        ([3, 4], ("coordinator:2", "coordinator:3", "partition.0:2", "partition.0:3")),
    ]
    assert sorted(run.store.metadata) == ["coordinator:4", "partition.0:4"]


def test_a_fence_found_while_storing_metadata_ends_the_run_before_anything_is_emitted():
    run = Run(3)

    def fenced(entries, forget=()):
        raise FencedError("test")

    run.store.store_metadata = fenced  # type: ignore[method-assign] # the script
    with pytest.raises(FencedError):
        run()
    assert run.log == []


# Failures of attempts: what follows from each is decided by the machine, see machine/test_run_machine.py


@pytest.mark.case(id="P-16")
def test_a_txid_that_fails_on_every_attempt_stops_the_run_after_the_lower_ones():
    run = Run(4, max_spout_pending=8)
    run.engine.on_wave = failing_at(run, 3, times=99, text="bad luck")
    with pytest.raises(ReplayLimitError) as error:
        run()
    assert (error.value.txid, error.value.attempt_count, error.value.last_reason) == (3, 5, "count[0]: bad luck")
    assert run.committed() == [[1, 2]]
    assert len(run.lines("process")) == 5


# Waves that are void


@pytest.mark.case(id="P-10")
def test_a_wave_that_runs_for_nothing_is_cancelled_and_released_when_it_ends():
    run = Run(4, max_spout_pending=4)
    run.engine.on_group = committing_fails_at(run, 1)
    held = []

    def hold_the_second(wave_id, attempts):
        if wave_id == 2:
            held.append((wave_id, attempts))
            return None
        return run.engine.processed(wave_id, attempts)

    run.engine.on_wave = hold_the_second
    run.engine.on_cancel = lambda wave_id: run.engine.crashed(*held.pop())
    run()
    assert run.story("process", "cancel", "release") == (
        "process 1 [1, 2]; process 2 [3, 4]; cancel 2; release 1; release 2; "
        "process 3 [1, 2]; process 4 [3, 4]; release 3; release 4"
    )
    assert run.store.states == everything(4)


def test_a_wave_that_hangs_is_cancelled_at_the_message_timeout():
    run = Run(2, max_spout_pending=4, message_timeout_s=30.0)
    run.engine.on_wave = once(lambda wave_id, attempts: None, run.engine.processed)
    cancelled_at = []

    def cancelled(wave_id):
        cancelled_at.append(run.engine.now_s)
        return run.engine.crashed(wave_id, ())

    run.engine.on_cancel = cancelled
    run()
    assert cancelled_at == [pytest.approx(30 + CUT_WAIT_S)]
    assert run.story("process", "cancel") == "process 1 [1, 2]; cancel 1; process 2 [1]; process 3 [2]"
    assert run.store.states == everything(2)


# Groups


def test_external_effects_are_an_attribute_of_the_committer():
    class Mails(BaseBatchBolt, ICommitter):
        external_effects = True

        def execute(self, tup):
            """Sends nothing."""

    assert not has_external_effects(build(("count", Count(), ["lines"]), ("pass", Pass(), ["lines"])))
    mailing = build(("count", Count(), ["lines"]), ("mails", Mails(), ["lines"]))
    assert has_external_effects(mailing)
    assert fitting(mailing, RunOptions()) == RunOptions(commit_group_max=1, early_commit=False)


# The store's answers


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (CommitReply(CommitStatus.FENCED), FencedError),
        (CommitReply(CommitStatus.CONFLICT, "?"), StateRefusedError),
        (CommitReply(CommitStatus.REGRESSED, "?"), StateRefusedError),
        (CommitReply(CommitStatus.ORDER, "?"), ProtocolError),
        (StateUnreachableError("no answer"), StateUnreachableError),
    ],
    ids=lambda part: getattr(part, "status", None) or getattr(part, "__name__", "unreachable"),
)
def test_every_other_answer_ends_the_run_at_once(reply, error):
    run = Run(9, max_spout_pending=4)
    run.store.replies = [None, reply]
    with pytest.raises(error):
        run()
    assert run.lines("publish") == [("publish", [1, 2]), ("publish", [3, 4])]
    assert run.committed() == [[1, 2]]


# Source and listener


@pytest.mark.parametrize("early_commit", [False, True])
def test_a_drained_run_commits_what_is_under_way_and_takes_nothing_more(early_commit):
    run = Run(source=Endless(), max_spout_pending=4, early_commit=early_commit)
    run.on_progress = lambda statistics: run.coordinator.drain() if statistics.committed >= 4 else None
    run()
    assert run.committed()[:2] == [[1, 2], [3, 4]]
    assert run.coordinator.statistics.committed == run.coordinator.statistics.attempts <= 8
    assert run.machine.is_idle()
    assert bool(run.lines("commit")) is not early_commit


def test_a_run_drained_before_it_began_ends_at_once_unless_something_is_stored():
    run = Run(source=Endless())
    run.coordinator.drain()
    assert run() == []
    resumed = Run(source=Endless(), currtx=2, stored={"coordinator:1": "lines of 1", "coordinator:2": "lines of 2"})
    resumed.coordinator.drain()
    resumed()
    assert resumed.committed() == [[1], [2]]


def test_replays_go_on_while_a_run_drains():
    run = Run(source=Endless(), max_spout_pending=2)
    run.engine.on_wave = failing_at(run, 2, times=2)
    run.engine.waits.append(run.coordinator.drain)
    run.on_progress = lambda statistics: run.coordinator.drain()
    run()
    assert run.store.states == everything(2)


@pytest.mark.case(id="P-14")
def test_metadata_that_cannot_be_stored_ends_the_run_after_what_is_under_way_is_committed():
    """What does not come back as it was would make a replay another one."""

    class Odd(LinesCoordinator):
        def initialize_transaction(self, txid, previous):
            made = super().initialize_transaction(txid, previous)
            return object() if txid == 3 else made

    run = Run(source=Odd(4))
    story = r"(?s)initialize_transaction of txid 3 .*cannot be sent or stored: <object"
    with pytest.raises(UserCodeError, match=story):
        run()
    assert run.store.states == everything(2)


MODES = [(False, True), (True, True), (True, False)]


"""(early_commit, whether committers read)."""


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 8), st.booleans(), st.sampled_from(MODES))
def test_whatever_the_engine_does_each_transaction_is_published_once_and_in_order(
    seed, window, group_max, overlaps, mode
):
    random = Random(seed)  # not Hypothesis's: one that always draws the worst would go on for ever
    bounds = {"max_spout_pending": window, "commit_group_max": group_max, "max_attempts": 10_000}
    early_commit, reads = mode
    run = Run(25, overlaps=overlaps, early_commit=early_commit, **bounds)

    def badly():
        return random.random() < 0.25

    def on_wave(wave_id, attempts):
        if badly():
            return run.engine.crashed(wave_id, attempts)
        failures = {f"at_{a.txid}": failed() for a in attempts if badly()}
        event = run.engine.processed(wave_id, attempts, **failures)
        outcomes = [o for o in event.outcomes if not badly()]
        random.shuffle(outcomes)
        return WaveProcessed(wave_id, tuple(outcomes))

    def on_group(wave_id, attempts, composed):
        return run.engine.group_crashed(wave_id, attempts) if badly() else on_early(wave_id, attempts, composed)

    def on_early(wave_id, attempts, composed):
        failures: dict[str, Any] = {f"at_{a.txid}": failed() for a in attempts if badly()}
        event = run.engine.executed(wave_id, attempts, composed, reads=reads and badly(), **failures)
        return GroupExecuted(wave_id, attempts, () if badly() else event.reports)

    run.engine.on_wave, run.engine.on_group, run.engine.on_early = on_wave, on_group, on_early
    run()
    assert run.store.states == everything(25)
    assert [txid for group in run.committed() for txid in group] == list(range(1, 26))
    assert run.coordinator.statistics.committed == 25
    waves = Counter(wave_id for _, wave_id, _ in run.lines("process"))
    assert Counter(wave_id for _, wave_id in run.lines("release")) == waves
    for wave_id in waves:
        done = [place for place, line in enumerate(run.log) if line[:2] in (("process", wave_id), ("commit", wave_id))]
        assert max(done) < run.log.index(("release", wave_id))


def test_a_spout_of_ones_own_needs_three_methods_only():
    class Least(SpoutCoordinator):
        def is_ready(self):
            return False

        def initialize_transaction(self, txid, previous):
            raise AssertionError

    least = Least()
    least.resume()
    least.close()
    assert (least.is_exhausted(), least.estimated_bytes(None)) == (False, 0)
    builder = TransactionalTopologyBuilder("test", "lines", Lines())
    builder.set_bolt("store", Commit()).shuffle_grouping("lines")
    assert builder.build().spout.kind.value == "spout"
