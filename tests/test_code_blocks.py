"""Every block of Python and shell in the documentation is run or checked by a test, or says above itself why not."""

from __future__ import annotations

import inspect
import logging
import re
import shlex
import textwrap
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
import typer.main

import coordinator
from committers import ICommitter
from coordinated_bolt import BaseBatchBolt
from coordinator import RunOptions, TransactionalTopologyBuilder, exactly_once, run_bolt
from coordinator.operating.cli.app import app
from coordinator.sources import Batches, ColumnRanges, DataFrameBatches, RedisStreams
from coordinator.sources.kafka import KafkaTransactionalSpout
from state import HashState
from tests.support.case_names import shown
from tests.support.documents import blocks, executed, python_of

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = (
    "README.md",
    "CONTRIBUTING.md",
    "benchmarks/README.md",
    *sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/**/*.md")),
)
LANGUAGES = {"python", "sh", "java"}
"""What is run or checked; `text`, `json`, `console` and `mermaid` show what is answered or drawn."""
SHOWN = {"text", "json", "console", "mermaid", "ini", "yaml", "toml", "dockerfile", "lua"}

PYTHON_IS_RUN_BY = {
    "README.md": "tests/test_docs.py",
    "docs/column-batches.md": "tests/test_code_blocks.py",
    "docs/dashboard-from-kafka.md": "tests/examples/test_dashboard.py",
    "docs/coming-from/bytewax.md": "tests/test_coming_from.py",
    "docs/coming-from/faust.md": "tests/test_coming_from.py",
    "docs/coming-from/pathway.md": "tests/test_coming_from.py",
    "docs/coming-from/quix.md": "tests/test_coming_from.py",
    "docs/coming-from/flink.md": "tests/test_coming_from.py",
    "docs/coming-from/foreach-batch.md": "tests/test_coming_from.py",
    "docs/coming-from/storm.md": "tests/test_coming_from.py",
    "docs/dead-letters.md": "tests/test_docs.py",
    "docs/examples.md": "tests/examples/test_pages.py",
    "docs/recipes.md": "tests/examples/test_recipes.py",
    "docs/notebook.md": "tests/test_docs.py",
    "docs/monitoring.md": "tests/test_code_blocks.py",
    "docs/proving.md": "tests/test_docs.py",
    "docs/quickstart.md": "tests/test_code_blocks.py",
    "docs/sources-kafka.md": "tests/coordinator/sources/kafka/test_kafka_documentation.py",
    "docs/sources-redis-streams.md": "tests/test_code_blocks.py",
    "docs/sources-spark.md": "tests/test_code_blocks.py",
    "docs/servers.md": "tests/test_code_blocks.py",
    "docs/shards.md": "tests/test_code_blocks.py",
    "docs/short-form.md": "tests/test_docs.py",
    "docs/sources.md": "tests/coordinator/sources/files/test_documentation.py",
    "docs/spark.md": "tests/test_code_blocks.py",
    "docs/state.md": "tests/test_docs.py",
    "docs/testing.md": "tests/test_docs.py",
    "docs/writing-a-source.md": "tests/test_writing_a_source.py",
}
"""Document -> the test that runs its blocks of Python, or compares them with the example that they quote."""


@cache
# Which blocks there are ------------------------------------------------------------------------------------------


def test_every_block_of_python_has_a_test_that_runs_it() -> None:
    assert {document for document in DOCUMENTS if python_of(document)} == set(PYTHON_IS_RUN_BY)


