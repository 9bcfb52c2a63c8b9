"""Which servers are fit, judged from INFO alone."""

from __future__ import annotations

import pytest

from state.errors import StateRefusedError
from state.redis_owner.fitness import refuse_unfit_server, unknown_facts

GOOD = {
    "redis_version": "7.0.15",
    "redis_mode": "standalone",
    "role": "master",
    "maxmemory": 0,
    "maxmemory_policy": "noeviction",
}


@pytest.mark.parametrize(
    "versions",
    [
        *({"redis_version": version} for version in ("7.0.0", "7.2.4", "8.0.1", "10.0.0")),
        *({"redis_version": "6.2.14", "valkey_version": version} for version in ("7.2.5", "8.1.0", "9.1.2")),
    ],
    ids=str,
)
def test_redis_from_7_0_is_fit_and_valkey_is_judged_by_its_own_version(versions):
    refuse_unfit_server({**GOOD, **versions}, "s")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"redis_version": "6.2.14"}, r"server redis://here is redis 6.2.14, but txbatch needs redis >= 7.0"),
        ({"redis_version": "5.0.7"}, "is redis 5.0.7"),
        ({"valkey_version": "7.1.0"}, "is valkey 7.1.0, but txbatch needs valkey >= 7.2"),
        ({"role": "slave"}, "is a slave; give the primary's address"),
        ({"redis_mode": "sentinel"}, "is a sentinel; give the address of the primary"),
        ({"maxmemory_policy": "allkeys-lru"}, "set it to noeviction .*CONFIG SET .*parameter group or console where"),
        ({"maxmemory_policy": "volatile-ttl"}, "'volatile-ttl', .* of which some expires"),
        ({"role": "slave", "redis_mode": ""}, "is a slave"),
        ({"redis_version": "6", "role": ""}, "is redis 6,"),
    ],
)
def test_unfit_server_is_refused_with_the_remedy(change, message):
    with pytest.raises(StateRefusedError, match=message):
        refuse_unfit_server({**GOOD, **change}, "redis://here")


@pytest.mark.parametrize("policy", ["volatile-lru", "volatile-lfu", "volatile-ttl", "volatile-random"])
def test_a_server_that_evicts_only_what_expires_is_fit_for_a_topology_of_which_nothing_does(policy):
    refuse_unfit_server({**GOOD, "maxmemory_policy": policy}, "s", expires=False)


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-random", "something-new"])
def test_any_other_policy_may_evict_what_does_not_expire(policy):
    with pytest.raises(StateRefusedError, match=rf"'{policy}', which may silently delete committed state; set it"):
        refuse_unfit_server({**GOOD, "maxmemory_policy": policy}, "s", expires=False)


@pytest.mark.parametrize(
    ("missing", "unknown"),
    [
        ({"redis_version"}, ["its version"]),
        ({"role"}, ["its role"]),
        ({"redis_mode"}, ["its mode"]),
        ({"maxmemory_policy"}, ["its maxmemory-policy"]),
        (set(GOOD), ["its version", "its role", "its mode", "its maxmemory-policy"]),
        (set(), []),
    ],
)
def test_what_a_server_does_not_say_is_unknown_and_not_unfit(missing, unknown):
    info = {name: value for name, value in GOOD.items() if name not in missing}
    refuse_unfit_server(info, "s")
    assert unknown_facts(info) == unknown


def test_a_version_that_cannot_be_read_is_unknown():
    info = {**GOOD, "redis_version": "garbage"}
    refuse_unfit_server(info, "s")
    assert unknown_facts(info) == ["its version"]
    assert unknown_facts({**GOOD, "redis_version": "8"}) == []
