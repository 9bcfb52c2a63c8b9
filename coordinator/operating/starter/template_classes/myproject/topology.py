"""The topology: which bolts there are, and what flows between them.

Run it::

    txbatch run myproject.topology:topology
"""

from coordinator import FixedBatchesSpout, JsonLines, Topology, TransactionalTopologyBuilder

from myproject.bolts import StoreVisits, SumVisits

VISIT = {"page": str, "seconds": int}


def topology(path: str = "data/*.jsonl", visits_per_batch: int = 25) -> Topology:
    """Returns the topology; ``txbatch run -p NAME=VALUE`` sets its parameters.

    Args:
        path: path or glob of the files, one JSON object a line; they may be compressed.
        visits_per_batch: visits in one transaction.
    """
    return counted(JsonLines(path, VISIT, visits_per_batch))


def counted(visits: JsonLines | FixedBatchesSpout) -> Topology:
    """Returns the topology over any source of visits; the tests give it some of their own."""
    builder = TransactionalTopologyBuilder("myproject", "visits", visits)
    builder.set_bolt("sum", SumVisits()).shuffle_grouping("visits")
    builder.set_committer_bolt("store", StoreVisits()).fields_grouping("sum", ["page"])
    return builder.build()
