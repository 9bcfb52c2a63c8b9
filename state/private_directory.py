"""Makes a directory private to its owner, and refuses to take over a shared one."""

from __future__ import annotations

import os
import stat
from pathlib import Path

PRIVATE_MODE = 0o700
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def make_private(path: Path, *, own_names: frozenset[str], is_ours: bool = False) -> None:
    """Creates `path` if it is missing, and closes it to all other users (driver, before a server starts).

    The user may have named a folder that others work in by mistake. A folder open to others is therefore closed
    only if it holds nothing but files of `own_names`, or if `is_ours` says that it is txbatch's whatever it holds.

    Raises:
        OSError: it belongs to another user, is open to others and holds other files, or cannot be created.
    """
    path.mkdir(mode=PRIVATE_MODE, parents=True, exist_ok=True)
    for found in (path.lstat(), path.stat()):  # a symbolic link, possibly somebody else's, and its target
        if found.st_uid != os.getuid():
            raise PermissionError(f"{path} belongs to user {found.st_uid}, but txbatch runs as user {os.getuid()}")
    if not found.st_mode & _OTHERS:
        return
    foreign = sorted({entry.name for entry in path.iterdir()} - own_names)
    if foreign and not is_ours:
        raise PermissionError(
            f"{path} is open to other users (mode {stat.S_IMODE(found.st_mode):o}) and holds {foreign[0]!r}, which is "
            "not a file of txbatch; if the directory is for txbatch alone, chmod 700 it"
        )
    path.chmod(PRIVATE_MODE)
