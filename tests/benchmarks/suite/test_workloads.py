"""A workload's topology, its plain control and its independent answer agree."""

from __future__ import annotations

import fakeredis
import pytest

from benchmarks.suite.text_input import Lines, Numbers
from benchmarks.suite.workloads import dedup, ledger, top_k, word_count
from benchmarks.suite.workloads.table import TITLES, workload
from benchmarks.transfers import OPENING_BALANCE
from coordinator import LocalCluster

TEXT = ["to be or not to be", "that is the question", "", "to be or not to be", "be"] * 3
BATCH = 4


@pytest.fixture
def pattern(tmp_path):
    (tmp_path / "text.txt").write_text("".join(f"{line}\n" for line in TEXT))
    return str(tmp_path / "*.txt")


@pytest.mark.parametrize("name", TITLES)
def test_the_control_writes_what_is_expected(name):
    tuples = Numbers() if name == "ledger" else Lines(TEXT)
    chosen = workload(name)
    with fakeredis.FakeRedis(decode_responses=True) as client:
        for number in range(5):
            chosen.write(client, client.pipeline(transaction=False), tuples.batch(number, BATCH))

        assert chosen.stored(client) == chosen.expected(tuples.first(5 * BATCH))


@pytest.mark.parametrize("tasks", [1, 2])
@pytest.mark.parametrize(("module", "state"), [(word_count, "counts"), (top_k, "ranking")])
def test_topologies_count_words(pattern, module, state, tasks):
    with LocalCluster(seed=7) as cluster:
        run = cluster.submit(module.topology(pattern, BATCH, tasks))
        run.run_until_idle()

        assert run.state(state) == module.expected(TEXT)


@pytest.mark.parametrize("tasks", [1, 2])
def test_the_topology_keeps_each_line_once(pattern, tasks):
    with LocalCluster(seed=7) as cluster:
        run = cluster.submit(dedup.topology(pattern, BATCH, tasks))
        run.run_until_idle()

        assert {"seen": run.state("seen"), **run.state("counts")} == dedup.expected(TEXT)
        assert run.state("counts") == {"new": 4, "repeated": 11}


def test_the_ledger_moves_what_a_plain_loop_moves(monkeypatch):
    monkeypatch.setattr(ledger, "MOST_TRANSFERS", 20)
    with LocalCluster(seed=7) as cluster:
        run = cluster.submit(ledger.topology("", BATCH, 2))
        run.run_until_idle()

        balances = run.state("balances")
        changed = {account: money for account, money in balances.items() if money != OPENING_BALANCE}
        assert changed == ledger.expected(range(20))
        assert len(balances) == ledger.ACCOUNTS
