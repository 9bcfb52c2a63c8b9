"""Points do nothing unless a visit is installed, and their names are those in the code."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from state.fault_points import POINTS, install, installed, reached
from tests.architecture import PACKAGES, sources

ROOT = Path(__file__).parents[2]


def reached_in_packages() -> list[str]:
    calls = [
        node
        for _, tree in sources(ROOT, *PACKAGES)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "reached"
    ]
    return [ast.literal_eval(call.args[0]) for call in calls]


def test_a_visit_is_told_of_every_point_in_order():
    told: list[str] = []
    with installed(told.append):
        reached("commit.sending")
        reached("commit.answered")
    reached("spout.notified")
    assert told == ["commit.sending", "commit.answered"]


def test_what_a_visit_raises_passes():
    def kill(point: str) -> None:
        raise SystemExit(point)

    with installed(kill), pytest.raises(SystemExit, match=r"commit\.sending"):
        reached("commit.sending")


def test_the_visit_before_is_installed_again_however_a_block_ends():
    outer: list[str] = []
    with installed(outer.append):
        with pytest.raises(KeyError), installed(lambda point: None):
            raise KeyError
        reached("commit.sending")
    assert outer == ["commit.sending"]


def test_a_visit_can_be_removed_and_without_one_nothing_happens():
    told: list[str] = []
    install(told.append)
    install(None)
    reached("commit.sending")
    assert told == []


def test_each_point_is_reached_at_one_place_in_the_code():
    assert sorted(reached_in_packages()) == sorted(POINTS)
