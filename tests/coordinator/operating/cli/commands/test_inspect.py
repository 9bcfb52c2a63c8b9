"""``txbatch inspect`` and ``txbatch dry-run --txid``: what is shown of one transaction."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from coordinator.operating.cli.commands.inspect import lines
from coordinator.server_choice import choose_server
from state.records.transaction_history import KnownTransaction
from state.records.transaction_story import AttemptStory, ComponentStory, TransactionStory
from state.redis_admin.pulse import PulseSender
from state.redis_owner.store import RedisStore
from tests.conftest import Backend
from tests.support.stores.builders import acquire, attempt, commit_of, counts

STORY = TransactionStory(
    cut_at=1_000.0,
    processed_at=1_001.5,
    sent_at=1_001.51,
    committed_at=1_001.515,
    attempts=(
        AttemptStory("00ff", 5, 1_000.0, 1_000.4, "worker lost", "an executor is gone"),
        AttemptStory("00fe", 6, 1_001.0, 1_001.515),
    ),
    attempt_count=12,
    first_txid=1,
    last_txid=2,
    input_bytes=2_048,
    group_bytes=300,
    tuples=10,
    components={"count": ComponentStory({"lines/default": 10}, {"default": 4}, 2.5, 1)},
)


@pytest.mark.redis
class TestOnAServer:
    @pytest.fixture
    def url(self, redis_backend: Backend) -> Iterator[str]:
        assert redis_backend.url is not None
        store = RedisStore(redis_backend.url, "words")
        store.check_server()
        acquire(store)
        store.store_metadata({"coordinator:1": ["in.txt", 0, 5], "coordinator:3": ["in.txt", 9, 12]})
        store.commit(commit_of(counts(a=1), attempt(1), attempt(2), forget=("coordinator:1",)))
        PulseSender(store).send({}, [(1, STORY.to_json())], kept=10)
        yield redis_backend.url
        store.close()

    def test_a_committed_transaction_is_shown_whole_and_as_json(self, url: str, output) -> None:
        shown = output(f"inspect words 1 --redis {url}")
        assert "state             committed, exactly once; the last committed one is 2" in shown
        assert "receipt           attempt 00000000000003e9, digest " in shown
        assert "group             2 transactions, 1 to 2, in one commit" in shown
        assert "contained         coordinator: ['in.txt', 0, 5]" in shown
        assert "processed after 1.50 s, committed after 1.51 s, commit call 5.0 ms" in shown
        assert "input             10 tuples by the spout, of about 2,048 bytes" in shown
        assert "attempts          12, the last 2 of them" in shown
        assert " 400 ms  failed, worker lost: an executor is gone" in shown
        assert " 515 ms  committed" in shown
        assert "count: 10 from lines/default, 4 out on default, 1 refused, 2.5 ms" in shown
        found = json.loads(output(f"inspect words 1 --redis {url} --json"))
        assert (found["state"], found["metadata"]) == ("committed", {"coordinator": ["in.txt", 0, 5]})
        assert (found["receipt"]["attempt_id"], found["receipt"]["last_txid"]) == ("00000000000003e9", 2)
        assert [each["failed"] for each in found["story"]["attempts"]] == ["worker lost", ""]

    @pytest.mark.parametrize(
        ("txid", "said"),
        [
            ("2", "story             not recorded: the run ended too early"),
            ("3", "state             cut, and not committed; the last committed one is 2"),
            ("3", "story             no failed attempt is recorded: none has failed, the run has not ended yet"),
            ("4", "state             not cut yet, as far as is stored; the last committed one is 2"),
        ],
    )
    def test_what_is_not_told_or_not_committed(self, url: str, output, txid: str, said: str) -> None:
        assert said in output(f"inspect words {txid} --redis {url}")

    def test_an_unknown_topology(self, url: str, complaint) -> None:
        assert "topology 'others' is not stored on" in complaint(f"inspect others 1 --redis {url}")


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (KnownTransaction(1, 20_000, 10_001), "nothing else is kept of it any more: the history begins at txid 10,001"),
        (KnownTransaction(1, 20_000), "nothing else is kept of it any more: there is no history"),
        (KnownTransaction(1, 1, 1, left_out={"coordinator": 9_000}), "coordinator: 9,000 bytes, too long to be kept"),
        (
            KnownTransaction(1, 1, 1, is_quarantined=True, story=replace(STORY, set_aside=True)),
            "  state             quarantined: its batch was set aside, and it was committed empty; the last committed "
            "one is 1\n  quarantined       see `txbatch quarantine show words 1`\n",
        ),
        (
            KnownTransaction(1, 1, 1, story=replace(STORY, set_aside=True)),
            "  state             committed empty: its batch had been quarantined, and was republished or discarded; ",
        ),
    ],
    ids=["out of the history", "no history", "too long", "quarantined", "was quarantined"],
)
def test_what_is_no_longer_known(known: KnownTransaction, said: str) -> None:
    assert said in "\n".join(lines("words", known, choose_server("redis://h:1", None), {}))


FAILED = TransactionStory(
    cut_at=1_000.0,
    attempts=(AttemptStory("00ff", 5, 1_000.0, 1_000.4, "user code", "lookup[0]: ValueError: bad"),),
    attempt_count=1,
)


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (KnownTransaction(17, 16, 1, metadata={"coordinator": 5}, story=FAILED), "not committed by that run"),
        (KnownTransaction(17, 16, 1, story=FAILED), "state             cut, and not committed"),
        (KnownTransaction(17, 17, 1, story=FAILED), "; a later run has committed it, and reported nothing of that"),
    ],
    ids=["in flight", "opaque", "committed since"],
)
def test_a_transaction_that_stopped_its_run_shows_its_attempts(known: KnownTransaction, said: str) -> None:
    shown = "\n".join(lines("words", known, choose_server("redis://h:1", None), {}))
    assert said in shown
    assert "400 ms  failed, user code: lookup[0]: ValueError: bad" in shown
    assert "commit call" not in shown


def test_counts_of_a_batch_that_was_set_aside_are_not_called_committed() -> None:
    known = KnownTransaction(1, 1, 1, story=replace(STORY, set_aside=True))
    shown = "\n".join(lines("words", known, choose_server("redis://h:1", None), {}))
    assert "tuples of the last attempt, as far as tasks have reported; none is committed" in shown


@pytest.mark.redis
def test_a_replay_of_letters_does_not_show_what_the_input_continues_from(redis_backend: Backend, output) -> None:
    from coordinator.testing.cluster.cluster import LocalCluster
    from tests.support.topologies.refusing import refusing

    with LocalCluster(redis_url=redis_backend.url) as cluster:
        cluster.submit(refusing([[1, 3]])).run_until_idle()
        cluster.submit(refusing([[1, 3]]), republish_letters="all").run_until_idle()
    shown = output(f"inspect refusing 2 --redis {redis_backend.url}")
    assert "contained         nothing of the input, which continues after it: it published what had been set" in shown


@pytest.mark.redis
def test_a_dry_run_shows_the_tuples_at_each_component(redis_backend: Backend, output, tmp_path) -> None:
    from coordinator.testing.cluster.cluster import LocalCluster
    from examples.word_count import topology

    (tmp_path / "in.txt").write_text("a b\na\n")
    with LocalCluster(redis_url=redis_backend.url) as cluster:
        cluster.submit(topology(str(tmp_path / "in.txt"), 1)).run_until_idle()
    given = ("-p", f"input={tmp_path}/in.txt", "-p", "lines_per_batch=1")
    command = ("dry-run", "examples.word_count:topology", "--txid", "1", *given, "--redis", str(redis_backend.url))
    assert output(*command, "--limit", "1").splitlines() == [
        f"contained: {tmp_path}/in.txt: records 1 to 1, in bytes 0 to 4",
        "word_count: batch 1, not committed",
        "  lines (spout TextFiles): 1 tuple emitted",
        "    line='a b'",
        "  count (bolt CountWords): 2 tuples emitted",
        "    word='a', count=1",
        "    … 1 more",
        "  store (committer StoreCounts): 0 tuples emitted",
        "  would write",
        "    {word_count}:counts (hash), by store: 2 changes",
        "      'a' += 1",
        "      … 1 more",
    ]
    shown = json.loads(output(*command, "--json"))
    assert shown["contained"] == [f"{tmp_path}/in.txt: records 1 to 1, in bytes 0 to 4"]
    assert [each["count"] for each in shown["batches"][0]["writes"]] == [2]
