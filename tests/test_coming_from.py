"""The jobs in both forms that docs/coming-from shows run, and count the same."""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import redis

from coordinator import LocalCluster, RunOptions, run_bolt
from state import StateRefusedError
from tests.conftest import Backend
from tests.support.documents import blocks

PAGES = Path(__file__).resolve().parent.parent / "docs" / "coming-from"
PERFORMANCE = PAGES.parent / "performance.md"
LINES = ["to be", "or not", "to be"]
WORDS = {"to": 2, "be": 2, "or": 1, "not": 1}
CLICKS = [("/", 1), ("/docs", 2), ("/", 3), ("/", 1)]
TOTALS = {"/": 5, "/docs": 2}


def run_blocks(page: str, *numbers: int) -> dict[str, Any]:
    """Runs the blocks of a page that are run, in one namespace; all of them, or those with these numbers from 0."""
    namespace: dict[str, Any] = {"__name__": page.removesuffix(".md").replace("-", "_")}
    texts = [block.text for block in blocks(PAGES / page, "python") if not block.reason]
    for number in numbers or range(len(texts)):
        exec(compile(texts[number], f"docs/coming-from/{page}, block {number}", "exec"), namespace)
    return namespace


@pytest.fixture
def lines(tmp_path: Path) -> str:
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"{line}\n" for line in LINES))
    return str(path)


@pytest.fixture
def clicks(tmp_path: Path) -> Path:
    folder = tmp_path / "clicks"
    folder.mkdir()
    for number, (page, count) in enumerate(CLICKS):
        (folder / f"{number}.json").write_text(json.dumps({"page": page, "clicks": count}) + "\n")
    return folder


def counted(topology: Any, state: str) -> Any:
    with LocalCluster(seed=3) as cluster:
        run = cluster.submit(topology)
        run.run_until_idle()
        return run.state(state)


def test_the_word_count_of_storm(lines: str) -> None:
    assert counted(run_blocks("storm.md")["topology"](lines), "counts") == WORDS


def test_the_views_of_flink() -> None:
    trial = run_bolt(run_blocks("flink.md")["CountViews"](), [["/"], ["/docs"], ["/"]], fields=["value"])
    assert trial.states == {"views": {"/": 2, "/docs": 1}}


def test_the_topology_that_flink_users_are_shown_can_be_built() -> None:
    topology = run_blocks("flink.md")["topology"]("localhost:9092", "page_views")
    assert topology.topology_id == "views"


def test_the_word_count_of_bytewax_here(lines: str) -> None:
    pytest.importorskip("bytewax", reason="it has no wheels for Python 3.13")
    assert counted(run_blocks("bytewax.md")["topology"](lines), "counts") == WORDS


@pytest.mark.parametrize("page", ["quix.md", "faust.md"])
def test_topologies_over_kafka_can_be_built(page: str) -> None:
    assert run_blocks(page)["topology"]("localhost:9092").topology_id in {"spent", "orders"}


def test_the_sum_of_pathway_here(tmp_path: Path) -> None:
    (tmp_path / "values.csv").write_text("value\n3\n-5\n4\n")
    assert counted(run_blocks("pathway.md")["topology"](f"{tmp_path}/*.csv"), "sum") == 7


@pytest.mark.redis
def test_the_word_count_of_bytewax_there(lines: str, redis_backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    testing = pytest.importorskip("bytewax.testing", reason="it has no wheels for Python 3.13")
    monkeypatch.setitem(os.environ, "REDIS_URL", str(redis_backend.url))
    testing.run_main(run_blocks("bytewax.md", 0)["dataflow"](lines))
    stored = redis_backend.client(decode_responses=True).hgetall("counts")
    assert {word: int(count) for word, count in stored.items()} == WORDS


def test_the_clicks_of_foreach_batch_without_a_query(clicks: Path) -> None:
    assert counted(run_blocks("foreach-batch.md", 1, 2)["topology"](f"{clicks}/*.json", 1), "pages") == TOTALS


def test_totals_that_exist_are_continued_without_a_query(clicks: Path) -> None:
    shown = run_blocks("foreach-batch.md", 1, 2, 3)
    with LocalCluster(seed=3) as cluster:
        cluster.client.hset("pages", mapping={"/": 100, "/old": 7})
        shown["copy_totals"](cluster.client)
        with pytest.raises(StateRefusedError, match="to add to what is there, give --accept-state-changes"):
            cluster.submit(shown["topology"](f"{clicks}/*.json", 1)).run_until_idle()
        run = cluster.submit(shown["topology"](f"{clicks}/*.json", 1), options=RunOptions(accept_state_changes=True))
        run.run_until_idle()
        assert run.state("pages") == {"/": 105, "/docs": 2, "/old": 7}


def test_the_next_batch_is_the_one_after_the_last_that_spark_has_noted(tmp_path: Path) -> None:
    (tmp_path / "commits").mkdir()
    for name in ("0", "9", "10", ".10.crc"):
        (tmp_path / "commits" / name).touch()
    assert run_blocks("foreach-batch.md", 0, 1, 3)["next_batch"](tmp_path) == 11


def test_the_latency_of_one_micro_batch_is_that_of_the_figures() -> None:
    said = [re.search(r"(\d+) ms for one micro-batch", (PAGES / "foreach-batch.md").read_text(encoding="utf-8"))]
    figures = " ".join(PERFORMANCE.read_text(encoding="utf-8").split())
    said.append(re.search(r"one micro-batch of the control takes (\d+) ms", figures))
    assert len({found and found[1] for found in said}) == 1
    assert None not in said


@pytest.mark.spark
@pytest.mark.redis
@pytest.mark.slow
@pytest.mark.nightly
def test_the_clicks_of_foreach_batch_as_a_query_and_exactly_once(
    clicks: Path, tmp_path: Path, redis_backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "REDIS_URL", str(redis_backend.url))
    monkeypatch.setitem(os.environ, "PYSPARK_PYTHON", sys.executable)  # which a run of ours sets
    shown = run_blocks("foreach-batch.md", 0, 1, 3, 4)

    def totals(key: str) -> Counter[str]:
        return Counter({page: int(count) for page, count in client.hgetall(key).items()})

    with redis.Redis.from_url(str(redis_backend.url), decode_responses=True) as client:
        for start, key in (("start", "pages"), ("start_exactly_once", "{clicks}:pages")):
            query = shown[start](str(clicks), str(tmp_path / start))
            assert query.awaitTermination(120)
            assert totals(key) == TOTALS
        client.delete(*client.keys("{clicks}*"))
        query = shown["start_aggregated"](str(clicks), str(tmp_path / "aggregated"))
        assert query.awaitTermination(120)
        assert totals("{clicks}:pages") == TOTALS
        client.delete(*client.keys("{clicks}*"))
        shown["copy_totals"](client)
        (clicks / "late.json").write_text(json.dumps({"page": "/late", "clicks": 9}) + "\n")
        first = shown["next_batch"](tmp_path / "start")
        assert shown["continue_exactly_once"](str(clicks), str(tmp_path / "start"), first).awaitTermination(120)
        assert totals("{clicks}:pages") == {**TOTALS, "/late": 9}
        (clicks / "later.json").write_text(json.dumps({"page": "/late", "clicks": 1}) + "\n")
        assert shown["start_exactly_once"](str(clicks), str(tmp_path / "start")).awaitTermination(120)
        assert totals("{clicks}:pages") == {**TOTALS, "/late": 10}
