"""Results as plain tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.measurement import Case, ControlCase, Result, TxbatchCase, median

Measured = tuple[Case, list[Result]]
HEADINGS = (
    *("side", "rows in flight", "tx/s", "spread", "tuples/s", "words/s"),
    *("latency p50", "p99", "commit p50", "p99"),
)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a table with columns as wide as needed; the first column is text, the others are figures."""
    widths = [max(len(row[column]) for row in [headings, *rows]) for column in range(len(headings))]
    lines = []
    for row in [headings, ["-" * width for width in widths], *rows]:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def transactions_per_s(results: Sequence[Result]) -> float:
    """Returns the median over the rounds."""
    return median([result.transactions_per_s for result in results])


def same_rows_section(lines: int, measured: Sequence[Measured]) -> str:
    """Returns the table for one transaction size: every txbatch case, and the control with batches of the same rows."""
    chosen = [entry for entry in measured if entry[0].lines == lines]
    controls = [(case, results) for case, results in chosen if isinstance(case, ControlCase)]
    headings = [*HEADINGS, *(f"x {case.tuning}" for case, _ in controls if isinstance(case, ControlCase))]
    rows = []
    for case, results in chosen:
        rate = transactions_per_s(results)
        ratios = [f"{rate / transactions_per_s(base):.1f}" for _, base in controls]
        rows.append([case.name, f"{case.rows_in_flight:,}", *_figures(results), *ratios])
    words = median([result.words / result.transactions for _, results in chosen for result in results])
    title = f"Transactions of {lines:,} lines, about {words:,.0f} words"
    return f"{title}\n\n{table(headings, rows)}"


def equal_rows_section(measured: Sequence[Measured]) -> str:
    """Returns the table that compares both sides at equal rows in flight."""
    rows = []
    for case, results in measured:
        if not isinstance(case, TxbatchCase):
            continue
        for other, base in measured:
            if isinstance(other, ControlCase) and other.rows_in_flight == case.rows_in_flight:
                ratio = median([r.tuples_per_s for r in results]) / median([r.tuples_per_s for r in base])
                what = f"{case.lines:,} lines, window {case.window}, group {case.group}; {other.tuning} control"
                figures = [f"{median([r.tuples_per_s for r in side]):,.0f}" for side in (results, base)]
                rows.append([what, f"{case.rows_in_flight:,}", *figures, f"{ratio:.2f}"])
    headings = ("txbatch; control", "rows in flight", "txbatch tuples/s", "control tuples/s", "ratio")
    return f"At equal rows in flight\n\n{table(headings, rows)}"


def _figures(results: Sequence[Result]) -> list[str]:
    rates = [result.transactions_per_s for result in results]
    return [
        f"{median(rates):,.1f}",
        f"{min(rates):,.1f}-{max(rates):,.1f}",
        f"{median([result.tuples_per_s for result in results]):,.0f}",
        f"{median([result.words_per_s for result in results]):,.0f}",
        f"{median([result.latency_p50_ms for result in results]):,.0f} ms",
        f"{median([result.latency_p99_ms for result in results]):,.0f} ms",
        f"{median([result.commit_p50_ms for result in results]):,.1f} ms",
        f"{median([result.commit_p99_ms for result in results]):,.1f} ms",
    ]
