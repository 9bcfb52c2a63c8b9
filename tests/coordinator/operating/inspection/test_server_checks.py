"""Each trouble of a server has a finding of its own, with what was found, why it matters and what to do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from coordinator.operating.inspection.finding import Weight
from coordinator.operating.inspection.server_checks import check_server
from state.redis_server.measured_facts import LibraryState
from tests.support.inspection.facts import INFO, SERVER, server

WARN, FAIL = Weight.WARN, Weight.FAIL
SUBJECTS = [
    *("reachable", "version", "primary", "eviction", "persistence", "memory"),
    *("library", "rights", "clock", "connections", "latency"),
]


def test_a_sound_server_has_one_good_finding_for_each_subject():
    findings = check_server(SERVER)
    assert [finding.subject for finding in findings] == SUBJECTS
    assert {finding.weight for finding in findings} == {Weight.OK}


@pytest.mark.parametrize(
    ("changes", "subject", "weight", "found"),
    [
        ({"info": {"redis_version": "6.2.1"}}, "version", FAIL, "is redis 6.2.1, but txbatch needs redis >= 7.0"),
        ({"info": {"valkey_version": "7.1.9"}}, "version", FAIL, "is valkey 7.1.9, but txbatch needs valkey >= 7.2"),
        ({"info": {"role": "slave"}}, "primary", FAIL, "is a slave"),
        ({"info": {"redis_mode": "sentinel"}}, "primary", FAIL, "is a sentinel"),
        ({"info": {"maxmemory_policy": "allkeys-lru"}}, "eviction", FAIL, "has maxmemory-policy 'allkeys-lru'"),
        ({"info": {"evicted_keys": "7"}}, "eviction", WARN, "7 keys were evicted since the server started"),
        ({"info": {"aof_last_write_status": "err"}}, "persistence", FAIL, "append-only file failed"),
        (
            {"info": {"rdb_last_bgsave_status": "err"}, "settings": {"save": "60 1"}},
            "persistence",
            FAIL,
            "the last snapshot failed",
        ),
        ({"info": {"loading": "1"}}, "persistence", WARN, "loading its data"),
        ({"info": {"aof_enabled": "0"}}, "persistence", WARN, "keeps nothing on disk"),
        (
            {"info": {"aof_enabled": "0", "rdb_changes_since_last_save": "1234"}, "settings": {"save": "60 1"}},
            "persistence",
            WARN,
            "takes snapshots only, 1,234 changes are in none yet",
        ),
        ({"settings": {"appendfsync": "no"}}, "persistence", WARN, "appendfsync no"),
        (
            {"settings": {"appendfsync": "always", "no-appendfsync-on-rewrite": "yes"}},
            "persistence",
            WARN,
            "while it rewrote its file (no-appendfsync-on-rewrite yes)",
        ),
        ({"info": {"maxmemory": str(12 * 2**20)}}, "memory", WARN, "10 MiB of maxmemory 12 MiB are in use"),
        ({"info": {"maxmemory": str(10 * 2**20)}}, "memory", FAIL, "10 MiB of maxmemory 10 MiB are in use"),
        ({"info": {"total_system_memory": str(12 * 2**20)}}, "memory", WARN, "and the machine has 12 MiB"),
        ({"library": LibraryState.UNKNOWN}, "library", WARN, "may not list functions"),
        (
            {"library": LibraryState.MISSING, "may_load": False},
            "library",
            FAIL,
            "is not loaded, and this user may not load it",
        ),
        ({"library": LibraryState.OTHER_CODE}, "library", WARN, "has other code, from another build"),
        ({"library": LibraryState.OTHER_CODE, "may_load": False}, "library", FAIL, "may not replace it"),
        ({"lacking_on_keys": ("HSET", "ZADD")}, "rights", FAIL, "may not run HSET, ZADD on keys '{words}:*'"),
        ({"lacking": ("FCALL",)}, "rights", FAIL, "may not run FCALL"),
        ({"lacking_on_keys": None}, "rights", WARN, "could not be asked for"),
        ({"lacking": ("CLIENT|LIST",)}, "rights", WARN, "may not run CLIENT|LIST"),
        ({"clock_ahead_s": 61.0}, "clock", WARN, "clock is 61.0 s ahead of this machine's"),
        ({"clock_ahead_s": -5.0}, "clock", WARN, "clock is 5.0 s after this machine's"),
        ({"settings": {"timeout": "30"}}, "connections", WARN, "closes connections that are idle for 30 s"),
        ({"info": {"connected_clients": "90"}}, "connections", WARN, "90 of at most 100 clients are connected"),
        ({"round_trips_ms": (1.0, 25.0, 30.0)}, "latency", WARN, "a call takes 25.00 ms, 30.00 ms at worst of 3"),
    ],
)
def test_each_trouble_is_named_alone(changes: dict[str, Any], subject: str, weight: Weight, found: str):
    findings = check_server(server(**changes))
    (troubled,) = [finding for finding in findings if finding.weight is not Weight.OK]
    assert (troubled.subject, troubled.weight) == (subject, weight)
    assert found in troubled.found
    assert troubled.why
    assert troubled.remedy
    assert [finding.subject for finding in findings] == SUBJECTS


@pytest.mark.parametrize(
    ("changes", "subject", "found"),
    [
        ({"settings": {"appendfsync": "always"}}, "persistence", "may take nothing it has answered"),
        ({"library": LibraryState.MISSING}, "library", "a run loads it"),
        ({"clock_ahead_s": None}, "clock", "not compared"),
        ({"settings": {"timeout": "300"}}, "connections", "idle ones are closed after 300 s"),
        ({"info": {"maxmemory": str(100 * 2**20)}}, "memory", "10 MiB of maxmemory 100 MiB"),
        ({"info": {"rdb_last_bgsave_status": "err"}}, "persistence", "append-only file"),
    ],
)
def test_what_a_run_does_not_mind_is_told_and_called_good(changes: dict[str, Any], subject: str, found: str):
    findings = check_server(server(**changes))
    assert {finding.weight for finding in findings} == {Weight.OK}
    (told,) = [finding for finding in findings if finding.subject == subject]
    assert found in told.found


def test_a_server_that_hides_its_settings_is_judged_by_its_info():
    hidden = replace(SERVER, settings={})
    assert {finding.weight for finding in check_server(hidden)} == {Weight.OK}
    snapshots = replace(hidden, info=INFO | {"aof_enabled": "0"})
    (troubled,) = [finding for finding in check_server(snapshots) if finding.weight is not Weight.OK]
    assert "has no append-only file" in troubled.found
