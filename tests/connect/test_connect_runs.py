"""Topologies on a Spark Connect server: the same state as everywhere else, whatever dies."""

from __future__ import annotations

import logging
import os
import re
import signal
from functools import partial

import pytest

from coordinator.exactly_once import exactly_once
from coordinator.sources.micro_batches import MicroBatches
from coordinator.start import start
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from coordinator.transactional.options import RunOptions
from state.errors import EngineError, TopologyError, UserCodeError
from tests.support.scenarios.on_servers import assert_folds_are_left
from tests.support.spark.bolts import Store, exact_counts, exact_sums, notes, numbers_topology
from tests.support.spark.connect_server import ConnectServer
from tests.support.spark.mishaps import AtNumber, InStore, break_down, hang, hang_in_c, kill_worker
from tests.support.spark.partitioned import Ranges
from tests.support.topologies.words import WORDS, counts_of_words, words_topology

pytestmark = [pytest.mark.spark, pytest.mark.redis, pytest.mark.slow]

TRANSACTIONS, BAD_NUMBER = 6, 25
SCENARIOS, CHUNK = int(os.environ.get("TXBATCH_CONNECT_SERVER_SCENARIOS", "15")), 3


def exact(cluster):
    assert cluster.hash("{numbers}:counts") == exact_counts(TRANSACTIONS)
    assert cluster.hash("{numbers}:sums") == exact_sums(TRANSACTIONS)


def test_the_words_of_storm_are_counted_in_the_session_of_a_user_which_is_left_alone(cluster):
    from pyspark.sql.connect.session import SparkSession

    session = SparkSession.builder.remote(cluster.where["master"]).create()
    try:
        cluster.run(words_topology(), spark=session)
        assert cluster.hash("{words}:counts") == counts_of_words(WORDS)
        assert session.conf.get("spark.sql.adaptive.enabled") == "true"
        assert session.range(3).count() == 3
    finally:
        session.client.release_session()
        session.client.close()


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(0, SCENARIOS, CHUNK))
def test_random_topologies_leave_the_state_of_the_fold(cluster, first):
    assert_folds_are_left(cluster.run, cluster.client, cluster.notes, range(first, first + CHUNK))


@pytest.mark.nightly
@pytest.mark.parametrize("early_commit", [False, True], ids=["two queries", "one query"])
def test_a_worker_that_dies_in_a_bolt_and_one_in_a_committer_change_nothing(cluster, caplog, early_commit):
    work = AtNumber(kill_worker, BAD_NUMBER, cluster.notes / "bolt")
    store = InStore(kill_worker, 4, cluster.notes / "committer")
    with caplog.at_level(logging.INFO, logger="txbatch"):
        cluster.run(numbers_topology(TRANSACTIONS, work=work, store=store), early_commit=early_commit)

    exact(cluster)
    assert caplog.text.count("a worker ended without a word") >= 2


@pytest.mark.nightly
def test_an_error_in_a_bolt_is_its_users(cluster):
    with pytest.raises(UserCodeError, match="ValueError: cannot work with it"):
        cluster.run(numbers_topology(TRANSACTIONS, work=AtNumber(break_down, BAD_NUMBER)))
    assert cluster.hash("{numbers}:counts") == exact_counts(3)


@pytest.mark.nightly
@pytest.mark.parametrize(("timeout_s", "is_deaf"), [(3, False), (5, False), (8, True)])
def test_a_bolt_that_does_not_return_is_interrupted_named_and_its_wave_tried_again(cluster, caplog, timeout_s, is_deaf):
    work = AtNumber(hang_in_c if is_deaf else hang, BAD_NUMBER, cluster.notes / "hung")
    with caplog.at_level(logging.WARNING, logger="txbatch"):
        cluster.run(numbers_topology(TRANSACTIONS, work=work, message_timeout_s=timeout_s), max_spout_pending=1)
    exact(cluster)
    assert is_deaf or re.search(rf"component 'work', .* timeout of {timeout_s} s ran out, in hang \(", caplog.text)


@pytest.mark.nightly
def test_a_server_that_is_killed_ends_the_run_and_the_next_one_is_exact(cluster, tmp_path_factory):
    server = ConnectServer(tmp_path_factory.mktemp("killed"))
    try:
        work = AtNumber(partial(os.kill, server.pid, signal.SIGKILL), BAD_NUMBER, cluster.notes / "killed")
        with pytest.raises(EngineError, match="nothing that was committed is lost") as caught:
            cluster.run(numbers_topology(TRANSACTIONS, work=work), master=server.address, max_spout_pending=1)
    finally:
        server.kill()
    assert "Spark Connect server" in str(caught.value)
    assert cluster.hash("{numbers}:counts") == exact_counts(3)

    cluster.run(numbers_topology(TRANSACTIONS))
    exact(cluster)


@pytest.mark.nightly
def test_what_was_cut_of_partitions_is_read_again_by_the_second_query(cluster):
    builder = TransactionalTopologyBuilder("partitioned", "ranges", Ranges(cluster.notes / "cuts"), parallelism=2)
    builder.set_committer_bolt("store", Store(), parallelism=2).fields_grouping("ranges", ["number"])
    options = RunOptions(early_commit=False)
    with start(builder.build(), **cluster.where, redis_url=cluster.redis_url, options=options) as run:
        run.wait()

    found = notes(cluster.notes / "cuts")
    assert {how for how, *_ in found} == {"new", "again"}
    cuts = {(partition, txid): cut for _, txid, partition, cut in found}
    assert len({(txid, partition, tuple(cut)) for _, txid, partition, cut in found}) == len(cuts)
    counted = {str(number): 1 for cut in cuts.values() for number in range(*cut)}
    assert cluster.hash("{partitioned}:counts") == counted


def test_what_connect_does_not_carry_is_refused_with_a_sentence(cluster):
    from pyspark.sql.connect.session import SparkSession

    builder = TransactionalTopologyBuilder("rows", "rows", MicroBatches(["number"]))
    builder.set_committer_bolt("store", Store()).global_grouping("rows")
    topology = builder.build()
    session = SparkSession.builder.remote(cluster.where["master"]).create()
    try:
        with pytest.raises(TopologyError, match="hands over the rows of a DataFrame by RDDs"):
            cluster.run(topology, spark=session)
        commit = exactly_once(topology, redis_url=cluster.redis_url)
        with pytest.raises(TopologyError, match="transactional topologies run by"):
            commit(session.range(3), 0)
    finally:
        session.client.release_session()
        session.client.close()


def test_a_server_that_is_not_there_is_named_within_seconds(cluster):
    with pytest.raises(EngineError, match=r"'sc://127\.0\.0\.1:1' cannot be reached"):
        cluster.run(numbers_topology(1), master="sc://127.0.0.1:1")
