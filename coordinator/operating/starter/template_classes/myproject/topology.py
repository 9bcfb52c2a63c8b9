"""The topology: which bolts there are, and what flows between them.

Run it::

    txbatch run myproject.topology:topology
"""

from coordinator import Topology, TransactionalTopologyBuilder
from coordinator.sources import JsonLines

from myproject.bolts import StoreVisits, SumVisits


def topology(path: str = "data/*.jsonl", visits_per_batch: int = 25) -> Topology:
    """Returns the topology; ``txbatch run -p NAME=VALUE`` sets its parameters.

    Args:
        path: path or glob of the files, one JSON object a line; they may be compressed.
        visits_per_batch: visits in one transaction.
    """
    visits = JsonLines(path, {"page": str, "seconds": int}, visits_per_batch)
    builder = TransactionalTopologyBuilder("myproject", "visits", visits)
    builder.set_bolt("sum", SumVisits()).shuffle_grouping("visits")
    builder.set_committer_bolt("store", StoreVisits()).fields_grouping("sum", ["page"])
    return builder.build()
