"""A transfer that was refused for want of money is made by a replay."""

from __future__ import annotations

import json

from coordinator.testing.cluster.cluster import LocalCluster
from examples.ledger import TRANSFER, topology


def test_a_refused_transfer_is_made_by_a_replay_once_there_is_money(tmp_path):
    rows = [[0, "bank", "ann", 5], [1, "ann", "bob", 20], [2, "bank", "ann", 30]]
    lines = [json.dumps(dict(zip(TRANSFER, row, strict=True))) for row in rows]
    (tmp_path / "transfers.jsonl").write_text("\n".join(lines))
    with LocalCluster() as cluster:
        run = cluster.submit(topology(f"{tmp_path}/*.jsonl"))
        run.run_until_idle()
        (letter,) = run.dead_letters()
        assert (letter["number"], letter.reason) == (1, "ann has 5 cents")
        assert run.state("balances") == {"bank": -35, "ann": 35}
        run.close()

        again = cluster.submit(topology(f"{tmp_path}/*.jsonl"), republish_letters="all")
        again.run_until_idle()
        assert again.state("balances") == {"bank": -35, "ann": 15, "bob": 20}
        assert again.dead_letters() == []
