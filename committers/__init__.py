"""Committers and group commit: what is published, and in which order."""

from coordinated_bolt.neighbours import require_own_packages

require_own_packages()

from committers.committer import ICommitter

__all__ = [
    "ICommitter",
]
