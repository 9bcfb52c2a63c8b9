"""Each trouble of a server has a finding of its own, with what was found, why it matters and what to do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from coordinator.operating.cli.commands.examine import _finding_lines
from coordinator.operating.inspection.finding import Weight
from coordinator.operating.inspection.server_checks import check_server
from state.redis_server.measured_facts import LibraryState
from tests.support.approved import approved
from tests.support.inspection.facts import INFO, SERVER, server

SUBJECTS = [
    *("reachable", "version", "primary", "eviction", "persistence", "memory"),
    *("library", "rights", "clock", "connections", "latency"),
]


def test_a_sound_server_has_one_good_finding_for_each_subject():
    findings = check_server(SERVER)
    assert [finding.subject for finding in findings] == SUBJECTS
    assert {finding.weight for finding in findings} == {Weight.OK}


MIB = 2**20
TROUBLES: dict[str, dict[str, Any]] = {
    "an old redis": {"info": {"redis_version": "6.2.1"}},
    "an old valkey": {"info": {"valkey_version": "7.1.9"}},
    "a replica": {"info": {"role": "slave"}},
    "a sentinel": {"info": {"redis_mode": "sentinel"}},
    "evicts": {"info": {"maxmemory_policy": "allkeys-lru"}},
    "has evicted": {"info": {"evicted_keys": "7"}},
    "the append-only file failed": {"info": {"aof_last_write_status": "err"}},
    "the last snapshot failed": {"info": {"rdb_last_bgsave_status": "err"}, "settings": {"save": "60 1"}},
    "loading": {"info": {"loading": "1"}},
    "nothing on disk": {"info": {"aof_enabled": "0"}},
    "snapshots only": {
        "info": {"aof_enabled": "0", "rdb_changes_since_last_save": "1234"},
        "settings": {"save": "60 1"},
    },
    "the system syncs": {"settings": {"appendfsync": "no"}},
    "no sync while rewriting": {"settings": {"appendfsync": "always", "no-appendfsync-on-rewrite": "yes"}},
    "memory is short": {"info": {"maxmemory": str(12 * MIB)}},
    "memory is full": {"info": {"maxmemory": str(10 * MIB)}},
    "the machine's memory is short": {"info": {"total_system_memory": str(12 * MIB)}},
    "functions may not be listed": {"library": LibraryState.UNKNOWN},
    "functions may not be loaded": {"library": LibraryState.MISSING, "may_load": False},
    "another build": {"library": LibraryState.OTHER_CODE},
    "another build stays": {"library": LibraryState.OTHER_CODE, "may_load": False},
    "rights on keys": {"lacking_on_keys": ("HSET", "ZADD")},
    "rights to call": {"lacking": ("FCALL",)},
    "rights are unknown": {"lacking_on_keys": None},
    "rights to list": {"lacking": ("CLIENT|LIST",)},
    "a clock ahead": {"clock_ahead_s": 61.0},
    "a clock behind": {"clock_ahead_s": -5.0},
    "closes idle connections": {"settings": {"timeout": "30"}},
    "many clients": {"info": {"connected_clients": "90"}},
    "slow": {"round_trips_ms": (1.0, 25.0, 30.0)},
}


def test_each_trouble_is_named_alone_with_why_it_matters_and_what_to_do():
    said = []
    for name, changes in TROUBLES.items():
        findings = check_server(server(**changes))
        assert [finding.subject for finding in findings] == SUBJECTS
        (troubled,) = [finding for finding in findings if finding.weight is not Weight.OK]
        assert troubled.why
        said += [f"== {name}", *_finding_lines([troubled], str)]
    approved("\n".join(said), "server-troubles")


@pytest.mark.parametrize(
    ("changes", "subject", "found"),
    [
        ({"settings": {"appendfsync": "always"}}, "persistence", "may take nothing it has answered"),
        ({"library": LibraryState.MISSING}, "library", "a run loads it"),
        ({"clock_ahead_s": None}, "clock", "not compared"),
        ({"settings": {"timeout": "300"}}, "connections", "idle ones are closed after 300 s"),
        ({"info": {"maxmemory": str(100 * MIB)}}, "memory", "10 MiB of maxmemory 100 MiB"),
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
