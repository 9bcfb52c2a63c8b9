"""Draws what every process of a run used, over the transactions committed, as a PNG. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from benchmarks.process_tree import Role, Usage
from benchmarks.resource_samples import Sample

MEBIBYTE = 2**20
COLOURS = {Role.DRIVER: "#0550ae", Role.JAVA: "#bc4c00", Role.WORKERS: "#1b7c83", Role.SERVER: "#8250df"}
Series = dict[str, Callable[[Sample], float]]


def draw(samples: Sequence[Sample], path: Path) -> None:
    """Writes the plot: memory, open files, disk, and files on disk."""
    figure = Figure(figsize=(9.0, 7.0), dpi=130, facecolor="white", layout="constrained")
    panels = figure.subplots(2, 2, sharex=True).flat
    across = [sample.committed for sample in samples]
    for axes, (title, series) in zip(panels, _series().items(), strict=True):
        for name, value in series.items():
            colour = next((COLOURS[role] for role in Role if role.value == name), None)
            axes.plot(across, [value(sample) for sample in samples], label=name, color=colour, linewidth=1.2)
        axes.set_title(title, fontsize=10, loc="left")
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.tick_params(labelsize=8)
        axes.grid(color="#d0d7de", linewidth=0.5)
        axes.legend(fontsize=8)
    figure.supxlabel("transactions committed", fontsize=9)
    figure.savefig(path, format="png")


def _series() -> dict[str, Series]:
    """Returns title of a panel -> name of a line -> its value."""
    return {
        "Memory, MiB": {role.value: _of(role, "resident_bytes", MEBIBYTE) for role in Role},
        "Open files": {role.value: _of(role, "open_files", 1) for role in Role},
        "Disk, MiB": {
            "Spark's local files": lambda sample: sample.spark_bytes / MEBIBYTE,
            "server's data": lambda sample: sample.server_bytes / MEBIBYTE,
        },
        "Spark's local files": {"number": lambda sample: sample.spark_files},
    }


def _of(role: Role, attribute: str, unit: int) -> Callable[[Sample], float]:
    def value(sample: Sample) -> float:
        found: float = getattr(sample.usage.get(role, Usage()), attribute)
        return found / unit

    return value
