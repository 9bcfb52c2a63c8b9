"""Reports to the acker: the edges of batch tuples, and each processing task's result for an attempt."""

from __future__ import annotations

from collections.abc import Callable

from coordinated_bolt.batches.attempt_reports import SendReport
from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.batches.chained_tasks import Begin, ChainedTasks
from coordinated_bolt.transport.edges import batch_edge
from coordinated_bolt.transport.outbox import Carrier
from coordinator.topology.planning.plan import Plan
from coordinator.transactional.emitting.emitter_task import Batch
from state.attempt import TransactionAttempt


def batch_edges(plan: Plan, batch: Batch) -> int:
    """Returns the XOR of the edges of an attempt's batch tuples, with which its tree begins."""
    edges = 0
    for task in plan.emitter_tasks:
        edges ^= batch_edge(batch.attempt, task, batch.packed_metadata)
    return edges


def chained_to(plan: Plan, head_task: int, carrier: Carrier, *, clock: Callable[[], int]) -> ChainedTasks:
    """Returns the tasks that run after one in its process, ready to run; often there are none."""
    wirings = [plan.wirings[task_id] for task_id in plan.chained_to(head_task)]
    return ChainedTasks(wirings, carrier, clock=clock)


def report_chain(
    plan: Plan,
    head_task: int,
    attempt: TransactionAttempt,
    result: AttemptResult | None,
    chained: ChainedTasks,
    *,
    begin: Begin,
    send: SendReport,
) -> None:
    """Sends the results of a task that has ended an attempt, and of the tasks chained to it, which run now."""
    acker_task = plan.acker_of(attempt.txid)
    send(acker_task, head_task, attempt, result)
    for wiring, chained_result in chained.run(attempt, begin):
        send(acker_task, wiring.task_id, attempt, chained_result)
