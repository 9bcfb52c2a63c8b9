"""A job for real clusters: it counts numbers at its own pace, and each of them has to be counted once."""

from __future__ import annotations

import time

from coordinator.topology.building.topology import Topology
from tests.support.spark.bolts import Pass, numbers_topology

SIZE = 8


class Paced(Pass):
    """Takes its time over every batch."""

    def __init__(self, pause_s: float) -> None:
        self.pause_s = pause_s

    def finish_batch(self):
        time.sleep(self.pause_s)
        super().finish_batch()


def topology(transactions: int, pause_ms: int = 0, timeout_s: float = 30.0, is_chained: bool = False) -> Topology:
    work = Paced(pause_ms / 1000)
    made: Topology = numbers_topology(
        transactions, size=SIZE, work=work, message_timeout_s=timeout_s, is_chained=is_chained
    )
    return made
