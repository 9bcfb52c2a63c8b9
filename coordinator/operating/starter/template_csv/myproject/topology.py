"""Counts visits, and the seconds they took, by page, and refuses those that cannot be true.

Run it::

    txbatch run myproject.topology:topology
"""

from coordinator import CsvFiles, FixedBatchesSpout, HashState, Topology, stream

VISIT = {"page": str, "seconds": int}


def topology(path: str = "data/*.csv", visits_per_batch: int = 25) -> Topology:
    """Returns the topology; ``txbatch run -p NAME=VALUE`` sets its parameters.

    Args:
        path: path or glob of the files, whose first lines name the columns; they may be compressed.
        visits_per_batch: visits in one transaction.
    """
    return counted(CsvFiles(path, VISIT, visits_per_batch))


def counted(visits: CsvFiles | FixedBatchesSpout) -> Topology:
    """Returns the topology over any source of visits; the tests give it some of their own."""
    true = stream(visits).dead_letter_if(
        lambda seconds: seconds < 0, lambda seconds: f"a visit cannot take {seconds} seconds", of="seconds"
    )
    true.count_by("page", into=HashState("visits")).sum_by("page", "seconds", into=HashState("seconds"))
    return true.topology("myproject")
