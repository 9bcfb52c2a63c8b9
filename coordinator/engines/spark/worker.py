"""What a Python worker on an executor is told before it runs a task of ours."""

from __future__ import annotations

import gc
import itertools
import signal

from pyspark import TaskContext

FREEZING_TASKS = 8
"""So many tasks of a worker freeze what there is: enough to have imported and unpickled what all stages need."""
_TASKS = itertools.count(1)
"""The tasks this worker has begun; a fact of the process, like its collector."""


def settle_worker() -> None:
    """Readies the process for many small tasks; called by every stage at its beginning.

    The cycle collector looks less often: it would walk all tuples of a wave again and again. And it no longer
    walks what a worker has loaded for good, modules and code: pyspark has it look at everything after every task,
    which took most of a worker's time. What is frozen by mistake is freed as ever once nothing refers to it, unless
    it is part of a cycle, and there are only the first few tasks for that.

    Ctrl-C is not for workers, so a `KeyboardInterrupt` in one is the user's own.
    """
    if TaskContext.get() is None:  # a test that runs stages in its own process
        return
    gc.set_threshold(50_000, 20, 20)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if next(_TASKS) <= FREEZING_TASKS:
        gc.freeze()
