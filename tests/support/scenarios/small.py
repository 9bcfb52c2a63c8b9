"""The small topology that exhaustive tests go through: every hop, two phases, a committer that reads, one below."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.support.scenarios.random_topologies import Input, Part, Scenario

SMALL = Scenario(
    parts=(
        Part("spout", 2, outputs=("default",)),
        Part("b0", 2, (Input("spout", "default", "shuffle"),), outputs=("default",)),
        Part(
            "b1",
            2,
            (Input("b0", "default", "fields"),),
            mode="keyed",
            behaviour="sum",
            outputs=("default",),
            committer=0,
            operations=("running", "sums"),
        ),
        Part("b2", 1, (Input("b1", "default", "global"),), mode="one", committer=1, operations=("log", "sums")),
    ),
    batches=((("a", 1), ("b", 2)), (("a", 3),), (("c", 4), ("a", 5))),
    partitions=2,
    window=4,
    group=2,
)
"""spout -> b0 (shuffle) -> b1 (fields, a committer that reads) -> b2 (a committer below); three transactions."""


def small(**changes: Any) -> Scenario:
    """`SMALL` with other bounds, trips or batches."""
    return replace(SMALL, **changes)
