"""Which files hold the user's code, and which ours."""

from __future__ import annotations

import sysconfig
from functools import cache
from pathlib import Path

OUR_PACKAGES = ("state", "coordinated_bolt", "committers", "coordinator")
_LIBRARIES = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))


@cache
def is_users(file_name: str) -> bool:
    """Returns whether code of this file is neither ours nor a library's."""
    is_library = any(Path(file_name).is_relative_to(folder) for folder in _LIBRARIES)
    return not (file_name.startswith("<") or is_library or is_ours(file_name))


@cache
def is_ours(file_name: str) -> bool:
    """Returns whether code of this file belongs to txbatch."""
    return any(Path(file_name).is_relative_to(_root() / package) for package in OUR_PACKAGES)


def _root() -> Path:
    """Asks this code, not its module: on executors the code may have been compiled elsewhere."""
    return Path(_root.__code__.co_filename).parent.parent
