"""What the documentation shows is what happens: its Python blocks are run, in order."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PYTHON_BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


def test_every_block_on_testing_topologies_runs():
    text = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    blocks = PYTHON_BLOCK.findall(text)
    assert len(blocks) > 3
    namespace: dict[str, Any] = {"__name__": "testing_guide"}
    for number, block in enumerate(blocks, start=1):
        exec(compile(block, f"docs/testing.md, block {number}", "exec"), namespace)
