"""The gate runs what a change reaches, the nearest first, within its time."""

from __future__ import annotations

from tests.reach import _file_of, chosen, distances, slower

WAYS = {"a.py": {"b.py"}, "b.py": {"tests/x/test_b.py", "a.py"}, "c.py": {"tests/x/test_c.py"}}


def test_a_file_is_as_near_as_the_imports_between() -> None:
    assert distances(["a.py"], WAYS) == {"a.py": 0, "b.py": 1, "tests/x/test_b.py": 2}
    assert _file_of("state.HashState", {"state/kinds/hash_state.py": 0}) == "state/kinds/hash_state.py"


def test_the_nearest_files_that_fit_are_taken_and_the_others_counted() -> None:
    near = {"tests/test_docs.py": 3, "tests/test_walks.py": 1, "tests/test_prose.py": 2, "state/keys.py": 0}
    took = {"tests/test_docs.py": 20.0, "tests/test_walks.py": 20.0, "tests/test_prose.py": 40.0}
    assert chosen(near, took, seconds=50) == (["tests/test_walks.py", "tests/test_docs.py"], 1)


def test_what_takes_a_fifth_longer_is_named_whatever_the_machine() -> None:
    before = {"a": 10.0, "b": 10.0, "c": 10.0}
    assert slower(before, {"a": 20.0, "b": 20.0, "c": 20.0}) == []
    assert slower(before, {"a": 20.0, "b": 20.0, "c": 30.0}) == ["c: 10.0 s -> 15.0 s"]
