"""The score explorer on 100,000 items and 100 results: seconds of the first view and of each interaction.

    python -m benchmarks.explorer [--dialogues N] [--annotators N] [--results N] [--profile INTERACTION]

Each run of the page's script is measured with Streamlit's AppTest in this process: the work of the server
from the click to the complete output, without drawing in the browser; also in CPU seconds of all threads.
The start of giccs explore (imports and reading of files) is measured separately. The memory of a page with
one sentence, as a first page of Streamlit, is printed beside that of the explorer.
"""

from __future__ import annotations

import argparse
import cProfile
import logging
import pstats
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, cast

import numpy as np

import giccs_app
from bws.files import write_judgments
from bws.records import Judgments, Tuples
from bws.scoring import score
from bws.simulation import simulate
from giccs.benchmark import read_benchmark, write_benchmark
from giccs.benchmark.items import Item, Turn
from giccs.evaluation.run import run
from giccs.measures.results import Signature, Store
from giccs.models import open_model
from giccs.tasks.pairwise import PairwiseSTS
from giccs_app.explorer.cli import check_sources, prepare_pages, warm_up

CANDIDATES, N_SHOWN = 5, 3
DESIGN = [(0, 1, 2), (1, 2, 3), (2, 3, 4), (3, 4, 0), (4, 0, 1)]
"""Tuples of a dialogue's candidates; each item is in three."""
MODELS = ("baseline:char-ngram", "baseline:chance")
LIMITS = {"first view": 3.0}
LIMIT = 0.3
"""Limits of an interaction in seconds."""
MEMORY_LIMIT = 600
"""Limit of the peak memory in MiB."""
STATUS = "/proc/self/status"
"""File with the memory of a process, on Linux."""
FOR_MANY_ITEMS = {"points instead of cells"}
"""Interactions with controls that the page only has for many items."""
Interaction = tuple[str, Callable[[Any], Any]]


def made_items(dialogues: int) -> list[Item]:
    """Return items composed of the sentences of giccs-sample, in 12 domains and two lengths."""
    sample = read_benchmark("giccs-sample").items
    random = np.random.default_rng(0)
    words = [item.utterance for item in sample] + [item.last_turn for item in sample]
    indices = random.integers(len(words), size=(dialogues, 5 + CANDIDATES)).tolist()
    items = []
    for d, numbers in enumerate(indices):
        texts = [f"{words[number]} {d}" for number in numbers]
        turns = [Turn(("user", "system")[n % 2], text) for n, text in enumerate(texts[:5])]
        about = replace(
            sample[0],
            dialogue_id=f"d{d:06}",
            domain=f"domain {d % 12}",
            turns=tuple(turns[-(3 + d % 2 * 2) :]),
        )  # fmt: skip
        items += [
            replace(about, item_id=f"{about.dialogue_id}-{c}", utterance_id=f"{about.dialogue_id}-{c}",
                    utterance=f"{text}-{c}")
            for c, text in enumerate(texts[5:])
        ]  # fmt: skip
    return items


def made_judgments(items: list[Item], annotators: int) -> Judgments:
    """Return judgments of simulated annotators, each of whom judges every tuple."""
    dialogues = len(items) // CANDIDATES
    first = np.arange(dialogues)[:, np.newaxis, np.newaxis] * CANDIDATES
    members = (first + np.array(DESIGN)).reshape(-1, N_SHOWN).astype(np.int32)
    tuples = Tuples(
        ids=np.array([f"t{n}" for n in range(len(members))], dtype=object),
        items=np.array([item.utterance_id for item in items], dtype=object),
        group_of_item=np.repeat(np.arange(dialogues, dtype=np.int32), CANDIDATES),
        groups=np.array([item.dialogue_id for item in items[::CANDIDATES]], dtype=object),
        members=members,
    )
    truth = np.random.default_rng(1).uniform(-1, 1, len(items))
    return simulate(tuples, truth, annotators, noise=0.25)


def prepare(folder: Path, dialogues: int, annotators: int, results: int) -> list[str]:
    """Write benchmark, judgments and results; return the explorer's arguments."""
    items = made_items(dialogues)
    judgments = made_judgments(items, annotators)
    scores = score(judgments, scale="unit").score.tolist()
    data, judgments_path = folder / "large.jsonl", folder / "judgments.csv"
    write_benchmark(
        [replace(item, score=value) for item, value in zip(items, scores, strict=True)], data
    )
    write_judgments(judgments, judgments_path)
    print(f"{len(items)} items of {dialogues} dialogues, {len(judgments)} judgments", flush=True)
    files = ["--data", str(data), "--judgments", str(judgments_path)]
    return [*files, *add_copies(folder, data, results)]


def add_copies(folder: Path, data: Path | str, results: int) -> list[str]:
    """Write the results of two baselines with and without history, and copies under other names.

    results: number of all. Returns the explorer's arguments.
    """
    benchmark, store = read_benchmark(str(data)), Store(folder / "results")
    tasks = [PairwiseSTS(history, resamples=20) for history in ("without", "with")]
    made = [
        store.with_predictions(result)
        for result in run([open_model(name) for name in MODELS], tasks, benchmark, store)
    ]
    for number in range(len(made), results):
        name = f"organisation-{number % 7}/a-long-model-name-v{number}"
        copied = made[number % len(made)]
        signature = cast("Signature", {**copied.signature, "model": name})
        store.add(replace(copied, model=name, signature=signature))
    print(f"{max(results, len(made))} results", flush=True)
    return ["--results", str(store.folder)]


