"""Managed services: each profile of one is refused with a sentence, or runs a word count exactly."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator

import pytest

from coordinator.operating.inspection.finding import Weight
from coordinator.operating.inspection.server_checks import check_server
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.transactional.options import RunOptions
from state.commits.commit import CommitStatus
from state.commits.write_set import WriteSet
from state.errors import StateRefusedError
from state.keys import Keys
from state.kinds.state_family import PartType
from state.records.durability import Durability, DurabilityLevel
from state.redis_client.connection import RedisConnection
from state.redis_owner.store import RedisStore
from state.redis_server.measured_facts import measure
from state.values.state_kind import VALUE_FIELD, StateKind, ValueType
from tests.support.stores.admin import admin_of
from tests.support.stores.builders import acquire, commit_of, declaring, described_state, writes
from tests.support.stores.service_profiles import PROFILES, Profile, ServiceClient, service
from tests.support.topologies.words import WORDS, counts_of_words, words_topology

pytestmark = pytest.mark.redis
RUNNING = [profile for profile in PROFILES if not profile.refused]
REFUSED = [profile for profile in PROFILES if profile.refused]


def named(profile: Profile) -> str:
    return profile.name


@pytest.fixture(scope="module")
def client(request: pytest.FixtureRequest) -> Iterator[ServiceClient]:
    """A client of one service, for all tests with its profile."""
    with service(request.param) as opened:
        yield opened


@pytest.fixture(autouse=True)
def _emptied(client: ServiceClient) -> None:
    client.flushall()
    client.longest = 0


@pytest.mark.parametrize("client", RUNNING, ids=named, indirect=True)
def test_a_word_count_is_exact(client: ServiceClient, caplog: pytest.LogCaptureFixture) -> None:
    with LocalCluster(seed=1) as cluster:
        cluster.client.close()
        cluster.client = client
        run = cluster.submit(words_topology(), options=RunOptions(max_spout_pending=4, durability="service"))
        run.run_until_idle()
        assert run.snapshot().states["counts"] == counts_of_words(WORDS)
    said = [record.getMessage() for record in caplog.records if "does not say" in record.getMessage()]
    unknown = client.profile.unknown
    assert said == [f"server memory:// does not say {', '.join(unknown)}; it is taken to be fit"] * bool(unknown)


@pytest.mark.parametrize("client", RUNNING, ids=named, indirect=True)
def test_a_large_commit_is_exact_and_every_level_that_cannot_be_given_is_refused(client: ServiceClient) -> None:
    store = RedisStore("redis://service", "big", client=client)
    for level in DurabilityLevel:
        if level in client.profile.levels:
            store.check_server(Durability(level), expires=False)
            continue
        with pytest.raises(
            StateRefusedError, match=rf"confirm durability {level}: .*or run with --durability memory or serv"
        ):
            store.check_server(Durability(level), expires=False)
    acquire(store, topology=declaring("names"))
    puts = {f"{n}": f"value {n}" for n in range(6_000)}
    commit = commit_of(WriteSet({"names": writes(StateKind.HASH, ValueType.STR, puts=puts)}))
    assert store.commit(commit).status is CommitStatus.OK
    assert client.hlen("{big}:names") == 6_000
    assert client.hget("{big}:names", "5999") == b"value 5999"
    assert admin_of(store).drop().deleted == 4
    assert client.longest <= 3_999


@pytest.mark.parametrize("client", [each for each in RUNNING if each.is_cluster], ids=named, indirect=True)
def test_a_commit_to_more_keys_than_a_call_can_declare_is_exact_on_a_node_of_a_cluster(client: ServiceClient) -> None:
    store = RedisStore("redis://service", "parts", client=client)
    store.check_server(expires=False)
    acquire(store, topology=declaring(described_state("of", StateKind.VALUE, PartType.INT)))
    parts = {f"of:{n}": writes(StateKind.VALUE, ValueType.STR, puts={VALUE_FIELD: f"{n}"}) for n in range(5_000)}
    assert store.commit(commit_of(WriteSet(dict(parts)))).status is CommitStatus.OK
    assert [client.get(f"{{parts}}:of:{n}") for n in (0, 4_999)] == [b"0", b"4999"]
    assert client.longest == 3_999
    assert admin_of(store).drop().deleted > 5_000


@pytest.mark.parametrize("client", RUNNING, ids=named, indirect=True)
def test_the_doctor_finds_no_fault_that_a_run_does_not_have(client: ServiceClient) -> None:
    store = RedisStore("redis://service", "words", client=client)
    store.check_server(expires=False)
    connection = RedisConnection(client, "there", timeout_s=5)
    facts = measure(connection, Keys("words"), clock=time.monotonic, wall_clock=time.time, timeout_s=5, grant="")
    assert [each for each in check_server(facts, expires=False) if each.weight is Weight.FAIL] == []


@pytest.mark.parametrize("client", REFUSED, ids=named, indirect=True)
def test_a_service_that_cannot_hold_a_topology_is_refused_with_the_reason(
    client: ServiceClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    store = RedisStore("redis://service", "words", client=client)
    with pytest.raises(StateRefusedError, match=client.profile.refused):
        store.check_server(expires=False)
    assert client.dbsize() == 0
