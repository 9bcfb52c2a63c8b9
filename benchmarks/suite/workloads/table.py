"""The workloads by name. A workload is a module of this folder; `Workload` says what it has to define."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol, cast

import redis
from redis.client import Pipeline

from benchmarks.corpus import Corpus
from benchmarks.suite.text_input import Lines, Numbers
from coordinator.topology.building.topology import Topology

TITLES: Mapping[str, str] = {
    "word_count": "word count",
    "top_k": "top k",
    "dedup": "dedup",
    "ledger": "ledger",
}
"""Name of the module -> name in the report, in the report's order."""


class Workload(Protocol):
    """What a module of this folder defines."""

    def topology(self, pattern: str, tuples: int, tasks: int) -> Topology:
        """Returns the topology for files that match the pattern, with this number of tuples a transaction."""

    def write(self, client: redis.Redis, pipeline: Pipeline, batch: Any) -> None:
        """Does with plain redis-py what the topology does with one transaction; `pipeline` is of `client`."""

    def expected(self, tuples: Any) -> object:
        """Returns what the server has to hold after these tuples, counted independently."""

    def stored(self, client: redis.Redis) -> object:
        """Returns what the server holds, read as any client would."""


def workload(name: str) -> Workload:
    """Returns the workload of that name, which is one of `TITLES`."""
    return cast("Workload", import_module(f"benchmarks.suite.workloads.{name}"))


def input_of(name: str, corpus: Corpus) -> Lines | Numbers:
    """Returns a workload's input, for controls and for counting."""
    return Numbers() if name == "ledger" else Lines.of(corpus)