def interactions() -> Iterator[Interaction]:
    """Yield the interactions in order: name, and function that performs it with AppTest."""
    yield "first view", lambda page: page.run()
    yield "again", lambda page: page.run()
    yield "open Dialogues", switch("page", "dialogues")
    yield "next dialogue", lambda page: page.button(key="next").click().run()
    yield "filter by domain", lambda page: page.multiselect(key="domain").select("domain 3").run()
    yield "filter by score", lambda page: page.slider(key="score").set_range(0.2, 0.8).run()
    yield "order by disagreement", choose("order", 1)
    yield "search a word", lambda page: page.text_input(key="words").set_value("Wetter").run()
    yield "open Annotation", switch("page", "annotation")
    yield "other number wanted", lambda page: page.number_input(key="wanted").set_value(7).run()
    yield "open Models", switch("page", "models")
    yield "predictions of a model", switch("view", "predictions")
    yield "another model", choose("model", 1)
    yield "points instead of cells", switch("points", "sample")
    yield "parts by domain", switch("view", "parts")
    yield "histories", switch("view", "histories")
    yield "two models compared", switch("view", "against")
    yield "another second model", choose("second", 2)
    yield "figures of all models", switch("view", "figures")
    yield "differences of all models", switch("figure", "differences")
    yield "open Errors", switch("page", "errors")
    yield "errors of another model", choose("model", 2)
    yield "errors by length", switch("by", "n_turns")


def switch(key: str, value: str) -> Callable[[Any], Any]:
    return lambda page: page.segmented_control(key=key).set_value(value).run()


def choose(key: str, index: int) -> Callable[[Any], Any]:
    return lambda page: page.selectbox(key=key).select_index(index).run()


def measure(page: Any, profiled: str | None) -> None:
    """Run the interactions and print the seconds of each; profile one of them."""
    for name, act in interactions():
        profile = cProfile.Profile() if name == profiled else None
        if profile:  # the script runs in a separate thread
            threading.setprofile(lambda *_, own=profile: own.enable())
        start, start_of_cpu = time.perf_counter(), time.process_time()
        try:
            done = act(page)
        except KeyError:  # the page has no such control with few items
            if name not in FOR_MANY_ITEMS:
                raise
            print(f"{name:26} skipped: too few items", flush=True)
            continue
        finally:
            elapsed, cpu = time.perf_counter() - start, time.process_time() - start_of_cpu
            threading.setprofile(None)
        for wrong in (*done.exception, *done.error):
            raise RuntimeError(f"{name}: {wrong.value}")
        limit = LIMITS.get(name, LIMIT)
        verdict = "within" if elapsed <= limit else "ABOVE"
        print(f"{name:26} {elapsed:7.3f} s, {verdict} {limit:g} s; CPU {cpu:.3f} s", flush=True)
        if profile:
            pstats.Stats(profile).sort_stats("cumulative").print_stats(45)


def peak_memory(status: str | None = None) -> float:
    """Return the peak memory of a process in MiB from its file `STATUS`, by default of this process.

    That of `resource` contains the memory of the process that started it.
    """
    lines = Path(STATUS).read_text(encoding="ascii") if status is None else status
    return int(lines.partition("VmHWM:")[2].split()[0]) / 1024


def bare_page_memory() -> float:
    """Return the peak memory of a page with one sentence and the modules that charts and tables load."""
    code = (
        "from streamlit.testing.v1 import AppTest\n"
        "page = 'import altair, pandas, streamlit; streamlit.write(1)'\n"
        "AppTest.from_string(page, default_timeout=600).run()\n"
        f"print(open({STATUS!r}).read())"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return peak_memory(ran.stdout)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dialogues", type=int, default=20_000)
    parser.add_argument("--annotators", type=int, default=3)
    parser.add_argument("--results", type=int, default=100)
    parser.add_argument("--profile", metavar="INTERACTION")
    options = parser.parse_args(arguments)
    from streamlit.testing.v1 import AppTest

    logging.disable(logging.WARNING)  # warnings about the missing server
    script = str(Path(giccs_app.__file__).parent / "explorer" / "streamlit_app.py")
    with tempfile.TemporaryDirectory() as folder:
        counts = (options.dialogues, options.annotators, options.results)
        with get_context("spawn").Pool(1) as pool:  # its memory does not count
            prepared = pool.apply(prepare, (Path(folder), *counts))
        sys.argv = [script, *prepared]
        start = time.perf_counter()
        warm_up()
        check_sources(prepared[1], prepared[3], prepared[5], None, ())
        print(f"before the server is up    {time.perf_counter() - start:7.3f} s", flush=True)
        start = time.perf_counter()
        prepare_pages(prepared[1], prepared[3], prepared[5], None)
        print(f"behind the first page      {time.perf_counter() - start:7.3f} s", flush=True)
        measure(AppTest.from_file(script, default_timeout=600), options.profile)
        peak, bare = peak_memory(), bare_page_memory()
        verdict = "within" if peak <= MEMORY_LIMIT else "ABOVE"
        print(
            f"peak memory {peak:.0f} MiB, {verdict} {MEMORY_LIMIT} MiB; a bare page {bare:.0f} MiB",
            flush=True,
        )


if __name__ == "__main__":
    main()
