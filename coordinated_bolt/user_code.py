"""Tells which exceptions from user code are the user's errors.

User code may raise anything, `sys.exit` included, and what it raises is its own error: an attempt fails, or the
run ends with an error that names the component. The only exception is one raised *into* user code from outside
to end the process.
"""

from __future__ import annotations

import signal
import threading

from state.errors import Interruption


def is_interruption(error: BaseException) -> bool:
    """Returns whether an error from user code was raised into it from outside, and must pass.

    Checked wherever user code is called (driver and executor). Ctrl-C reaches only the main thread, and no process
    that ignores SIGINT, such as workers on executors; elsewhere a `KeyboardInterrupt` is the user's own.
    """
    if isinstance(error, Interruption):
        return True
    if not isinstance(error, KeyboardInterrupt):
        return False
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
