"""What tells the owner's calls from everybody else's, and how they are answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from state.commits.commit import CommitReply, CommitStatus, RefusalCause
from state.redis_client.connection import text_of
from state.redis_client.packed_call import Argument


@dataclass(frozen=True, slots=True)
class Ownership:
    """What every call of the owner carries.

    Attributes:
        fence: identifies the owner.
        generation: identifies this life of the topology; drawn when it was first started.
        revision: the exact number of writes that the server must have applied before this call.
    """

    fence: str
    generation: str
    revision: int

    def arguments(self) -> list[Argument]:
        return [self.fence, self.generation, str(self.revision)]

    def after_write(self) -> Ownership:
        return Ownership(self.fence, self.generation, self.revision + 1)


def reply_of(reply: Sequence[Any]) -> CommitReply:
    """Returns what the library has answered to a write: a status, a sentence and perhaps a cause."""
    status, sentence, *causes = map(text_of, reply)
    return CommitReply(CommitStatus(status), sentence, cause=RefusalCause("".join(causes)))
