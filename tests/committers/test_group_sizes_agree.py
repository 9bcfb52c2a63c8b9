"""Committed state does not depend on how transactions are grouped, with committers that read.

Random transactions go through real frames, `CommitTask` objects and `decide_group` at group sizes 1, 2,
7 and 64. All end in one state, the one of a fold written apart: transaction after transaction, component
after component, task after task, call after call.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, ClassVar

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from committers.committer import ICommitter
from committers.committer_executor import CommitTask
from committers.group_commit import Again, Group, PublishStep, decide_group
from committers.task_report import TaskReport
from coordinated_bolt.batches.attempt_collector import AttemptCollector
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinated_bolt.transport.blocks import Inbox
from coordinated_bolt.transport.frames import Frame
from coordinated_bolt.transport.outbox import SingleFrames
from coordinated_bolt.transport.wave_attempts import WaveAttempts
from coordinator.spouts.transactional import ITransactionalSpout
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from coordinator.topology.planning.plan import Plan, make_plan
from state import HashState, HyperLogLogState, ListState, SetState, SortedSetState, ValueState
from state.attempt import TransactionAttempt
from state.codec import pack, unpack
from state.errors import FailedException
from state.values.state_kind import VALUE_FIELD
from tests.support.property_lengths import examples
from tests.support.stores.memory_store import MemoryStore
from tests.support.tasks.outboxes import attempt_outbox
from tests.support.tasks.wire import alone

Step = tuple[Any, ...]
BEST, RECENT = 2, 3


class StepSpout(ITransactionalSpout):
    output_fields = ("field", "step")

    def get_coordinator(self, conf, context):
        raise NotImplementedError

    def get_emitter(self, conf, context):
        raise NotImplementedError


class Interpreter(BaseBatchBolt, ICommitter):
    """Carries out the steps it is sent, in `finish_batch`; passes some on to a committer further down."""

    output_fields = ("field", "step")
    fail_once: ClassVar[set[tuple[int, int]]] = set()

    counts = HashState("counts", value=int).prefetch("field")
    amounts = HashState("amounts", value=float)
    last = ValueState("last", value=int)
    members = SetState("members")
    scores = SortedSetState("scores")
    items = ListState("items", value=int)
    best = SortedSetState("best", keep_highest=BEST)
    least = SortedSetState("least", keep_lowest=BEST)
    recent = ListState("recent", value=int, keep_last=RECENT)
    money = HashState("money", value=Decimal, scale=2)
    notes = HashState("notes", value="json")
    visits = HashState("visits").per("key")
    unique = HyperLogLogState("unique").per("key")
    best_of = SortedSetState("best_of", keep_highest=BEST).per("key")

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.steps: list[Step] = []

    def execute(self, tup):
        self.steps.append(tuple(tup["step"]))

    def finish_batch(self):
        for step in self.steps:
            STEPS[step[0]](self, *step[1:])
        this = (self.context.task_id, self.attempt.txid)
        if this in Interpreter.fail_once:
            Interpreter.fail_once.remove(this)
            raise FailedException("once")


def count_if_even(own, key, other, by):
    """Reads one field, and by its value adds to, sets or deletes another."""
    value = own.counts.get(key)
    if value is None:
        own.counts.put(other, by)
    elif value % 2 == 0:
        own.counts.increment(other, by)
    else:
        own.counts.delete(other)


def count_double(own, key, other, _):
    found = own.counts.get_many([key, other])
    own.counts.put(key, (found[key] or 1) * 2 % 1_000_003 + (found[other] or 0) % 7)


def best(own, key, score):
    own.best.put(key, score)
    own.least.put_many([key], [score])
    own.best_of[key].put(str(score), score)


def visit(own, key, by):
    own.visits[key].increment("n", by)
    own.unique[key].add_many([str(by), "ö"])


def visit_if_even(own, key, other, by):
    if (own.visits[key].get("n") or 0) % 2 == 0:
        own.visits[other].increment("n", by)
    else:
        own.visits[other].delete("n")


STEPS: dict[str, Callable[..., object]] = {
    "count": lambda own, key, by: own.counts.increment(key, by),
    "count_put": lambda own, key, value: own.counts.put(key, value),
    "count_delete": lambda own, key: own.counts.delete(key),
    "count_if_even": count_if_even,
    "count_double": count_double,
    "pass_on": lambda own, key, other, by: own.collector.emit(
        [other, ["count", other, by + (own.counts.get(key) or 0) % 5]]
    ),
    "amount": lambda own, key, by: own.amounts.increment(key, by),
    "amount_put": lambda own, key, value: own.amounts.put(key, value),
    "amount_third": lambda own, key, other, _: own.amounts.put(other, (own.amounts.get(key) or 1.0) / 3),
    "last": lambda own, by: own.last.increment(by),
    "last_put": lambda own, value: own.last.put((own.last.get() or 0) % 97 + value),
    "last_delete": lambda own: own.last.delete(),
    "add": lambda own, key: own.members.add(key),
    "remove": lambda own, key: own.members.remove(key),
    "toggle": lambda own, key, other, _: (own.members.remove if own.members.contains(key) else own.members.add)(other),
    "score": lambda own, key, by: own.scores.increment(key, by),
    "score_put": lambda own, key, other, _: own.scores.put(other, (own.scores.score(key) or 0.0) + 0.1),
    "score_remove": lambda own, key: own.scores.remove(key),
    "append": lambda own, value: own.items.append(value),
    "append_count": lambda own, key, other, _: own.items.append(own.counts.get(key) or 0),
    "empty": lambda own: own.items.delete(),
    "best": best,
    "recent": lambda own, value: own.recent.append(value),
    "forget": lambda own: own.recent.delete(),
    "pay": lambda own, key, cents: own.money.increment(key, Decimal(cents) / 100),
    "pay_half": lambda own, key, other, _: own.money.put(other, (own.money.get(key) or Decimal(2)) // 2),
    "note": lambda own, key, other, by: own.notes.put(other, {"after": own.notes.get(key), "by": by}),
    "visit": visit,
    "visit_if_even": visit_if_even,
}
"""What the committer does at each step; `interpret` says the same of the fold."""


class Below(BaseBatchBolt, ICommitter):
    """A committer fed by a committer; keeps a running product, which no increment could express."""

    totals = HashState("totals", value=int)

    def prepare(self, conf, context, collector, attempt):
        self.steps: list[Step] = []

    def execute(self, tup):
        self.steps.append(tuple(tup["step"]))

    def finish_batch(self):
        for _, key, by in self.steps:
            self.totals.put(key, ((self.totals.get(key) or 1) * 3 + by) % 1_000_003)


@dataclass(frozen=True)
class Scenario:
    """Transactions of steps, and how they are spread over the tasks."""

    grouping: str
    parallelism: int
    below: int
    transactions: list[list[Step]]
    operations_max: int = 50_000
    failing: frozenset[tuple[int, int]] = frozenset()


def plan_of(scenario: Scenario) -> Plan:
    builder = TransactionalTopologyBuilder("test", "steps", StepSpout())
    declarer = builder.set_bolt("store", Interpreter(), parallelism=scenario.parallelism)
    match scenario.grouping:
        case "fields":
            declarer.fields_grouping("steps", ["field"])
        case "shuffle":
            declarer.shuffle_grouping("steps")
        case "all":
            declarer.all_grouping("steps")
        case "global":
            declarer.global_grouping("steps")
    if scenario.below:
        builder.set_bolt("below", Below(), parallelism=scenario.below).fields_grouping("store", ["field"])
    return make_plan(builder.build(), lambda component_id, spec: pickle.dumps(spec))


@dataclass
class Job:
    """A plan with the frames of some attempts, as the shuffle keeps them between the two phases."""

    plan: Plan
    store: MemoryStore
    frames: list[Frame] = field(default_factory=list)
    residues: dict[TransactionAttempt, int] = field(default_factory=dict)
    routes: dict[int, dict[int, list[Step]]] = field(default_factory=dict)

    def process(self, attempt: TransactionAttempt, steps: Sequence[Step]) -> None:
        (emitter,) = self.plan.emitter_tasks
        wiring = self.plan.wirings[emitter]
        # the same tuples go to the same tasks whatever attempt it is: groupings draw by attempt
        outbox = attempt_outbox(wiring, attempt, SingleFrames(self.frames.append))
        collector = AttemptCollector(wiring, attempt, outbox)
        routes = self.routes[attempt.txid] = {}
        for step in steps:
            for task in collector.emit([_key_of(step), list(step)]):
                routes.setdefault(task, []).append(step)
        residue = 0
        for edge in outbox.close().values():
            residue ^= edge
        self.residues[attempt] = residue

    def execute(self, attempts: Sequence[TransactionAttempt], *, composed: bool) -> list[TaskReport]:
        frames, reports = list(self.frames), []
        for stage in self.plan.stages[self.plan.meeting_stage :]:
            for task in stage.tasks:
                if task in self.plan.commit_tasks:
                    commit_task = CommitTask(self.plan.wirings[task], self.store, SingleFrames(frames.append))
                    mine = [alone(frame, attempts) for frame in frames if frame.target == task]
                    inbox = Inbox(mine, WaveAttempts(attempts))
                    report = commit_task.run_group(attempts, inbox, composed=composed)
                    reports.append(TaskReport.from_wire(unpack(pack(report.to_wire()))))
        return reports


def _key_of(step: Step) -> str:
    return step[1] if len(step) > 1 and isinstance(step[1], str) else ""


@dataclass
class Trace:
    """How a run went."""

    store: MemoryStore
    routes: dict[int, dict[int, list[Step]]]
    steps: list[Again | PublishStep] = field(default_factory=list)


def run(scenario: Scenario, group_size: int) -> Trace:
    plan, store = plan_of(scenario), MemoryStore()
    Interpreter.fail_once = set(scenario.failing)
    job, trace = Job(plan, store), Trace(store, {})
    attempts = [TransactionAttempt(txid, 1) for txid in range(1, len(scenario.transactions) + 1)]
    for attempt, steps in zip(attempts, scenario.transactions, strict=True):
        job.process(attempt, steps)
    trace.routes = job.routes
    composed = True
    while attempts:
        group, as_composed = tuple(attempts[:group_size]), composed
        while True:
            decision = decide_group(
                Group(group, job.residues, plan.commit_tasks, plan.component_order, scenario.operations_max),
                job.execute(group, composed=as_composed),
            )
            trace.steps.append(decision.step)
            step = decision.step
            if isinstance(step, PublishStep):
                break
            assert (len(step.attempts), step.composed) < (len(group), as_composed)
            group, as_composed, composed = step.attempts, step.composed, composed and step.composed
        assert step.attempts or decision.failed
        if step.attempts:
            store.publish(step.attempts, step.write_set)
            del attempts[: len(step.attempts)]
    return trace


class View:
    """What one task of one transaction sees and does: committed state, then its own changes."""

    def __init__(self, committed: dict[str, dict[Any, Any]]) -> None:
        self.committed = committed
        self.changes: dict[tuple[str, Any], tuple[str, Any]] = {}
        self.emptied = False
        self.appended: list[int] = []
        self.forgotten = False
        self.recent: list[int] = []
        self.ranked: list[tuple[str, str, float]] = []
        self.passed: list[Step] = []

    def get(self, state: str, key: Any = VALUE_FIELD) -> Any:
        value = self.committed.get(state, {}).get(key)
        how, amount = self.changes.get((state, key), ("add", None))
        if how == "set":
            return amount
        return value if amount is None else (value or 0) + amount

    def put(self, state: str, key: Any, value: Any) -> None:
        self.changes[state, key] = ("set", value)

    def add(self, state: str, key: Any, by: Any) -> None:
        how, amount = self.changes.get((state, key), ("add", None))
        self.changes[state, key] = (how, by if amount is None else amount + by)

    def apply(self, states: dict[str, dict[Any, Any]]) -> None:
        for (state, key), (how, amount) in self.changes.items():
            held = states.setdefault(state, {})
            if how == "add":
                held[key] = held.get(key, 0) + amount
            elif amount is None:
                held.pop(key, None)
            else:
                held[key] = amount
        self._append(states, "items", self.emptied, self.appended)
        self._append(states, "recent", self.forgotten, self.recent, RECENT)
        for state, member, score in self.ranked:
            held = states.setdefault(state, {})
            better = min if state == "least" else max
            held[member] = better(held.get(member, score), score)
        for state in {state for state, _, _ in self.ranked}:
            order = sorted(states[state], key=lambda member: (states[state][member], member.encode()))
            for member in order[BEST:] if state == "least" else order[:-BEST]:
                del states[state][member]
        for state in [state for state, held in states.items() if not held]:
            del states[state]

    @staticmethod
    def _append(
        states: dict[str, dict[Any, Any]], name: str, emptied: bool, items: list[int], most: int = 1_000_000
    ) -> None:
        held = states.setdefault(name, {})
        if emptied:
            held.clear()
        if items:
            held[VALUE_FIELD] = (held.get(VALUE_FIELD, []) + items)[-most:]


def interpret(view: View, step: Step) -> None:  # noqa: C901, PLR0912 - a table in the form of a match
    match step:
        case "count", key, by:
            view.add("counts", key, by)
        case "count_put", key, value:
            view.put("counts", key, value)
        case "count_delete", key:
            view.put("counts", key, None)
        case "count_if_even", key, other, by:
            value = view.get("counts", key)
            if value is None:
                view.put("counts", other, by)
            elif value % 2 == 0:
                view.add("counts", other, by)
            else:
                view.put("counts", other, None)
        case "count_double", key, other, _:
            doubled = (view.get("counts", key) or 1) * 2 % 1_000_003
            view.put("counts", key, doubled + (view.get("counts", other) or 0) % 7)
        case "pass_on", key, other, by:
            view.passed.append(("count", other, by + (view.get("counts", key) or 0) % 5))
        case "amount", key, by:
            view.add("amounts", key, by)
        case "amount_put", key, value:
            view.put("amounts", key, value)
        case "amount_third", key, other, _:
            view.put("amounts", other, (view.get("amounts", key) or 1.0) / 3)
        case "last", by:
            view.add("last", VALUE_FIELD, by)
        case "last_put", value:
            view.put("last", VALUE_FIELD, (view.get("last") or 0) % 97 + value)
        case ("last_delete",):
            view.put("last", VALUE_FIELD, None)
        case "add", key:
            view.put("members", key, True)
        case "remove", key:
            view.put("members", key, None)
        case "toggle", key, other, _:
            view.put("members", other, None if view.get("members", key) else True)
        case "score", key, by:
            view.add("scores", key, by)
        case "score_put", key, other, _:
            view.put("scores", other, (view.get("scores", key) or 0.0) + 0.1)
        case "score_remove", key:
            view.put("scores", key, None)
        case "append", value:
            view.appended.append(value)
        case ("empty",):
            view.emptied, view.appended = True, []
        case "best", key, score:
            view.ranked += [("best", key, score), ("least", key, score), (f"best_of:{key}", str(score), score)]
        case "recent", value:
            view.recent.append(value)
        case ("forget",):
            view.forgotten, view.recent = True, []
        case "pay", key, cents:
            view.add("money", key, cents)
        case "pay_half", key, other, _:
            view.put("money", other, _half(view.get("money", key) or 200))
        case "note", key, other, by:
            found = view.get("notes", key)
            view.put("notes", other, f'{{"after":{found or "null"},"by":{by}}}')
        case "visit", key, by:
            view.add(f"visits:{key}", "n", by)
            view.put(f"unique:{key}", str(by), True)
            view.put(f"unique:{key}", "ö", True)
        case "visit_if_even", key, other, by:
            if (view.get(f"visits:{key}", "n") or 0) % 2 == 0:
                view.add(f"visits:{other}", "n", by)
            else:
                view.put(f"visits:{other}", "n", None)
        case "append_count", key, _, _:
            view.appended.append(view.get("counts", key) or 0)
        case _:
            raise AssertionError(step)


def _half(cents: int) -> int:
    """Half of it without the cents, towards zero."""
    return (1 if cents > 0 else -1) * (abs(cents) // 200) * 100


def interpret_below(view: View, step: Step) -> None:
    _, key, by = step
    view.put("totals", key, ((view.get("totals", key) or 1) * 3 + by) % 1_000_003)


def fold(scenario: Scenario, routes: dict[int, dict[int, list[Step]]]) -> dict[str, dict[Any, Any]]:
    """By txid, component, task, call; receivers are taken from the run, because groupings draw at random."""
    plan, states = plan_of(scenario), dict[str, dict[Any, Any]]()
    stores = plan.wirings[plan.emitter_tasks[0]].tasks_of["store"]
    for txid in range(1, len(scenario.transactions) + 1):
        views = [View(states) for _ in stores]
        for task, view in zip(stores, views, strict=True):
            for step in routes[txid].get(task, []):
                interpret(view, step)
        below = View(states)
        for view in views if scenario.below else []:
            for step in view.passed:
                interpret_below(below, step)
        for view in [*views, below]:
            view.apply(states)
    return states


KEYS = ["a", "b", "c"]
key, whole = st.sampled_from(KEYS), st.integers(-9, 9)
part = st.sampled_from([0.1, 0.2, 0.3, 0.7, -0.4, 1e16, -1e16]) | st.floats(-10, 10, allow_nan=False)
blind = st.one_of(
    st.tuples(st.just("count"), key, whole),
    st.tuples(st.just("count_put"), key, whole),
    st.tuples(st.just("count_delete"), key),
    st.tuples(st.just("amount"), key, part),
    st.tuples(st.just("amount_put"), key, part),
    st.tuples(st.just("last"), whole),
    st.tuples(st.just("last_delete")),
    st.tuples(st.just("add"), key),
    st.tuples(st.just("remove"), key),
    st.tuples(st.just("score"), key, part),
    st.tuples(st.just("score_remove"), key),
    st.tuples(st.just("append"), whole),
    st.tuples(st.just("empty")),
)
kept = st.one_of(
    st.tuples(st.just("best"), key, whole.map(float)),
    st.tuples(st.just("recent"), whole),
    st.tuples(st.just("forget")),
    st.tuples(st.just("pay"), key, whole),
    st.tuples(st.just("visit"), key, whole),
)
READING = ["count_if_even", "count_double", "pass_on", "amount_third", "toggle", "score_put", "append_count"]
kept_and_read = st.tuples(st.sampled_from(["pay_half", "note", "visit_if_even"]), key, key, whole)
reading = st.tuples(st.sampled_from(READING), key, key, whole) | st.tuples(st.just("last_put"), whole)
increments = st.tuples(st.just("count"), key, whole) | st.tuples(st.just("amount"), key, part)


@st.composite
def scenarios(draw, steps):
    parallelism = draw(st.integers(1, 3))
    transactions = draw(st.lists(st.lists(steps, max_size=5), min_size=1, max_size=9))
    stores = range(2, 2 + parallelism)
    failing = st.tuples(st.sampled_from(stores), st.integers(1, len(transactions)))
    return Scenario(
        grouping=draw(st.sampled_from(["fields", "shuffle", "all", "global"])),
        parallelism=parallelism,
        below=draw(st.integers(0, 2)),
        transactions=transactions,
        operations_max=draw(st.sampled_from([50_000, 50_000, 7, 1])),
        failing=draw(st.frozensets(failing, max_size=2)),
    )


def check(scenario: Scenario) -> None:
    traces = {size: run(scenario, size) for size in (1, 2, 7, 64)}
    expected = fold(scenario, traces[1].routes)
    for size, trace in traces.items():
        assert trace.store.states == expected, f"group size {size}"
        assert [txid for group in trace.store.committed for txid in group] == list(
            range(1, len(scenario.transactions) + 1)
        )
        assert all(len(group) <= size for group in trace.store.committed)
    assert traces[1].store.committed == [[txid] for txid in range(1, len(scenario.transactions) + 1)]
    longest = max(len(group) for group in traces[64].store.committed)
    event(f"longest group {min(longest, 4)}{'+' if longest > 4 else ''}")
    event(f"again: {any(isinstance(step, Again) for step in traces[64].steps)}")


@settings(max_examples=examples(120))
@given(scenarios(blind | reading))
def test_state_is_equal_for_group_sizes_1_2_7_64_with_committers_that_read(scenario):
    check(scenario)


@pytest.mark.parametrize(
    "steps",
    [blind, kept, kept | kept_and_read, increments],
    ids=["only writes", "bounded states and parts", "bounded states and parts that are read", "sums"],
)
@settings(max_examples=examples(60))
@given(st.data())
def test_state_is_equal_for_group_sizes_1_2_7_64(steps, data):
    check(data.draw(scenarios(steps)))


def numbered(*transactions: Sequence[Step], **changes: Any) -> Scenario:
    given: dict[str, Any] = {"grouping": "fields", "parallelism": 2, "below": 0} | changes
    return Scenario(transactions=[list(steps) for steps in transactions], **given)


def test_whole_numbers_are_published_as_one_group_in_one_go():
    trace = run(numbered(*[[("count", "a", 1), ("count", "b", n)] for n in range(9)]), 64)
    assert trace.store.committed == [list(range(1, 10))]
    assert [type(step) for step in trace.steps] == [PublishStep]
    assert trace.store.states == {"counts": {"a": 9, "b": 36}}


def test_floats_are_added_in_the_order_of_the_transactions_whatever_the_group():
    amounts = (0.1, 0.0, 0.2, 0.3)
    assert 0.1 + 0.0 + 0.2 + 0.3 != 0.1 + 0.0 + (0.2 + 0.3), "else the test would say nothing"
    scenario = numbered(*[[("amount", "a", amount)] for amount in amounts])
    sums = {size: run(scenario, size).store.states["amounts"]["a"] for size in (1, 2, 7, 64)}
    assert sums == dict.fromkeys((1, 2, 7, 64), 0.1 + 0.0 + 0.2 + 0.3)


def test_a_group_ends_before_a_transaction_that_reads_what_another_task_wrote():
    """By all_grouping both tasks write `a` and both read it: each transaction has to see the one before."""
    scenario = numbered([("count", "a", 2)], [("count_double", "a", "a", 0)], [("count", "b", 1)], grouping="all")
    trace = run(scenario, 64)
    assert trace.store.committed == [[1], [2, 3]]
    assert trace.store.states == fold(scenario, trace.routes)


def test_a_group_does_not_end_before_a_transaction_that_reads_what_its_own_task_wrote():
    scenario = numbered([("count", "a", 2)], [("count_double", "a", "a", 0)], [("count_double", "a", "a", 0)])
    trace = run(scenario, 64)
    assert trace.store.committed == [[1, 2, 3]]
    assert trace.store.states == {"counts": {"a": 18}} == fold(scenario, trace.routes)
