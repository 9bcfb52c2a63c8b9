"""What docs/sources.md shows can be written like that."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from coordinator import LocalCluster

DOCUMENT = Path(__file__).resolve().parents[4] / "docs" / "sources.md"
BLOCKS = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
EVENT = b'{"user": "a", "price": 1.5}\n'


def test_every_block_makes_sources_that_find_their_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("logs", "events", "orders", "tables", "inbox"):
        Path(name).mkdir()
    Path("logs/a.txt.gz").write_bytes(gzip.compress(b"to be\n"))
    Path("events/a.json").write_bytes(EVENT)
    Path("orders/a.csv").write_text("at;price\nnow;1.5\n")
    pa.parquet.write_table(pa.table({"user": ["a"], "price": [1.5]}), "tables/a.parquet")
    namespace: dict[str, Any] = {}
    for block in BLOCKS[:3]:
        exec(compile(block, "docs/sources.md", "exec"), namespace)
    for name in ("lines", "events", "orders", "rows"):
        assert len(namespace[name].paths()) == 1
    assert namespace["topology"]().spout.spec.follow.complete == "quiet"
    assert namespace["source"].follow.done == "move"


def test_the_block_on_several_sources_counts_each_order_and_return_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    Path("in/orders.csv").write_text("order,customer,cents\n1,ann,500\n2,bob,700\n")
    Path("in/returns.jsonl").write_text('{"order": 2, "cents": 700}\n{"order": 3, "cents": 1}\n')
    namespace: dict[str, Any] = {}
    (block,) = BLOCKS[3:]
    exec(compile(block, "docs/sources.md", "exec"), namespace)
    with LocalCluster(seed=1) as cluster:
        run = cluster.submit(namespace["builder"].build())
        run.run_until_idle()
        assert run.state("cents") == {"ann": 500, "bob": 0}
        assert run.state("returned") == {3: 1}
