"""Makes a directory that only its owner may open, and refuses to take over one that serves others."""

from __future__ import annotations

import os
import stat
from pathlib import Path

PRIVATE_MODE = 0o700
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def make_private(path: Path, *, own_names: frozenset[str], is_ours: bool = False) -> None:
    """Makes `path` if it is missing, and closes it to everybody but this user (driver, before a server starts).

    Somebody may have typed the name of a folder that others work in. So one that is open to them is closed only
    if it holds nothing but files of `own_names`, ours already or empty, or if it `is_ours` whatever it holds.

    Raises:
        OSError: it belongs to another user, is open to others and holds other files, or cannot be made.
    """
    path.mkdir(mode=PRIVATE_MODE, parents=True, exist_ok=True)
    for found in (path.lstat(), path.stat()):  # a link that somebody else put there, and what it leads to
        if found.st_uid != os.getuid():
            raise PermissionError(f"{path} belongs to user {found.st_uid}, and txbatch runs as user {os.getuid()}")
    if not found.st_mode & _OTHERS:
        return
    foreign = sorted({entry.name for entry in path.iterdir()} - own_names)
    if foreign and not is_ours:
        raise PermissionError(
            f"{path} is open to other users (mode {stat.S_IMODE(found.st_mode):o}) and holds {foreign[0]!r}, which is "
            "not ours; if the directory is for txbatch alone, chmod 700 it"
        )
    path.chmod(PRIVATE_MODE)
