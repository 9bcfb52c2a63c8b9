"""Counters, gauges and histograms as plain values, named as Prometheus wants them. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate

Labels = Mapping[str, str]


class Kind(StrEnum):
    """The kind of a measure, in Prometheus's own words."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Sample:
    """One number of a measure.

    Attributes:
        suffix: follows the name of the measure: ``_total`` of a counter, ``_bucket``, ``_sum`` and ``_count`` of a
            histogram.
        labels: label -> value.
        value: the number, in the unit that the name of the measure ends with.
    """

    suffix: str
    labels: Labels
    value: float


@dataclass(frozen=True, slots=True)
class Measure:
    """Everything known of one measure at one time.

    Attributes:
        name: without the ``_total`` of a counter.
        kind: of the measure.
        help: one sentence that says what the figure means.
        samples: its numbers.
    """

    name: str
    kind: Kind
    help: str
    samples: tuple[Sample, ...]

    @classmethod
    def counter(cls, name: str, help: str, values: Mapping[tuple[str, ...], float], *labels: str) -> Measure:  # noqa: A002 - Prometheus' word
        """Returns a counter; `values` are by the values of its labels."""
        samples = (Sample("_total", dict(zip(labels, key, strict=True)), value) for key, value in values.items())
        return cls(name, Kind.COUNTER, help, tuple(samples))

    @classmethod
    def gauge(cls, name: str, help: str, value: float | None, labels: Labels | None = None) -> Measure:  # noqa: A002
        """Returns a gauge; one whose value is unknown has no sample."""
        return cls(name, Kind.GAUGE, help, () if value is None else (Sample("", labels or {}, value),))


class Histogram:
    """Counts observations by size.

    Args:
        name: of the measure.
        help: one sentence that says what the figure means.
        bounds: the upper ends of the buckets, ascending; one more takes what is larger.
    """

    def __init__(self, name: str, help: str, bounds: Sequence[float]) -> None:  # noqa: A002 - Prometheus' word
        self._name, self._help, self._bounds = name, help, tuple(bounds)
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """Counts one observation."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def measure(self) -> Measure:
        """Returns what was counted so far."""
        ends = [*(str(float(bound)) for bound in self._bounds), "+Inf"]
        running = list(accumulate(self._counts))
        buckets = (Sample("_bucket", {"le": end}, count) for end, count in zip(ends, running, strict=True))
        rest = (Sample("_sum", {}, self._sum), Sample("_count", {}, running[-1]))
        return Measure(self._name, Kind.HISTOGRAM, self._help, (*buckets, *rest))
