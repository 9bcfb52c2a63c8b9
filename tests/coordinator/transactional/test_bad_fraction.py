"""A run of which too many records are bad ends before it commits them, and one that is done says how many were."""

from __future__ import annotations

import json

import pytest

from coordinated_bolt.streams.declared import DEAD_LETTER_STREAM
from coordinator import LocalCluster, RunOptions, TransactionalTopologyBuilder
from coordinator.operating.cli.run_result import _summary, _warnings
from coordinator.server_choice import ServerChoice
from coordinator.sources.files.line_files import JsonLines
from state import HashState, SourceError
from tests.support.runs.collecting import Collecting

GOOD, TYPE, MISSING = '{"n": 1}', '{"n": "x%d"}', "{}"


class Count(Collecting):
    counts = HashState("counts", value=int)

    def finish_batch(self):
        for tup in self.tuples:
            self.counts.increment(tup.stream_id, 1)


def topology(tmp_path, *, wants_bad=False, policy="dead_letter", tasks=2):
    source = JsonLines(str(tmp_path / "in.json"), {"n": int}, 50, on_bad_record=policy)
    builder = TransactionalTopologyBuilder("t", "in", source, parallelism=tasks)
    counting = builder.set_committer_bolt("count", Count()).global_grouping("in")
    if wants_bad:
        counting.global_grouping("in", DEAD_LETTER_STREAM)
    return builder.build()


def write(tmp_path, *lines):
    (tmp_path / "in.json").write_text("".join(f"{line}\n" for line in lines))


@pytest.mark.parametrize("max_pending", [1, 3, 16])
@pytest.mark.parametrize("on_poison", ["halt", "quarantine"])
@pytest.mark.parametrize(("policy", "wants_bad"), [("skip", False), ("dead_letter", False), ("dead_letter", True)])
def test_a_run_ends_before_the_transaction_with_which_too_many_records_are_bad(
    tmp_path, max_pending, on_poison, policy, wants_bad
):
    # transactions of 50: no bad, 5 bad of 100, 15 of 150, 35 of 200
    bad = [TYPE % n for n in range(50)]
    write(tmp_path, *[GOOD] * 95, *bad[:5], *[GOOD] * 40, *bad[:10], *[GOOD] * 30, *bad[:20], *[GOOD] * 100)
    made = topology(tmp_path, wants_bad=wants_bad, policy=policy)
    limits = {"max_spout_pending": max_pending, "on_poison": on_poison}
    with LocalCluster(seed=1) as cluster:
        run = cluster.submit(made, options=RunOptions(max_bad_fraction=0.1, **limits))
        with pytest.raises(
            SourceError,
            match=r"more records are bad than --max-bad-fraction 0.1 allows: with txid 4, 35 of 200 records were bad, "
            r"35 of them because field 'n' is …, which is not int in this run; everything below it is committed",
        ):
            run.run_until_idle()
        assert (run.statistics.last_txid, run.statistics.quarantined) == (3, [])
        assert run.state("counts")["default"] == 135
        assert len(run.dead_letters()) == (15 if policy == "dead_letter" and not wants_bad else 0)

        later = cluster.submit(made, options=RunOptions(max_bad_fraction=0.2, **limits))
        later.run_until_idle()
        assert later.state("counts")["default"] == 265, "the next run has read again what the limit kept out"


def test_a_later_run_counts_from_its_own_beginning(cluster, tmp_path):
    write(tmp_path, *[GOOD] * 100, *[MISSING] * 200)
    made = topology(tmp_path)
    for stops_at, said in ((4, "100 of 200"), (5, "100 of 100")):  # fewer than 100 records say nothing
        run = cluster.submit(made, options=RunOptions(max_bad_fraction=0.4))
        with pytest.raises(SourceError, match=f"with txid {stops_at}, {said} records"):
            run.run_until_idle()
        assert run.statistics.last_txid == stops_at - 1


def test_few_records_say_nothing(cluster, tmp_path):
    write(tmp_path, *[MISSING] * 49)
    run = cluster.submit(topology(tmp_path), options=RunOptions(max_bad_fraction=0))
    run.run_until_idle()
    assert run.statistics.committed == 1


def test_a_run_that_is_done_says_how_many_records_were_bad_and_why_most_of_them(cluster, tmp_path):
    write(tmp_path, *[TYPE % n for n in range(200)], *[MISSING] * 100, *["no JSON"] * 10, GOOD)
    made = topology(tmp_path, policy="skip")
    run = cluster.submit(made)
    run.run_until_idle()
    said = "310 of 311 records were bad, 200 of them because field 'n' is …, which is not int"
    (warning,) = _warnings(made, run.statistics)
    assert said in warning
    assert f"  {said}" in _summary(made, run.statistics, ServerChoice("redis://nowhere", tmp_path))
    figures = run.statistics.to_dict("t")
    assert (figures["bad_records"]["count"], figures["bad_records"]["of"]) == (310, 311)
    assert list(figures["bad_records"]["reasons"].items())[:2] == [
        ("field 'n' is …, which is not int", 200),
        ("field 'n' is missing", 100),
    ]
    assert figures["counters"] == {"bad_records": 310}, "reasons are no counters of users"
    assert json.dumps(figures)


def test_reasons_are_of_few_kinds_however_odd_the_records(cluster, tmp_path):
    write(tmp_path, *['{"n": %s}' % json.dumps({str(n): n}) for n in range(300)])  # noqa: UP031 - of braces
    run = cluster.submit(topology(tmp_path, policy="skip"))
    run.run_until_idle()
    assert list(run.statistics.bad_records.reasons) == ["field 'n' is …, which is not int"]
