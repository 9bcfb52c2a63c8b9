"""Renames a file without replacing one that has the new name, which Python's own calls cannot in one step."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

_HERE = -100
_NO_REPLACE = 1
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS)


def rename_to_free_name(path: Path, new: Path) -> None:
    """Renames a file, or a symbolic link, within one file system.

    Where neither renameat2 nor hard links are to be had, the name is looked at first.

    Raises:
        FileExistsError: something else has the new name.
        OSError: it cannot be renamed.
    """
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is not None:
        if call(_HERE, os.fsencode(path), _HERE, os.fsencode(new), _NO_REPLACE) == 0:
            return
        found = ctypes.get_errno()
        if found not in (errno.EINVAL, errno.ENOSYS):
            raise OSError(found, os.strerror(found), str(path), None, str(new))
    try:
        os.link(path, new, follow_symlinks=False)
    except FileExistsError:
        if not are_one(path, new):
            raise
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if os.path.lexists(new):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(new)) from None
        path.rename(new)
        return
    path.unlink()


def are_one(path: Path, new: Path) -> bool:
    """Whether both names are of one file, because a process died between giving it the new one and taking the old."""
    return path.lstat().st_ino == new.lstat().st_ino and path.lstat().st_dev == new.lstat().st_dev
