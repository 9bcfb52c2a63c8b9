"""``txbatch state`` on a real server."""

from __future__ import annotations

import base64
import io
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path

import pytest

from coordinator.operating.cli.standard_streams import prepare_streams
from coordinator.operating.cli.terminal import say_json
from coordinator.testing.cluster.cluster import LocalCluster
from tests.conftest import Backend
from tests.support.approved import approved
from tests.support.cli.in_process import txbatch
from tests.support.topologies.typed_states import typed_topology

pytestmark = pytest.mark.redis


ASCII_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.fixture
def url(redis_backend: Backend) -> str:
    """Of a server with the topology of `typed_states`, run to its end."""
    client = redis_backend.client()
    with LocalCluster(seed=1) as cluster:
        cluster.client = client
        cluster.submit(typed_topology()).run_until_idle()
    client.close()  # or its connection would say that the topology runs
    assert redis_backend.url is not None
    return redis_backend.url


ended = partial(txbatch, "state")


SHOWN = [
    *("list typed", "list typed --json", "get typed counts wörd/0", "get typed money 0", "get typed seen 3"),
    *("get typed best wörd/4", "get typed blob", "get typed last:3", "get typed views:2026-11-21"),
    *("get typed counts wörd/0 --json", "get typed last", "get typed best", "get typed best --limit 1"),
    *("get typed best --lowest --limit 2", "get typed fewest", "get typed best --limit 1 --json", "get typed unique"),
    *("get typed unique --json", "get typed visitors:wörd/0", "get typed visitors:w%C3%B6rd%2F0"),
    "get typed visitors:wörd/0 --json",
]


def test_states_and_their_entries_are_shown_as_declared_the_best_scores_first(url: str, output) -> None:
    shown = [f"$ txbatch state {each}\n{output(f'state {each} --redis {url}')}" for each in SHOWN]
    approved("".join(shown), "state", URL=url)


MISTAKEN = [
    *("get typed nope", "get typed counts nope", "get typed counts:a", "get typed views:monday"),
    *("get typed views:2026-11-30", "get typed views a", "get typed counts w\udcff", "get typed visitors:w\udcff"),
    *("import typed missing.jsonl", "export typed -o missing/typed.jsonl", "export typed -o .", "export nope"),
    "list nope",
]


def test_a_mistake_is_a_sentence_that_names_what_is_not_there(url: str, complaint) -> None:
    said = [f"$ txbatch state {each}\n{complaint(f'state {each} --redis {url}')}" for each in MISTAKEN]
    approved("".join(said).replace("\udcff", r"\udcff"), "state-mistakes", URL=url, FOLDER=Path.cwd())


