"""Committers and group commit: runs committers over a group, and decides which prefix of it is published.

No Redis and no Spark here: `coordinator` carries the decision out, `state` writes it.
"""

from coordinated_bolt.neighbours import require_own_packages

require_own_packages()

from committers.committer import ICommitter

__all__ = [
    "ICommitter",
]
