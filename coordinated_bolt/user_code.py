"""Identifies the user's code, and the exceptions that are the user's errors.

User code may raise anything, `sys.exit` included, and that counts as its own error: an attempt fails, or the run ends
with an error that names the component. The only exemption is an exception raised *into* user code from outside to end
the process.
"""

from __future__ import annotations

import signal
import sysconfig
import threading
from functools import cache
from pathlib import Path

from coordinated_bolt.neighbours import PACKAGES
from state.errors import Interruption

_LIBRARIES = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def is_interruption(error: BaseException) -> bool:
    """Returns whether an exception was raised into user code from outside, and must pass through.

    Checked wherever user code is called (driver and executor). Ctrl-C reaches only the main thread, and no process
    that ignores SIGINT, such as workers on executors; elsewhere a `KeyboardInterrupt` is the user's own.
    """
    if isinstance(error, Interruption):
        return True
    if not isinstance(error, KeyboardInterrupt):
        return False
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN


@cache
def is_users(file_name: str) -> bool:
    """Returns whether this file belongs neither to txbatch nor to a library."""
    is_library = any(Path(file_name).is_relative_to(folder) for folder in _LIBRARIES)
    return not (file_name.startswith("<") or is_library or is_ours(file_name))


@cache
def is_ours(file_name: str) -> bool:
    """Returns whether this file belongs to txbatch."""
    return any(Path(file_name).is_relative_to(_root() / package) for package in PACKAGES)


def _root() -> Path:
    """Returns the folder of txbatch by the path in this code: on executors it may have been compiled elsewhere."""
    return Path(_root.__code__.co_filename).parent.parent
