"""bws-reliability and bws-agreement: consistency of judgments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from bws.base.commands import Console, command
from bws.base.options import MAX_RESAMPLES, RESAMPLES, Number
from bws.base.terminal import say
from bws.cli.options import (
    allow_copies_option,
    answer_tables,
    arguments,
    by_options,
    check_figure,
    drawn_figure,
    figures_option,
    judgments_from,
    judgments_options,
    option,
    plain_table_options,
    seed_option,
    values_by,
    variants_document,
)

if TYPE_CHECKING:
    from bws.files import OnInvalid
from bws.base.tables import TableStyle


@command(
    "bws-reliability",
    example="""
    bws-reliability judgments.csv
    bws-reliability judgments.csv --metadata dialogues.jsonl --by source,n_turns
    bws-reliability judgments.csv --split annotator --curve
    bws-reliability judgments.csv --format latex --caption "Split-half reliability" > reliability.tex
    bws-reliability pilot.csv --plan --target 0.95 --price 0.05 --figure plan.svg
    """,
)
@judgments_options
@allow_copies_option
@option("--trials", "Number of random splits.", type=RESAMPLES, default=100, metavar="N")
@option(
    "--split",
    "Unit of the split: each tuple's judgments, the tuples, or the annotators.  [default: each that the "
    "judgments allow]",
    choices="annotation tuple annotator",
)
@option(
    "--odd",
    "Half that gets the extra unit of an odd number: random, or always the second (2 against 3).",
    choices="coin second",
    default="coin",
)
@option(
    "--missing",
    "Treatment of items that one half does not score: omit them from the trial, or use 0.",
    choices="drop zero",
    default="drop",
)
@by_options
@option(
    "--curve",
    "Add reliability as a function of the number of annotations, and the number required for --target.",
    is_flag=True,
)
@option(
    "--components",
    "Add variance components of the scores, and the reliability that includes all errors.",
    is_flag=True,
)
@option(
    "--plan planned",
    "Add --components, and the reliability of other designs: more tuples, annotations, annotators.",
    is_flag=True,
)
@option(
    "--target",
    "Target reliability of the scores for --curve and --plan.",
    type=Number(0, 1, min_open=True, max_open=True),
    default=0.9,
    metavar="R",
)
@option("--price", "Price per judgment; --plan shows costs.", type=Number(0, 1e6), metavar="P")
@figures_option(
    "reliability against the number of annotations, with --plan also the prediction and the target",
    {"reliability": "the default", "components": "variance components"},
)
@plain_table_options()
@seed_option
def reliability(
    console: Console,
    judgments: Sequence[str],
    form: str,
    on_invalid: OnInvalid,
    parts: Mapping[str, str],
    merge_variants: bool,
    control: Sequence[str],
    allow_copies: bool,
    metadata: str | None,
    by: str | None,
    curve: bool,
    components: bool,
    planned: bool,
    target: float,
    price: float | None,
    figures: Sequence[tuple[str, str]],
    style: TableStyle,
    **options: Any,
) -> None:
    """Estimate the reliability of the scores by split halves and from variance components."""
    from bws.base.charts import write_chart
    from bws.components import generalisability
    from bws.figures import components_chart, reliability_chart
    from bws.planning import Planner
    from bws.planning import plan as design_plan
    from bws.split_half import reliability as split_halves
    from bws.split_half import reliability_curve

    for _, path in figures:
        check_figure(path)
    data = judgments_from(
        console, judgments, form, on_invalid, parts, merge_variants, control, allow_copies
    )
    with arguments():
        report = split_halves(data, by=values_by(data, metadata, by), **options)
    tables, document = [report.result_table()], report.document() | variants_document(data)
    drawn = {name for name, _ in figures}
    if curve or "reliability" in drawn:
        shared = {name: options[name] for name in ("trials", "odd", "seed")}
        with arguments():
            points = reliability_curve(data, target=target, **shared)
        if curve:
            tables.append(points.result_table())
            document["curve"] = points.document()
    plan = None
    if components or planned or "components" in drawn:
        answers = data.canonical
        study = generalisability(answers)
    if components or planned:
        tables.append(study.result_table())
        document["components"] = study.document()
        planner = Planner.from_study(answers, study) if planned else None
        if planner:
            plan = design_plan(planner, target, price)
            tables += plan.result_tables()
            document["plan"] = plan.document()
        elif planned:
            document["plan"] = None
            console.note("no plan: reliability cannot be estimated from variance components")
    for name, path in figures:
        with drawn_figure(console, name, data.file):
            chart = (
                reliability_chart(points, data, plan)
                if name == "reliability"
                else components_chart(study, data)
            )
            write_chart(chart, path)
    answer_tables(console, tables, style, document)


@command(
    "bws-agreement",
    example="""
    bws-agreement judgments.csv
    bws-agreement judgments.csv --metadata dialogues.jsonl --by source,n_turns --intervals
    bws-agreement judgments.csv --annotators --items --figure annotators=annotators.svg
    """,
)
@judgments_options
@allow_copies_option
@option(
    "--strong",
    "Minimum share of a tuple's annotators with the same answer for strong agreement.",
    type=Number(0, 1, min_open=True),
    default=0.8,
    metavar="SHARE",
)
@option(
    "--intervals", "95 % intervals that generalise to other annotators and groups.", is_flag=True
)
@option("--bootstrap", "", type=click.IntRange(0, MAX_RESAMPLES), default=0, hidden=True)
@by_options
@option("--annotators", "Add a report on each annotator, with flagged annotators.", is_flag=True)
@option(
    "--items",
    "Add items with intermediate scores on which annotators disagree systematically.",
    is_flag=True,
)
@figures_option(
    "the agreement of each group",
    {"agreement": "the default", "annotators": "matrix of all pairs of annotators"},
)
@plain_table_options()
@seed_option
def agreement(
    console: Console,
    judgments: Sequence[str],
    form: str,
    on_invalid: OnInvalid,
    parts: Mapping[str, str],
    merge_variants: bool,
    control: Sequence[str],
    allow_copies: bool,
    metadata: str | None,
    by: str | None,
    annotators: bool,
    items: bool,
    strong: float,
    intervals: bool,
    bootstrap: int,
    figures: Sequence[tuple[str, str]],
    style: TableStyle,
    seed: int,
) -> None:
    """Compute inter-annotator agreement: Krippendorff's alpha and strong agreement."""
    from bws.annotators import annotator_report
    from bws.base.charts import write_chart
    from bws.chance_agreement import agreement as agreed
    from bws.figures import agreement_chart, pairs_chart
    from bws.split_items import MAX_ITEMS_SHOWN, split_items

    if bootstrap:
        say("warning: --bootstrap is deprecated; use --intervals")
    for _, path in figures:
        check_figure(path)
    data = judgments_from(
        console, judgments, form, on_invalid, parts, merge_variants, control, allow_copies
    )
    with arguments():
        result = agreed(
            data,
            by=values_by(data, metadata, by),
            strong=strong,
            intervals=intervals or bootstrap > 0,
        )
    tables, document = [result.result_table()], result.document() | variants_document(data)
    if annotators:
        report = annotator_report(data)
        tables.append(report.result_table())
        document["annotators"] = report.document()
    if items:
        divided = split_items(data, seed=seed)
        table = divided.result_table()
        tables.append(table.head(MAX_ITEMS_SHOWN) if style.form == "table" else table)
        document["items"] = divided.document()
    for name, path in figures:
        with drawn_figure(console, name, data.file):
            chart = agreement_chart(result) if name == "agreement" else pairs_chart(data)
            write_chart(chart, path)
    answer_tables(console, tables, style, document)
