"""The ``txbatch`` command; the only room of the packages that speaks to a terminal."""

from coordinator.cli.entry import main

__all__ = ["main"]
