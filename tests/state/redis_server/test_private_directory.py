"""A data directory is its owner's alone, and nobody else's folder is taken over."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from state.errors import StateRefusedError
from state.redis_server import embedded
from state.redis_server.embedded import EmbeddedServer, make_private

OURS = frozenset({"lock"})


def mode_of(path):
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701, 0o777])
@pytest.mark.parametrize("names", [[], ["lock"]], ids=["empty", "ours"])
def test_a_directory_that_is_open_to_others_is_closed(tmp_path, mode, names):
    path = tmp_path / "data"
    path.mkdir()
    for name in names:
        (path / name).touch()
    path.chmod(mode)

    make_private(path, own_names=OURS)

    assert mode_of(path) == 0o700


def test_a_directory_that_is_missing_is_made_private(tmp_path):
    make_private(tmp_path / "a" / "b", own_names=OURS)

    assert mode_of(tmp_path / "a" / "b") == 0o700


def test_a_folder_of_something_else_is_not_taken_over(tmp_path):
    (tmp_path / "report.txt").touch()
    tmp_path.chmod(0o755)

    with pytest.raises(
        PermissionError,
        match=r"open to other users \(mode 755\) and holds 'report.txt', which is not a",
    ):
        make_private(tmp_path, own_names=OURS)

    assert mode_of(tmp_path) == 0o755


def test_a_private_folder_may_hold_anything(tmp_path):
    (tmp_path / "report.txt").touch()
    tmp_path.chmod(0o700)

    make_private(tmp_path, own_names=OURS)


@pytest.mark.redis
@pytest.mark.parametrize(
    ("folder", "names"), [(".txbatch", ["demo-input"]), ("data", ["lock", "notes.txt"]), ("made by hand", [])]
)
def test_a_data_directory_is_closed_whatever_else_is_kept_in_it(tmp_path, folder, names):
    path = tmp_path / folder
    path.mkdir(mode=0o755)
    for name in names:
        (path / name).write_text("")
    with EmbeddedServer(path):
        assert mode_of(path) == 0o700


def test_another_users_directory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(embedded, "os", SimpleNamespace(getuid=lambda: os.getuid() + 1))

    with pytest.raises(
        PermissionError, match=rf"belongs to user {os.getuid()}, but txbatch runs as user {os.getuid() + 1}"
    ):
        make_private(tmp_path, own_names=OURS)


def test_the_embedded_server_refuses_a_folder_of_something_else_in_a_sentence(tmp_path):
    (tmp_path / "report.txt").touch()
    tmp_path.chmod(0o755)

    with pytest.raises(
        StateRefusedError, match=r"cannot be used: .*holds 'report.txt'.*; or choose another --data-dir"
    ):
        EmbeddedServer(tmp_path).start()


def test_a_link_that_another_user_has_put_there_is_refused(tmp_path, monkeypatch):
    (tmp_path / "ours").mkdir(mode=0o700)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "ours")
    plain = type(link).lstat

    def of_another(self):
        return SimpleNamespace(st_uid=4711) if self == link else plain(self)

    monkeypatch.setattr(type(link), "lstat", of_another)

    with pytest.raises(PermissionError, match="link belongs to user 4711"):
        make_private(link, own_names=OURS)
