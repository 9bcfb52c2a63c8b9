"""Reports to the acker: the edges of batch tuples, and each processing task's result for an attempt."""

from __future__ import annotations

from coordinated_bolt.batches.batch_acker import send_report
from coordinated_bolt.transport.edges import batch_edge
from coordinated_bolt.transport.outbox import Send
from coordinator.emitting.emitter_task import Batch, Emitted
from coordinator.planning.plan import Plan


def batch_edges(plan: Plan, batch: Batch) -> int:
    """Returns the XOR of the edges of an attempt's batch tuples, with which its tree begins."""
    edges = 0
    for task in plan.emitter_tasks:
        edges ^= batch_edge(batch.attempt, task, batch.packed_metadata)
    return edges


def report_to_acker(plan: Plan, task_id: int, emitted: Emitted, send: Send) -> None:
    """Sends one task's report on one attempt to its acker."""
    attempt, result = emitted.attempt, emitted.result
    send_report(
        result,
        attempt=attempt,
        task_id=task_id,
        acker_task=plan.acker_of(attempt.txid),
        commit_tasks=plan.commit_tasks,
        cuts={scope: cut.to_wire() for scope, cut in emitted.cuts.items()},
        emitted_count=result.tuple_count if task_id in plan.emitter_tasks else 0,
        send=send,
    )
