"""The quickstart, typed as it stands, ends with the answer it promises."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.support.documents import BLOCK

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "quickstart.md"
ALREADY_DONE = ("python3 -m venv", "pip install")
TIMEOUT_S = 600.0


def script() -> str:
    """Every block in order, as one script of bash."""
    typed = ["set -eu"]
    for _, language, text in BLOCK.findall(DOCUMENT.read_text(encoding="utf-8")):
        if language == "python":
            typed.append(f"python - <<'END'\n{text}END")
            continue
        typed += [line for line in text.splitlines() if not line.startswith(ALREADY_DONE)]
    reads = next(text for _, language, text in BLOCK.findall(DOCUMENT.read_text("utf-8")) if language == "python")
    return "\n".join([*typed, "echo THE ANSWER", f"python - <<'END'\n{reads}END"]) + "\n"


def counts_in(text: str) -> Counter[str]:
    return Counter({page: int(count) for page, count in re.findall(r"'(/\w*)': '?(\d+)", text)})


@pytest.mark.spark
@pytest.mark.redis
@pytest.mark.slow
@pytest.mark.chaos
@pytest.mark.nightly
@pytest.mark.timeout(TIMEOUT_S + 20)
def test_the_quickstart_ends_with_the_answer_it_promises(tmp_path: Path) -> None:
    done = subprocess.run(
        ["bash"],
        input=script(),
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"=+ \d+ passed", done.stdout) is not None, done.stdout
    typed, _, answer = done.stdout.partition("THE ANSWER\n")
    promised = re.search(r"^Counter\(.*\)$", typed, re.MULTILINE)
    assert promised is not None
    assert counts_in(answer) == counts_in(promised[0])
    assert sum(counts_in(answer).values()) == 1_000_000
