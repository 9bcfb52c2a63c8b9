"""The ``txbatch`` command; the only package that writes to a terminal."""

from coordinator.operating.cli.entry import main

__all__ = ["main"]
