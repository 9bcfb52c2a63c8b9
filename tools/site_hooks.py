"""Makes the documentation site of the files that GitHub shows; mkdocs.yml names this module as its hook.

The site's pages are docs/, the README and its neighbours, unchanged. These things differ between a checkout and a site,
and each is settled here:

* A link that leaves docs/ leads to a page of the site: the README is its home, and a source file that a page links to
  becomes a page that shows it. So no link needs to know an address of the repository.
* A heading's anchor is the one GitHub makes.
* The API reference is made of docstrings.
* A picture in docs/pictures/ is put into the page, where it takes the colours of the chosen theme.
* A Mermaid flowchart, which GitHub draws, is the text of our own `plan` of the topology it shows: the theme would load
  Mermaid from another host.
"""

from __future__ import annotations

import inspect
import posixpath
import re
from collections import Counter
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

from coordinator import plan
from tools import api_docs

ROOT = Path(__file__).resolve().parent.parent
HOMES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/README.md": "benchmarks.md",
}
"""Documents outside docs/ -> their page."""
LANGUAGES = {".py": "python", ".lua": "lua", ".sh": "sh", ".toml": "toml", ".yml": "yaml", ".yaml": "yaml"}
FENCED = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
PICTURE = re.compile(r'<img alt="([^"]*)" src="([^"]*pictures/[^"/]+\.svg)"\s*/?>')
STYLE = re.compile(r"<style>.*?</style>\s*", re.DOTALL)


MERMAID = re.compile(r"^```mermaid\n.*?^```$", re.DOTALL | re.MULTILINE)
PLANNED = re.compile(r'<div data-plan="(\w+)"></div>')
EXAMPLE = re.compile(r"`examples/(\w+)\.py`")


ARGUMENTS = {"input": __file__, "output": "counts.txt", "servers": "localhost:9092", "topic": "page_views"}
"""What examples are given to be drawn, each what its factory takes; nothing is read or opened."""


class GitHubSlugs:
    """Makes the anchors of one page after the other, as GitHub does: a heading that is repeated gets a number."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def next_page(self) -> None:
        """Called before a page is converted."""
        self._seen.clear()

    def __call__(self, heading: str, _separator: str) -> str:
        """Called by Markdown for each heading, in order."""
        slug = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        self._seen[slug] += 1
        return slug if self._seen[slug] == 1 else f"{slug}-{self._seen[slug] - 1}"


SLUGS = GitHubSlugs()


def page_of(path: str) -> str:
    """Returns where on the site a file of the repository is, both from their roots."""
    if path in HOMES:
        return HOMES[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"source/{path}.md"


def document_of(page: str) -> str:
    """Returns the document that a page shows: the inverse of `page_of` for documents."""
    return {home: path for path, home in HOMES.items()}.get(page, f"docs/{page}")


def targets(text: str, document: str) -> list[str]:
    """Returns the files of the repository that a document links to, outside its fenced blocks."""
    links = [target for _, target, _ in LINK.findall(FENCED.sub("", text)) if _is_path(target)]
    return [posixpath.normpath(posixpath.join(posixpath.dirname(document), target)) for target in links]


def for_the_site(text: str, document: str) -> str:
    """Returns a document with its links leading to pages of the site."""
    folder = posixpath.dirname(page_of(document)) or "."

    def replaced(link: re.Match[str]) -> str:
        before, target, after = link.groups()
        if not _is_path(target):
            return link[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(document), target))
        return before + posixpath.relpath(page_of(path), folder) + after

    parts, end = [], 0
    for block in FENCED.finditer(text):
        parts += [LINK.sub(replaced, text[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*parts, LINK.sub(replaced, text[end:])])


def source_page(path: str) -> str:
    """Returns a page that shows a file of source; it is left out of the search."""
    text = (ROOT / path).read_text(encoding="utf-8").rstrip()
    language = LANGUAGES.get(Path(path).suffix, "text")
    return f"---\nsearch:\n  exclude: true\n---\n# {path}\n\n````{language}\n{text}\n````\n"


def with_pictures(html: str, folder: Path = ROOT / "docs/pictures") -> str:
    """Returns a page's HTML with its pictures in place of the links to them."""

    def drawn(image: re.Match[str]) -> str:
        svg = STYLE.sub("", (folder / Path(image[2]).name).read_text(encoding="utf-8"))
        return f'<span class="picture">{svg[svg.index("<svg") :]}</span>'

    return PICTURE.sub(drawn, html)


def with_plans_marked(markdown: str, uri: str) -> str:
    """Returns a page's Markdown with a mark in place of each flowchart, which is of the example named next below it.

    Raises:
        ValueError: a flowchart has no example below it, so nothing would draw it.
    """

    def marked(flowchart: re.Match[str]) -> str:
        example = EXAMPLE.search(markdown, flowchart.end())
        if example is None:
            raise ValueError(f"page {uri} has a Mermaid flowchart; only those of examples are drawn, by their topology")
        return f'<div data-plan="{example[1]}"></div>'

    return MERMAID.sub(marked, markdown)


def with_plans(html: str) -> str:
    """Returns a page's HTML with the plans of examples in place of their marks."""
    return PLANNED.sub(lambda mark: f'<pre class="plan">{escape(plan_of(mark[1]))}</pre>', html)


def plan_of(example: str) -> str:
    """Returns the plan of an example as text."""
    factory = import_module(f"examples.{example}").topology
    taken = inspect.signature(factory).parameters
    return plan(factory(**{name: value for name, value in ARGUMENTS.items() if name in taken})).text()


def _is_path(target: str) -> bool:
    return "://" not in target and not target.startswith(("mailto:", "#"))


# What mkdocs calls, in this order --------------------------------------------------------------------------------


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Has headings named as on GitHub."""
    config.mdx_configs.setdefault("toc", {})["slugify"] = SLUGS
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the documents outside docs/, and a page for every file of source that a document links to."""
    for path, home in HOMES.items():
        files.append(File.generated(config, home, abs_src_path=str(ROOT / path)))
    documents = [document_of(file.src_uri) for file in files.documentation_pages()]
    linked = {path for document in documents for path in targets((ROOT / document).read_text("utf-8"), document)}
    for path in sorted(path for path in linked if page_of(path).startswith("source/") and (ROOT / path).is_file()):
        page = File.generated(config, page_of(path), content=source_page(path), inclusion=InclusionLevel.NOT_IN_NAV)
        files.append(page)
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Turns the links of a document into links of the site."""
    SLUGS.next_page()
    uri = page.file.src_uri
    if uri.startswith("source/"):
        return markdown
    if uri == "api.md":
        return api_docs.render()
    return with_plans_marked(for_the_site(markdown, document_of(uri)), uri)


def on_page_content(html: str, **_: Any) -> str:
    """Puts the pictures and plans into the page."""
    return with_pictures(with_plans(html))
