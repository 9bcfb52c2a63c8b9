"""``txbatch quarantine`` on a real server."""

from __future__ import annotations

import json

import pytest

from coordinator.operating.cli.commands import quarantine
from state.commits.commit import Commit
from state.commits.quarantine import SetAside
from state.commits.write_set import WriteSet
from state.redis_owner.store import RedisStore
from tests.conftest import Backend
from tests.support.approved import approved
from tests.support.stores.admin import admin_of
from tests.support.stores.builders import acquire, attempt, record_of

pytestmark = pytest.mark.redis


@pytest.fixture
def url(redis_backend: Backend) -> str:
    """A server with topology "words", of which txids 1 and 2 are quarantined."""
    assert redis_backend.url is not None
    store = RedisStore(redis_backend.url, "words")
    store.check_server()
    acquire(store)
    for txid in (1, 2):
        record = record_of(txid, metadata={"file": b"a", "range": (1, 2)}, positions={"partition.0": 7})
        store.commit(Commit((attempt(txid),), WriteSet(), quarantine=SetAside(record, 10)))
    store.close()
    return redis_backend.url


@pytest.mark.usefixtures("utc")
def test_list_and_show_have_what_is_known_of_a_batch_and_status_their_number(url: str, output) -> None:
    commands = [f"quarantine {each}" for each in ("list words", "list words --json", "show words 2")]
    shown = [f"$ txbatch {each}\n{output(f'{each} --redis {url}')}" for each in commands]
    approved("".join(shown), "quarantine", URL=url)
    assert f"2 txids: see `txbatch quarantine list words --redis {url}`" in output(f"status words --redis {url}")
    shown_as_json = json.loads(output(f"quarantine show words 2 --redis {url} --json"))
    assert (shown_as_json["batch"]["number"], shown_as_json["source_fingerprint"]) == (2, "source-1")


def test_drop_gives_batches_up(url: str, output) -> None:
    said = output(f"quarantine drop words --txid 2 --redis {url} --yes")
    assert said == "1 record dropped from the quarantine of 'words': txid 2\n"
    printed = json.loads(output(f"quarantine drop words --all --redis {url} --yes --json"))
    assert printed == {"topology": "words", "dropped": [1]}
    assert output(f"quarantine list words --redis {url}") == "topology 'words' has no quarantined batches\n"


MISTAKEN = [
    *("show words 9", "drop words --txid 9 --yes", "drop words --yes", "drop words --all --txid 1 --yes"),
    *("drop words --all", "list others"),
]


def test_mistakes_are_refused(url: str, output, complaint) -> None:
    said = [f"$ txbatch quarantine {each}\n{complaint(f'quarantine {each} --redis {url}')}" for each in MISTAKEN]
    approved("".join(said), "quarantine-mistakes", URL=url)
    assert len(json.loads(output(f"quarantine list words --redis {url} --json"))["quarantined"]) == 2


def test_a_batch_that_is_gone_by_the_time_of_the_drop_is_reported(url: str, complaint, monkeypatch) -> None:
    def somebody_else_is_faster(question: str) -> bool:
        store = RedisStore(url, "words")
        assert admin_of(store).discard(store.quarantined()[1])
        store.close()
        return True

    monkeypatch.setattr(quarantine, "ask", somebody_else_is_faster)
    printed = complaint(f"quarantine drop words --all --redis {url}")
    assert "quarantined txid 2 of topology 'words' is no longer there" in printed
    assert "dropped before it: 1" in printed


def test_republishing_does_not_take_a_running_topology_over(url: str, complaint, folder: object) -> None:
    folder.write_job()  # type: ignore[attr-defined]
    run = RedisStore(url, "words")
    acquire(run, "c" * 32)
    try:
        arguments = ("job_of_lines:topology", "-p", "topology_id=words", "--all", "--redis", url)
        assert "topology 'words' is running, and republishing would take it over" in complaint(
            "quarantine republish", *arguments
        )
        run.confirm()
    finally:
        run.close()
