"""The documentation as a site: it builds without warnings, and loads nothing from elsewhere."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.parse import unquote

import pytest
from filelock import FileLock

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
SAMPLE_CARDS = sorted((ROOT / "giccs" / "data").rglob("README.md"))
CHECKOUT_COMMAND = re.compile(
    r"(?:(?<!Output of )`|^    )(?:make [a-z]|python -m (?:benchmarks|robustness))", re.M
)
LINK = re.compile(r"<a\b[^>]*\bhref=[\"']?(?!\w+:)([^\"'\s>#?]*)")
LOADED = re.compile(r"<(?:script|img|iframe|link)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^>]*>")


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder of the site, which one of the workers builds for all."""
    for module in ("material", "mkdocs", "mkdocs_jupyter", "mkdocstrings"):
        pytest.importorskip(module, reason="needs the extra docs")
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    with FileLock(folder / "site.lock"):
        if not (folder / "site" / "sitemap.xml").is_file():
            build(folder / "site")
    return folder / "site"


def build(folder):
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr


def test_every_page_is_on_the_site(site):
    for page in PAGES:
        assert (site / page.relative_to(ROOT / "docs")).with_suffix(".html").is_file()


def test_links_lead_to_files_of_the_site(site):
    dead = {
        (str(page.relative_to(site)), link)
        for page in site.rglob("*.html")
        if page.name != "404.html"
        for link in LINK.findall(page.read_text("utf-8"))
        if link and not (page.parent / unquote(link)).exists()
    }
    assert not dead


def test_no_page_loads_anything_from_elsewhere(site):
    loaded = {
        (page.name, found)
        for page in site.rglob("*.html")
        for found in LOADED.findall(page.read_text("utf-8"))
        if 'rel="canonical"' not in found
    }
    assert not loaded


def test_the_search_knows_the_pages(site):
    index = (site / "search" / "search_index.json").read_text("utf-8")
    assert "best\\u2013worst" in index or "best–worst" in index
    assert "operations/security.html" in index


def test_functions_are_documented(site):
    page = (site / "reference" / "python.html").read_text("utf-8")
    assert 'id="bws.score"' in page
    assert "<blockquote>" not in page, "an example that is not code"


def test_the_page_says_for_whom_it_is():
    assert len(PAGES) > 40
    wrong = [
        page for page in PAGES if not re.match(r"# (?:.+\n)+\n\*For ", page.read_text("utf-8"))
    ]
    assert wrong == []


def test_pages_tell_which_commands_need_a_checkout():
    """Readers have the installed package and the site only."""
    texts = {
        page: page.read_text("utf-8")
        for page in (ROOT / "README.md", *PAGES, *SAMPLE_CARDS)
        if "contributing" not in page.parts
    }
    found = [page for page, text in texts.items() if CHECKOUT_COMMAND.search(text)]
    assert found
    assert [page for page in found if not re.search("in a checkout", texts[page], re.I)] == []


@pytest.mark.parametrize("page", SAMPLE_CARDS, ids=lambda page: page.parent.name)
def test_cards_of_samples_have_no_links_to_files(page):
    """`giccs data copy` copies them without the files of the project."""
    links = re.findall(r"\]\(([^)]+)\)", page.read_text("utf-8"))
    assert links
    assert all(link.startswith("https://") for link in links)


def test_every_extra_is_on_the_page_on_installation():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
        "optional-dependencies"
    ]
    page = (ROOT / "docs" / "install.md").read_text("utf-8")
    assert {*re.findall(r"'giccs\[(\w+)\]'", page)} == extras.keys() - {"dev", "docs"}


@pytest.mark.parametrize("name", ["worker-page.png", "explorer.png"])
def test_pictures_are_small(name):
    picture = ROOT / "docs" / "pictures" / name
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size < 150_000


def test_the_readme_is_short_and_its_links_lead_to_files():
    readme = (ROOT / "README.md").read_text("utf-8")
    assert readme.count("\n") <= 100
    links = [link for link in re.findall(r"\]\(([^)]+)\)", readme) if ":" not in link]
    assert links
    assert [link for link in links if not (ROOT / link.partition("#")[0]).is_file()] == []
    for path, _, anchor in (link.partition("#") for link in links if "#" in link):
        headings = re.findall(r"^#+ (.*)", (ROOT / path).read_text("utf-8"), re.M)
        assert anchor in [heading.lower().replace(" ", "-") for heading in headings]


def test_the_documents_are_short():
    """Pages that are read, without the list of options, the changelog and tables that commands write."""
    pytest.importorskip("mkdocs", reason="needs the extra docs")
    from docs import hooks

    pages = {str(page.relative_to(ROOT / "docs")): page for page in PAGES}
    pages |= {page: ROOT / source for source, page in hooks.PAGES.items()}
    counts = [
        hooks.count_words(page.read_text("utf-8"))
        for name, page in pages.items()
        if name not in hooks.LISTS
    ]
    assert 30_000 < sum(counts) <= 60_000


def test_words_of_tables_that_commands_write_are_not_counted():
    pytest.importorskip("mkdocs", reason="needs the extra docs")
    from docs import hooks

    page = "One word – two.\n\n<!-- a: begin -->\n\n| 1 | 2 |\n\n<!-- a: end -->\n\n| three | 4 |\n"
    assert hooks.count_words(page) == 5
