"""Which servers are fit, judged from INFO alone."""

from __future__ import annotations

import pytest

from state.errors import StateRefusedError
from state.redis_server.fitness import refuse_unfit_server

GOOD = {
    "redis_version": "7.0.15",
    "redis_mode": "standalone",
    "role": "master",
    "maxmemory": 0,
    "maxmemory_policy": "noeviction",
}


@pytest.mark.parametrize("version", ["7.0.0", "7.2.4", "8.0.1", "10.0.0"])
def test_redis_from_7_0_is_fit(version):
    refuse_unfit_server({**GOOD, "redis_version": version}, "s")


@pytest.mark.parametrize("version", ["7.2.5", "8.1.0", "9.1.2"])
def test_valkey_is_judged_by_its_own_version(version):
    refuse_unfit_server({**GOOD, "redis_version": "6.2.14", "valkey_version": version}, "s")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"redis_version": "6.2.14"}, r"server redis://here is redis 6.2.14, but txbatch needs redis >= 7.0"),
        ({"redis_version": "5.0.7"}, "is redis 5.0.7"),
        ({"redis_version": "garbage"}, "is redis garbage"),
        ({"valkey_version": "7.1.0"}, "is valkey 7.1.0, but txbatch needs valkey >= 7.2"),
        ({"role": "slave"}, "is a slave; give the primary's address"),
        ({"redis_mode": "sentinel"}, "is a sentinel; give the address of the primary"),
        ({"maxmemory_policy": "allkeys-lru", "maxmemory": 100}, "'allkeys-lru'.*set it to noeviction"),
        ({"maxmemory_policy": "volatile-ttl"}, "'volatile-ttl'"),
    ],
)
def test_unfit_server_is_refused_with_the_remedy(change, message):
    with pytest.raises(StateRefusedError, match=message):
        refuse_unfit_server({**GOOD, **change}, "redis://here")
