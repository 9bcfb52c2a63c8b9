"""Sums views and revenue of pages, and keeps the visitors, over files of events in any format.

    txbatch run tests.support.topologies.page_sums:topology -p input='events/*.json.gz'

Its answers are the hashes ``{page_sums}:views`` and ``{page_sums}:revenue_cents`` and the set ``{page_sums}:users``.
"""

from decimal import Decimal

from coordinator import stream
from coordinator.sources import CsvFiles, Follow, JsonLines, ParquetFiles
from state import HashState, SetState

TOPOLOGY_ID = "page_sums"
FIELDS = {"user": str, "page": str, "price": Decimal | None}


def source(input, form, rows, follow):
    """Files of events in one of three formats."""
    following = Follow(complete="rename", poll_s=0.2) if follow == "yes" else False
    if form == "csv":
        return CsvFiles(input, FIELDS, rows, follow=following)
    if form == "parquet":
        return ParquetFiles(input, list(FIELDS), rows, follow=following)
    return JsonLines(input, FIELDS, rows, follow=following)


def cents_of(price):
    return int(price * 100) if price else 0


def topology(input, form="json", rows=10_000, follow="no", parallelism=2):
    """The topology.

    Args:
        input: path or glob of the files.
        form: json, csv or parquet.
        rows: events of one transaction.
        follow: yes to wait for new files, which writers give their names when they are complete.
        parallelism: tasks of every component.
    """
    tasks = int(parallelism)
    events = stream(source(input, form, rows, follow), "events", tasks).map(cents_of, to="cents", of="price")
    events.count_by("page", into=HashState("views"))
    events.sum_by("page", "cents", into=HashState("revenue_cents"))
    events.distinct_by("user", into=SetState("users"))
    return events.topology(TOPOLOGY_ID, parallelism=tasks)
