"""Samples of a run are bounded and evenly spaced."""

from __future__ import annotations

import struct
from itertools import pairwise

import pytest

from benchmarks.process_tree import Role, Usage
from benchmarks.resource_plot import draw
from benchmarks.resource_samples import Sample, Samples, at_marks, folder_size
from benchmarks.resources import report


def sample(committed):
    usage = {role: Usage(1, committed * 2**20, 17) for role in Role}
    return Sample(committed / 10, committed, usage, spark_files=3, spark_bytes=2**20, server_bytes=committed)


@pytest.mark.parametrize("count", [1, 100, 101, 250, 4_321, 100_000])
def test_samples_of_a_long_run_are_bounded_and_evenly_spaced(count):
    samples = Samples(most=100)
    for number in range(count):
        samples.add(sample(number))

    numbers = [kept.committed for kept in samples.kept]
    steps = {later - earlier for earlier, later in pairwise(numbers)}
    assert len(numbers) <= 100
    assert len(numbers) > 50 or count <= 100
    assert numbers[0] == 0
    assert len(steps) <= 1
    assert count - 1 - numbers[-1] < max(steps, default=1)


def test_marks_are_the_first_samples_that_have_reached_them():
    samples = [sample(committed) for committed in (0, 9, 12, 24, 60, 70, 99)]

    assert [found.committed for found in at_marks(samples, 100)] == [12, 60, 60, 99, 99]


def test_the_size_of_a_folder_is_that_of_all_files_in_it(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "one").write_bytes(b"abc")
    (tmp_path / "two").write_bytes(b"de")
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")

    assert folder_size(tmp_path) == (2, 5)
    assert folder_size(tmp_path / "nowhere") == (0, 0)


def test_the_table_shows_the_growth_of_the_second_half():
    shown = report([sample(committed) for committed in range(0, 101, 5)], 100)

    rows = {line.split("  ")[0].strip(): line.split()[-1] for line in shown.splitlines()}
    assert rows["driver: memory, MiB"] == "+100.0%"
    assert rows["driver: open files"] == "+0.0%"
    assert "server's data, MiB" in rows


def test_the_plot_is_a_png_of_every_sample(tmp_path):
    draw([sample(committed) for committed in range(10)], tmp_path / "plot.png")

    packed = (tmp_path / "plot.png").read_bytes()
    assert packed.startswith(b"\x89PNG")
    assert struct.unpack(">II", packed[16:24]) == (1170, 910)
