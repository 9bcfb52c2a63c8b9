"""The story of an exception that came out of user code: its traceback, from the user's first line, and the remedy."""

from __future__ import annotations

import traceback
from types import TracebackType

OUR_PACKAGES = frozenset({"state", "coordinated_bolt", "committers", "coordinator"})
ENDED_PROCESS = "a component may not end its process: raise an exception, or FailedException to have the batch replayed"


def user_traceback(error: BaseException) -> str:
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
