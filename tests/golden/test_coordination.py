"""Golden case G4: coordination without transactions, in a sub-topology of a plain topology."""

from __future__ import annotations

import pytest

from coordinated_bolt.completeness.failure import FailureKind
from coordinated_bolt.components.batch_bolts import FinishedCallback
from coordinator.plain.batch_subtopology_builder import BatchSubtopologyBuilder
from coordinator.plain.plain_topology_builder import TopologyBuilder
from coordinator.plain.tasks.messages import MessageKind
from tests.support.topologies.batch_components import (
    TIMEOUT_S,
    Diary,
    Outside,
    Pass,
    Recorded,
    Requests,
    assert_nothing_is_left,
    cluster,
    double,
    drop,
    square_builder,
)

SEEDS = range(20)
CAPACITIES = (1, 2, 1024)
REQUESTS = {"two": 2, "ten": 10, "one": 1, "none": 0}
SQUARES = [("none", 0), ("one", 1), ("ten", 100), ("two", 4)]


def totals(run):
    return sorted(tuple(values) for _, values in run.emitted("total"))


class Done(Recorded, FinishedCallback):
    """Says "done" only when it is told that its request is complete."""

    def finished_id(self, attempt):
        Diary.write("finished", self.context.component_id, self.context.task_id, self.attempt)
        self._fail_if_told("finished_id")
        if self.request is not None:
            self.collector.emit([self.request, "done"])


def done_builder(failing=None, *, replay=False, requests=("a", "b", "c")):
    builder = TopologyBuilder("test")
    builder.set_message_timeout_s(TIMEOUT_S)
    builder.set_spout("spout", Requests(dict.fromkeys(requests, 1), replay=replay))
    batches = BatchSubtopologyBuilder("master", Pass())
    batches.master_declarer.shuffle_grouping("spout")
    batches.set_bolt("first", Pass(), 3).shuffle_grouping("master")
    batches.set_bolt("second", Pass(), 3).shuffle_grouping("first")
    batches.set_bolt("done", Done(failing), 3).fields_grouping("second", ["request"])
    batches.extend_topology(builder)
    return builder


STAGES = ("master", "first", "second", "done")


@pytest.mark.case(id="G4")
@pytest.mark.parametrize("capacity", CAPACITIES)
@pytest.mark.parametrize("seed", SEEDS)
def test_n_squared_tuples_over_three_tasks_are_counted_and_added_up(seed, capacity):
    with cluster(seed=seed, receive_capacity=capacity) as local:
        run = local.submit(square_builder(REQUESTS).build())
        run.run_until_idle()
        assert totals(run) == sorted(SQUARES)
        assert sorted(run.acked("spout")) == sorted(REQUESTS)
        assert run.failed("spout") == []
        assert run.pending_count("spout") == 0
        assert_nothing_is_left(run)


@pytest.mark.case(id="G4")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_bolt_after_two_identities_says_done_once_a_request(seed):
    with cluster(seed=seed, receive_capacity=1 + seed % 3) as local:
        run = local.submit(done_builder().build())
        run.run_until_idle()
        assert sorted(run.emitted("done")) == [("default", [request, "done"]) for request in "abc"]
        assert sorted(run.acked("spout")) == ["a", "b", "c"]
        assert_nothing_is_left(run, STAGES)


@pytest.mark.case(id="G4")
def test_finished_id_that_fails_fails_the_request_once():
    with cluster() as local:
        run = local.submit(done_builder({"finished_id:b": 1}).build())
        run.run_until_idle()
        assert run.failed("spout") == ["b"]
        assert sorted(run.acked("spout")) == ["a", "c"]
        assert sorted(run.emitted("done")) == [("default", [request, "done"]) for request in "ac"]
        [failure] = run.batch_failures("done")
        assert (failure.kind, failure.text) == (FailureKind.FAILED, "FailedException: told to fail in finished_id:b")
        run.advance_time(3 * TIMEOUT_S)
        run.run_until_idle()
        assert run.failed("spout") == ["b"]
        assert_nothing_is_left(run, STAGES)


