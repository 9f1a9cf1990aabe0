"""What tests of several packages need."""

import asyncio
import gc
import os
import re
import shlex
import shutil
import subprocess
import sys
import unicodedata

import pytest

try:
    from hypothesis import HealthCheck, settings
except ImportError:
    pass
else:  # how long an example takes says nothing on a busy machine
    for profile, examples in (("few", 20), ("many", 200)):  # make nightly runs many
        settings.register_profile(
            profile,
            max_examples=examples,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        )
    settings.load_profile("few")


def pytest_collection_modifyitems(items):
    """Skip tests with the marker ``cuda`` without a CUDA device; begin with the pages, which take longest."""
    items.sort(key=lambda item: item.path.name != "test_docs.py")
    marked = [item for item in items if item.get_closest_marker("cuda")]
    if marked and (reason := _missing_cuda()):
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter):
    """Print the command that repeats the failed tests alone, at the end."""
    yield
    failed = [
        report.nodeid
        for outcome in ("failed", "error")
        for report in terminalreporter.stats.get(outcome, ())
    ]
    if failed:
        command = ["python", "-m", "pytest", "-m", "", *dict.fromkeys(failed)]
        terminalreporter.write_line(f"repeat the failed tests alone: {shlex.join(command)}")


def _missing_cuda():
    try:
        import torch
    except ImportError:
        return "torch is not installed"
    return "" if torch.cuda.is_available() else "no CUDA device"


@pytest.fixture(autouse=True, scope="module")
def _frozen_objects():
    """Exclude imported modules from garbage collections, each of which takes longer than most tests."""
    gc.collect()
    gc.freeze()
    return len(sys.modules)


@pytest.fixture(autouse=True)
def _frozen_imports(_frozen_objects):
    """Do so after tests with large imports."""
    if len(sys.modules) > _frozen_objects + 50:
        gc.collect()
        gc.freeze()


@pytest.fixture(autouse=True)
def _wide_terminal(monkeypatch):
    """Show each row of a table on one line."""
    monkeypatch.setenv("COLUMNS", "250")


@pytest.fixture(scope="session")
def commands(tmp_path_factory):
    """Return the server that runs console scripts in new processes without their imports."""
    from tests.fork_server import ForkServer

    folder = tmp_path_factory.getbasetemp()
    of_all_workers = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    server = ForkServer(of_all_workers / "commands")
    yield server
    server.close()


@pytest.fixture(scope="session")
def _playwright():
    """Return Playwright and its event loop.

    Its start takes as long as many pages, so a worker starts it once. Nothing else that has a loop can run in
    this thread while its loop is the running one, which `chromium` decides.
    """
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    running = playwright.sync_playwright().start()
    loop = asyncio.get_running_loop()
    asyncio._set_running_loop(None)
    yield running, loop
    asyncio._set_running_loop(loop)
    running.stop()


@pytest.fixture(scope="module")
def chromium(request):
    """Return a browser; the test is skipped where there is none."""
    # the shell without a window needs a quarter of the time
    binary = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if binary is None:
        pytest.skip("chromium-headless-shell is not installed")
    running, loop = request.getfixturevalue("_playwright")
    asyncio._set_running_loop(loop)
    browser = running.chromium.launch(
        executable_path=binary, args=["--no-sandbox", "--disable-background-networking"]
    )
    yield browser
    browser.close()
    asyncio._set_running_loop(None)


LATEX_PREAMBLE = r"""\documentclass{article}
\usepackage{booktabs,longtable}
\usepackage[paperwidth=150cm,paperheight=100cm,margin=1cm]{geometry}
\begin{document}
"""


@pytest.fixture
def typeset(tmp_path):
    """Return a function from LaTeX to the text of its PDF, without white space and underscores.

    Underscores are lines in the default fonts of pdflatex. The function fails on errors of pdflatex and on
    repeated labels; it skips the test where a program is missing.
    """

    def text_of(body):
        for program, package in (
            ("pdflatex", "texlive-latex-recommended"),
            ("pdftotext", "poppler-utils"),
        ):
            if shutil.which(program) is None:
                pytest.skip(f"{program} is not installed (Debian package {package})")
        source = f"{LATEX_PREAMBLE}{body}\n\\end{{document}}\n"
        (tmp_path / "paper.tex").write_text(source, encoding="utf-8")
        options = ["-no-shell-escape", "-halt-on-error", "-interaction=nonstopmode"]
        done = subprocess.run(
            ["pdflatex", *options, "paper.tex"], cwd=tmp_path, capture_output=True, check=False
        )
        log = done.stdout.decode(errors="replace")
        assert done.returncode == 0, log[-2000:]
        labels = re.findall(r"\\label{(.*?)}", body)
        assert len(labels) == len({*labels})
        read = ["pdftotext", "-layout", "paper.pdf", "-"]
        pdf = subprocess.run(read, cwd=tmp_path, capture_output=True, check=True)
        text = pdf.stdout.decode().translate({0x2C6: "^", 0x2DC: "~", ord("_"): ""})
        return unicodedata.normalize("NFC", "".join(text.split()))

    return text_of


@pytest.fixture
def overfull_lines(tmp_path):
    """Return a function from LaTeX to the messages of pdflatex on lines wider than a text of 17 cm."""

    def lines_of(body):
        if shutil.which("pdflatex") is None:
            pytest.skip("pdflatex is not installed (Debian package texlive-latex-recommended)")
        packages = r"\usepackage{booktabs,longtable}\usepackage[a4paper,textwidth=17cm]{geometry}"
        document = f"\\begin{{document}}\\parindent0pt\n{body}\n\\end{{document}}\n"
        (tmp_path / "paper.tex").write_text(
            f"\\documentclass{{article}}{packages}{document}", "utf-8"
        )
        options = ["-no-shell-escape", "-halt-on-error", "-interaction=nonstopmode"]
        done = subprocess.run(
            ["pdflatex", *options, "paper.tex"], cwd=tmp_path, capture_output=True, check=False
        )
        log = done.stdout.decode(errors="replace")
        assert done.returncode == 0, log[-2000:]
        return [line for line in log.splitlines() if line.startswith("Overfull \\hbox")]

    return lines_of
