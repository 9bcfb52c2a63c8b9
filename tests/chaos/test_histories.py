"""Histories of clients are accepted if whole transactions, one after the other, explain them, else rejected."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from state.attempt import TransactionAttempt
from state.commits.commit import Commit, CommitReply, CommitStatus
from state.commits.write_set import WriteSet
from state.errors import StateUnreachableError
from state.redis_owner.store import RedisStore
from state.values.state_kind import StateKind, ValueType
from tests.support.chaos.nemesis.history import CHECKER, History, Operations, Reads, Verdict, record_commits, verdict

pytestmark = pytest.mark.chaos
RED, GREEN = {"balance/red": 5}, {"balance/red": 5, "balance/green": 7}


@pytest.fixture(autouse=True)
def _checker() -> None:
    if CHECKER.exists():
        return
    missing = f"there is no {CHECKER}; run tools/bootstrap.sh go"
    if os.environ.get("CI"):
        pytest.fail(missing)
    pytest.skip(missing)


class WrittenHistory:
    """A history written by hand, one operation after the other; times are given where they matter."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._now, self._commits = folder, 0, 0

    def commit(
        self, txid: int, adds: Mapping[str, int], answer: str = "OK", *, name: str = "", until: int | None = None
    ) -> None:
        """A commit of one transaction; without an answer, its process did not live to hear it."""
        self._commits += 1
        self._now += 2
        line = {"number": self._commits, "id": name or f"{txid}:{self._commits}", "first": txid, "last": txid}
        client = Operations(self._folder / f"driver-{self._commits}.jsonl")
        client.add("commit", call=self._now - 1, set={"last": txid}, add=dict(adds), **line)
        if answer:
            client.add("answer", number=self._commits, answer=answer, **{"return": until or self._now})

    def read(self, committed: int, shows: Mapping[str, int] | None, *, client: str = "reader") -> None:
        """A read that sees these balances."""
        self._now += 2
        seen = None if shows is None else {"last": committed, **shows}
        times = {"call": self._now - 1, "return": self._now}
        Operations(self._folder / f"{client}.jsonl").add("read", committed=committed, shows=seen, **times)

    def loss(self) -> None:
        """The server may have lost its last writes."""
        self._now += 2
        Operations(self._folder / "losses.jsonl").add("loss", **{"call": self._now - 1, "return": self._now})

    def verdict(self) -> Verdict | None:
        return verdict(self._folder)


@pytest.fixture
def history(tmp_path: Path) -> WrittenHistory:
    return WrittenHistory(tmp_path)


def two_commits(history: WrittenHistory) -> None:
    history.commit(1, {"balance/red": 5})
    history.read(1, RED)
    history.commit(2, {"balance/green": 7})


BLUE = {**GREEN, "balance/blue": 1}
STORIES: dict[str, tuple[Verdict, Callable[[WrittenHistory], object]]] = {
    "whole transactions": (Verdict.ACCEPTED, lambda history: history.read(2, GREEN)),
    "another client that asks for the txid only": (
        Verdict.ACCEPTED,
        lambda it: it.read(2, None, client="another"),
    ),
    "a torn read": (Verdict.REJECTED, lambda history: history.read(2, RED)),
    "a value that nobody wrote": (Verdict.REJECTED, lambda history: history.read(2, BLUE)),
    "a commit that is not seen after its answer": (Verdict.REJECTED, lambda history: history.read(1, RED)),
    "two owners history of the same txid": (Verdict.REJECTED, lambda history: history.commit(2, {"balance/red": 6})),
    "a transaction above a gap": (Verdict.REJECTED, lambda history: history.commit(4, {"balance/red": 5})),
}
"""What follows two commits, and what the checker says of it."""


@pytest.mark.parametrize("story", STORIES)
def test_a_history_is_accepted_if_whole_transactions_explain_it(history, story):
    expected, follows = STORIES[story]
    history.read(0, {})
    two_commits(history)
    follows(history)
    assert history.verdict() is expected


def test_a_commit_that_is_lost_is_rejected_unless_the_server_may_have_lost_it(history, tmp_path):
    (tmp_path / "lost").mkdir()
    may_lose = WrittenHistory(tmp_path / "lost")
    for history_told, is_loss in ((history, False), (may_lose, True)):
        two_commits(history_told)
        history_told.read(2, GREEN)
        if is_loss:
            history_told.loss()
        history_told.read(1, RED)
        history_told.commit(2, {"balance/green": 7})
        history_told.read(2, GREEN)
    assert history.verdict() is Verdict.REJECTED
    assert may_lose.verdict() is Verdict.ACCEPTED