@pytest.mark.parametrize("document", sorted(PYTHON_IS_RUN_BY))
def test_the_test_that_is_named_reads_the_document(document: str) -> None:
    assert Path(document).name in (ROOT / PYTHON_IS_RUN_BY[document]).read_text(encoding="utf-8")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_block_has_a_language_that_is_run_or_only_shown(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    assert set(re.findall(r"^```(\w+)$", text, re.MULTILINE)) <= LANGUAGES | SHOWN


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_block_that_no_test_runs_says_why(document: str) -> None:
    assert [block for block in blocks(ROOT / document, "java") if not block.reason] == []
    reasons = [block.reason for language in sorted(LANGUAGES) for block in blocks(ROOT / document, language)]
    text = (ROOT / document).read_text(encoding="utf-8")
    assert len([reason for reason in reasons if reason]) == len(
        re.findall(r"^\*Not run by the tests: ", text, re.MULTILINE)
    )


def test_the_page_about_shards_begins_a_topology_over_sixteen() -> None:
    assert executed("docs/shards.md", 0, {})["builder"]._shard_count == 16


# Shell -----------------------------------------------------------------------------------------------------------

PROGRAMS = {".", "cd", "echo", "git", "grep", "kill", "mkdir", "pip", "pre-commit", "pytest", "redis-cli", "sleep"}
PROGRAMS |= {"spark-submit"}
"""Programs of others: that they exist and how they are called is theirs to say."""
KEYWORDS = {"until", "do", "done"}
WRAPPERS = {"opentelemetry-instrument": 3}
"""Programs that run another -> how many words stand before that."""
UsageError: Any = typer.BadParameter.__mro__[1]


def commands_of(document: str) -> Iterator[list[str]]:
    """The single commands of a document's blocks of shell, as words, without comments, variables and redirections."""
    for block in blocks(ROOT / document, "sh"):
        for line in block.text.replace("\\\n", " ").splitlines():
            yield from commands_in(line)


def commands_in(line: str) -> Iterator[list[str]]:
    parts = shlex.shlex(line, posix=True, punctuation_chars="&|;>")
    parts.whitespace_split = True
    words: list[str] = []
    is_file = False
    for word in [*parts, ";"]:
        if set(word) <= set("&|;>"):
            if ">" in word and words[-1:] == ["2"]:
                words.pop()
            if words and not is_file:
                yield words[WRAPPERS.get(words[0], 0) :]
            words, is_file = [], ">" in word
        elif words or not (word in KEYWORDS or re.fullmatch(r"[A-Z_]+=.*", word)):
            words.append(word)


def parse(arguments: list[str]) -> None:
    """Has the command line read the arguments, without doing what they say."""
    command: Any = typer.main.get_command(app)
    name, context = "txbatch", None
    while hasattr(command, "resolve_command"):
        context = command.make_context(name, arguments, parent=context)
        name, command, arguments = command.resolve_command(context, [*context._protected_args, *context.args])
    command.make_context(name, arguments, parent=context)


def targets_of_make() -> set[str]:
    return set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def complaint_about(command: list[str]) -> str:
    """What is wrong with a command of the documentation; "" if nothing is."""
    program, *rest = command
    name = Path(program).name or program
    if name == "txbatch":
        try:
            parse(rest)
        except typer.Exit:  # of --help and --version
            return ""
        except UsageError as error:
            return f"{command}: {error}"
        return ""
    if name == "make":
        return "" if {word for word in rest if "=" not in word} <= targets_of_make() else f"{command}: no such target"
    if name.startswith("python"):
        return complaint_about_python(rest)
    return "" if name in PROGRAMS else f"{command}: {name} is not known here; add it, or have it checked"


def complaint_about_python(arguments: list[str]) -> str:
    if arguments[0] != "-m":
        return "" if (ROOT / arguments[0]).exists() else f"{arguments}: no such file"
    module = arguments[1].replace(".", "/")
    here = (ROOT / f"{module}.py").exists() or (ROOT / module / "__main__.py").exists()
    return "" if here or arguments[1] in {"pytest", "venv"} else f"{arguments}: no such module"


@pytest.mark.parametrize("document", [document for document in DOCUMENTS if blocks(ROOT / document, "sh")])
def test_every_command_of_the_documentation_is_one(document: str) -> None:
    found = [complaint_about(command) for command in commands_of(document)]
    assert found
    assert [complaint for complaint in found if complaint] == []


WRONG = {
    "an option that is not there": "txbatch run job:topology --paralel 3",
    "a command that is not there": "txbatch begin job:topology",
    "an argument that is missing": "txbatch quarantine show events",
    "a target that is not there": "make coffee",
    "a module that is not there": ".venv/bin/python -m benchmarks.gone --quick",
    "a script that is not there": "python examples/gone.py",
    "a program that nobody knows": "frobnicate --all",
}


@pytest.mark.parametrize("line", WRONG.values(), ids=list(WRONG))
def test_a_wrong_command_is_found(line: str) -> None:
    (command,) = commands_in(line)
    assert complaint_about(command)


# Python, page by page --------------------------------------------------------------------------------------------


def test_column_batches() -> None:
    given = executed("docs/column-batches.md", 0, {"BaseBatchBolt": BaseBatchBolt, "Counter": Counter})
    trial = run_bolt(given["CountWords"](), [["to be"], ["or to"]], fields=["line"])
    assert sorted(trial.emitted()) == [["be", 1], ["or", 1], ["to", 2]]

    class Storing(BaseBatchBolt, ICommitter):
        counts = HashState("counts", value=int)

        def prepare(self, conf, context, collector, attempt):
            self.batches: list[Any] = []

        def execute_batch(self, batch):
            self.batches.append(batch)

    method: dict[str, Any] = {}
    exec(textwrap.dedent(python_of("docs/column-batches.md")[1]), method)
    Storing.finish_batch = method["finish_batch"]  # type: ignore[method-assign]
    stored = run_bolt(Storing(), [["to", 2], ["be", 1]], fields=["word", "count"])
    assert stored.states == {"counts": {"to": 2, "be": 1}}


def test_tuples_as_objects() -> None:
    given = executed("docs/short-form.md", 8, {})
    trial = run_bolt(given["Minutes"](), [["/a", 90]], fields=["page", "seconds"])
    assert trial.emitted() == [["/a", 1.5]]


@pytest.mark.redis
def test_servers_and_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    executed("docs/servers.md", 0, {})
    assert capsys.readouterr().out == "{}\n"
    real = inspect.signature(coordinator.run)
    monkeypatch.setattr(coordinator, "run", lambda *given, **options: real.bind(*given, **options).arguments)
    topology, session = object(), object()
    asked = executed("docs/spark.md", 0, {"topology": topology, "session": session})["statistics"]
    assert asked == {
        "topology": topology,
        "spark": session,
        "redis_url": "redis://localhost:6379",
        "options": RunOptions(max_spout_pending=128),
    }


def test_monitoring(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(python_of("docs/monitoring.md")) == 2
    logger = logging.getLogger("txbatch")
    monkeypatch.setattr(logger, "handlers", [*logger.handlers])
    monkeypatch.setattr(logger, "level", logger.level)
    before = len(logger.handlers)
    executed("docs/monitoring.md", 0, {})
    assert len(logger.handlers) == before + 1
    observed: list[Any] = []
    any_port = python_of("docs/monitoring.md")[1].replace("port=9464", "port=0")
    exec(any_port, {"run": lambda topology, observers: observed.extend(observers), "topology": None})
    assert len(observed) == 1


def test_quickstart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (program,) = python_of("docs/quickstart.md")
    exec(compile(program.replace("1_000_000", "1_000"), "docs/quickstart.md, shorter", "exec"), {})
    assert len(Path("million.jsonl").read_text().splitlines()) == 1_000
    assert capsys.readouterr().out.startswith("Counter({'/': ")


def test_sources_redis_streams() -> None:
    names = {"RedisStreams": RedisStreams, "TransactionalTopologyBuilder": TransactionalTopologyBuilder}
    assert executed("docs/sources-redis-streams.md", 0, dict(names))["builder"] is not None


def test_sources_spark_but_for_the_query() -> None:
    class Adds(BaseBatchBolt, ICommitter):
        sums = HashState("sums", value=int)

        def execute(self, tup):
            """Ignores it."""

        def finish_batch(self):
            """Writes nothing."""

    names: dict[str, Any] = {
        "TransactionalTopologyBuilder": TransactionalTopologyBuilder,
        "DataFrameBatches": DataFrameBatches,
        "ColumnRanges": ColumnRanges,
        "Batches": Batches,
        "AddAmounts": Adds,
        "client": SimpleNamespace(pages=lambda start: [[{"customer": "a", "amount": 5}]][start:]),
    }
    assert executed("docs/sources-spark.md", 1, dict(names))["topology"]("orders.parquet").topology_id == "orders"
    made = executed("docs/sources-spark.md", 2, dict(names))
    assert list(made["batches"](0)) == [[["a", 5]]]
    assert list(made["batches"](1)) == []


class Writer:
    """Notes what a streaming query is asked for; the query itself runs in tests/spark and tests/test_coming_from.py."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []

    def __getattr__(self, name: str) -> Any:
        def called(*given: Any) -> Writer:
            self.asked.append((name, given))
            return self

        return called


def test_the_line_that_makes_a_query_exactly_once(monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer()
    real = inspect.signature(exactly_once)
    noted = lambda *given, **options: dict(real.bind(*given, **options).arguments)  # noqa: E731
    monkeypatch.setattr(coordinator, "exactly_once", noted)
    names = {"clicks": SimpleNamespace(writeStream=writer), "topology": lambda: "the topology"}
    executed("docs/sources-spark.md", 0, names)
    assert [name for name, _ in writer.asked] == ["foreachBatch", "option", "start"]
    assert writer.asked[0][1] == ({"topology": "the topology", "redis_url": "redis://localhost:6379"},)


@pytest.mark.parametrize("kind", [KafkaTransactionalSpout], ids=shown)
def test_the_spout_that_flink_users_are_sent_to_is_there(kind: type) -> None:
    assert kind.__name__ in (ROOT / "docs" / "sources-kafka.md").read_text(encoding="utf-8")
