"""What comes out of user code: which of it is the user's error.

User code may raise anything, `sys.exit` included, and whatever it raises is its own error: an attempt fails or
the run ends, with a name. The one exception is what somebody else has raised *into* it to end the process.
"""

from __future__ import annotations

import signal
import threading

from state.errors import Interruption


def is_interruption(error: BaseException) -> bool:
    """Whether an error that came out of user code was raised into it, and must not be held up.

    Asked wherever user code is called (driver and executor). Ctrl-C reaches the main thread only, and no
    process that ignores SIGINT, as workers on executors do: there a `KeyboardInterrupt` is the user's own.
    """
    if isinstance(error, Interruption):
        return True
    if not isinstance(error, KeyboardInterrupt):
        return False
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
