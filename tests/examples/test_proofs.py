"""Every example whose input is a sample is proved, as its readers may; the others are refused with a reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator import Topology, prove
from examples import clickstream, dedupe, global_count, ledger, streaming_bridge, top_k, word_count, word_count_batches
from state.errors import TopologyError

SEEDS = 20


def lines(folder: Path) -> str:
    (folder / "lines.txt").write_text("".join(f"to be or not {number % 7} to be\n" for number in range(40)))
    return f"{folder}/*.txt"


def made(folder: Path, make_data: Callable[..., None], count: int, pattern: str, **more: int) -> str:
    make_data(folder, count, **more)
    return f"{folder}/{pattern}"


EXAMPLES: dict[str, Callable[[Path], Topology]] = {
    "clickstream": lambda path: clickstream.topology(made(path, clickstream.make_data, 300, "*.json.gz", days=2), 60),
    "dedupe": lambda path: dedupe.topology(made(path, dedupe.make_data, 120, "*.jsonl"), 20),
    "global_count": lambda path: global_count.topology(),
    "ledger": lambda path: ledger.topology(made(path, ledger.make_data, 120, "*.jsonl", accounts=9), 20),
    "top_k": lambda path: top_k.topology(made(path, top_k.make_data, 200, "*.csv"), 40),
    "word_count": lambda path: word_count.topology(lines(path), 8),
    "word_count_batches": lambda path: word_count_batches.topology(lines(path), 8),
}


QUICK = ("ledger", "word_count")
"""One that reads and one that only writes; the others are proved every night."""


@pytest.mark.nightly
@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.nightly) for name in EXAMPLES]
)
def test_an_example_leaves_the_same_state_under_every_schedule(name: str, tmp_path: Path) -> None:
    proof = prove(EXAMPLES[name](tmp_path), seeds=SEEDS)
    assert proof.holds, proof
    assert (proof.seeds, proof.mistakes) == (SEEDS, ())
    assert proof.batches >= 4


def test_an_example_over_data_frames_is_refused() -> None:
    with pytest.raises(TopologyError, match="reads DataFrames, which only Spark can read"):
        prove(streaming_bridge.topology())
