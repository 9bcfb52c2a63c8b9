"""A frame that is lost, doubled or altered on its way fails its attempt, and nothing wrong is stored.

One fault of each place: the others are like them, and random topologies in process meet all of them.
"""

from __future__ import annotations

import logging
import re

import pytest

from coordinated_bolt.transport.frames import FrameKind
from tests.support.spark.bolts import exact_counts, exact_sums, numbers_topology
from tests.support.spark.clusters import Cluster
from tests.support.spark.faults import OneFrame, tasks_of

pytestmark = [pytest.mark.spark, pytest.mark.redis]

TRANSACTIONS = 8
HIT = 3
REPLAYED = re.compile(r"attempt (\S+) failed and is replayed: (.*)", re.DOTALL)


def replayed(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The attempts that the coordinator says it replays."""
    found = (REPLAYED.match(record.getMessage()) for record in caplog.records if record.name == "txbatch")
    return [match[1] for match in found if match]


def run_with(cluster: Cluster, caplog: pytest.LogCaptureFixture, component_id: str, *, early_commit: bool, **fault):
    topology = numbers_topology(TRANSACTIONS, is_chained=False)
    one_frame = OneFrame(cluster.notes / "hit", tasks_of(topology, component_id), HIT, **fault)
    with caplog.at_level(logging.INFO, logger="txbatch"):
        statistics = cluster.run(
            topology, frame_fault=one_frame, max_spout_pending=2 * TRANSACTIONS, early_commit=early_commit
        )
    assert cluster.hash("{numbers}:counts") == exact_counts(TRANSACTIONS)
    assert cluster.hash("{numbers}:sums") == exact_sums(TRANSACTIONS)
    return statistics, one_frame.marker.read_text(encoding="utf-8")


@pytest.mark.often("work-fault0-True", "store-fault3-False", "__acker-*")
@pytest.mark.parametrize(
    ("component_id", "fault", "early_commit"),
    [
        ("work", {"kind": FrameKind.REGULAR, "change": "alter"}, True),
        ("work", {"kind": FrameKind.COORD, "change": "swap_txid"}, True),
        ("store", {"kind": FrameKind.REGULAR, "change": "drop"}, True),
        ("store", {"kind": FrameKind.REGULAR, "change": "drop"}, False),
        ("__acker", {"kind": FrameKind.ACK, "change": "drop"}, True),
    ],
)
def test_exactly_the_attempt_of_a_faulty_frame_fails_and_the_result_is_exact(
    cluster, caplog, component_id, fault, early_commit
):
    statistics, hit = run_with(cluster, caplog, component_id, early_commit=early_commit, **fault)

    assert replayed(caplog) == [hit]
    assert statistics.failed_attempts == TRANSACTIONS - HIT + 1  # it, and all above it, which are done anew


@pytest.mark.often("one job")
@pytest.mark.parametrize("early_commit", [True, False], ids=["one job", "two jobs"])
def test_a_report_that_comes_twice_is_compared_and_fails_nothing(cluster, caplog, early_commit):
    fault = {"kind": FrameKind.COORD, "change": "double"}
    statistics, hit = run_with(cluster, caplog, "store", early_commit=early_commit, **fault)

    assert hit.startswith(f"{HIT}:")
    assert (statistics.failed_attempts, replayed(caplog)) == (0, [])
