"""The letters that travel between the tasks of a transactional topology in one process."""

from __future__ import annotations

from typing import NamedTuple

from coordinated_bolt.transport.edges import DRIVER
from coordinated_bolt.transport.frames import Frame
from coordinator.emitting.emitter_task import Batch
from state.attempt import TransactionAttempt


class BatchLetter(NamedTuple):
    """The batch tuple: asks an emitter to emit its share of an attempt."""

    target: int
    batch: Batch
    sender: int = DRIVER

    @property
    def attempt(self) -> TransactionAttempt:
        """The attempt that the letter belongs to."""
        return self.batch.attempt


class CommitLetter(NamedTuple):
    """The ID tuples of a group: its commit phase has begun, in this order."""

    target: int
    attempts: tuple[TransactionAttempt, ...]
    composed: bool
    sender: int = DRIVER

    @property
    def attempt(self) -> TransactionAttempt:
        """The first attempt of the group; all of them are of one wave."""
        return self.attempts[0]


BatchLetters = Frame | BatchLetter | CommitLetter
