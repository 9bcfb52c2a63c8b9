"""Phases of transactions, held, acked and failed by a test; and what it can learn of every attempt."""

from __future__ import annotations

from random import Random

import pytest

from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinator.spouts.memory import FixedBatchesSpout, MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout
from coordinator.testing.cluster.attempt_book import AttemptEnd
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.transactional.options import RunOptions
from state import FailedException, HashState, ReplayLimitError, StateRefusedError, UserCodeError
from tests.support.scenarios.playing import leftovers
from tests.support.topologies.components import Count, Lines, Pass, build

FOUR = RunOptions(max_spout_pending=4)
KINDS = {
    "fixed": FixedBatchesSpout(
        [[["a", 1], ["b", 1]], [["a", 2]], [["c", 3], ["a", 3]], [["b", 4]], [], [["a", 6]]], ["line", "number"]
    ),
    "partitioned": MemoryTransactionalSpout(
        [[["a", n] for n in range(7)], [["b", n] for n in range(4)]], ["line", "number"], take=1
    ),
    "opaque": OpaqueMemoryTransactionalSpout(
        [[["a", n] for n in range(7)], [["b", n] for n in range(4)]], ["line", "number"], take=1
    ),
}


def counting(transactions: int = 4, bolt: BaseBatchBolt | None = None):
    return build(("pass", bolt or Pass(), ["lines"], 2), ("count", Count(), ["pass"], 2), spout=Lines(transactions))


def counted(transactions: int) -> dict[str, int]:
    return {f"lines of {txid}": 4 for txid in range(1, transactions + 1)}


def holding(cluster, phase, *txids, options=FOUR):
    """A run that has come to rest with these phases held."""
    run = cluster.submit(counting(), options=options)
    run.hold(phase, *txids)
    run.run_until_idle()
    return run


def moved(act, *arguments):
    """Does something to a run, and lets it come to rest."""
    act(*arguments)
    act.__self__.run_until_idle()


def held(run) -> list[tuple[int, str]]:
    return [(held.attempt.txid, held.phase) for held in run.held()]


def ends(run, txid: int) -> list[tuple[str, str | None]]:
    return [(record.end, record.phase) for record in run.attempts(txid)]


def test_a_transaction_whose_processing_phase_is_held_keeps_itself_and_later_ones_from_their_commit(cluster):
    run = holding(cluster, "processing", 2)
    assert (held(run), run.state("counts"), run.is_done) == ([(2, "processing")], counted(1), False)
    run.ack(2)
    assert run.state("counts") == counted(1)  # it takes effect when the run is moved
    run.run_until_idle()
    assert (held(run), run.state("counts"), run.is_done) == ([], counted(4), True)
    assert [record.end for record in run.attempts()] == ["committed"] * 4


def test_a_processing_phase_that_is_failed_by_hand_is_replayed_with_all_later_ones(cluster):
    run = holding(cluster, "processing", 2)
    first = run.held()[0].attempt
    moved(run.fail, 2, "as if a count were wrong")
    assert held(run) == [(2, "processing")]  # the replay, too
    assert run.held()[0].attempt != first
    moved(run.release, "processing", 2)
    assert run.state("counts") == counted(4)
    assert ends(run, 1) == [("committed", None)]
    assert ends(run, 2) == [("failed", "processing"), ("committed", None)]
    assert ends(run, 3) == ends(run, 4) == [("dropped", "processing"), ("committed", None)]
    assert run.attempts(2)[0].reason == "by hand[0]: as if a count were wrong"
    assert run.attempts(3)[0].reason == f"attempt {first} failed"


def test_a_transaction_whose_commit_phase_is_held_has_run_alone_and_published_nothing(cluster):
    run = holding(cluster, "commit", 3, options=RunOptions(max_spout_pending=8, commit_group_max=8))
    assert (held(run), run.state("counts"), run.statistics.commit_groups) == ([(3, "commit")], counted(2), 1)
    moved(run.fail, 3)
    assert (held(run), run.state("counts")) == ([(3, "commit")], counted(2))
    assert ends(run, 3) == [("failed", "commit"), ("under way", None)]
    moved(run.ack, 3)
    assert (run.is_done, run.state("counts"), run.statistics.commit_groups) == (True, counted(4), 3)


