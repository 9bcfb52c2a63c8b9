"""Decides whether a file that begins with another's bytes is that file: rotated, packed, copied, truncated. Pure."""

from __future__ import annotations

from coordinator.sources.files.prefix_digest import PrefixMark
from coordinator.sources.files.stores.input_file import identity_of

FINGERPRINT_BYTES = 1024
"""From this length on, equal content under related names means the same file, as it does for log shippers."""


def is_one(read: PrefixMark, found: PrefixMark, *, is_cut_off: bool, is_packed: bool, is_related: bool) -> bool | None:
    """Returns whether a file with a different inode is a copy or rotation of one we have read.

    Args:
        read: the part of the other file that was read.
        found: the same content in this file.
        is_cut_off: whether the other file is still there, truncated: this file may be a copy made before that.
        is_packed: whether this file is compressed.
        is_related: whether both names may belong to one rotated file.

    Returns:
        None if it cannot be decided.
    """
    is_long = read.end >= FINGERPRINT_BYTES
    has_its_time = (found.is_whole or not read.is_whole) and read.stamp[1] and found.stamp[1] == read.stamp[1]
    if has_its_time and (is_long or is_related):
        return True  # packed, or moved to another disk: both keep the modification time
    if is_cut_off or (is_packed and is_related):
        is_as_read = not read.is_whole or (is_cut_off and found.is_whole)
        return True if is_long or (is_related and is_as_read) else None
    is_likely = has_its_time or is_related or is_long or not read.stamp[3]  # without inodes, any file may be renamed
    return None if found.is_whole or is_likely else False


def is_renamed(read: PrefixMark, found: PrefixMark, *, was_removed: bool, is_related: bool) -> bool | None:
    """Returns whether a file is a vanished file, renamed; it has the same inode, and begins with the bytes read.

    Inodes are reused, often at once, and small files are often alike.

    Args:
        read: the part of the other file that was read.
        found: the same content in this file.
        was_removed: whether a run probably removed the other file, because runs remove done files.
        is_related: whether both names may belong to one rotated file.

    Returns:
        None if it cannot be decided.
    """
    if identity_of(found.stamp) == identity_of(read.stamp):
        return True
    is_long, is_grown = read.end >= FINGERPRINT_BYTES, not found.is_whole
    if is_grown and ((is_long and not was_removed) or (is_related and (is_long or not read.is_whole))):
        return True
    return False if was_removed and not (is_grown and is_related) else None


def is_likely_one(former: str, path: str, byte_count: int, *, has_its_inode: bool) -> bool:
    """Returns whether a file with the same beginning is probably the one that was read.

    Two of three have to match: the inode, the name, and a long beginning, since many files share a short one.
    """
    return has_its_inode + is_related(former, path) + (byte_count >= FINGERPRINT_BYTES) >= 2


def is_related(former: str, path: str) -> bool:
    """Returns whether two paths may belong to one rotated file: app.log, app.log.1, app-20261126.log.gz."""
    stem, name = former.rpartition("/")[2].partition(".")[0], path.rpartition("/")[2]
    return bool(stem) and name.startswith(stem) and not name[len(stem) :][:1].isalnum()
