"""Real servers and folders, examined: each trouble is measured and named, and nothing is changed."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from coordinator.operating.inspection import examination
from coordinator.operating.inspection.examination import (
    AnyTopology,
    check_encryption,
    examine,
    examine_server,
    measure_folder,
)
from coordinator.operating.inspection.finding import Finding, Weight
from coordinator.plain.plain_topology_builder import TopologyBuilder
from coordinator.server_choice import ServerChoice
from state.errors import StateRefusedError, TopologyError
from state.keys import Keys
from state.redis_client.connection import RedisConnection, connect
from state.redis_client.function_library import LIBRARY_NAME
from state.redis_client.rights import acl_rules
from state.redis_server.embedded import EmbeddedServer
from tests.conftest import Backend, ServerBackend, redis_program, running_server
from tests.support.stores.builders import dump
from tests.support.stores.tls_server import running_tls_server
from tests.support.topologies.kept_states import kept_topology
from tests.support.topologies.plain_components import Numbers, Sink

HERE = Path(".txbatch")
EXTERNAL = "redis://db.example.com:6379"


def choice(url: str | None, data_dir: Path = HERE, *, allow_plaintext: bool = False) -> ServerChoice:
    return ServerChoice(url, data_dir, allow_plaintext)


def examined(url: str, topology_id: str = "words") -> dict[str, Finding]:
    return {finding.subject: finding for finding in examine_server(choice(url), topology_id)}


def troubled(url: str, topology_id: str = "words") -> dict[str, Finding]:
    found = examined(url, topology_id).items()
    return {subject: finding for subject, finding in found if finding.weight is not Weight.OK}


@pytest.fixture(params=["valkey_url", "redis_server_url"])
def server(request: pytest.FixtureRequest) -> Iterator[Backend]:
    """Both products, emptied; only in memory, which is their one trouble."""
    backend = ServerBackend(request.param, request.getfixturevalue(request.param))
    backend.clear()
    yield backend
    backend.close()


@pytest.mark.redis
def test_both_products_in_memory_have_one_trouble_and_are_left_as_they_were(server):
    client = server.client()
    client.set("{words}:counts", "x")
    before = dump(client)
    found = examined(server.url)
    assert {subject for subject in found if found[subject].weight is not Weight.OK} == {"persistence"}
    assert "keeps nothing on disk" in found["persistence"].found
    assert found["library"].found == "the function library is not loaded yet; a run loads it"
    assert dump(client) == before
    assert client.function_list() == []


@pytest.mark.redis
def test_a_library_is_told_from_one_of_another_build(server):
    client = server.client()
    connection = RedisConnection(connect(server.url), "there", timeout_s=5.0)
    connection.load_library()
    assert examined(server.url)["library"].found == "the function library of this version is loaded"
    client.function_load(f"#!lua name={LIBRARY_NAME}\nredis.register_function('other', function() end)", replace=True)
    assert "has other code" in troubled(server.url)["library"].found
    connection.close()


@pytest.mark.redis
def test_a_server_that_cannot_have_fields_expire_is_found(server):
    rights = {each.subject: each for each in examine_server(choice(server.url), "words", fields_expire=True)}["rights"]
    try:
        server.client().execute_command("HPEXPIREAT", "none", "1", "FIELDS", "1", "f")
    except redis.ResponseError:
        assert rights.weight is Weight.FAIL
        assert "HPEXPIREAT, HPEXPIRETIME on keys '{words}:*', or the server lacks them" in rights.found
    else:
        assert rights.weight is Weight.OK


@pytest.mark.redis
def test_a_user_who_lacks_the_keys_of_shards_is_found(server):
    admin, words = server.client(), Keys("words")
    admin.execute_command("ACL", "SETUSER", "alice", *acl_rules(words), ">canary")
    url = server.url.replace("unix://", "unix://alice:canary@")
    try:
        RedisConnection(connect(server.url), "there", timeout_s=5.0).load_library()
        found = {each.subject: each for each in examine_server(choice(url), "words", shard_count=2)}
        assert found["rights"].weight is Weight.OK
        for number in range(2):
            lacks = found[f"rights of shard {number}"]
            assert lacks.weight is Weight.FAIL
            assert f"on keys '{{words.{number}}}:*'" in lacks.found
            assert "txbatch acl words --shards 2" in lacks.remedy
        admin.execute_command("ACL", "SETUSER", "alice", *acl_rules(words, words.shard(0), words.shard(1)))
        subjects = {each.subject for each in examine_server(choice(url), "words", shard_count=2)}
        assert not any("of shard" in subject for subject in subjects)
    finally:
        admin.execute_command("ACL", "DELUSER", "alice")


@pytest.mark.redis
def test_the_printed_user_lacks_nothing_but_the_view_of_settings_and_time(server):
    admin = server.client()
    admin.execute_command("ACL", "SETUSER", "alice", *acl_rules(Keys("words")), ">canary")
    url = server.url.replace("unix://", "unix://alice:canary@")
    try:
        RedisConnection(connect(server.url), "there", timeout_s=5.0).load_library()
        found = examined(url)
        assert {subject for subject in found if found[subject].weight is Weight.FAIL} == set()
        assert found["rights"].found == "this user may run every command on keys '{words}:*'"
        assert found["clock"].found.startswith("not compared")

        other = examined(url, "other")["rights"]
        assert other.weight is Weight.FAIL
        assert "HSET" in other.found
        assert "`txbatch acl other`" in other.remedy

        admin.execute_command("ACL", "SETUSER", "alice", "-hset", "-zadd", "-function|load", "-client|list")
        rights = examined(url)["rights"]
        assert rights.weight is Weight.FAIL
        assert "may not run HSET, ZADD on keys" in rights.found

        admin.function_flush()
        library = examined(url)["library"]
        assert (library.weight, library.found) == (
            Weight.FAIL,
            "the function library is not loaded, and this user may not load it",
        )
        assert "could not be asked for" in examined(url)["rights"].found
        admin.execute_command("ACL", "SETUSER", "alice", "-fcall_ro")
        assert "may not run FCALL_RO" in examined(url)["rights"].found
    finally:
        admin.execute_command("ACL", "DELUSER", "alice")


@pytest.mark.redis
def test_a_password_that_is_missing_or_wrong_is_told_with_what_to_do(redis_server_url):
    with redis.Redis.from_url(redis_server_url) as admin:
        admin.config_set("requirepass", "canary")
        try:
            missing = troubled(redis_server_url)["reachable"]
            wrong = troubled(redis_server_url.replace("unix://", "unix://:nightingale@"))["reachable"]
        finally:
            admin.execute_command("AUTH", "canary")
            admin.config_set("requirepass", "")
    assert "asks for a password" in missing.found
    assert "refused the user name or password" in wrong.found
    assert "nightingale" not in str(wrong.to_dict())


@pytest.mark.redis
def test_eviction_snapshots_and_a_full_memory_are_measured():
    options = ["--maxmemory-policy", "allkeys-lru", "--save", "3600 100000", "--timeout", "30"]
    with running_server(redis_program(), *options) as url:
        with redis.Redis.from_url(url) as client:
            client.set("filler", "x" * 2_000_000)
        with redis.Redis.from_url(url) as client:  # without the buffers of the first connection
            used = int(client.info("memory")["used_memory"])
            client.config_set("maxmemory", used * 100 // 85)
            client.config_set("maxmemory-policy", "allkeys-lru")
        found = troubled(url)
    assert found.keys() == {"eviction", "persistence", "memory", "connections"}
    assert found["eviction"].weight is Weight.FAIL
    assert "snapshots only, 1 changes" in found["persistence"].found
    assert found["memory"].weight is Weight.WARN


@pytest.mark.redis
def test_a_replica_is_refused_and_its_primary_asked_for(redis_server_url):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with running_server(redis_program(), "--replicaof", f"127.0.0.1 {port}") as url:
        primary = troubled(url)["primary"]
    assert (primary.weight, primary.found, primary.remedy) == (Weight.FAIL, "is a slave", "give the primary's address")


@pytest.mark.redis
def test_a_tls_server_is_examined_and_an_untrusted_certificate_told(monkeypatch):
    monkeypatch.setattr(examination, "ANSWER_TIMEOUT_S", 1.0)
    with running_tls_server() as server:
        url = f"rediss://localhost:{server.tls_port}"
        trusted = examined(f"{url}?ssl_ca_certs={server.certificate}")
        assert trusted["encryption"].found == "the connection uses TLS"
        assert trusted["version"].weight is Weight.OK
        assert "presents an untrusted certificate" in troubled(url)["reachable"].found
        plain = troubled(f"rediss://localhost:{server.plain_port}")["reachable"]
        assert "did not answer for 1 s; last error: " in plain.found
        assert "if this port does not speak TLS, write redis://" in plain.remedy


def test_a_port_where_nobody_listens_is_told(monkeypatch):
    monkeypatch.setattr(examination, "ANSWER_TIMEOUT_S", 0.1)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and not listening
        reachable = troubled(f"redis://127.0.0.1:{taken.getsockname()[1]}")["reachable"]
    assert reachable.weight is Weight.FAIL
    assert "did not answer for 0.1 s" in reachable.found
    assert "start it or check its address" in reachable.remedy


def test_a_server_elsewhere_is_not_even_asked_in_plain_text_unless_it_is_allowed():
    (finding,) = examine_server(choice("redis://user:canary@203.0.113.9:6379"), "words")
    assert (finding.subject, finding.weight) == ("encryption", Weight.FAIL)
    assert "canary" not in str(finding.to_dict())
    assert "use rediss://" in finding.remedy
    finding = check_encryption("redis://203.0.113.9:6379", allow_plaintext=True)
    assert finding.weight is Weight.WARN
    assert check_encryption("rediss://203.0.113.9:6379", allow_plaintext=False).weight is Weight.OK


def test_a_malformed_address_is_a_mistake_of_the_caller():
    with pytest.raises(TopologyError, match="has no scheme"):
        examine_server(choice("localhost:6379"), "words")


def test_a_private_server_is_tried_elsewhere_until_its_directory_has_had_one(tmp_path):
    data_dir = tmp_path / "data"
    findings = examine_server(choice(None, data_dir), "words")
    assert {finding.weight for finding in findings} == {Weight.OK}
    assert findings[0].found == f"would be new in {str(data_dir)!r}; one was tried elsewhere"
    assert not data_dir.exists()
    with EmbeddedServer(data_dir):
        pass
    assert examine_server(choice(None, data_dir), "words")[0].found == f"in {str(data_dir)!r}"


def test_a_machine_without_a_server_program_is_told_how_to_get_one(tmp_path, monkeypatch):
    def find_none() -> str:
        raise StateRefusedError("embedded server is not installed: run pip install it; or else")

    monkeypatch.setattr("state.redis_server.embedded.find_server_program", find_none)
    (finding,) = examine_server(choice(None, tmp_path / "data"), "words")
    assert (finding.subject, finding.weight, finding.remedy) == ("private server", Weight.FAIL, "or else")
    assert "not installed" in finding.found


def test_a_folder_is_measured_where_it_would_be_made_and_only_a_scratch_folder_used_as_it_is_may_not_be_open(tmp_path):
    missing = measure_folder("data directory", tmp_path / "a" / "b", "--data-dir")
    assert missing.is_writable
    assert missing.free_bytes == pytest.approx(measure_folder("", tmp_path, "").free_bytes, rel=0.1)
    (tmp_path / "file").write_text("")
    assert not measure_folder("data directory", tmp_path / "file" / "b", "--data-dir").is_writable
    tmp_path.chmod(0o755)
    assert measure_folder("", tmp_path, "", is_shared=False).is_open
    assert not measure_folder("", tmp_path, "").is_open
    tmp_path.chmod(0o700)
    assert not measure_folder("", tmp_path, "", is_shared=False).is_open


def of_code(findings: list[Finding]) -> dict[str, Weight]:
    return {each.subject: each.weight for each in findings if each.subject in ("factory", "pickling", "input")}


def examined_with(made: AnyTopology | Exception) -> list[Finding]:
    def load() -> tuple[AnyTopology, str]:
        if isinstance(made, Exception):
            raise made
        return made, __name__

    return examine(choice(EXTERNAL), conf={}, target="jobs:topology", load=load)


def test_code_is_walked_up_to_the_step_that_fails_which_says_at_least_where_to_look():
    ok, bad = Weight.OK, Weight.FAIL
    findings = examined_with(kept_topology())
    assert of_code(findings) == {"factory": ok, "pickling": ok, "input": ok}
    assert findings[0].found == "jobs:topology makes topology 'kept' of 2 components"
    findings = examined_with(TopologyError("it is broken; fix it; then run it"))
    assert of_code(findings) == {"factory": bad}
    assert (findings[0].found, findings[0].remedy) == ("it is broken", "fix it; then run it")
    findings = examined_with(TopologyError("gone"))
    assert (findings[0].found, findings[0].remedy) == ("gone", "see what it says")
    topology = kept_topology()
    topology.components[1].spec.lock = threading.Lock()  # type: ignore[union-attr]
    findings = examined_with(topology)
    assert of_code(findings) == {"factory": Weight.OK, "pickling": Weight.FAIL}


def test_a_spout_that_does_not_find_its_input_is_told(monkeypatch):
    topology = kept_topology()
    monkeypatch.setattr(type(topology.spout.spec), "fingerprint", lambda self: Path("no/input.txt").read_text())
    findings = examined_with(topology)
    assert of_code(findings)["input"] is Weight.FAIL
    assert any("input.txt" in finding.found + finding.remedy for finding in findings)


def test_a_plain_topology_needs_no_server():
    builder = TopologyBuilder("plain")
    builder.set_spout("numbers", Numbers(3))
    builder.set_bolt("sink", Sink()).shuffle_grouping("numbers")
    findings = examined_with(builder.build())
    assert of_code(findings) == dict.fromkeys(("factory", "pickling", "input"), Weight.OK)
    assert "encryption" not in {finding.subject for finding in findings}


def test_what_the_environment_names_as_scratch_is_examined(tmp_path):
    tmp_path.chmod(0o755)
    environment = {"SPARK_LOCAL_DIRS": f"{tmp_path},/none/at/all"}
    findings = examination._examine_machine(choice(EXTERNAL), "local[1]", {}, environment)
    assert [finding.weight for finding in findings[1:]] == [
        Weight.WARN,
        Weight.OK if os.access("/", os.W_OK) else Weight.FAIL,
    ]
    assert "SPARK_LOCAL_DIRS" in findings[1].remedy
