"""docs/examples.md shows code that is there, pictures of what runs, and answers that come out."""

from __future__ import annotations

import contextlib
import os
import re
import runpy
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import fakeredis
import pytest
import redis

from coordinated_bolt.streams.groupings import FieldsGrouping
from coordinator.operating.cli.loading import load_factory, make_topology
from coordinator.operating.cli.parameters import parse_pairs
from tests.support.examples.answers import ANSWERS, fill
from tests.support.examples.page import DOCUMENT, ROOT, Section, replied, sections

NAMES = sorted(sections())
WITHOUT_A_SECTION = {"dedupe", "global_count", "short_forms", "top_k", "word_count", "word_count_batches"}
RUN_TIMEOUT_S = 240.0


def in_words(grouping):
    if isinstance(grouping, FieldsGrouping):
        return f"fields: {', '.join(grouping.names)}"
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(grouping).__name__.removesuffix("Grouping")).lower()


def topology_of(page):
    """The topology that a page's own command runs, or else the one the example makes."""
    for _, command, target, *options in page.commands("txbatch"):
        if command == "run":
            given = [after for option, after in pairwise(options) if option == "-p"]
            factory, _ = load_factory(target.replace("/", ".").replace(".py:", ":"))
            return make_topology(factory, "topology", parse_pairs("-p", given))
    return load_factory(f"examples.{page.name}:topology")[0]()


def test_every_example_has_a_section_or_is_explained_elsewhere():
    examples = {path.stem for path in (ROOT / "examples").glob("*.py")}
    assert examples - set(NAMES) == WITHOUT_A_SECTION
    index = DOCUMENT.read_text(encoding="utf-8").partition("\n## ")[0]
    assert index.count("](#") == len(NAMES)
    assert [name for name in WITHOUT_A_SECTION if f"`examples/{name}.py`" not in index] == []


@pytest.mark.parametrize("name", NAMES)
def test_the_code_of_a_page_is_that_of_its_example(name):
    page = Section(name)
    blocks = page.blocks("python")
    assert len(blocks) == 3
    solid = "".join(page.source.split())  # the formatter indents and wraps an excerpt as it would a file
    assert [block for block in blocks if "".join(block.split()) not in solid] == []


@pytest.mark.parametrize("name", NAMES)
def test_the_picture_of_a_page_is_that_of_its_topology(name, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    page = Section(name)
    heard = {
        (subscription.upstream_id, in_words(subscription.grouping), component.component_id)
        for component in topology_of(page).components
        for subscription in component.subscriptions
    }
    assert page.arrows() == heard


@pytest.mark.parametrize("name", [name for name in NAMES if name in ANSWERS and name != "streaming_bridge"])
def test_the_answers_of_a_page_are_those_of_a_plain_loop(name, tmp_path, monkeypatch):
    page = Section(name)
    ((_, script, folder),) = page.commands("python")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [script, folder])
    runpy.run_path(str(ROOT / script), run_name="__main__")
    with fakeredis.FakeRedis(decode_responses=True) as client:
        fill(client, name, ANSWERS[name](tmp_path / folder))
        assert len(page.shown()) > 0
        for shown in page.shown():
            assert replied(client, shown) == shown.values()


@pytest.mark.spark
@pytest.mark.redis
@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.timeout(4 * RUN_TIMEOUT_S)
@pytest.mark.parametrize("name", [name for name in NAMES if name != "kafka_to_redis"])
def test_a_page_is_right_word_for_word_in_an_empty_folder(name, tmp_path, redis_backend):
    page = Section(name)
    (tmp_path / f"{name}.py").write_text(page.source, encoding="utf-8")
    url = redis_backend.url
    for program in ("python", "txbatch"):
        for command in page.commands(program):
            given = [word.removeprefix("examples/") for word in command[1:]]
            if program == "txbatch":
                given = [
                    "-m",
                    "coordinator.operating.cli",
                    *given,
                    *([] if name == "plain_word_count" else ["--redis", url]),
                ]
            elif name == "streaming_bridge":
                given += ["--redis", url]
            ended = subprocess.run(
                [sys.executable, *given],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=RUN_TIMEOUT_S,
                check=False,
                env=os.environ | {"PYSPARK_PYTHON": sys.executable},
            )
            assert ended.returncode == 0, ended.stderr
            if program == "txbatch" and given[2] == "run":
                _compare(page, tmp_path, url)
    if name == "streaming_bridge":
        _compare(page, tmp_path, url)


def _compare(page: Section, folder: Path, url: str) -> None:
    with contextlib.closing(redis.Redis.from_url(url, decode_responses=True)) as client:
        for shown in page.shown():
            if shown.command[0] == "redis-cli":
                assert replied(client, shown) == shown.values()
            else:
                ended = subprocess.run(shown.command, cwd=folder, capture_output=True, text=True, check=True)
                assert sorted(ended.stdout.splitlines()) == sorted(shown.lines)
