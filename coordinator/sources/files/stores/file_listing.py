"""Which files a pattern means, as absolute paths; looked up on the driver before anything starts."""

from __future__ import annotations

import fnmatch
import glob
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from state.codec import digest64
from state.errors import TopologyError
from state.troubles import Trouble

ASIDE = ".txbatch-aside-"
"""How a file's private name begins while it is being removed; a digest of the topology id and its own name follow."""


def list_files(patterns: Iterable[str], folder: str) -> tuple[str, ...]:
    """Lists the files that match, sorted by path, each once.

    Args:
        patterns: paths or globs; ``**`` stands for folders of any depth.
        folder: what relative ones start from.

    Raises:
        TopologyError: one of them matches no file, or something that cannot be read twice.
    """
    found: set[str] = set()
    for pattern in patterns:
        paths = [path for path in candidates(pattern, folder) if _is_taken(path)]
        if not paths:
            raise TopologyError(_nothing_matches(pattern, folder)).about(Trouble.INPUT)
        found.update(paths)
    return tuple(sorted(found))


def candidates(pattern: str, folder: str) -> list[str]:
    """Absolute paths of whatever matches; an existing name with brackets in it is that name."""
    literal = os.path.lexists(Path(folder, pattern))
    names = [pattern] if literal else glob.glob(pattern, root_dir=folder, recursive=True)  # noqa: PTH207 - root_dir
    folders: dict[str, str] = {}  # asked once each: a folder may hold a hundred thousand files
    return [absolute(Path(folder, name), folders) for name in names if not Path(name).name.startswith(ASIDE)]


def aside_prefix(topology_id: str) -> str:
    """Returns what a topology puts before the name of a file that it sets aside; as long for every topology."""
    return f"{ASIDE}{digest64(topology_id.encode()):016x}-"


def own_path(path: str) -> str:
    """Returns a path with the file's own name, whichever topology has set it aside, if any has."""
    folder, name = os.path.split(path)
    return str(Path(folder, name[len(aside_prefix("")) :])) if name.startswith(ASIDE) else path


def paths_set_aside(pattern: str, folder: str, topology_id: str) -> list[str]:
    """Paths, without their private names, of what matches a pattern and was set aside by a topology."""
    parent, name = os.path.split(pattern)
    inner = glob.escape(parent) if Path(folder, parent).is_dir() else parent
    hidden = str(Path(inner, "**" if name == "**" else "", f"{aside_prefix(topology_id)}*"))
    found = glob.glob(hidden, root_dir=folder, recursive=True)  # noqa: PTH207 - root_dir
    own = [Path(own_path(str(Path(folder, each)))) for each in found]
    return [absolute(each) for each in own if name in ("**", each.name) or fnmatch.fnmatchcase(each.name, name)]


def absolute(path: Path, folders: dict[str, str] | None = None) -> str:
    """Returns the one spelling of a path: its folder without symbolic links and steps upward, and its own name.

    A link to a file keeps its name: files are read in the order of their names.

    Args:
        path: not relative.
        folders: folder -> its own spelling, of those that were asked for; filled here.
    """
    if path.name in ("", ".."):
        return os.path.realpath(path)
    parent = str(path.parent)
    known = {} if folders is None else folders
    if parent not in known:
        known[parent] = os.path.realpath(parent)
    return str(Path(known[parent], path.name))


def _is_taken(path: str) -> bool:
    """Returns whether it is a file; a directory is not, and anything else is an error rather than left out."""
    try:
        path.encode()
        mode = Path(path).stat().st_mode
    except UnicodeEncodeError:
        raise TopologyError(f"the name of input file {path!r} is not valid UTF-8: rename it") from None
    except OSError as error:
        raise TopologyError(
            f"input file {path!r} cannot be looked at: {error.strerror}; if it is a symbolic link, fix or "
            "remove it, or choose a pattern that leaves it out"
        ) from error
    if stat.S_ISDIR(mode):
        return False
    if not stat.S_ISREG(mode):
        raise TopologyError(
            f"input {path!r} is no regular file: a replay has to read it again, which a pipe, a socket or a "
            "device does not allow; copy it into a file first"
        )
    return True


def _nothing_matches(pattern: str, folder: str) -> str:
    message = f"no file matches {pattern!r} (working directory {folder!r})"
    if Path(folder, pattern).is_dir():
        return f"{message}: it is a directory; take {str(Path(pattern, '*'))!r} for the files in it"
    return f"{message}; give the path of a file or a glob, and check that its folders may be searched"
