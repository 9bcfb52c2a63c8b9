"""The names of all metrics, as runs of both kinds export them."""

from __future__ import annotations

from functools import cache

from coordinator.plain.plain_statistics import PlainStatistics
from coordinator.watching.run_observer import RunBegan
from coordinator.watching.statistics.run_statistics import RunStatistics
from coordinator.watching.statistics.wave_statistics import WaveStatistics
from coordinator.watching.telemetry.run_metrics import RunMetrics


@cache
def documented_names() -> frozenset[str]:
    """Names as people write them: a counter with its ``_total``, a histogram without suffix."""
    statistics: tuple[WaveStatistics, ...] = (RunStatistics(), PlainStatistics())
    names = set()
    for each in statistics:
        metrics = RunMetrics("lines", lambda: 0.0, lambda: 0.0)
        metrics(RunBegan("lines", each, 30.0))
        names |= {f"{m.name}_total" if m.type == "counter" else m.name for m in metrics.collect()}
    return frozenset(names)


@cache
def queried_names() -> frozenset[str]:
    """Names as queries write them: of a histogram, its series."""
    suffixes = ("", "_bucket", "_sum", "_count")
    return frozenset(f"{name}{suffix}" for name in documented_names() for suffix in suffixes)
