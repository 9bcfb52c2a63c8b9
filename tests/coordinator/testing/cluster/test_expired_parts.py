"""Parts that had expired when they were written: a run is done, nothing of them is there, and each way in says so."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest

from coordinator import MemoryTransactionalSpout, TransactionalTopologyBuilder
from coordinator.operating.cli.run_result import print_result
from coordinator.proving.prove import prove
from coordinator.server_choice import choose_server
from coordinator.trying.dry_run import dry_run
from state import HashState
from tests.support.runs.collecting import Collecting

SENTENCE = "had expired when written, by the server's clock"


class Views(Collecting):
    views = HashState("views", value=int).per("day", date, expire_at=lambda day: day + timedelta(days=90))

    def finish_batch(self):
        for day in self.column("day"):
            self.views[date.fromisoformat(day)].increment("/", 1)


def topology(*days: str) -> Any:
    builder = TransactionalTopologyBuilder(
        "views", "days", MemoryTransactionalSpout([[[day] for day in days]], ["day"], 2)
    )
    builder.set_committer_bolt("count", Views()).shuffle_grouping("days")
    return builder.build()


OLD, NEW = ("2020-01-01", "2020-01-02"), ("2999-01-01",)


@pytest.mark.often("days0-2")
@pytest.mark.parametrize(("days", "count"), [(OLD, 2), ((*OLD, *NEW, *NEW), 2), (NEW, 0)])
def test_each_way_in_says_how_many_parts_had_expired_when_written(cluster, days, count, capsys):
    built = topology(*days)
    run = cluster.submit(built)
    run.run_until_idle()
    assert run.statistics.expired_parts == count
    assert run.statistics.to_dict("views").get("expired_parts", 0) == count
    print_result(built, run.statistics, choose_server("redis://x", None), as_json=False, is_logged=False)
    assert (f"txbatch: EXPIRED: {count} parts or fields {SENTENCE}" in capsys.readouterr().err) is bool(count)
    assert set(run.snapshot().states["views"]) == {date.fromisoformat(day) for day in days if day in NEW}
    assert sum(batch.expired_parts for batch in dry_run(built, batches=5)) == count
    proof = prove(built, seeds=1)
    assert proof.expired_parts == proof.to_json()["expired_parts"] == count
    assert (f"{count} parts or fields {SENTENCE}" in "\n".join(proof.lines())) is bool(count)
