"""A run keeps an eye on its server: what it is, whether it answered, and why transactions were replayed."""

from __future__ import annotations

import pytest
import redis

from coordinator import FixedBatchesSpout, LocalCluster, TransactionalTopologyBuilder
from state import HashState, StateRefusedError
from tests.conftest import Backend
from tests.support.runs.collecting import Collecting


class Count(Collecting):
    words = HashState("words")

    def finish_batch(self):
        for word in self.column("word"):
            self.words.increment(word)


def topology(committer, batch_count=6):
    spout = FixedBatchesSpout([[["a"]]] * batch_count, ["word"])
    builder = TransactionalTopologyBuilder("watched", "words", spout)
    builder.set_committer_bolt("count", committer).global_grouping("words")
    return builder.build()


@pytest.mark.redis
def test_a_policy_that_evicts_stops_the_run_and_nothing_is_lost(redis_backend: Backend):
    with redis.Redis.from_url(str(redis_backend.url)) as client:
        try:
            with LocalCluster(redis_url=redis_backend.url) as cluster:
                run = cluster.submit(topology(Count()))
                while run.statistics.committed < 2:
                    run.tick()
                client.config_set("maxmemory-policy", "allkeys-lru")
                run.advance_time(11.0)
                with pytest.raises(StateRefusedError, match=r"maxmemory-policy 'allkeys-lru', .* stops here: what is"):
                    run.run_until_idle()
                assert run.statistics.committed < 6
        finally:
            client.config_set("maxmemory-policy", "noeviction")
    with LocalCluster(redis_url=redis_backend.url) as cluster:
        again = cluster.submit(topology(Count()))
        again.run_until_idle()
        assert again.state("words") == {"a": 6}


def test_a_server_that_was_away_is_counted_in_the_statistics(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch, caplog
):
    run = cluster.submit(topology(Count()))
    run.tick()
    plain, now = cluster.client.execute_command, iter([0.0, *range(7, 1000, 7)])
    connection = run._coordinator._publisher._server_watch._connection
    errors = [redis.ConnectionError("Connection refused")]

    def flaky(*arguments, **options):
        if errors:
            raise errors.pop()
        return plain(*arguments, **options)

    monkeypatch.setattr(connection, "_clock", lambda: next(now))
    monkeypatch.setattr(connection, "_sleep", lambda seconds: None)
    monkeypatch.setattr(connection.client, "execute_command", flaky)
    while not run.statistics.server_away_count:
        assert run.tick()
    assert run.statistics.server_away_s >= 7.0
    assert run.statistics.to_dict("watched")["server_away"]["times"] == 1
    assert "server memory:// was away for " in caplog.text
