"""Sources: spouts over inputs people have."""

from coordinator.sources.files import TextFiles

__all__ = ["TextFiles"]