@pytest.mark.case(id="G4")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_replay_of_a_failed_request_succeeds(seed):
    with cluster(seed=seed, receive_capacity=2) as local:
        run = local.submit(done_builder({"finished_id:b": 2, "finish:c": 1}, replay=True).build())
        run.run_until_idle()
        assert sorted(run.failed("spout")) == ["b", "b", "c"]
        assert sorted(run.acked("spout")) == ["a", "b", "c"]
        assert sorted(run.emitted("done")) == [("default", [request, "done"]) for request in "abc"]


@pytest.mark.case(id="G4")
@pytest.mark.parametrize("master_tasks", [1, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_request_is_acked_once_and_only_after_every_task_has_finished_it(seed, master_tasks):
    with cluster(seed=seed, receive_capacity=1 + seed % 3) as local:
        run = local.submit(square_builder(REQUESTS, master_tasks=master_tasks, outside=Outside()).build())
        run.run_until_idle()
        assert sorted(run.acked("spout")) == sorted(REQUESTS)
        request_of = {batch: request for _, name, _, batch, request, *_ in Diary.of("execute") if name == "master"}
        finishes: dict[str, set[object]] = {request: set() for request in REQUESTS}
        for what, *rest in Diary.entries:
            if what == "finish":
                finishes[request_of[rest[2]]].add((rest[0], rest[1]))
            elif what == "got":
                finishes[rest[0]].add("outside")
            elif what == "acked":
                # the master's one task of the batch, three tasks each of the others, and the bolt outside
                assert len(finishes[rest[0]]) == 1 + 9 + 1, rest
        assert len(request_of) == len(REQUESTS)


@pytest.mark.case(id="G4")
@pytest.mark.parametrize("seed", SEEDS)
def test_three_tasks_of_a_master_each_begin_batches_of_which_one_task_reports(seed):
    requests = {f"request {n}": n for n in range(7)}
    with cluster(seed=seed, receive_capacity=1 + seed % 3) as local:
        run = local.submit(square_builder(requests, master_tasks=3).build())
        run.run_until_idle()
        assert totals(run) == sorted((name, n * n) for name, n in requests.items())
        assert sorted(run.acked("spout")) == sorted(requests)
        masters = {task for _, name, task, *_ in Diary.of("finish") if name == "master"}
        assert len(masters) == 3
        assert_nothing_is_left(run)


@pytest.mark.case(id="P-07")
@pytest.mark.parametrize("kind", [MessageKind.REGULAR, MessageKind.COORD])
@pytest.mark.parametrize("nth", range(12))
def test_a_batch_that_lost_a_message_never_succeeds_but_times_out(kind, nth):
    with cluster(seed=nth, receive_capacity=2) as local:
        run = local.submit(square_builder({"three": 3}).build(), message_fault=drop(kind, nth=nth))
        run.run_until_idle()
        assert (run.acked("spout"), run.failed("spout")) == ([], [])
        run.advance_time(2 * TIMEOUT_S)
        run.run_until_idle()
        assert (run.acked("spout"), run.failed("spout")) == ([], ["three"])
        run.advance_time(TIMEOUT_S)
        run.run_until_idle()
        assert_nothing_is_left(run)
        assert (run.acked("spout"), run.failed("spout")) == ([], ["three"])
        if kind is MessageKind.REGULAR:
            assert totals(run) == []


@pytest.mark.case(id="G4")
@pytest.mark.parametrize("nth", range(14))
def test_a_doubled_tuple_fails_the_batch_at_once(nth):
    with cluster(seed=nth, receive_capacity=2) as local:
        run = local.submit(square_builder({"three": 3}).build(), message_fault=double(MessageKind.REGULAR, nth=nth))
        run.run_until_idle()
        assert (run.acked("spout"), run.failed("spout")) == ([], ["three"])
        failures = [failure for name in ("spread", "count", "total") for failure in run.batch_failures(name)]
        assert len(failures) == 1
        assert failures[0].kind is FailureKind.INCOMPLETE
        run.advance_time(3 * TIMEOUT_S)
        assert_nothing_is_left(run)


@pytest.mark.case(id="P-02")
@pytest.mark.parametrize("nth", range(12))
def test_a_doubled_report_finishes_nothing_twice(nth):
    with cluster(seed=nth, receive_capacity=2) as local:
        run = local.submit(square_builder({"three": 3}).build(), message_fault=double(MessageKind.COORD, nth=nth))
        run.run_until_idle()
        assert totals(run) == [("three", 9)]
        assert run.acked("spout") == ["three"]
        assert len(Diary.of("finish")) == 1 + 9
        assert_nothing_is_left(run)


@pytest.mark.case(id="P-03")
@pytest.mark.parametrize("where", ["master", "spread", "count", "total"])
@pytest.mark.parametrize("method", ["execute", "finish"])
@pytest.mark.parametrize("seed", range(5))
def test_a_failure_sticks_whenever_it_comes_and_late_tuples_change_nothing(seed, where, method):
    with cluster(seed=seed, receive_capacity=1 + seed % 3) as local:
        failing = {where: {f"{method}:three": 1}}
        run = local.submit(square_builder({"three": 3, "two": 2}, failing=failing).build())
        run.run_until_idle()
        assert (run.acked("spout"), run.failed("spout")) == (["two"], ["three"])
        assert totals(run) == [("two", 4)]
        [raised] = Diary.of("raised")
        later = Diary.entries[Diary.entries.index(raised) + 1 :]
        assert [entry[0] for entry in later if entry[1:4] == raised[1:4]] == ["cleanup"]
        run.advance_time(3 * TIMEOUT_S)
        run.run_until_idle()
        assert run.failed("spout") == ["three"]
        assert_nothing_is_left(run)


@pytest.mark.case(id="P-15")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_replay_and_the_attempt_before_it_share_nothing(seed):
    failing = {"spread": {"execute:ten": 3}, "total": {"finish:two": 2}, "master": {"finish:one": 1}}
    with cluster(seed=seed, receive_capacity=1 + seed % 3) as local:
        run = local.submit(square_builder(REQUESTS, failing=failing, replay=True, master_tasks=3).build())
        run.run_until_idle()
        assert totals(run) == sorted(SQUARES)
        assert sorted(run.acked("spout")) == sorted(REQUESTS)
        batches = [batch for _, name, _, batch, *_ in Diary.of("prepare") if name == "master"]
        assert len(batches) == len(set(batches)) == len(REQUESTS) + len(run.failed("spout"))
        run.advance_time(3 * TIMEOUT_S)
        run.run_until_idle()
        assert_nothing_is_left(run)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_bolt_outside_that_fails_what_it_got_fails_the_request(seed):
    with cluster(seed=seed) as local:
        run = local.submit(square_builder({"three": 3}, outside=Outside(failing=True)).build())
        run.run_until_idle()
        assert (run.acked("spout"), run.failed("spout")) == ([], ["three"])
        assert_nothing_is_left(run)


def test_a_tuple_for_a_bolt_outside_that_is_lost_keeps_the_request_from_being_acked():
    with cluster() as local:
        builder = square_builder({"three": 3}, outside=Outside())
        lost = drop(MessageKind.TUPLE, nth=1)  # the first is the spout's
        run = local.submit(builder.build(), message_fault=lost)
        run.run_until_idle()
        assert Diary.of("got") == []
        assert totals(run) == [("three", 9)]
        run.advance_time(2 * TIMEOUT_S)
        assert (run.acked("spout"), run.failed("spout")) == ([], ["three"])


@pytest.mark.parametrize("seed", SEEDS)
def test_without_ackers_batches_are_complete_by_counting_all_the_same(seed):
    with cluster(seed=seed, receive_capacity=1 + seed % 3) as local:
        run = local.submit(square_builder(REQUESTS, ackers=0, failing={"count": {"execute:two": 1}}).build())
        run.run_until_idle()
        assert totals(run) == sorted(set(SQUARES) - {("two", 4)})
        assert sorted(run.acked("spout")) == sorted(REQUESTS)  # nothing is tracked: acked at once


@pytest.mark.case(id="P-09")
def test_a_task_keeps_a_batch_for_longer_than_the_spout_waits_for_it():
    with cluster() as local:
        run = local.submit(square_builder({"three": 3}).build(), message_fault=drop(MessageKind.COORD, nth=3))
        run.run_until_idle()
        for failed, is_open in [([], True), (["three"], True), (["three"], False)]:
            run.advance_time(TIMEOUT_S)
            assert run.failed("spout") == failed
            assert (sum(run.open_batch_count(name) for name in ("spread", "count", "total")) > 0) is is_open
        assert_nothing_is_left(run)
