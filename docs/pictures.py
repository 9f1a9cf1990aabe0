"""Take the pictures of the documentation from the programs themselves: make pictures.

The study is the one of the quickstart, the results are of two baselines on the sample. Needs
chromium-headless-shell or chromium.
"""

from __future__ import annotations

import io
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

FOLDER = Path(__file__).parent / "pictures"
QUICKSTART = Path(__file__).parent / "quickstart.md"
MAX_BYTES = 150_000
SECONDS = 60


def main() -> None:
    """Take both pictures."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as running:
        browser = running.chromium.launch(
            executable_path=shutil.which("chromium-headless-shell") or shutil.which("chromium"),
            args=["--no-sandbox"],
        )
        try:
            worker_page(browser, Path(folder))
            explorer(browser, Path(folder))
        finally:
            browser.close()


def worker_page(browser: Browser, folder: Path) -> None:
    """Take the page of a HIT as a worker sees it after accepting it."""
    sheet = re.search(
        r"sheet\.csv <<'END'\n(.*?)^> END", QUICKSTART.read_text("utf-8"), re.M | re.S
    )
    assert sheet, "no spreadsheet in the quickstart"
    (folder / "sheet.csv").write_text(re.sub("^> ", "", sheet[1], flags=re.M), "utf-8")
    columns = [
        "--id",
        "nr",
        "--context",
        "before",
        "--target",
        "last",
        "--candidates",
        "c1,c2,c3,c4",
    ]
    run(folder, "import", "sheet.csv", *columns, "--language", "en", "-o", "dialogues.jsonl")
    run(folder, "design", "dialogues.jsonl", "-k", "3", "--tuples", "4", "-o", "tuples.csv")
    port = free_port()
    at = f"http://127.0.0.1:{port}"
    publish = ["publish", "tuples.csv", "--dialogues", "dialogues.jsonl", "--endpoint", at]
    with served(folder, f"{at}/healthz", "annotate", "serve", "--port", str(port)):
        run(folder, "annotate", *publish)
        page = opened(browser, 1100, 900)
        page.goto(f"{at}/work/")
        page.get_by_label("Worker ID").fill("APICTURE1")
        page.get_by_role("button", name="Continue").click()
        page.get_by_label("In which country do you live?").select_option("DE")
        page.get_by_role("button", name="Start").click()
        page.get_by_role("button", name="Accept").first.click()
        page.frame_locator("#question").locator("form fieldset.best input").first.check()
        page.frame_locator("#question").locator("form fieldset.worst input").nth(1).check()
        save(page, "worker-page.png")


def explorer(browser: Browser, folder: Path) -> None:
    """Take the models of the explorer: two baselines on the sample."""
    run(folder, "eval", "baseline:char-ngram", "baseline:chance", "--history", "both")
    port = free_port()
    with served(
        folder, f"http://127.0.0.1:{port}/_stcore/health",
        "explore", "--results", "results", "--no-browser", "--port", str(port),
    ):  # fmt: skip
        page = opened(browser, 1300, 900)
        page.goto(f"http://127.0.0.1:{port}/?page=models&lang=en")
        page.wait_for_selector("[data-testid=stAppViewContainer] h1, h2", timeout=1000 * SECONDS)
        page.wait_for_load_state("networkidle")
        page.wait_for_timeout(4000)
        save(page, "explorer.png")


def run(folder: Path, *arguments: str) -> None:
    """Run a command of giccs."""
    subprocess.run(
        [sys.executable, "-m", "giccs", *arguments, "--quiet"],
        cwd=folder,
        check=True,
        stdout=subprocess.DEVNULL,
    )


@contextmanager
def served(folder: Path, health: str, *arguments: str) -> Iterator[None]:
    """Run a server until the block ends, from the time at which it answers."""
    server = subprocess.Popen([sys.executable, "-m", "giccs", *arguments], cwd=folder)
    try:
        for _ in range(10 * SECONDS):
            with suppress(OSError), urllib.request.urlopen(health):
                break
            time.sleep(0.1)
        yield
    finally:
        server.terminate()
        server.wait(SECONDS)


def free_port() -> int:
    """Return a port of which the next one is free too, as far as is known."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


def opened(browser: Browser, width: int, height: int) -> Page:
    """Return an English page of this size."""
    context = browser.new_context(locale="en-GB", viewport={"width": width, "height": height})
    context.set_default_timeout(1000 * SECONDS)
    return context.new_page()


def save(page: Page, name: str) -> None:
    """Write the visible part with 64 colours, which keeps text sharp and the file small."""
    image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    image.quantize(64, dither=Image.Dither.NONE).save(FOLDER / name, optimize=True)
    size = (FOLDER / name).stat().st_size
    assert size < MAX_BYTES, f"{name}: {size} bytes; expected less than {MAX_BYTES}"


if __name__ == "__main__":
    main()