@pytest.mark.parametrize("end", ["ack", "fail"])
def test_a_group_that_is_under_way_already_is_held_as_a_whole(cluster, end):
    topology = build(("count", Count(), ["lines"]), spout=Lines(3))
    run = cluster.submit(topology, options=RunOptions(max_spout_pending=6))
    while not run._coordinator._machine._commits.phase:
        run.tick()
    run.hold("commit", 2)
    run.run_until_idle()
    assert (held(run), run.state("counts")) == ([(2, "commit")], {})
    getattr(run, end)(2)
    moved(run.release, "commit")
    assert (run.is_done, run.state("counts")) == (True, counted(3))
    assert ends(run, 1) == [("committed", None)]


@pytest.mark.case(id="G1")
def test_the_coordinators_steps_can_be_played_by_hand_on_a_whole_topology(cluster):
    run = cluster.submit(counting(7), options=FOUR)
    run.hold("processing")
    run.hold("commit")

    def after(act, *txid):
        act(*txid)
        run.run_until_idle()
        return held(run)

    p, c = "processing", "commit"
    assert after(run.run_until_idle) == [(1, p), (2, p), (3, p), (4, p)]
    attempts = {h.attempt for h in run.held()}
    assert after(run.fail, 2) == [(1, p), (2, p), (3, p), (4, p)]
    assert len({h.attempt for h in run.held()} & attempts) == 1  # txid 1 was not touched
    assert after(run.ack, 2) == [(1, p), (3, p), (4, p)]
    assert after(run.ack, 1) == [(1, c), (3, p), (4, p)]
    assert after(run.ack, 1) == [(2, c), (3, p), (4, p), (5, p)]
    assert after(run.ack, 2) == [(3, p), (4, p), (5, p), (6, p)]
    assert after(run.fail, 3) == [(3, p), (4, p), (5, p), (6, p)]
    assert after(run.ack, 3) == [(3, c), (4, p), (5, p), (6, p)]
    assert after(run.ack, 4) == [(3, c), (5, p), (6, p)]
    assert after(run.fail, 3) == [(3, p), (4, p), (5, p), (6, p)]
    assert after(run.ack, 3) == [(3, c), (4, p), (5, p), (6, p)]
    assert after(run.ack, 4) == [(3, c), (5, p), (6, p)]
    assert after(run.ack, 3) == [(4, c), (5, p), (6, p), (7, p)]
    assert run.state("counts") == counted(3)


def test_an_ack_that_arrives_after_the_attempt_was_dropped_is_ignored(cluster):
    run = holding(cluster, "processing", 2, 3)
    run.fail(2)
    moved(run.ack, 3)
    assert held(run) == [(2, "processing"), (3, "processing")]
    assert ends(run, 3) == [("dropped", "processing"), ("under way", None)]


def test_failing_by_hand_counts_towards_the_replay_limit(cluster):
    run = holding(cluster, "commit", 2, options=RunOptions(max_attempts=2))
    moved(run.fail, 2)
    run.fail(2, "again")
    with pytest.raises(ReplayLimitError, match=r"txid 2 failed 2 times.*by hand\[0\]: again"):
        run.run_until_idle()
    assert run.state("counts") == counted(1)
    assert leftovers(run) == []


@pytest.mark.parametrize("phase", ["processing", "commit"])
def test_a_phase_held_longer_than_the_message_timeout_fails(cluster, caplog, phase):
    run = holding(cluster, phase, 2)
    moved(run.advance_time, 60)
    assert held(run) == [(2, phase)]
    run.advance_time(1)
    moved(run.release, phase)
    assert run.attempts(2)[0].reason == f"by hand[0]: its {phase} phase exceeded the message timeout"
    assert ends(run, 2) == [("failed", phase), ("committed", None)]
    assert run.state("counts") == counted(4)
    assert not any("is cancelled" in text for text in caplog.messages)


def test_the_time_of_a_held_commit_phase_begins_when_it_has_run(cluster, caplog):
    run = cluster.submit(build(("count", Count(), ["lines"]), spout=Lines(1)))
    run.hold("commit", 1)
    while not run._coordinator._machine._commits.phase:
        run.tick()
    moved(run.advance_time, 40)
    moved(run.advance_time, 40)
    assert (held(run), caplog.messages) == ([(1, "commit")], [])


def test_what_is_not_held_can_neither_be_acked_nor_failed(cluster):
    run = holding(cluster, "processing", 2)
    with pytest.raises(ValueError, match=r"no phase of transaction 3 is held; held: processing of 2:\w+$"):
        run.ack(3)
    run.ack(2)
    with pytest.raises(ValueError, match="no phase of transaction 2 is held; held: none"):
        run.fail(2)


def test_a_phase_there_is_not_is_refused(cluster):
    run = cluster.submit(counting())
    with pytest.raises(ValueError, match="phase is 'commits'; give 'processing' or 'commit'"):
        run.hold("commits", 1)