def test_a_commit_may_be_seen_before_its_answer_but_not_unseen_again(history):
    history.commit(1, {"balance/red": 5}, until=100)
    history.read(0, {})
    history.read(1, RED)
    assert history.verdict() is Verdict.ACCEPTED
    history.read(0, {}, client="another")
    assert history.verdict() is Verdict.REJECTED


@pytest.mark.parametrize("seen", [(0, {}), (1, RED)])
def test_a_commit_without_an_answer_may_have_been_applied_or_not(history, seen):
    history.commit(1, {"balance/red": 5}, answer="")
    history.read(*seen)
    assert history.verdict() is Verdict.ACCEPTED


@pytest.mark.parametrize("answer", ["FENCED", "REGRESSED"])
def test_a_refusal_does_not_say_that_no_earlier_sending_was_applied(history, answer):
    history.commit(1, {"balance/red": 5}, answer)
    history.read(1, RED)
    assert history.verdict() is Verdict.ACCEPTED


def test_a_commit_that_is_applied_twice_is_rejected(history):
    history.commit(1, {"balance/red": 5}, name="1:a")
    history.commit(1, {"balance/red": 5}, "ALREADY", name="1:a")
    history.read(1, RED)
    assert history.verdict() is Verdict.ACCEPTED
    history.read(1, {"balance/red": 10})
    assert history.verdict() is Verdict.REJECTED


def test_a_history_that_cannot_be_read_is_no_verdict(tmp_path):
    Operations(tmp_path / "odd.jsonl").add("guess")
    with pytest.raises(RuntimeError, match="unknown kind"):
        verdict(tmp_path)


# How histories are recorded --------------------------------------------------------------------------------------


def test_a_line_that_its_writer_was_killed_in_is_not_read(tmp_path):
    Operations(tmp_path / "losses.jsonl").add("loss", **{"call": 1, "return": 2})
    with (tmp_path / "losses.jsonl").open("a") as file:
        file.write('{"kind": "los')
    assert verdict(tmp_path) is Verdict.ACCEPTED


def lines_of(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_of_equal_reads_in_a_row_the_first_and_the_last_are_written(tmp_path, monkeypatch):
    monkeypatch.setattr("time.monotonic_ns", lambda: 99)
    reads = Reads(tmp_path / "reads.jsonl")
    for call_ns, committed in ((1, 0), (2, 0), (3, 0), (4, 1)):
        reads.add(call_ns, committed)
    reads.close()
    reads.close()
    written = lines_of(tmp_path / "reads.jsonl")
    assert [(line["call"], line["committed"]) for line in written] == [(1, 0), (3, 0), (4, 1)]


def test_a_commit_is_written_down_before_it_is_sent_and_its_answer_once_it_is_heard(tmp_path, monkeypatch):
    path = tmp_path / "driver.jsonl"
    seen_while_sending: list[list[str]] = []

    def send(store: RedisStore, sent: Commit) -> CommitReply:
        seen_while_sending.append([str(line["kind"]) for line in lines_of(path)])
        if len(seen_while_sending) > 1:
            raise StateUnreachableError("no answer")
        return CommitReply(CommitStatus.OK)

    monkeypatch.setattr(RedisStore, "commit", send)
    record_commits(path)
    changes = WriteSet()
    changes.state("balances", StateKind.HASH, ValueType.INT).increment("red", 5)
    changes.state("last", StateKind.VALUE, ValueType.INT).put("", 2)
    commit = Commit((TransactionAttempt(1, 7), TransactionAttempt(2, 8)), changes)
    store = object.__new__(RedisStore)
    assert store.commit(commit).status is CommitStatus.OK
    with pytest.raises(StateUnreachableError):
        store.commit(commit)
    assert seen_while_sending == [["commit"], ["commit", "answer", "commit"]]
    first, answer, _ = lines_of(path)
    assert (first["first"], first["last"], first["set"], first["add"]) == (1, 2, {"last": 2}, {"balances/red": 5})
    assert (answer["number"], answer["answer"]) == (1, "OK")


def test_a_history_that_may_lose_writes_names_when(tmp_path, monkeypatch):
    recorded = History(tmp_path / "recorded")
    with recorded.losing():
        recorded.position.add(1, 0)
    (loss,) = lines_of(tmp_path / "recorded" / "losses.jsonl")
    assert loss["kind"] == "loss"
    assert recorded.verdict() is Verdict.ACCEPTED
    monkeypatch.setattr("tempfile.mkdtemp", lambda prefix: str(tmp_path))
    assert recorded.shown().endswith(str(tmp_path / "history"))
