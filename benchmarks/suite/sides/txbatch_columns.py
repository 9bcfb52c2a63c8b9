"""Measures the word count over column batches: ``python -m benchmarks.suite.sides.txbatch_columns ASSIGNMENT``.

Its topology is found by name, so that the suite also runs in a checkout that has none; `table` says when it has.
"""

from __future__ import annotations

import sys
from importlib import import_module

from benchmarks.suite.cells import Assignment
from benchmarks.suite.sides.txbatch import measure
from benchmarks.suite.workloads.word_count import TOPOLOGY_ID
from coordinator.topology.building.topology import Topology

MODULE = "examples.word_count_batches"


def topology(pattern: str, tuples: int, tasks: int) -> Topology:
    """Returns the shipped example with column batches; its parameters are those of `examples.word_count`."""
    made = import_module(MODULE).topology(pattern, tuples, TOPOLOGY_ID, tasks)
    assert isinstance(made, Topology)
    return made


if __name__ == "__main__":
    print(measure(Assignment.from_json(sys.argv[1]), topology).to_json())
