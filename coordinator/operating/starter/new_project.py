"""Writes a new project: the files of its template, under the user's name."""

from __future__ import annotations

import importlib.util
import keyword
import re
import shutil
import sys
from pathlib import Path

from coordinated_bolt.neighbours import PACKAGES
from state.errors import TopologyError

TEMPLATE = Path(__file__).with_name("template")
VARIANTS = ("classes", "csv", "kafka")
"""Each variant has a folder of files that are added to the template's, or replace them."""
LEFT_OUT = {"csv": ["data/visits.jsonl"]}
"""Files of the template that a variant does not use."""
TEMPLATE_NAME = "myproject"
"""The template's own name; the user's name replaces it in paths and texts."""
HIDDEN = {"gitignore": ".gitignore"}
"""Files whose names get a dot only in the project, because packaging tools leave hidden files out."""
SHAPE = re.compile(r"[a-z][a-z0-9_]*")
LENGTH_MAX = 30
"""Longer names would break the lines of the template's modules."""
OURS = frozenset({*PACKAGES, "txbatch"})
FOLDERS = frozenset({"build", "data", "dist", "tests"})
"""Other folders of a project, whose names a package must not have."""
CACHES = frozenset({"__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".txbatch"})


def write_project(name: str, parent: Path, variant: str = "") -> list[Path]:
    """Writes the folder `name` below `parent` and returns its files, as paths within it; called by ``txbatch init``.

    Without a variant, the project uses the short form and reads JSON Lines.

    Raises:
        TopologyError: the name is unsuitable, or exists already; nothing was written.
        OSError: a file could not be written; the folder is removed again.
    """
    folder = parent / name
    check_project_name(name)
    try:
        folder.mkdir()
    except FileExistsError as error:
        raise TopologyError(
            f"{str(folder)!r} exists already, and nothing in it was changed; choose another name, or remove it first"
        ) from error
    try:
        return sorted(_copied(*each, folder, name, variant) for each in template_files(variant).items())
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def check_project_name(name: str) -> None:
    """Refuses a name that cannot be both a folder and a package; the message suggests one that can.

    Raises:
        TopologyError: the name is unsuitable.
    """
    if not SHAPE.fullmatch(name) or len(name) > LENGTH_MAX:
        raise TopologyError(
            f"project name {name!r} is not a package name; use up to {LENGTH_MAX} lower-case letters, digits and "
            f"underscores, beginning with a letter{_suggested(name)}"
        )
    if name in OURS:
        raise TopologyError(f"project name {name!r} is the name of one of txbatch's own packages; choose another one")
    if name in FOLDERS:
        raise TopologyError(f"project name {name!r} is also a folder of every project; choose another one")
    if keyword.iskeyword(name):
        raise TopologyError(f"project name {name!r} is a keyword of Python; choose another one")
    if name in sys.stdlib_module_names:
        raise TopologyError(f"project name {name!r} is a module of Python's standard library; choose another one")
    place = installed_at(name)
    if place is not None:
        raise TopologyError(
            f"project name {name!r} is taken: {place} is installed, and one of the two would hide the other; choose "
            "another one"
        )


def _suggested(name: str) -> str:
    likely = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    return f", such as {likely}" if SHAPE.fullmatch(likely) and len(likely) <= LENGTH_MAX else ""


def template_files(variant: str = "") -> dict[str, Path]:
    """Returns path within the template -> file, without the caches of tools."""
    folders = [TEMPLATE, *([TEMPLATE.with_name(f"{TEMPLATE.name}_{variant}")] if variant else ())]
    found = {
        path.relative_to(folder).as_posix(): path
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not CACHES & set(path.relative_to(folder).parts)
    }
    return {within: path for within, path in found.items() if within not in LEFT_OUT.get(variant, ())}


def installed_at(name: str) -> str | None:
    """Returns where Python finds a top-level package or module; None if it finds none."""
    found = importlib.util.find_spec(name)
    if found is None:
        return None
    return found.origin or next(iter(found.submodule_search_locations or ()), name)


def _copied(within: str, source: Path, folder: Path, name: str, variant: str) -> Path:
    path = Path(*(HIDDEN.get(part, part).replace(TEMPLATE_NAME, name) for part in within.split("/")))
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    text = source.read_text(encoding="utf-8").replace(TEMPLATE_NAME, name)
    if variant == "csv":
        text = text.replace("visits.jsonl", "visits.csv")
    if variant == "kafka":
        text = text.replace('["txbatch"]', '["txbatch[kafka]"]')
    target.write_text(text, encoding="utf-8", newline="\n")
    return path
