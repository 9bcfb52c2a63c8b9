"""A file is told once it is complete, and once only; pure, with looks and times made up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.sources.files.follow import FolderWatch, Follow
from coordinator.sources.files.stores.file_listing import FileFacts
from state.errors import TopologyError


def look(**sizes: int) -> dict[str, FileFacts]:
    """What a look finds; the time of a file is that of its size."""
    return {f"/{name}": FileFacts(f"/{name}", size, size) for name, size in sizes.items()}


def told(watch: FolderWatch, now_s: float, **sizes: int) -> list[str]:
    return [facts.path for facts in watch.complete(look(**sizes), now_s)]


def watching(markers: frozenset[str] = frozenset(), **options: object) -> FolderWatch:
    return FolderWatch(Follow(**options), markers.__contains__)  # type: ignore[arg-type] # as a test wants them


def test_a_file_is_complete_once_it_was_quiet_for_long_enough() -> None:
    watch = watching(quiet_s=10)
    assert told(watch, 100, a=5) == []
    assert told(watch, 105, a=6) == []
    assert told(watch, 114.9, a=6) == []
    assert told(watch, 115, a=6) == ["/a"]
    assert told(watch, 300, a=6) == []


def test_a_file_that_went_away_has_to_be_quiet_again_once_it_returns() -> None:
    watch = watching(quiet_s=10)
    assert [told(watch, 0, a=5), told(watch, 5), told(watch, 10, a=5), told(watch, 20, a=5)] == [[], [], [], ["/a"]]


def test_the_clocks_of_writers_do_not_count() -> None:
    watch = watching(quiet_s=10)
    old = {"/a": FileFacts("/a", 5, 0)}
    assert watch.complete(old, 0) == []
    assert watch.complete(old, 10) == [old["/a"]]


def test_a_renamed_file_is_complete_at_once_and_names_do_not_order_looks() -> None:
    watch = watching(complete="rename")
    assert told(watch, 0, m=1, k=1) == ["/k", "/m"]
    assert told(watch, 1, a=1, k=1, m=1, z=1) == ["/a", "/z"]


def test_a_marker_makes_its_file_complete_and_is_not_read_itself() -> None:
    watch = watching(frozenset({"/b"}), complete="marker", marker=".ok")
    assert [facts.path for facts in watch.complete(look(a=1, b=1) | look(**{"b.ok": 1}), 0)] == ["/b"]


def test_a_file_without_a_byte_is_not_complete() -> None:
    watch = watching(complete="rename")
    assert told(watch, 0, a=0) == []
    assert told(watch, 1, a=1) == ["/a"]


def test_what_earlier_runs_have_read_is_not_told() -> None:
    watch = watching(complete="rename")
    watch.forget({"/a"})
    assert told(watch, 0, a=1, b=1) == ["/b"]


@given(st.lists(st.dictionaries(st.sampled_from("abcde"), st.integers(0, 3)), max_size=20), st.integers(0, 3))
def test_every_file_is_told_at_most_once_and_every_quiet_one_at_last(looks: list[dict[str, int]], quiet_s: int) -> None:
    watch = watching(quiet_s=quiet_s)
    found = [path for now_s, sizes in enumerate(looks) for path in told(watch, now_s, **sizes)]
    assert len(found) == len(set(found))
    last = looks[-1] if looks else {}
    found += told(watch, 100, **last)
    found += told(watch, 200, **last)
    assert set(found) >= {f"/{name}" for name, size in last.items() if size}


@pytest.mark.parametrize(
    "options",
    [
        {"complete": "soon"},
        {"done": "burn"},
        {"quiet_s": -1},
        {"poll_s": "1"},
        {"marker": ""},
        {"marker": "a/b"},
        {"done": "move"},
        {"done_path": "x"},
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(TopologyError, match="of Follow"):
        Follow(**options)  # type: ignore[arg-type] # that is the mistake
