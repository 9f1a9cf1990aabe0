"""giccs-demo: the baselines and three real models on giccs-sample, and what that shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bws.command import Console, command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from giccs.benchmark import Benchmark
    from giccs.results import Result

__all__ = ["demo"]

OVERLAP = "baseline:char-ngram"
MODELS = ("baseline:chance", OVERLAP, "package:minilm", "package:use-multilingual")
CAUSAL = "package:smollm2"
EVERY = 5
"""The causal model, on a processor, is asked about one dialogue of so many."""


@command("giccs-demo", example="giccs-demo -o demo-results")
@click.option(
    "-o",
    "--output",
    "folder",
    default="demo-results",
    show_default=True,
    metavar="FOLDER",
    help="Where results are kept; a second run takes them from there.",
)
def demo(console: Console, folder: str) -> None:
    """Score two baselines, two encoders and a causal language model on giccs-sample.

    Needs no hub: the models come as packages (the extra giccs[demo] and models.txt).
    """  # fmt: skip
    from giccs.benchmark import SAMPLE, read_benchmark
    from giccs.report import report
    from giccs.results import Store
    from giccs.run import open_models, run
    from giccs.tasks import open_tasks

    benchmark = read_benchmark(SAMPLE)
    pairs, causal = open_models(MODELS), open_models([CAUSAL])
    results = [
        result
        for models, task, data in (
            (pairs, "pairwise-sts", benchmark),
            (causal, "multiple-choice-sts", one_in(EVERY, benchmark)),
        )
        for result in run(
            models, open_tasks(task), data, Store(folder),
            note=console.note, progress=console.progress,
        )
    ]  # fmt: skip
    text = "\n".join(
        [
            report(results, "table"),
            "",
            what_it_shows(results),
            f"{SAMPLE}: {len(benchmark.items)} items, {len(benchmark.dialogue_ids)} dialogues. Its "
            "scores come from simulated annotators: for trying the tools out, not for reporting.",
            f"Results with a row for every item: {folder}",
        ]
    )
    console.answer(text, {"results": [result.document() for result in results]})


def one_in(every: int, benchmark: Benchmark) -> Benchmark:
    """Return the benchmark of the first of each `every` dialogues, so that all domains are in it."""
    from giccs.benchmark import Benchmark

    kept = set(benchmark.dialogue_ids[::every])
    items = tuple(item for item in benchmark.items if item.dialogue_id in kept)
    return Benchmark(f"{benchmark.name}, one dialogue of {every}", items)


def what_it_shows(results: Sequence[Result]) -> str:
    """Say in a sentence how the best model stands beside the overlap of characters."""
    by_model = {
        result.model: result.metrics["spearman"]
        for result in results
        if result.task == "pairwise-sts"
    }
    best = max(by_model, key=lambda model: by_model[model].value)
    overlap = by_model[OVERLAP]
    first = f"{best} ranks the utterances best (Spearman's ρ {by_model[best].value:.2f})"
    if best == OVERLAP:
        return f"{first}: no model does better than shared characters."
    apart = by_model[best].low > overlap.high
    verdict = (
        "the intervals do not overlap" if apart else "the intervals overlap: not clearly apart"
    )
    return f"{first}; shared characters alone reach {overlap.value:.2f}, and {verdict}."
