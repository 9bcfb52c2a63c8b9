"""What docs/sources.md shows can be written like that."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

DOCUMENT = Path(__file__).resolve().parents[4] / "docs" / "sources.md"
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
    blocks = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, "docs/sources.md", "exec"), namespace)
    for name in ("lines", "events", "orders", "rows"):
        assert len(namespace[name].paths()) == 1
    assert namespace["source"].follow.done == "move"
