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
from tests.support.approved import approved
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

    @pytest.mark.usefixtures("utc")
    def test_a_transaction_is_shown_whole_and_as_json(self, url: str, output) -> None:
        commands = [f"inspect words {txid} --redis {url}" for txid in (1, 2, 3, 4)] + [
            f"inspect words 1 --redis {url} --json"
        ]
        approved("\n".join(f"$ txbatch {each}\n{output(each)}" for each in commands), "inspect", URL=url)

    def test_an_unknown_topology(self, url: str, complaint) -> None:
        assert "topology 'others' is not stored on" in complaint(f"inspect others 1 --redis {url}")


FAILED = TransactionStory(
    cut_at=1_000.0,
    attempts=(AttemptStory("00ff", 5, 1_000.0, 1_000.4, "user code", "lookup[0]: ValueError: bad"),),
    attempt_count=1,
)
ASIDE = replace(STORY, set_aside=True)
KNOWN = {
    "out of the history": KnownTransaction(1, 20_000, 10_001),
    "no history": KnownTransaction(1, 20_000),
    "too long": KnownTransaction(1, 1, 1, left_out={"coordinator": 9_000}),
    "quarantined": KnownTransaction(1, 1, 1, is_quarantined=True, story=ASIDE),
    "was quarantined": KnownTransaction(1, 1, 1, story=ASIDE),
    "stopped its run": KnownTransaction(17, 16, 1, metadata={"coordinator": 5}, story=FAILED),
    "of an opaque spout": KnownTransaction(17, 16, 1, story=FAILED),
    "committed since": KnownTransaction(17, 17, 1, story=FAILED),
}


@pytest.mark.usefixtures("utc")
def test_what_is_not_or_no_longer_known_is_said() -> None:
    server = choose_server("redis://h:1", None)
    shown = ["\n".join([f"== {name}", *lines("words", known, server, {})]) for name, known in KNOWN.items()]
    approved("\n".join(shown), "inspect-unknown")


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
    approved(output(*command, "--limit", "1"), "dry-run-txid", FOLDER=tmp_path)
    shown = json.loads(output(*command, "--json"))
    assert shown["contained"] == [f"{tmp_path}/in.txt: records 1 to 1, in bytes 0 to 4"]
    assert [each["count"] for each in shown["batches"][0]["writes"]] == [2]
