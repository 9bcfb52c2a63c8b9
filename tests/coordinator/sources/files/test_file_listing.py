"""Patterns become paths, or a sentence that says why not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from coordinator.sources.files.stores.file_listing import list_files
from state.errors import TopologyError
from state.troubles import Trouble


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A few files, two of them in folders."""
    for name in ("b.txt", "a.txt", "c.log", "sub/a.txt", "sub/deep/d.txt", "odd[1].txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"1\n")
    return tmp_path


def listed(folder: Path, *patterns: str) -> list[str]:
    return [os.path.relpath(path, folder) for path in list_files(patterns, str(folder))]


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (["a.txt"], ["a.txt"]),
        (["*.txt"], ["a.txt", "b.txt", "odd[1].txt"]),
        (["s*"], None),
        (["**"], ["a.txt", "b.txt", "c.log", "odd[1].txt", "sub/a.txt", "sub/deep/d.txt"]),
        (["**/d.txt", "c.log"], ["c.log", "sub/deep/d.txt"]),
        (["b.txt", "./b.txt", "?.txt", "sub/../b.txt", "sub//deep/./../../b.txt"], ["a.txt", "b.txt"]),
        (["odd[1].txt"], ["odd[1].txt"]),
    ],
)
def test_files_are_listed_by_path_and_once(folder: Path, patterns: list[str], names: list[str] | None) -> None:
    if names is None:
        with pytest.raises(TopologyError):
            listed(folder, *patterns)
    else:
        assert listed(folder, *patterns) == names


def test_an_absolute_pattern_does_not_need_the_folder(folder: Path) -> None:
    assert list_files([f"{folder}/a*"], "/nowhere") == (f"{folder}/a.txt",)


def test_a_folder_with_brackets_is_no_pattern(folder: Path) -> None:
    inner = folder / "[x]"
    inner.mkdir()
    (inner / "e.txt").write_bytes(b"")

    assert list_files(["*.txt"], str(inner)) == (f"{inner}/e.txt",)


def test_links_to_files_and_folders_are_followed(folder: Path) -> None:
    (folder / "link.txt").symlink_to("a.txt")
    (folder / "elsewhere").symlink_to("sub")

    assert listed(folder, "link.txt", "elsewhere/*") == ["link.txt", "sub/a.txt"]


def test_a_file_has_one_path_however_its_folder_is_spelled(folder: Path) -> None:
    (folder / "elsewhere").symlink_to("sub")
    spellings = (
        "sub/a.txt",
        "./sub/../sub/a*",
        f"{folder}/sub/a.txt",
        "elsewhere/a.txt",
        "*/a.txt",
        "sub/deep/../a.txt",
    )

    assert {spelling: listed(folder, spelling) for spelling in spellings} == {each: ["sub/a.txt"] for each in spellings}


def test_behind_a_link_two_dots_are_where_the_link_leads(folder: Path) -> None:
    (folder / "link").symlink_to("sub/deep")

    assert listed(folder, "link/../a.txt") == ["sub/a.txt"]


def refusal(folder: Path, *patterns: str) -> str:
    with pytest.raises(TopologyError) as caught:
        listed(folder, *patterns)
    return str(caught.value)


def test_a_missing_file_is_explained_with_the_input(folder: Path) -> None:
    with pytest.raises(TopologyError) as caught:
        listed(folder, "logs/*.txt")
    assert caught.value.trouble is Trouble.INPUT


def test_a_pattern_without_a_match_is_named(folder: Path) -> None:
    assert refusal(folder, "*.txt", "logs/*.txt") == (
        f"no file matches 'logs/*.txt' (working directory '{folder}'); give the path of a file or a glob, and check "
        "that its folders may be searched"
    )


def test_a_directory_is_told_from_its_files(folder: Path) -> None:
    assert refusal(folder, "sub") == (
        f"no file matches 'sub' (working directory '{folder}'): it is a directory; take 'sub/*' for the files in it"
    )


def test_a_broken_link_is_not_left_out_silently(folder: Path) -> None:
    (folder / "link.txt").symlink_to("gone")

    assert refusal(folder, "*.txt") == (
        f"input file '{folder}/link.txt' cannot be looked at: No such file or directory; if it is a symbolic link, "
        "fix or remove it, or choose a pattern that leaves it out"
    )


def test_a_pipe_is_refused(folder: Path) -> None:
    os.mkfifo(folder / "pipe")

    assert refusal(folder, "pipe") == (
        f"input '{folder}/pipe' is no regular file: a replay has to read it again, which a pipe, a socket or a "
        "device does not allow; copy it into a file first"
    )


def test_a_name_that_cannot_be_stored_is_refused(folder: Path) -> None:
    Path(os.fsdecode(os.fsencode(folder) + b"/bad\xff.txt")).write_bytes(b"")

    assert refusal(folder, "bad*") == (
        f"the name of input file '{folder}/bad\\udcff.txt' is not valid UTF-8: rename it"
    )
