"""Decides whether a file with the first bytes of another is that file: rotated, packed, copied and cut off. Pure."""

from __future__ import annotations

from coordinator.sources.files.prefix_digest import PrefixMark
from coordinator.sources.files.stores.input_file import identity_of

FINGERPRINT_BYTES = 1024
"""From this length on, equal content under related names means one file, as log shippers take it."""


def is_one(read: PrefixMark, found: PrefixMark, *, is_cut_off: bool, is_packed: bool, is_related: bool) -> bool | None:
    """Returns whether a file with a different inode is a copy or rotation of one we have read.

    Args:
        read: the part of the other file that was read.
        found: the same content in this file.
        is_cut_off: whether the other is still there, with other content: so this may be a copy that was made before.
        is_packed: whether this file is compressed.
        is_related: whether both names may belong to one file that is rotated.

    Returns:
        None if nobody can tell.
    """
    is_long = read.end >= FINGERPRINT_BYTES
    has_its_time = (found.is_whole or not read.is_whole) and read.stamp[1] and found.stamp[1] == read.stamp[1]
    if has_its_time and (is_long or is_related):
        return True  # packed, or moved to another disk: both keep the time
    if is_cut_off or (is_packed and is_related):
        is_as_read = not read.is_whole or (is_cut_off and found.is_whole)
        return True if is_long or (is_related and is_as_read) else None
    is_likely = has_its_time or is_related or is_long or not read.stamp[3]  # without inodes any may have been renamed
    return None if found.is_whole or is_likely else False


def is_renamed(read: PrefixMark, found: PrefixMark, *, was_removed: bool, is_related: bool) -> bool | None:
    """Returns whether a file with the inode of a vanished one, and the bytes read from it, is that file renamed.

    An inode is given again, often at once, and small files are often alike.

    Args:
        read: the part of the other file that was read.
        found: the same content in this file.
        was_removed: whether the other was probably removed by a run, because runs remove files that are done.
        is_related: whether both names may belong to one file that is rotated.

    Returns:
        None if nobody can tell.
    """
    if identity_of(found.stamp) == identity_of(read.stamp):
        return True
    is_long, is_grown = read.end >= FINGERPRINT_BYTES, not found.is_whole
    if is_grown and ((is_long and not was_removed) or (is_related and (is_long or not read.is_whole))):
        return True
    return False if was_removed and not (is_grown and is_related) else None


def is_likely_one(former: str, path: str, byte_count: int, *, has_its_inode: bool) -> bool:
    """Returns whether two of three speak for it that a file is one that was read in part and has its beginning.

    They are its inode, its name, and the length of what was read: little content may be that of any file.
    """
    return has_its_inode + is_related(former, path) + (byte_count >= FINGERPRINT_BYTES) >= 2


def is_related(former: str, path: str) -> bool:
    """Returns whether two paths may be of one file that is rotated: app.log, app.log.1, app-20261126.log.gz."""
    stem, name = former.rpartition("/")[2].partition(".")[0], path.rpartition("/")[2]
    return bool(stem) and name.startswith(stem) and not name[len(stem) :][:1].isalnum()