def test_a_run_that_is_closed_with_a_phase_held_leaves_nothing_and_the_next_one_is_exact(cluster):
    run = holding(cluster, "commit", 2)
    run.close()
    assert leftovers(run) == []
    cluster.submit(counting()).run_until_idle()
    assert cluster.submit(counting()).state("counts") == counted(4)


@pytest.mark.often("partitioned")
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_held_acked_and_failed_the_state_is_exact(kind):
    for seed in range(25):
        random = Random(seed)
        topology = build(("pass", Pass(), ["lines"], 2), ("count", Count(), ["pass"], 2), spout=KINDS[kind])
        with LocalCluster() as cluster:
            run = cluster.submit(topology)
            run.run_until_idle()
            expected = run.state("counts")
        options = RunOptions(
            max_spout_pending=random.randint(1, 6), commit_group_max=random.randint(1, 4), max_attempts=99
        )
        with LocalCluster(seed=seed) as cluster:
            run = cluster.submit(topology, options=options)
            fails = 12
            for phase in random.sample(["processing", "commit"], random.randint(1, 2)):
                run.hold(phase, *random.choice([(), (2, 4), (1, 3)]))
            run.run_until_idle()
            while run.held():
                chosen = random.choice(run.held()).attempt.txid
                if fails and random.random() < 0.3:
                    fails -= 1
                    run.fail(chosen)
                else:
                    run.ack(chosen)
                run.run_until_idle()
            assert run.is_done
            assert run.state("counts") == expected, f"seed {seed}"
            assert leftovers(run) == []


# What a run tells of its attempts


class Stumbles(Pass):
    """Fails every first attempt at txid 2, after it has emitted."""

    stumbled: list[int] = []

    def finish_batch(self):
        if self.attempt.txid == 2 and len(Stumbles.stumbled) < 3:
            Stumbles.stumbled.append(self.attempt.attempt_id)
            raise FailedException("stumbled")


def test_every_attempt_tells_why_it_failed_and_what_it_had_emitted(cluster):
    Stumbles.stumbled.clear()
    run = cluster.submit(counting(bolt=Stumbles()), options=RunOptions(max_spout_pending=4))
    run.run_until_idle()
    records = run.attempts(2)
    assert [record.end for record in records[:-1]] == [AttemptEnd.FAILED] * (len(records) - 1)
    assert {record.attempt.attempt_id for record in records[:-1]} >= set(Stumbles.stumbled[:1])
    assert all(record.reason.endswith("FailedException: stumbled") for record in records[:-1])
    for record in records:
        assert sorted(run.emitted("pass", attempt=record.attempt)) == [("default", ["lines of 2", n]) for n in range(4)]
    assert run.emitted("pass", 2) == run.emitted("pass", attempt=records[-1].attempt)
    assert [record.attempt.txid for record in run.attempts()][:4] == [1, 2, 3, 4]


class Breaks(Pass):
    def execute(self, tup):
        super().execute(tup)
        if self.attempt.txid == 2:
            raise LookupError("no such line")


def test_what_ended_a_run_is_told_of_its_attempt_too(cluster):
    run = cluster.submit(counting(bolt=Breaks()), options=FOUR)
    with pytest.raises(UserCodeError):
        run.run_until_idle()
    assert ends(run, 1) == [("committed", None)]
    assert ends(run, 2) == [("failed", "processing")]
    assert "LookupError: no such line" in run.attempts(2)[0].reason
    assert len(run.emitted("pass", attempt=run.attempts(2)[0].attempt)) > 0


class Refused(Count):
    other = HashState("other", value=int)

    def finish_batch(self):
        super().finish_batch()
        self.other.increment("x")


def test_what_the_server_refuses_is_told_of_its_attempt(cluster):
    cluster.client.set("{test}:other", "a string")
    accepting = RunOptions(max_spout_pending=1, accept_state_changes=True)
    run = cluster.submit(build(("count", Refused(), ["lines"]), spout=Lines(2)), options=accepting)
    with pytest.raises(StateRefusedError):
        run.run_until_idle()
    assert ends(run, 1) == [("failed", "commit")]
    assert "is a string on the server" in run.attempts(1)[0].reason


def test_a_wave_that_is_given_up_is_told_of_its_attempts(cluster):
    run = cluster.submit(counting(), options=FOUR)
    for _ in range(6):
        run.tick()
    moved(run.advance_time, 61)
    assert [record.end for record in run.attempts(1)] == ["failed", "committed"]
    assert run.attempts(1)[0].reason.startswith("it exceeded the message timeout of 60 s and was cancelled")
    assert run.state("counts") == counted(4)
