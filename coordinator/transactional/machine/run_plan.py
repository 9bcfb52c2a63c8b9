"""The part of a topology that the run machine needs to know. Plain data."""

from __future__ import annotations

from dataclasses import dataclass

from state.commits.dead_letters import DEFAULT_LETTER_LIMITS, LetterLimits


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A topology as the run machine sees it.

    Attributes:
        commit_tasks: every task that reports on a group.
        component_order: component ids in the order their changes are composed.
        spout_id: the component id of the spout.
        has_partitions: emitters cut the partitions' batches; the coordinator only counts partitions.
        is_opaque: coordinator and emitters cut each attempt again, and its positions are stored with the commit.
        may_commit_early: committers may run in the job that processes their wave.
        engine_overlaps: a wave may be processed while a group commits.
        engine_queues: a full wave may be handed to the engine while another is processed.
        message_timeout_s: how long each phase of a wave may take, in seconds.
        cancel_later_s: how much later a phase is cancelled, so that the engine can first end and name what hangs.
        barrier_timeout_s: how long the run may do nothing but wait for a barrier, in seconds.
        letter_limits: how many dead letters may be kept.
    """

    commit_tasks: frozenset[int]
    component_order: tuple[str, ...]
    spout_id: str = ""
    has_partitions: bool = False
    is_opaque: bool = False
    may_commit_early: bool = False
    engine_overlaps: bool = True
    engine_queues: bool = False
    message_timeout_s: float = 60.0
    cancel_later_s: float = 0.0
    barrier_timeout_s: float = 60.0
    letter_limits: LetterLimits = DEFAULT_LETTER_LIMITS

    @property
    def cancel_after_s(self) -> float:
        """How long a phase may take before the driver cancels it."""
        return self.message_timeout_s + self.cancel_later_s
