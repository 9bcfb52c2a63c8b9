"""Reports to the acker: the edges of batch tuples, and each processing task's result for an attempt."""

from __future__ import annotations

from collections.abc import Callable

from coordinated_bolt.batches.attempt_reports import SendReport
from coordinated_bolt.batches.batch_acker import report_of
from coordinated_bolt.batches.chained_tasks import Begin, ChainedTasks
from coordinated_bolt.transport.edges import batch_edge
from coordinated_bolt.transport.outbox import Carrier
from coordinator.emitting.emitter_task import Batch, Emitted
from coordinator.planning.plan import Plan


def batch_edges(plan: Plan, batch: Batch) -> int:
    """Returns the XOR of the edges of an attempt's batch tuples, with which its tree begins."""
    edges = 0
    for task in plan.emitter_tasks:
        edges ^= batch_edge(batch.attempt, task, batch.packed_metadata)
    return edges


def report_to_acker(plan: Plan, task_id: int, emitted: Emitted, send: SendReport) -> None:
    """Sends one task's report on one attempt to its acker."""
    attempt, result = emitted.attempt, emitted.result
    acker_task = plan.acker_of(attempt.txid)
    report = report_of(
        result,
        attempt=attempt,
        task_id=task_id,
        acker_task=acker_task,
        commit_tasks=plan.commit_tasks,
        cuts={scope: cut.to_wire() for scope, cut in emitted.cuts.items()},
        emitted_count=result.tuple_count if task_id in plan.emitter_tasks else 0,
    )
    send(acker_task, task_id, attempt, report)


def chained_to(plan: Plan, head_task: int, carrier: Carrier, *, clock: Callable[[], int]) -> ChainedTasks:
    """Returns the tasks that run after one in its process, ready to run; often there are none."""
    wirings = [plan.wirings[task_id] for task_id in plan.chained_to(head_task)]
    return ChainedTasks(wirings, carrier, clock=clock)


def report_chain(
    plan: Plan, head_task: int, emitted: Emitted, chained: ChainedTasks, *, begin: Begin, send: SendReport
) -> None:
    """Sends the reports of a task that has ended an attempt, and of the tasks chained to it, which run now."""
    report_to_acker(plan, head_task, emitted, send)
    for wiring, result in chained.run(emitted.attempt, begin):
        report_to_acker(plan, wiring.task_id, Emitted(emitted.attempt, result), send)
