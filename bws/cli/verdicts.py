"""giccs verdict: whether language models may replace annotators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bws.base.commands import Console, command
from bws.base.options import INPUT, Number
from bws.cli.options import (
    allow_copies_option,
    answer_paragraph,
    answer_tables,
    arguments,
    judgments_from,
    judgments_options,
    option,
    paragraph_option,
    plain_table_options,
)
from bws.model_annotators import DEFAULT_EPSILON

if TYPE_CHECKING:
    from bws.base.tables import TableStyle
    from bws.files import OnInvalid


@command(
    "giccs verdict",
    example="""
    giccs verdict judgments.csv --model-judgments model.csv
    giccs verdict judgments.csv --model-judgments small.csv --model-judgments large.csv --epsilon 0.15
    giccs verdict judgments.csv --model-judgments model.csv --json > verdict.json
    """,
)
@judgments_options
@allow_copies_option
@option(
    "--model-judgments models",
    "Judgments of language models, as from giccs judge (annotator model:NAME@REVISION). Can be repeated.",
    multiple=True, required=True, type=INPUT, metavar="FILE", former_names="--models",
)  # fmt: skip
@option(
    "--epsilon",
    "Margin for the lower cost of a model: 0.1 for crowd workers, 0.15 for skilled annotators, 0.2 for "
    "experts.",
    type=Number(0, 1, max_open=True), default=DEFAULT_EPSILON, metavar="E",
)  # fmt: skip
@paragraph_option
@plain_table_options(
    "Format of the tables; csv has the verdicts, with --columns those of another table."
)
def verdict(
    console: Console,
    judgments: Sequence[str],
    form: str,
    on_invalid: OnInvalid,
    parts: Mapping[str, str],
    merge_variants: bool,
    control: Sequence[str],
    allow_copies: bool,
    models: Sequence[str],
    epsilon: float,
    paragraph: str | None,
    style: TableStyle,
) -> None:
    """Decide whether language models may replace annotators, from their judgments and those of people.

    JUDGMENTS are those of people. The verdict is that of the alternative annotator test. The tables below
    it are the evidence: comparisons with each annotator, agreement with people, position bias and
    consistency of each model, the savings of people's judgments with --model-judgments of giccs score, and
    the report on annotators.
    """
    from bws.model_verdict import verdict as decide
    from bws.paragraphs.judgments import study_sentences, verdict_sentences

    people = judgments_from(
        console, judgments, form, on_invalid, parts, merge_variants, control, allow_copies
    )
    judged = [
        judgments_from(console, path, "auto", on_invalid, {}, merge_variants, (), allow_copies)
        for path in models
    ]
    with arguments():
        result = decide(people, judged, epsilon=epsilon)
    if paragraph:
        sentences = [*study_sentences(people), *verdict_sentences(result)]
        answer_paragraph(console, sentences, paragraph, style, result.document(), result.notes)
        return
    is_short = style.form == "csv" and not style.columns
    tables = [result.result_table()] if is_short else result.result_tables()
    answer_tables(console, tables, style, result.document())
