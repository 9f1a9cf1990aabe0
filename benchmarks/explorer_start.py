"""The score explorer in Chromium: seconds from a cold start to the first page, and of some clicks.

    python -m benchmarks.explorer_start [--results N]

giccs explore is started as by a user, with giccs-sample and N results. A page is complete when Streamlit has
run its script and the browser has drawn its charts.
"""

from __future__ import annotations

import argparse
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from giccs.benchmark import read_benchmark
from giccs.evaluation.run import run
from giccs.measures.results import Signature, Store
from giccs.models import open_model
from giccs.tasks.pairwise import PairwiseSTS

COMPLETE = "[data-testid=stApp][data-test-script-state=notRunning]"
CHART = "[data-testid=stVegaLiteChart] svg, [data-testid=stVegaLiteChart] canvas"
LIMITS = {"cold start to first page": 6.0, "server up to first page": 3.0}
LIMIT = 1.0
"""Limits in seconds; clicks include the drawing in the browser."""


def make_results(folder: Path, count: int) -> None:
    """Write results of `count` models with hub names: copies of one baseline's."""
    benchmark, store = read_benchmark("giccs-sample"), Store(folder / "made")
    model = open_model("baseline:char-ngram")
    (result,) = run([model], [PairwiseSTS("with")], benchmark, store)
    copies = Store(folder / "results")
    for number in range(count):
        name = f"organisation-{number % 7}/a-long-model-name-v{number}"
        signature = cast("Signature", {**result.signature, "model": name})
        copies.add(replace(store.with_predictions(result), model=name, signature=signature))


@contextmanager
def server(results: Path, log: Path) -> Iterator[tuple[str, Callable[[], bool]]]:
    """Start giccs explore; yield its address, and a function that says whether it answers."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    code = "from giccs_app.explorer.cli import explore; explore()"
    arguments = ["--no-browser", "--port", str(port), "--results", str(results)]
    address = f"http://127.0.0.1:{port}/"

    def is_up() -> bool:
        with suppress(OSError), urllib.request.urlopen(f"{address}_stcore/health") as answer:
            return bool(answer.status == 200)
        return False

    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments], stdout=output, stderr=subprocess.STDOUT
        )
        try:
            yield address, is_up
        finally:
            process.terminate()
            process.wait(60)


def wait_until_complete(page: Any, chart: bool = True) -> None:
    """Wait until the script has ended and, if the page has charts, one is drawn."""
    page.locator(COMPLETE).wait_for()
    if chart:
        page.locator(CHART).first.wait_for()
    page.locator(COMPLETE).wait_for()


def report(name: str, seconds: float) -> None:
    limit = LIMITS.get(name, LIMIT)
    verdict = "within" if seconds <= limit else "ABOVE"
    print(f"{name:26} {seconds:7.3f} s, {verdict} {limit:g} s", flush=True)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--results", type=int, default=100)
    options = parser.parse_args(arguments)
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        make_results(folder, options.results)
        print(f"giccs-sample, {options.results} results")
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium-headless-shell") or shutil.which("chromium"),
            args=["--no-sandbox"],
        )
        page = browser.new_page()
        start = time.perf_counter()
        with server(folder / "results", folder / "log") as (address, is_up):
            while not is_up():
                time.sleep(0.02)
            up = time.perf_counter()
            page.goto(address)
            wait_until_complete(page)
            complete = time.perf_counter()
            report("cold start to first page", complete - start)
            report("server up to first page", complete - up)
            clicks = {
                "open Models": ("Models", True), "open Dialogues": ("Dialogues", True),
                "open Annotation": ("Annotation", True), "open Errors": ("Errors", False),
                "back to Overview": ("Overview", True),
            }  # fmt: skip
            for click, (button, has_chart) in clicks.items():
                start = time.perf_counter()
                page.get_by_role("radio", name=button, exact=True).click()
                page.get_by_role("radio", name=button, exact=True, checked=True).wait_for()
                time.sleep(0.05)  # until the browser knows that the script runs
                wait_until_complete(page, has_chart)
                report(click, time.perf_counter() - start)
        browser.close()


if __name__ == "__main__":
    main()
