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


def test_a_list_shows_every_state_with_its_key_type_and_size_and_for_programs_in_one_line(url: str, output) -> None:
    head, columns, *rows = output(f"state list typed --redis {url}").splitlines()
    assert head == f"typed on {url}: 16 states, committed up to txid 8"
    assert columns.split() == ["KEY", "KIND", "HOLDS", "ENTRIES"]
    assert {" ".join(row.split()) for row in rows} == {
        "{typed}:best zset, highest 3 str -> score 3",
        "{typed}:blob string bytes 1",
        "{typed}:counts hash str -> int 7",
        "{typed}:days hash date -> int 7",
        "{typed}:fewest zset, lowest 3 str -> score 3",
        "{typed}:last:<int> string str 7 in 7 parts",
        "{typed}:money hash int -> Decimal(2) 7",
        "{typed}:notes hash str -> json 7",
        "{typed}:ranks zset str|int -> score 7",
        "{typed}:recent list, last 4 json 4",
        "{typed}:seen set int 7",
        "{typed}:shares hash bytes -> float 7",
        "{typed}:since hash str|date|int -> date 7",
        "{typed}:unique hyperloglog str 1",
        "{typed}:views:<date> hash str -> int 7 in 7 parts, expiring",
        "{typed}:visitors:<str> hyperloglog str 7 in 7 parts",
    }
    (line,) = output(f"state list typed --redis {url} --json").splitlines()
    printed = json.loads(line)
    assert (printed["topology"], printed["committed"]) == ("typed", 8)
    (best,) = [state for state in printed["states"] if state["name"] == "best"]
    expected = {"name": "best", "key": "{typed}:best", "kind": "zset", "holds": "str -> score"}
    assert best == {**expected, "keeps": "highest 3", "entries": 3}


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (["counts", "wörd/0"], ["6"]),
        (["money", "0"], ["2.10"]),
        (["seen", "3"], ["3"]),
        (["best", "wörd/4"], ["8.4"]),
        (["blob"], ['{"base64": "/wQ="}']),
        (["last:3"], ["wörd/3"]),
        (["views:2026-11-21"], ["wörd/0\t6"]),
        (["counts", "wörd/0", "--json"], ['{"state": "counts", "field": "wörd/0", "value": 6}']),
        (["last"], [str(part) for part in range(7)]),
        (["best"], ["wörd/4\t8.4", "wörd/3\t8.3", "wörd/2\t8.2"]),
        (["best", "--limit", "1"], ["wörd/4\t8.4"]),
        (["best", "--lowest", "--limit", "2"], ["wörd/2\t8.2", "wörd/3\t8.3"]),
        (["fewest"], ["wörd/6\t1.0", "wörd/5\t2.0", "wörd/4\t3.0"]),
        (["best", "--limit", "1", "--json"], ['{"state": "best", "member": "wörd/4", "score": 8.4}']),
        (["unique"], ["7"]),
        (["unique", "--json"], ['{"state": "unique", "count": 7}']),
        (["visitors:wörd/0"], ["6"]),
        (["visitors:w%C3%B6rd%2F0"], ["6"]),
        (["visitors:wörd/0", "--json"], ['{"state": "visitors", "part": "wörd/0", "count": 6}']),
    ],
    ids=" ".join,
)
def test_entries_are_shown_as_declared_the_best_scores_first_and_different_members_counted(
    url: str, output, arguments: list[str], lines: list[str]
) -> None:
    assert output("state get typed", *arguments, "--redis", url).splitlines() == lines


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope"], "declares no state 'nope'; declared: best, blob, counts"),
        (["counts", "nope"], "state 'counts' has no entry 'nope'"),
        (["counts:a"], "state 'counts' of topology 'typed' has no parts"),
        (["views:monday"], "part 'monday' of state 'views' is not a date"),
        (["views:2026-11-30"], "state 'views' has no part '2026-11-30'; `txbatch state get TOPOLOGY views` lists"),
        (["views", "a"], "state 'views' has parts; name one, as in views:PART"),
    ],
    ids=["state", "field", "no parts", "part", "missing part", "no part"],
)
def test_what_is_not_there_is_named(url: str, complaint, arguments: list[str], message: str) -> None:
    assert message in complaint("state get typed", *arguments, "--redis", url)


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
    ("arguments", "code", "message"),
    [
        (["import", "typed", "missing.jsonl"], 2, "'missing.jsonl' cannot be read: No such file or directory"),
        (["export", "typed", "-o", "missing/typed.jsonl"], 2, "cannot be written: No such file or directory"),
        (["export", "typed", "-o", "."], 2, "'.' cannot be written: it is a folder; name a file"),
        (["export", "nope"], 2, "topology 'nope' is not stored there"),
        (["list", "nope"], 2, "topology 'nope' is not stored there"),
    ],
    ids=["no file", "no folder", "a folder", "no topology", "nothing to list"],
)
def test_a_mistake_is_a_sentence(url: str, complaint, arguments: list[str], code: int, message: str) -> None:
    shown = complaint("state", *arguments, "--redis", url, code=code)
    assert message in shown
    assert "Traceback" not in shown


@pytest.mark.parametrize(
    ("environment", "shown"),
    [
        ({"PYTHONIOENCODING": "ascii"}, rb"w\u00f6rd/0"),
        ({"PYTHONIOENCODING": "latin-1"}, b"w\xf6rd/0"),
        (ASCII_LOCALE, rb"w\u00f6rd/0"),
    ],
)
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


def test_an_argument_that_is_not_text_is_named(url: str, complaint) -> None:
    for arguments in (["counts", "w\udcff"], ["visitors:w\udcff"]):
        assert r"w\udcff' is not valid UTF-8, which names of fields and parts are" in complaint(
            "state get typed", *arguments, "--redis", url
        )
