"""Balances and refusals are those of a plain loop over the same lines, however they are cut and committed."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.transactional.options import RunOptions
from examples.ledger import BANK, TRANSFER, make_data, topology
from tests.support.examples.answers import books


def refusals(letters):
    found: dict[str, list[int]] = {"transfers": [], "check": [], "balances": []}
    for letter in letters:
        numbers = found[letter.component_id]
        numbers.append(letter["number"] if "number" in letter.fields else len(numbers))
    return {component: sorted(numbers) for component, numbers in found.items()}


@pytest.mark.parametrize(("lines", "window", "group"), [(11, 1, 1), (60, 8, 3), (5000, 2, 64)])
def test_every_line_is_in_the_balances_or_refused(tmp_path, lines, window, group):
    make_data(tmp_path, 500, accounts=9)
    kept = books(tmp_path)
    with LocalCluster(seed=lines) as cluster:
        options = RunOptions(max_spout_pending=window, commit_group_max=group)
        run = cluster.submit(topology(f"{tmp_path}/*.jsonl", lines), options=options)
        run.run_until_idle()
        assert run.is_done
        assert Counter(run.state("balances")) == kept.balances
        assert refusals(run.dead_letters()) == kept.refused
    assert sum(kept.balances.values()) == 0
    assert all(kept.refused.values())
    assert [account for account, cents in kept.balances.items() if cents < 0] == [BANK]


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
