"""What comes out of user code: which of it is the user's error, and how it is told.

User code may raise anything, `sys.exit` included, and whatever it raises is its own error: an attempt fails or
the run ends, with a name. The one exception is what somebody else has raised *into* it to end the process.
"""

from __future__ import annotations

import signal
import threading
import traceback
from types import TracebackType

from state.errors import Interruption

OUR_PACKAGES = frozenset({"state", "coordinated_bolt", "committers", "coordinator"})
ENDED_PROCESS = "a component may not end its process: raise an exception, or FailedException to have the batch replayed"


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


def story_of(error: BaseException) -> str:
    """The traceback of an error that user code raised, from the first line of the user's on."""
    told = traceback.TracebackException.from_exception(error)
    ours = _leading_frames_of_ours(error.__traceback__)
    if ours < len(told.stack):
        del told.stack[:ours]
    text = "".join(told.format())
    return f"{text}{ENDED_PROCESS}\n" if isinstance(error, SystemExit) else text


def _leading_frames_of_ours(entry: TracebackType | None) -> int:
    count = 0
    while entry is not None and str(entry.tb_frame.f_globals.get("__name__")).partition(".")[0] in OUR_PACKAGES:
        count, entry = count + 1, entry.tb_next
    return count
