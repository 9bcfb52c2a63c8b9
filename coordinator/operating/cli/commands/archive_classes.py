"""``txbatch archive-classes``: has Spark start sooner on this machine."""

from __future__ import annotations

from coordinator.operating.cli.command import command
from coordinator.operating.cli.terminal import say


@command
def archive_classes() -> None:
    """Have Spark start sooner on this machine: keep its classes as Java has read them.

    Once for each user, and again after an upgrade of Java or Spark; an archive that does not fit is not used.
    """
    from coordinator.engines.spark.archive_maker import make_archive  # imports Spark

    made = make_archive()
    say(f"txbatch: Spark's classes are in {made} ({made.stat().st_size / 1e6:.0f} MB); runs of this user use it")
