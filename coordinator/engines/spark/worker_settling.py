"""Prepares a worker of Spark for its tasks."""

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
"""How many first tasks of a worker freeze all objects: enough to have imported and unpickled what all stages need."""
OWN_FILES = Path("/proc/self/fd")
_TASKS = itertools.count(1)
"""The tasks this worker has begun; a fact of the process, like its collector."""


def settle_worker() -> None:
    """Prepares the worker; called at the beginning of each task.

    The cycle collector runs less often, since it would walk all tuples of a wave again and again. Nor does it walk any
    more what a worker has loaded for good, modules and code: pyspark makes it look at everything after every task,
    which took most of a worker's time. An object frozen by mistake is still freed once nothing refers to it, unless it
    is part of a cycle, and only the first few tasks freeze any.

    Workers ignore Ctrl-C, so a `KeyboardInterrupt` in one was raised by the user's own code.
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
    """Acknowledges over TCP what Java has sent of this task so far, without which Java sends the rest 40 ms later.

    Spark's own Unix sockets do not wait like that; they exist from 4.1 on, and `session` turns them on.
    """
    for connection in _connections():
        with suppress(OSError):  # a sandbox that does not know the option
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


@cache
def _connections() -> tuple[socket.socket, ...]:
    """Returns the TCP connections that this worker began with; none if the system cannot acknowledge on demand."""
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
    """Prevents imports from listing an archive twice.

    Up to PySpark 4.1 a worker forgets before each task what the folders and archives of its path contain, and lists
    every archive again for every package in it, which takes up to 98 % of its time. Our archive is named by its
    content, so its list stays true. From 4.2 on no archive is listed again either, unless a new one has been added.
    """
    for finder in sys.path_importer_cache.values():
        if isinstance(finder, zipimporter):
            vars(finder)["invalidate_caches"] = _keep


def _keep() -> None:
    """Does nothing; takes the place of `zipimporter.invalidate_caches`."""
