"""MkDocs hooks: pages and files of the project that stand outside docs/ are part of the site."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "contributing/changes.md",
    "CONTRIBUTING.md": "contributing/index.md",
    "giccs/data/README.md": "reference/sample.md",
    "giccs/data/en/README.md": "reference/sample-en.md",
}
"""Pages by their files in the project, where people look for them too."""
LISTS = ("reference/cli.md", "contributing/changes.md")
"""Pages in which nobody reads from beginning to end; their words are not counted."""
PLACES = {page: source for source, page in PAGES.items()}
LINK = re.compile(r"\]\(([^)\s#]+)(#[^)\s]*)?\)")
WRITTEN_BY_COMMANDS = re.compile(r"<!-- ([\w-]+): begin -->.*?<!-- \1: end -->", re.S)
NOTEBOOK_LINK = re.compile(r'(href="(?!\w+:)[^"#]*)\.md(?=["#])')


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, and the files to which pages link, under project/."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text("utf-8")))
    linked = {
        target
        for file in files.documentation_pages()
        if file.src_uri.endswith(".md")
        for path, _ in LINK.findall(file.content_string)
        if (target := in_project(path, file.src_uri))
    }
    for target in sorted(linked - PAGES.keys()):
        if not target.startswith("docs/") and (ROOT / target).is_file():
            files.append(
                File.generated(config, file_on_site(target), abs_src_path=str(ROOT / target))
            )
    return files


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> Navigation:
    """Print the words of each page, in reading order, and their sum."""
    words = {
        page.file.src_uri: count_words(page.file.content_string)
        for page in nav.pages
        if page.file.src_uri.endswith(".md") and page.file.src_uri not in LISTS
    }
    print(*(f"{count:7,}  {page}" for page, count in words.items()), sep="\n")
    print(
        f"{sum(words.values()):7,}  words in all, without {', '.join(LISTS)} and tables that commands write"
    )
    return nav


def count_words(page: str) -> int:
    """Return the number of words of a page, outside the tables that commands write."""
    words = WRITTEN_BY_COMMANDS.sub("", page).split()
    return sum(any(map(str.isalnum, word)) for word in words)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links that are written for the files of the project to the places of the site."""
    here = posixpath.dirname(page.file.src_uri)

    def moved(link: re.Match[str]) -> str:
        target = in_project(link[1], page.file.src_uri)
        if target is None:
            return link[0]
        if target.startswith("docs/"):
            place = target.removeprefix("docs/")
        else:
            place = PAGES.get(target) or file_on_site(target)
        return f"]({posixpath.relpath(place, here)}{link[2] or ''})"

    return LINK.sub(moved, markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Point links of notebooks to pages, as MkDocs does for Markdown only."""
    return NOTEBOOK_LINK.sub(r"\1.html", output) if page.file.src_uri.endswith(".ipynb") else output


def file_on_site(target: str) -> str:
    """Return where a file of the project is on the site, which has no hidden folders.

    Markdown, which would be pages, Python, which the site excludes, and files without an ending are texts.
    """
    ending = ".txt" if posixpath.splitext(target)[1] in ("", ".md", ".py") else ""
    return f"project/{target.removeprefix('.')}{ending}"


def in_project(path: str, page: str) -> str | None:
    """Return the file to which a page links, relative to the project; None for an address."""
    if ":" in path:
        return None
    source = PLACES.get(page, f"docs/{page}")
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
