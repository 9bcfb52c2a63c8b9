"""Runs one emitter task over batches, without an engine."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from typing import Any

from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.wiring import TaskWiring
from coordinator.spouts.batch import Batch
from coordinator.transactional.emitter_task import EmitterTask
from state.attempt import TransactionAttempt
from state.codec import pack, unpack
from tests.support.tasks.wirings import Sent, output

Values = dict[int, list[Any]]


def att(txid: int, attempt_id: int = 1) -> TransactionAttempt:
    return TransactionAttempt(txid, attempt_id)


def batches(*pairs: tuple[int, Any], attempt_id: int = 1) -> list[Batch]:
    """Batches, given as (txid, metadata)."""
    return [Batch(att(txid, attempt_id), pack(metadata)) for txid, metadata in pairs]


def wiring_of(spout: Any, task_index: int = 0, task_count: int = 1) -> TaskWiring:
    return TaskWiring(
        topology_id="test",
        component_id="log",
        task_id=1 + task_index,
        task_index=task_index,
        task_count=task_count,
        tasks_of={"log": tuple(range(1, 1 + task_count)), "sink": (21,)},
        conf={},
        spec=pickle.dumps(spout),
        streams=output((21,)),
        targets=(21,),
    )


def run_emitter(
    spout: Any,
    given: Sequence[Batch],
    stored: Mapping[str, Mapping[int, Any]] | None = None,
    task_index: int = 0,
    task_count: int = 1,
) -> tuple[list[AttemptResult], Values]:
    """What one task made of the batches, and the values it sent by txid."""
    sent = Sent()
    task = EmitterTask(wiring_of(spout, task_index, task_count), sent.carrier, stored or {})
    emitted = [result for _, result in task.run(given) if result is not None]
    values: Values = {}
    for frame in sent:
        content = unpack(frame.payload)
        if isinstance(content, list):
            values.setdefault(frame.attempt.txid, []).extend(row[0] for _, rows in content for row in rows)
    return emitted, values
