"""The data that the parts of a run machine share; decisions are made elsewhere. Plain data."""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.transactional.machine.metadata_log import MetadataLog
from coordinator.transactional.machine.positions import Positions
from coordinator.transactional.machine.run_plan import RunPlan
from coordinator.transactional.machine.transaction_records import TransactionRecords
from coordinator.transactional.machine.wave_records import CrashCauses, WaveRecords
from coordinator.transactional.options import RunOptions


@dataclass(slots=True)
class RunBooks:
    """The books of one run.

    Attributes:
        plan: the topology, as far as the machine needs to know it.
        options: limits of the run.
        metadata: the stored metadata, and the changes to store.
        transactions: a record for each transaction.
        waves: a record for each wave.
        causes: why phases crash.
        positions: the positions of every partition.
        now_s: the time of the last event that has one.
    """

    plan: RunPlan
    options: RunOptions
    metadata: MetadataLog
    transactions: TransactionRecords
    waves: WaveRecords
    causes: CrashCauses
    positions: Positions
    now_s: float = 0.0
