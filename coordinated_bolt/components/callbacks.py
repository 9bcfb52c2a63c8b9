"""What a bolt implements beside its own interface to be told how an attempt ends on its task.

Source: backtype.storm.coordination.CoordinatedBolt.FinishedCallback and .TimeoutCallback.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from state.attempt import TransactionAttempt


class FinishedCallback(ABC):
    """Marks a bolt that wants to know when an attempt is complete on its task.

    For an `IBatchBolt` this comes right after `finish_batch`, which tells the same; for an `IBasicBolt` it
    is the only way to know.
    """

    @abstractmethod
    def finished_id(self, attempt: TransactionAttempt) -> None:
        """Called once all tuples of the attempt have been executed, also when there were none (executor).

        Tuples may still be emitted, and a committer's declared state is open, as in `finish_batch`. What it
        raises is treated as if `finish_batch` had raised it. That the attempt succeeds is not promised:
        another task may fail it, and it is replayed with a new attempt id. As `finish_batch`, it may come again
        for the same attempt, on a new instance.
        """


class TimeoutCallback(ABC):
    """Marks a bolt that wants to know when an attempt ends on its task and has failed there.

    Differs from Storm: it is told of every attempt that ends unfinished, for whatever reason, not only of
    those that took too long; a failure of its own is one of them.
    """

    @abstractmethod
    def timeout_id(self, attempt: TransactionAttempt) -> None:
        """Called when the attempt ends without success on this task, before `cleanup` (executor).

        So it is after a failure upstream, a batch that is incomplete, and an exception of the bolt itself,
        `prepare` included. It is not called where no bolt was made because nothing of the attempt came, nor
        when the worker is killed, as for a wave that is cancelled on Spark. A bolt of the commit phase may be
        told so and be made anew for the same attempt later. What it raises is dropped: there is a failure
        already, or nobody to tell.
        """
