"""A file is told once it is complete, and once only; pure, with looks and times made up."""

from __future__ import annotations

from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from coordinator.sources.files.follow import FolderWatch, Follow
from coordinator.sources.files.stores.file_listing import FileFacts
from state import TopologyError
from tests.support.approved import approved, refusals


def look(**sizes: int) -> dict[str, FileFacts]:
    """What a look finds; the time of a file is that of its size."""
    return {f"/{name}": FileFacts(f"/{name}", size, size) for name, size in sizes.items()}


def complete(watch: FolderWatch, now_s: float, **sizes: int) -> list[str]:
    return sorted(watch.complete(look(**sizes), now_s))


def watching(markers: frozenset[str] = frozenset(), **options: object) -> FolderWatch:
    return FolderWatch(Follow(**options), markers.__contains__)  # type: ignore[arg-type] # as a test wants them


def test_a_file_is_complete_once_it_was_quiet_for_long_enough() -> None:
    watch = watching(quiet_s=10)
    assert complete(watch, 100, a=5) == []
    assert complete(watch, 105, a=6) == []
    assert complete(watch, 114.9, a=6) == []
    assert complete(watch, 115, a=6) == ["/a"]
    assert complete(watch, 116, a=6, b=1) == ["/a"], "as long as it may be read"
    assert watch.incomplete_count == 1


def test_a_file_that_went_away_has_to_be_quiet_again_once_it_returns() -> None:
    watch = watching(quiet_s=10)
    looks = [complete(watch, 0, a=5), complete(watch, 5), complete(watch, 10, a=5), complete(watch, 20, a=5)]
    assert looks == [[], [], [], ["/a"]]


def test_the_clocks_of_writers_do_not_count() -> None:
    watch = watching(quiet_s=10)
    old = {"/a": FileFacts("/a", 5, 0)}
    assert not watch.complete(old, 0)
    assert watch.complete(old, 10) == {"/a"}


def test_a_renamed_file_is_complete_at_once_and_one_with_a_marker():
    assert complete(watching(complete="rename"), 0, m=1, k=1) == ["/k", "/m"]
    assert complete(watching(frozenset({"/b"}), complete="marker", marker=".ok"), 0, a=1, b=1) == ["/b"]


@given(st.lists(st.dictionaries(st.sampled_from("abcde"), st.integers(1, 3)), max_size=20), st.integers(0, 3))
def test_every_quiet_file_is_complete_at_last(looks: list[dict[str, int]], quiet_s: int) -> None:
    watch = watching(quiet_s=quiet_s)
    for now_s, sizes in enumerate(looks):
        complete(watch, now_s, **sizes)
    last = looks[-1] if looks else {}
    complete(watch, 100, **last)
    assert complete(watch, 200, **last) == sorted(f"/{name}" for name in last)


MEANINGLESS: dict[str, Any] = {
    "complete": "soon",
    "done": "burn",
    "quiet_s": -1,
    "poll_s": "1",
    "marker": "",
    "marker in a folder": "a/b",
    "done without a path": "move",
    "done_path": "x",
}


def test_options_that_mean_nothing_are_refused() -> None:
    cases = {name: partial(Follow, **{name.partition(" ")[0]: given}) for name, given in MEANINGLESS.items()}
    approved(refusals(cases, TopologyError), "follow-arguments")
