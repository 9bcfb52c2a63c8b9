"""Where a user's code is: which files are the user's, and the line of theirs that a call or an error came from."""

from __future__ import annotations

import sysconfig
from functools import cache
from pathlib import Path

_OWN_ROOT = Path(__file__).resolve().parent.parent
_OWN = tuple(str(_OWN_ROOT / name) for name in ("state", "coordinated_bolt", "committers", "coordinator"))
_LIBRARIES = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))


@cache
def is_users(file_name: str) -> bool:
    """Returns whether code of this file is neither ours nor a library's."""
    return not file_name.startswith("<") and not any(
        Path(file_name).is_relative_to(folder) for folder in (*_OWN, *_LIBRARIES)
    )


@cache
def is_ours(file_name: str) -> bool:
    """Returns whether code of this file belongs to txbatch."""
    return any(Path(file_name).is_relative_to(folder) for folder in _OWN)
