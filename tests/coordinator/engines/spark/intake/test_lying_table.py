"""A table whose rows are others whenever they are computed: a transaction is one computation, or the run ends by name.

The rows of an attempt are computed when it is processed, once more if what was shuffled is lost before its commit, and
again for each further attempt, also by the next run.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinator.engines.spark.intake.row_intake import DIGEST_SCOPE
from coordinator.sources.data_frame_batches import ColumnRanges, DataFrameBatches
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from state import HashState
from state.errors import FailedException, SourceError
from tests.support.runs.collecting import Collecting
from tests.support.runs.lying_table import ROWS, Lie, LyingTable, TableEngine, row_hash
from tests.support.runs.whole_runs import Crash, CrashingStore, bounds, crash_points, run
from tests.support.topologies.components import plan


class Pass(BaseBatchBolt):
    output_fields = ("value",)

    def execute(self, tup):
        self.collector.emit(list(tup))


class Keep(Collecting):
    seen = HashState("seen", value=int)
    fails: list[bool]
    """For each attempt that finishes on a task, whether it fails; then no more."""

    def finish_batch(self):
        if Keep.fails and Keep.fails.pop(0):
            raise FailedException("drawn")
        self.seen.increment_many(Counter(self.column("value")))


def topology(table: LyingTable, *, has_bolt: bool):
    spout = DataFrameBatches(lambda spark: None, ["value"], ColumnRanges("id", 1)).bound(table)
    builder = TransactionalTopologyBuilder("table", "rows", spout, parallelism=2)
    if has_bolt:
        builder.set_bolt("pass", Pass(), parallelism=2).shuffle_grouping("rows")
    above = "pass" if has_bolt else "rows"
    builder.set_committer_bolt("keep", Keep(), parallelism=2).fields_grouping(above, ["value"])
    return builder.build()


def first_read(store: CrashingStore, txid: int) -> list[int]:
    """How many rows were read first, and the sum of their hashes, as it was stored then."""
    entries = [call[1] for call in store.calls if call[0] == "metadata"]
    found: list[int] = next(each[field] for each in entries if (field := f"{DIGEST_SCOPE}:{txid}") in each)
    return found


@pytest.mark.parametrize("is_exact", [True, False], ids=["DataFrameBatches", "micro-batches"])
@given(
    lies=st.lists(st.sampled_from(Lie), max_size=8),
    recomputes=st.lists(st.booleans(), max_size=4),
    fails=st.lists(st.booleans(), max_size=6),
    crashes=crash_points,
    has_bolt=st.booleans(),
    options=bounds,
)
@settings(max_examples=40)
def test_a_transaction_is_one_computation_or_the_run_ends_by_name(
    *, is_exact, lies, recomputes, fails, crashes, has_bolt, options
):
    table, store, error = LyingTable(lies), CrashingStore(crashes), None
    Keep.fails = list(fails)
    for _ in range(len(crashes) + 1):
        made_of = topology(table, has_bolt=has_bolt)
        made = plan(made_of)
        engine = TableEngine(made, Random(len(lies)), table, recomputes, is_exact=is_exact)
        try:
            run(made_of, store, made=made, engine=engine, **options)
            break
        except Crash:
            continue
        except SourceError as ended:
            error = ended
            break
    seen = store.states.get("seen", {})
    for txid in range(1, table.units + 1):
        mine = Counter({value: count for value, count in seen.items() if value.startswith(f"{txid - 1}.")})
        if txid > store.committed_txid:
            assert not mine
            continue
        assert mine in table.computed[txid - 1], f"mixed: {mine}"
        if is_exact:
            assert first_read(store, txid) == [ROWS, sum(map(row_hash, mine)) % 2**64]
    if error is None:
        assert store.committed_txid == table.units
    else:
        assert is_exact
        assert "was changed where a transaction reads it" in str(error)
