"""giccs-demo: the whole pipeline on giccs-sample, offline, and what its numbers show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bws.command import Console, command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.pipeline.whole import Outcome
    from giccs.results import Result

__all__ = ["demo"]

SIMULATED = (
    "The annotators are simulated: all of this is for trying the tools out, not for reporting."
)


@command("giccs-demo", example="giccs-demo -o demo-results")
@click.option(
    "-o",
    "--output",
    "folder",
    default="demo-results",
    show_default=True,
    metavar="FOLDER",
    help="Where everything is kept; a second run takes it from there.",
)
def demo(console: Console, folder: str) -> None:
    """Go the whole way on giccs-sample: HITs, simulated workers, scores, benchmark, models, a report.

    Needs no hub: the models come as packages (the extra giccs[demo] and models.txt). When it was
    interrupted, by whatever, the same command goes on.
    """  # fmt: skip
    from app.pipeline.plan import Plan, sample_dialogues
    from app.pipeline.requirements import insist_on_extras
    from app.pipeline.whole import run_pipeline

    plan = Plan(sample_dialogues())
    insist_on_extras(plan)
    try:
        found = run_pipeline(folder, plan, console)
    except KeyboardInterrupt:
        console.note(f"\nwhat is done stands in {folder}; the same command goes on")
        raise
    console.answer(text_of(found), document_of(found))


def text_of(found: Outcome) -> str:
    """Return the tables and what they show."""
    from giccs.report import report

    quality, items = found.quality, len(found.benchmark.items)
    return "\n".join(
        [
            "Agreement of the simulated annotators",
            "",
            quality.agreement.table(),
            "",
            "Split-half reliability of the scores",
            "",
            quality.reliability.table(),
            "",
            report(found.results, "table", quality.ceiling),
            "",
            what_it_shows(found.results),
            f"{items} items, {len(found.benchmark.dialogue_ids)} dialogues. {SIMULATED}",
            f"Everything lies in {found.folder.path}; to look at: {found.folder.report}",
        ]
    )


def document_of(found: Outcome) -> dict[str, object]:
    """Return all numbers as JSON has them."""
    quality = found.quality
    return {
        "results": [result.document() for result in found.results],
        "simulated": True,
        "agreement": quality.agreement.document(),
        "reliability": quality.reliability.document(),
        "ceiling": {name: estimate.document() for name, estimate in quality.ceiling.items()},
        "folder": str(found.folder.path),
        "report": str(found.folder.report),
    }


def what_it_shows(results: Sequence[Result]) -> str:
    """Say in a sentence how the best model stands beside the overlap of characters."""
    from app.pipeline.plan import OVERLAP

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
