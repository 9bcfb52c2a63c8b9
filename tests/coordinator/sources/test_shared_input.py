"""Two sources over the same files or streams, of which one deletes, moves or trims what it has read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from coordinator import run, stream
from coordinator.operating.inspection.examination import examine_other_readers
from coordinator.server_choice import ServerChoice
from coordinator.sources import Follow, Inputs, JsonLines, RedisStreams, TextFiles
from coordinator.sources.redis_streams.redis_streams import URL_VARIABLE
from coordinator.sources.several.shared_input import may_meet
from state import TopologyError, ValueState


def files(pattern: str, **follow: Any) -> TextFiles:
    return TextFiles(pattern, 10, follow=Follow(complete="rename", **follow))


def trimmed(keys: str | list[str], url: str | None = "redis://localhost", **more: Any) -> RedisStreams:
    return RedisStreams(keys, fields=["a"], url=url, **more)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda: files("in/*.log", done="delete"), lambda: files("in/*.log")),
        (lambda: files("in/*.log", done="delete"), lambda: files("in/**")),
        (lambda: files("in/a*", done="delete"), lambda: files("in/*.[lm]og")),
        (lambda: files("in/*.log", done="delete"), lambda: files("in/../in/x.log")),
        (lambda: files("link/*.log", done="delete"), lambda: files("in/x.log", done="delete")),
        (lambda: files("in/*.log", done="move", done_path="done"), lambda: files("done/*.log")),
        (lambda: files("in/*.log", done="delete"), lambda: TextFiles("in/x.log", 10)),
        (lambda: files("in/*.log", done="delete"), lambda: JsonLines("in/*", ["a"], follow=True)),
        (lambda: trimmed("s", trim=True), lambda: trimmed("s", "redis://127.0.0.1:6379/0")),
        (lambda: trimmed("s", None, trim=True), lambda: trimmed(["r", "s"])),
    ],
)
def test_what_one_input_takes_away_no_other_may_read(tmp_path: Path, monkeypatch, one, other) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(URL_VARIABLE, raising=False)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x.log").write_text("x\n", encoding="utf-8")
    (tmp_path / "link").symlink_to("in")
    for named in ({"a": one(), "b": other()}, {"b": other(), "a": one()}):
        with pytest.raises(
            TopologyError, match=r"inputs '.' and '.' meet in .*, and of 'a' .*: what 'b' has not|of 'b' done"
        ):
            Inputs(**named)


def test_inputs_that_meet_nowhere_or_take_nothing_away_are_taken(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Inputs(a=files("in/*.log", done="delete"), b=files("in/*.txt"), c=files("in/*/*.log"), d=files("other/*.log"))
    Inputs(a=files("a/*", done="move", done_path="done"), b=files("b/*", done="move", done_path="done"))
    Inputs(a=files("in/*.log"), b=files("in/*.log", done="list", done_path="list"))
    Inputs(a=trimmed("s", trim=True), b=trimmed("r"), c=trimmed("s", "redis://localhost:6380"))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("/a/**", "/a/b/c", True),
        ("/a/**/x", "/a/x", True),
        ("/a/**/x", "/b/**/x", False),
        ("/a/**/b/**", "/a/c", False),
        ("/a/x*y", "/a/*z", False),
        ("/a/x*y", "/a/?[!y]*", True),
        ("/a/*", "/a/b/c", False),
    ],
)
def test_patterns_that_may_match_one_path_meet(one: str, other: str, expected: bool) -> None:
    for first, second in ((one, other), (other, one)):
        assert may_meet(first.split("/"), second.split("/")) is expected


def test_doctor_names_other_topologies_that_read_what_this_one_takes_away(redis_server_url, tmp_path):
    (tmp_path / "x.log").write_text("x\n", encoding="utf-8")
    pattern, choice = str(tmp_path / "*.log"), ServerChoice(redis_server_url, tmp_path)

    def topology(name: str, source: Any, output: str = "") -> Any:
        lines = stream(source).output(output) if output else stream(source)
        return lines.count_by(None, into=ValueState("n")).topology(name)

    run(topology("reader", Inputs(lines=TextFiles(pattern, 10)), "lines"), engine="local", redis_url=redis_server_url)
    taking, keeping = (topology("taker", files(pattern, done=done)) for done in ("delete", "keep"))
    found = [each.found for each in examine_other_readers(choice, taking)]
    assert len(found) == 1
    assert re.match(r"topology 'reader' on this server has read '.*\*\.log', and here done files are deleted", found[0])
    assert not list(examine_other_readers(choice, keeping))
