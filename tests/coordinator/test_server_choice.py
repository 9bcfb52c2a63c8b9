"""Which server a command talks to."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis

from coordinator.server_choice import choose_server
from state.errors import StateRefusedError, TopologyError
from state.redis_server.embedded import EmbeddedServer

ENVIRONMENT = {"TXBATCH_REDIS_URL": "redis://:hunter22@fromenv:1"}


def test_without_a_word_it_is_the_private_server() -> None:
    assert str(choose_server(None, None, {})) == "the private server in '.txbatch'"


def test_the_environment_counts_unless_something_is_typed() -> None:
    assert str(choose_server(None, None, ENVIRONMENT)) == "redis://fromenv:1"
    assert str(choose_server("redis://typed:1", None, ENVIRONMENT)) == "redis://typed:1"
    assert str(choose_server(None, Path("data"), ENVIRONMENT)) == "the private server in 'data'"


@pytest.mark.parametrize("end", ["\n", " ", "\r\n"])
def test_a_line_end_after_an_address_in_the_environment_is_left_out(end: str) -> None:
    assert str(choose_server(None, None, {"TXBATCH_REDIS_URL": f"redis://fromenv:1{end}"})) == "redis://fromenv:1"
    assert str(choose_server(None, None, {"TXBATCH_REDIS_URL": end})) == "the private server in '.txbatch'"


def test_both_options_exclude_each_other() -> None:
    with pytest.raises(TopologyError, match="--redis and --data-dir exclude each other"):
        choose_server("redis://typed:1", Path("data"), {})


def test_a_password_is_not_in_its_representation() -> None:
    assert "hunter22" not in repr(choose_server(None, None, ENVIRONMENT))


def test_no_server_is_started_where_there_never_was_one(tmp_path: Path) -> None:
    missing = tmp_path / "data"

    for data_dir in (missing, tmp_path):
        with pytest.raises(TopologyError, match="holds no state"), choose_server(None, data_dir, {}).store("words"):
            pass

    assert not missing.exists()
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_may_not_be_looked_into_is_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(self: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "is_file", denied)

    with (
        pytest.raises(StateRefusedError, match="cannot be read: Permission denied; choose another --data-dir"),
        choose_server(None, tmp_path, {}).store("words"),
    ):
        pass


def test_a_look_at_another_machine_in_plain_text_has_to_be_allowed() -> None:
    far = "redis://:hunter22@192.0.2.1"
    with (
        pytest.raises(TopologyError, match=r"server redis://192\.0\.2\.1 is on another machine"),
        choose_server(far, None, {}).store("words"),
    ):
        pass
    with choose_server(far, None, {}, allow_plaintext=True).store("words") as store:
        assert store.server == "redis://192.0.2.1"


@pytest.mark.redis
def test_a_private_server_that_ends_with_its_run_is_started_again_by_the_next_look(tmp_path: Path) -> None:
    run = EmbeddedServer(tmp_path / ".txbatch").start()
    with choose_server(None, tmp_path / ".txbatch").reader() as reader:
        with redis.Redis.from_url(run.url) as client:
            client.hset("{words}:txbatch:control", "committed", "7")
        assert [each.committed for each in reader.topologies()] == ["7"]
        run.close()
        assert [each.committed for each in reader.topologies()] == ["7"], "what was committed is shown after the run"
