"""What a wave reports, in order, and whether its batches follow one another in every partition. Pure.

An emitter cuts the batches of a wave one from another, and Spark may execute its task twice. If the batches differ
between the two, the verdict on one attempt may come of one execution and that on the next of the other; each is
complete in itself, and between them rows are lost or doubled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.completeness.acker import ACKER_COMPONENT
from coordinated_bolt.completeness.failure import Failure, FailureKind
from coordinator.spouts.kinds.partition_cut import UNCHAINED, link_to


def chained(outcomes: Sequence[AttemptResult], known: Mapping[str, Mapping[int, Any]]) -> Iterator[AttemptResult]:
    """The outcomes in txid order; one that does not begin where those below it end has failed.

    Args:
        outcomes: of one wave, ascending; those after a failure are replayed anyway and are not judged.
        known: scope -> txid -> metadata, of everything below the wave.
    """
    below = {scope: dict(by_txid) for scope, by_txid in known.items()}
    has_failed = False
    for outcome in outcomes:
        loose = [scope for scope in outcome.metadata if not _follows(outcome, scope, below.get(scope, {}))]
        if not has_failed and outcome.failure is None and loose:
            text = f"{min(loose)} does not begin where the batch below it ended: its task was executed twice"
            yield replace(outcome, failure=Failure(FailureKind.INCOMPLETE, ACKER_COMPONENT, 0, text))
            has_failed = True
        else:
            yield outcome
            has_failed = has_failed or outcome.failure is not None
        for scope, metadata in outcome.metadata.items():
            below.setdefault(scope, {})[outcome.attempt.txid] = metadata


def _follows(outcome: AttemptResult, scope: str, by_txid: Mapping[int, Any]) -> bool:
    if outcome.metadata[scope] is None:  # a later batch of the partition is stored: nothing was cut or emitted
        return True
    if outcome.began_from.get(scope) == UNCHAINED:  # added by the engine, such as a digest of rows
        return True
    last_txid = max((txid for txid in by_txid if txid < outcome.attempt.txid), default=None)
    return outcome.began_from.get(scope) == link_to(None if last_txid is None else by_txid[last_txid])