def test_a_list_is_cut_at_its_limit_and_says_so(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("get", "typed", "recent", "--limit", "2", "--redis", url) == 0
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == 2
    assert "more than these 2" in shown.err


def test_what_a_count_is_made_of_is_shown_on_request(url: str, output) -> None:
    assert base64.b64decode(json.loads(output(f"state get typed unique --raw --redis {url}"))["base64"]).startswith(
        b"HYLL"
    )


def test_an_export_goes_through_a_link_and_a_pipe_and_leaves_both(url: str, tmp_path: Path, output) -> None:
    """A file of ours took their place: as root, that of a device, too."""
    expected = output(f"state export typed --redis {url}")
    (tmp_path / "link").symlink_to("file")
    assert ended("export", "typed", "--redis", url, "-o", str(tmp_path / "link")) == 0
    assert ((tmp_path / "link").is_symlink(), (tmp_path / "file").read_text()) == (True, expected)
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor() as threads:
        read = threads.submit((tmp_path / "pipe").read_text)
        assert ended("export", "typed", "--redis", url, "-o", str(tmp_path / "pipe")) == 0
        assert read.result(10) == expected
    assert (tmp_path / "pipe").is_fifo()


def test_scores_are_exported_as_numbers(url: str, output) -> None:
    lines = [json.loads(line) for line in output(f"state export typed --redis {url}").splitlines()]
    assert [line["score"] for line in lines if line.get("state") == "fewest"] == [1, 2, 3]


def test_an_export_is_imported_under_the_same_id_or_another(url: str, tmp_path: Path, output, complaint) -> None:
    file = tmp_path / "typed.jsonl"
    assert "exported topology 'typed' as of txid 8" in complaint(f"state export typed --redis {url} -o {file}", code=0)
    assert [path.name for path in tmp_path.iterdir()] == ["typed.jsonl"]
    said = complaint(f"state import typed {file} --redis {url}")
    assert "exists on" in said
    assert "`txbatch explain import-refused` says more" in said
    printed = json.loads(output(f"state import typed {file} --replace --redis {url} --json"))
    assert (printed["topology"], printed["committed"], printed["lines"]) == ("typed", 8, file.read_text().count("\n"))
    assert "is an export of topology 'typed', not of 'copy'" in complaint(f"state import copy {file} --redis {url}")
    assert "topology 'copy' is as of txid 8" in output(f"state import copy {file} --rename --redis {url}")
    assert output(f"state get copy counts wörd/0 --redis {url}") == "6\n"


def test_a_running_topology_is_not_taken_over_unless_asked(url, tmp_path, redis_backend, complaint) -> None:
    file = tmp_path / "typed.jsonl"
    assert ended("export", "typed", "--redis", url, "-o", str(file)) == 0
    running = redis_backend.client(single_connection_client=True)
    running.client_setname("txbatch:run:typed")
    assert "'typed' is running, and an import would take it over" in complaint(
        f"state import typed {file} --replace --redis {url}"
    )
    assert ended("import", "typed", str(file), "--replace", "--fence", "--redis", url) == 0


def test_an_import_into_a_new_data_directory_starts_its_server(url: str, tmp_path: Path, capfdbinary) -> None:
    assert ended("export", "typed", "--redis", url) == 0
    file = tmp_path / "typed.jsonl"
    file.write_bytes(capfdbinary.readouterr().out)
    assert ended("import", "typed", str(file), "--data-dir", str(tmp_path / "new")) == 0
    assert ended("get", "typed", "counts", "wörd/0", "--data-dir", str(tmp_path / "new")) == 0
    assert capfdbinary.readouterr().out.endswith(b"\n6\n")


@pytest.mark.parametrize(
    ("environment", "shown"),
    [
        ({"PYTHONIOENCODING": "ascii"}, rb"w\u00f6rd/0"),
        ({"PYTHONIOENCODING": "latin-1"}, b"w\xf6rd/0"),
        (ASCII_LOCALE, rb"w\u00f6rd/0"),
    ],
)
@pytest.mark.often("environment1*")
def test_what_the_encoding_of_the_output_lacks_is_escaped_and_json_stays_json(url, environment, shown) -> None:
    def got(*arguments: str) -> bytes:
        command = [sys.executable, "-m", "coordinator.operating.cli", "state", "get", "typed", "counts"]
        return subprocess.check_output(
            [*command, *arguments, "--redis", url], env={**os.environ, **environment}, cwd=Path(__file__).parents[5]
        )

    assert got().splitlines()[0] == shown + b"\t6"
    (line, *_) = got("--json").splitlines()
    assert json.loads(line.decode("latin-1")) == {"state": "counts", "field": "wörd/0", "value": 6}
    assert got("wörd/0") == b"6\n"


def test_a_state_is_renamed(url: str, output, complaint) -> None:
    said = output(f"state rename typed counts words --redis {url}")
    assert said == "state 'counts' of topology 'typed' is called 'words' now, as of txid 8\n"
    assert "typed' declares no state 'counts'" in complaint("state", "rename", "typed", "counts", "x", "--redis", url)


def test_characters_beyond_16_bits_are_escaped_as_json_does() -> None:
    written = io.BytesIO()
    with redirect_stdout(io.TextIOWrapper(written, encoding="ascii")):
        prepare_streams()
        say_json({"a": "\U0001f600 ä"})
        sys.stdout.flush()
        assert written.getvalue() == b'{"a": "\\ud83d\\ude00 \\u00e4"}\n'
