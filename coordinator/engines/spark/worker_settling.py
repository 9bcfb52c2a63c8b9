"""How a worker of Spark is readied for its tasks."""

from __future__ import annotations

import gc
import itertools
import os
import signal
import socket
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from zipimport import zipimporter

from pyspark import TaskContext

FREEZING_TASKS = 8
"""The first tasks of a worker freeze what there is: enough to have imported and unpickled what all stages need."""
OWN_FILES = Path("/proc/self/fd")
_TASKS = itertools.count(1)
"""The tasks this worker has begun; a fact of the process, like its collector."""


def settle_worker() -> None:
    """Readies the worker; called at the beginning of each task.

    The cycle collector looks less often: it would walk all tuples of a wave again and again. And it no longer
    walks what a worker has loaded for good, modules and code: pyspark has it look at everything after every task,
    which took most of a worker's time. What is frozen by mistake is freed as ever once nothing refers to it, unless
    it is part of a cycle, and there are only the first few tasks for that.

    Ctrl-C is not for workers, so a `KeyboardInterrupt` in one is the user's own.
    """
    if TaskContext.get() is None:  # a test that runs stages in its own process
        return
    _acknowledge()
    _keep_archives_listed()
    gc.set_threshold(50_000, 20, 20)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if next(_TASKS) <= FREEZING_TASKS:
        gc.freeze()


def _acknowledge() -> None:
    """Acknowledges over TCP what Java has sent of this task, for it sends the rest after that, or 40 ms later.

    Spark's own Unix sockets have no such wait; they exist from 4.1 on, where the session turns them on.
    """
    for connection in _connections():
        with suppress(OSError):  # a sandbox that does not know the option
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


@cache
def _connections() -> tuple[socket.socket, ...]:
    """Returns the TCP connections that this worker began with; none where a system cannot acknowledge on demand."""
    found = []
    for name in os.listdir(OWN_FILES) if hasattr(socket, "TCP_QUICKACK") and OWN_FILES.is_dir() else ():  # noqa: PTH208
        try:
            opened = socket.socket(fileno=os.dup(int(name)))
        except OSError:  # a file, or the list itself
            continue
        if opened.family in (socket.AF_INET, socket.AF_INET6) and opened.type == socket.SOCK_STREAM:
            found.append(opened)
        else:
            opened.close()
    return tuple(found)


def _keep_archives_listed() -> None:
    """Has imports list no archive twice.

    Up to PySpark 4.1 a worker forgets before each task what the folders and archives of its path contain, and reads the
    list of every archive again for every package in it: up to 98 % of its time. Ours is named by its content, and from
    4.2 on no archive is listed again either, unless a new one has come.
    """
    for finder in sys.path_importer_cache.values():
        if isinstance(finder, zipimporter):
            vars(finder)["invalidate_caches"] = _keep


def _keep() -> None:
    """In place of `zipimporter.invalidate_caches`."""
