"""Committers and the group commit: what is published, and in which order."""

from coordinated_bolt.neighbours import require_own_packages

require_own_packages()

from committers.committer import ICommitter
from committers.committer_executor import CommitTask, CommitterExecutor
from committers.group_commit import Again, Group, GroupDecision, Publish, decide_group
from committers.group_size import GroupSize
from committers.refusing_reader import RefusingReader
from committers.slot_report import AttemptVerdict, SlotReport

__all__ = [
    "Again",
    "AttemptVerdict",
    "CommitTask",
    "CommitterExecutor",
    "Group",
    "GroupDecision",
    "GroupSize",
    "ICommitter",
    "Publish",
    "RefusingReader",
    "SlotReport",
    "decide_group",
]
