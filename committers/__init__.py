"""Committers and group commit: runs committers over a group, and decides which prefix to publish.

No Redis and no Spark here: `coordinator` carries the decision out, `state` writes it.
"""

from typing import TYPE_CHECKING

from coordinated_bolt.neighbours import require_own_packages

require_own_packages()

from state.lazy_exports import hand_on_lazily

if TYPE_CHECKING:
    from committers.committer import ICommitter

hand_on_lazily(__name__)

__all__ = [
    "ICommitter",
]
