"""The documentation builds as a site, in which every link leads somewhere and nothing is loaded from elsewhere."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.support.documents import anchors
from tools.site_hooks import (
    GitHubSlugs,
    document_of,
    for_the_site,
    page_of,
    plan_of,
    source_page,
    targets,
    with_pictures,
    with_plans_marked,
)

ROOT = Path(__file__).resolve().parent.parent
ELSEWHERE = re.compile(r"^(https?:)?//")


class Links(HTMLParser):
    """What a page loads, where its links lead, and its anchors."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.anchors |= {name for name in (given.get("id"), given.get("name")) if name}
        if given.get("src"):
            self.loaded.append(str(given["src"]))
        if given.get("href"):
            (self.links if tag == "a" else self.loaded).append(str(given["href"]))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(built: Path) -> dict[str, Links]:
    return {path.relative_to(built).as_posix(): Links(path) for path in sorted(built.rglob("*.html"))}


@pytest.mark.nightly
def test_nothing_is_loaded_from_another_host(built: Path, pages: dict[str, Links]) -> None:
    assert [(page, url) for page, has in pages.items() for url in has.loaded if ELSEWHERE.match(url)] == []
    styles = [path.read_text(encoding="utf-8") for path in built.rglob("*.css")]
    assert styles
    assert [style[:80] for style in styles if re.search(r"url\([\"']?(https?:)?//", style)] == []


def test_flowcharts_are_drawn_by_the_site_itself(built: Path) -> None:
    # the theme would load Mermaid from another host wherever it finds a flowchart
    shown = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8").count("```mermaid")
    assert shown > 4
    assert (built / "examples.html").read_text(encoding="utf-8").count('class="plan"') == shown
    every = {path: path.read_text(encoding="utf-8") for path in built.rglob("*.html")}
    assert [path for path, html in every.items() if re.search(r'class="[^"]*mermaid|flowchart LR\n', html)] == []


def test_a_plan_is_the_text_that_the_command_prints() -> None:
    assert plan_of("top_k").startswith("top_k: transactional topology")


def test_a_flowchart_that_nothing_draws_is_refused() -> None:
    with pytest.raises(ValueError, match=r"page concepts\.md has a Mermaid flowchart"):
        with_plans_marked("text\n```mermaid\nflowchart LR\n```\n", "concepts.md")


def test_every_link_of_the_site_leads_to_a_page_and_its_anchor(built: Path, pages: dict[str, Links]) -> None:
    dead = []
    for page, has in pages.items():
        for link in has.links:
            path, _, name = link.partition("#")
            if ELSEWHERE.match(link) or page == "404.html":
                continue
            target = (built / page).parent.joinpath(path).resolve() if path else built / page
            target = target / "index.html" if target.is_dir() else target
            known = pages.get(target.relative_to(built.resolve()).as_posix()) if target.exists() else None
            if not target.exists() or (name and known and name not in known.anchors):
                dead.append((page, link))
    assert dead == []


def test_headings_have_the_anchors_that_github_gives_them(pages: dict[str, Links]) -> None:
    for page, has in pages.items():
        uri = page.removesuffix(".html") + ".md"
        document = ROOT / document_of(uri if uri != "model/index.md" else "model/README.md")
        if document.exists():
            assert anchors(document) - has.anchors == set(), page


def test_source_files_are_shown_and_not_searched(built: Path, pages: dict[str, Links]) -> None:
    assert "source/state/commits/write_set.py.html" in pages
    index = json.loads((built / "search" / "search_index.json").read_text(encoding="utf-8"))
    found = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert {"index.html", "quickstart.html", "troubleshooting.html"} <= found | {"index.html"}
    assert [location for location in found if location.startswith("source/")] == []


def test_what_is_fenced_is_left_alone() -> None:
    text = "[a](../README.md)\n```python\nfirst[0](../README.md)\n```\n[b](../README.md)\n"
    assert for_the_site(text, "docs/storm.md") == (
        "[a](index.md)\n```python\nfirst[0](../README.md)\n```\n[b](index.md)\n"
    )
    assert targets(text, "docs/storm.md") == ["README.md", "README.md"]


@pytest.mark.parametrize("document", ["README.md", "benchmarks/README.md", "docs/state.md", "docs/model/README.md"])
def test_the_document_of_a_page_is_found_again(document: str) -> None:
    assert document_of(page_of(document)) == document


def test_a_heading_that_is_repeated_gets_a_number_on_each_page_alone() -> None:
    slugs = GitHubSlugs()
    assert [slugs(heading, "-") for heading in ("`run`", "Run", "What is a tx?")] == ["run", "run-1", "what-is-a-tx"]
    slugs.next_page()
    assert slugs("Run", "-") == "run"


def test_a_source_page_shows_the_file() -> None:
    page = source_page("examples/word_count.py")
    assert "# examples/word_count.py" in page
    assert "class CountWords" in page


def test_a_picture_is_drawn_into_the_page_without_its_own_colours(tmp_path: Path) -> None:
    svg = '<?xml version="1.0"?>\n<svg><title>Two</title><style>svg{color:#222}</style><path/></svg>'
    (tmp_path / "two.svg").write_text(svg)
    html = '<p><img alt="Two" src="pictures/two.svg" /> and <img alt="x" src="other.svg" /></p>'
    assert with_pictures(html, tmp_path) == (
        '<p><span class="picture"><svg><title>Two</title><path/></svg></span> and <img alt="x" src="other.svg" /></p>'
    )


@pytest.mark.parametrize("picture", sorted((ROOT / "docs" / "pictures").glob("*.svg")), ids=lambda path: path.stem)
def test_a_picture_has_a_title_and_takes_the_colours_of_its_page(picture: Path) -> None:
    svg = picture.read_text(encoding="utf-8")
    root = ElementTree.fromstring(svg)
    assert root.get("width") is None
    named = [child.get("id") for child in root if child.tag.rpartition("}")[2] in ("title", "desc")]
    assert " ".join(map(str, named)) == root.get("aria-labelledby")
    assert root.get("fill") == "currentColor"
    drawn = re.findall(r'(?:fill|stroke)="([^"]+)"', svg)
    assert set(drawn) <= {"currentColor", "none", "#e8590c"}


def test_no_two_pictures_share_an_id() -> None:
    ids = [
        name
        for picture in sorted((ROOT / "docs" / "pictures").glob("*.svg"))
        for name in re.findall(r'\bid="([^"]+)"', picture.read_text(encoding="utf-8"))
    ]
    assert len(ids) == len(set(ids)) > 0
