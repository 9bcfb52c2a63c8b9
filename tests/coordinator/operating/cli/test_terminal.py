"""What is printed is text and nothing else, and a line is one line, whatever a topology has stored."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.live import Live
from rich.text import Text

from committers.committer import ICommitter
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinator.operating.cli import main
from coordinator.operating.cli.terminal import console, say, say_json
from coordinator.spouts.memory import FixedBatchesSpout
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from coordinator.transactional.options import RunOptions
from state import HashState, ListState, SetState, SortedSetState, ValueState
from tests.conftest import Backend

FORGED = "a\x1b[2J\r\ncommitted\tup to\u2028txid 9\u2029\u202eesrever\u2066\x9b31m\x7f\x85ü"
"""Clears the screen, begins lines in four ways, turns the text around, colours it and rings."""


class Forging(BaseBatchBolt, ICommitter):
    fields = HashState("fields", value=str)
    set = SetState("set")
    best = SortedSetState("best")
    items = ListState("items", value=str)
    word = ValueState("word", value=str)
    notes = HashState("notes", value="json")

    def execute(self, tup: Any) -> None:
        self.collector.dead_letter(tup, FORGED)
        if tup["number"] == 2:
            raise RuntimeError(FORGED)

    def finish_batch(self) -> None:
        self.fields.put(FORGED, FORGED)
        self.set.add(FORGED)
        self.best.put(FORGED, 1)
        self.items.append(FORGED)
        self.word.put(FORGED)
        self.notes.put(FORGED, [FORGED])


@pytest.fixture
def url(redis_backend: Backend) -> str:
    """Of a server with a topology all of whose entries are forged, a dead letter and a quarantined batch."""
    spout = FixedBatchesSpout([[[1, FORGED]], [[2, FORGED]]], ["number", "text"])
    builder = TransactionalTopologyBuilder("forged", "lines", spout)
    builder.set_bolt("forging", Forging()).shuffle_grouping("lines")
    client = redis_backend.client()
    with LocalCluster(seed=1) as cluster:
        cluster.client = client
        cluster.submit(builder.build(), options=RunOptions(on_poison="quarantine")).run_until_idle()
    client.close()
    assert redis_backend.url is not None
    return redis_backend.url


def printed(capsys: pytest.CaptureFixture[str], url: str, *arguments: str) -> str:
    with pytest.raises(SystemExit) as end:
        main([*arguments, "--redis", url])
    assert end.value.code in (0, None), capsys.readouterr().err
    return capsys.readouterr().out


STATES = ["fields", "set", "best", "items", "word", "notes"]


@pytest.mark.redis
@pytest.mark.parametrize("state", STATES)
def test_no_stored_text_forges_a_line_and_as_json_it_is_escaped_and_whole(url, capsys, state) -> None:
    shown = printed(capsys, url, "state", "get", "forged", state)
    assert shown.count("\n") == 1
    assert shown.rstrip("\n").replace("\t", "").isprintable()
    assert shown.count("\t") == {"fields": 1, "notes": 1, "best": 1}.get(state, 0), "a tab parts field from value"
    assert "ü" in shown
    shown = printed(capsys, url, "state", "get", "forged", state, "--json").rstrip("\n")
    assert shown.isprintable()
    assert "\\u202e" in shown
    assert "ü" in shown
    told = json.loads(shown)
    assert FORGED in [*told.values(), *told.get("value", ())]


@pytest.mark.redis
@pytest.mark.parametrize(
    "arguments",
    [
        ["dead-letters", "list", "forged"],
        ["dead-letters", "list", "forged", "--json"],
        ["dead-letters", "export", "forged"],
        ["quarantine", "list", "forged"],
        ["quarantine", "show", "forged", "2"],
        ["quarantine", "show", "forged", "2", "--json"],
        ["inspect", "forged", "2"],
        ["inspect", "forged", "2", "--json"],
        ["status", "forged"],
        ["verify", "forged"],
        ["list"],
        ["state", "export", "forged"],
    ],
    ids=" ".join,
)
def test_no_command_lets_stored_text_through(url: str, capsys, arguments: list[str]) -> None:
    shown = printed(capsys, url, *arguments)
    assert shown
    assert all(line.replace("\t", "").isprintable() for line in shown.split("\n"))


@pytest.mark.redis
def test_an_export_with_or_without_escapes_is_imported_byte_for_byte(url, tmp_path, redis_backend, capsys) -> None:
    file = tmp_path / "forged.jsonl"
    printed(capsys, url, "state", "export", "forged", "-o", str(file))
    printed(capsys, url, "state", "import", "forged", str(file), "--replace")
    with redis_backend.client() as client:
        assert client.hgetall("{forged}:fields") == {FORGED.encode(): FORGED.encode()}


def test_a_line_stays_one_and_keeps_its_tabs() -> None:
    out = io.StringIO()
    say("one\ntwo\tthree", "\x1b[31m", to=out)
    say_json({"a\u202e": "\ud800"}, to=out)
    assert out.getvalue() == '\\x1b[31m\n{"a\\u202e": "\\ud800"}\n'.join(["one\\ntwo\tthree\n", ""])


def test_what_is_drawn_again_and_again_shows_no_control_sequence_but_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = console()
    screen.file = io.StringIO()
    screen._force_terminal = True
    with Live(Text("a\x1b]0;title\x07\u202eb"), console=screen, auto_refresh=False):
        pass
    drawn = screen.file.getvalue()
    assert "a\\x1b]0;title" in drawn
    assert "\u202e" not in drawn
    assert "\x1b]0" not in drawn
