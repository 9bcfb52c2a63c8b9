"""Sub-topologies on real Spark: golden case G4, with a batch that fails."""

from __future__ import annotations

import pytest

from state.errors import FailedException
from tests.support.spark.bolts import note, notes, once
from tests.support.spark.plain_jobs import run
from tests.support.topologies.batch_components import Diary, Outside, Spread, square_builder

pytestmark = pytest.mark.spark


class FailingSpread(Spread):
    """Fails one request, once."""

    def __init__(self, marker):
        super().__init__()
        self.marker = marker

    def work(self, tup):
        if tup["request"] == "three" and once(self.marker):
            raise FailedException("once")
        super().work(tup)


class NoteDown(Outside):
    def __init__(self, path):
        self.path = str(path)

    def execute(self, tup, collector):
        note(self.path, *tup.values)


@pytest.mark.case(id="G4")
@pytest.mark.nightly
def test_every_request_is_squared_exactly_once_and_a_failed_batch_is_replayed(contexts, tmp_path):
    Diary.entries.clear()
    requests = {"two": 2, "ten": 10, "one": 1, "none": 0, "three": 3}
    spread, outside = FailingSpread(tmp_path / "three"), NoteDown(tmp_path / "notes")
    builder = square_builder(requests, replay=True, master_tasks=2, spread=spread, outside=outside)

    statistics = run(contexts.open(), builder.build())

    assert sorted(notes(tmp_path / "notes")) == sorted([name, n * n] for name, n in requests.items())
    assert (sorted(Diary.of("acked")), Diary.of("failed")) == (
        sorted(("acked", name) for name in requests),
        [("failed", "three")],
    )
    assert (statistics.acked, statistics.failed, statistics.waves) == (5, 1, 2)
