"""The ``txbatch`` command; the only room of the packages that speaks to a terminal."""

from coordinator.operating.cli.entry import main

__all__ = ["main"]
