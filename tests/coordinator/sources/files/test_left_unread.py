"""What the user has decided to leave unread stays so in later runs, is never removed, and is named once it changes."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from coordinator.testing.cluster.cluster import LocalCluster
from state.errors import SourceError
from tests.support.sources.growing_folder import drained, settled


def write(path: Path, line: str, *, append: bool = False) -> None:
    """Writes a line, a while ago."""
    content = f"{line}\n".encode()
    with path.open("ab" if append else "wb") as file:
        file.write(gzip.compress(content) if path.suffix == ".gz" else content)
    os.utime(path, (path.stat().st_mtime - 10,) * 2)


@pytest.mark.parametrize("done", ["keep", "delete", "move", "list"])
@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
@pytest.mark.parametrize("has_grown", [True, False])
def test_a_change_is_accepted_once(cluster: LocalCluster, tmp_path: Path, name: str, done: str, has_grown: bool):
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    done_path = str(tmp_path / "done") if done in {"move", "list"} else ""

    def lines(done: str, adopt: str | bool = False) -> list[str]:
        place = done_path if done != "keep" else ""
        run = settled(cluster, inbox, adopt=adopt, done=done, done_path=place, pattern="*.txt*")
        drained(run)
        return list(run.state("lines"))

    write(inbox / name, "first")
    assert lines("keep") == ["first"]
    write(inbox / name, "of another length", append=has_grown)
    with pytest.raises(SourceError, match=r"has more now" if has_grown else "has changed"):
        lines(done)
    left = (inbox / name).read_bytes()
    assert lines(done, adopt="changed") == ["first"]
    for new in "yz":
        write(inbox / f"{new}.txt", new)
        lines(done)
    assert lines(done) == ["first", "y", "z"]
    assert (inbox / name).read_bytes() == left
    write(inbox / name, "more", append=True)
    with pytest.raises(SourceError, match="has more now"):
        lines(done)
