"""What a bolt implements, in addition to its own interface, to be told how an attempt ends on its task.

Source: backtype.storm.coordination.CoordinatedBolt.FinishedCallback and .TimeoutCallback.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from state.attempt import TransactionAttempt


class FinishedCallback(ABC):
    """Marks a bolt that wants to know when an attempt is complete on its task.

    For an `IBatchBolt` the call follows `finish_batch`, which says the same; for an `IBasicBolt` it is the
    only way to know.
    """

    @abstractmethod
    def finished_id(self, attempt: TransactionAttempt) -> None:
        """Called once all tuples of the attempt have been executed, even if there were none (executor).

        As in `finish_batch`, tuples may still be emitted, and a committer's declared state is open. What this raises
        is treated as if `finish_batch` had raised it. The attempt may still fail: another task may fail it,
        and then it is replayed with a new attempt id. Like `finish_batch`, this may be called again for
        the same attempt, on a new instance.
        """


class TimeoutCallback(ABC):
    """Marks a bolt that wants to know when an attempt has failed on its task.

    Differs from Storm: the bolt is told of every attempt that ends unfinished, its own failures included, not only
    of those that took too long.
    """

    @abstractmethod
    def timeout_id(self, attempt: TransactionAttempt) -> None:
        """Called when the attempt ends without success on this task, before `cleanup` (executor).

        That is after a failure upstream, an incomplete batch, or an exception of the bolt itself, in `prepare` too.
        It is not called if there is no bolt because nothing of the attempt arrived, nor if the worker is killed,
        as Spark does when a wave is cancelled. In the commit phase a new instance may later run the same attempt.
        What this raises is dropped: there already is a failure, or nobody to tell.
        """
