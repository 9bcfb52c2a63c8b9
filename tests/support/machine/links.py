"""Outcomes as emitters that were executed once report them: each batch begins where the one below it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinator.spouts.partition_cut import link_to


def linked(outcomes: Sequence[AttemptResult], known: Mapping[str, Mapping[int, Any]]) -> tuple[AttemptResult, ...]:
    """The outcomes of a wave in txid order, each linked to what is below it."""
    positions = {scope: dict(by_txid) for scope, by_txid in known.items()}
    made = {}
    for outcome in sorted(outcomes, key=lambda outcome: outcome.attempt.txid):
        txid = outcome.attempt.txid
        began_from = dict(outcome.began_from)
        for scope, value in outcome.metadata.items():
            by_txid = positions.setdefault(scope, {})
            below = [earlier for earlier in by_txid if earlier < txid]
            began_from.setdefault(scope, link_to(by_txid[max(below)] if below else None))
            by_txid[txid] = value
        made[outcome.attempt] = replace(outcome, began_from=began_from)
    return tuple(made[outcome.attempt] for outcome in outcomes)
