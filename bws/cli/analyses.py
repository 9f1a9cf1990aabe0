"""bws-reliability and bws-agreement: the commands of analyses of judgments, made from their declarations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bws.analysis.analysis import Analysis, Answers, Picture
from bws.analysis.judgments import AGREEMENT, RELIABILITY
from bws.base.commands import Command, Console, command
from bws.base.options import click_options, declarations
from bws.cli.options import (
    Decorator,
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
    values_by,
    variants_document,
)

if TYPE_CHECKING:
    from bws.analysis.analysis import Drawing
    from bws.base.tables import TableStyle
    from bws.records import Judgments


def judgments_command(name: str, analysis: Analysis, text: str, example: str) -> Command:
    """Return the command of an analysis of judgments.

    Its options are those of files of judgments and of tables, the settings, one for each further analysis,
    and the pictures. text: the first line of its help.
    """
    pictures = {picture.name: picture for picture in analysis.pictures}

    def run(
        console: Console, metadata: str | None, by: str | None, figures: Sequence[tuple[str, str]],
        style: TableStyle, **values: Any,
    ) -> None:  # fmt: skip
        settings = analysis.settings(**_taken(values, declarations(analysis.settings)))
        requested = [
            analysis.also[flag] for flag, given in _taken(values, analysis.also).items() if given
        ]
        for _, path in figures:
            check_figure(path)
        judgments = judgments_from(console, values.pop("judgments"), **values)
        answers = Answers(judgments, settings, values_by(judgments, metadata, by))
        with arguments():
            tables = [*answers.tables(analysis)]
            document = answers.document(analysis) | variants_document(judgments)
            for each in dict.fromkeys(one for also in requested for one in also.analyses):
                is_cut = each.max_rows and style.form == "table"
                tables += [
                    table.head(each.max_rows or 0) if is_cut else table
                    for table in answers.tables(each)
                ]
                document[each.name] = answers.document(each)
                if answers.result(each) is None:
                    console.note(each.absent)
        for picture, path in figures:
            with drawn_figure(console, picture, judgments.file):
                _write(answers.drawing(analysis, pictures[picture]), judgments, path)
        answer_tables(console, tables, style, document)

    run.__doc__ = text
    for add in reversed(_options(analysis, pictures)):
        run = add(run)
    return command(name, example=example)(run)


def _options(analysis: Analysis, pictures: Mapping[str, Picture]) -> list[Decorator]:
    first, *_ = pictures.values()
    kinds = {name: picture.text for name, picture in pictures.items()}
    return [
        judgments_options,
        allow_copies_option,
        click_options(analysis.settings),
        by_options,
        *(option(f"--{flag}", also.text, is_flag=True) for flag, also in analysis.also.items()),
        figures_option(first.text, kinds),
        plain_table_options(),
    ]


def _taken(values: dict[str, Any], names: Mapping[str, object]) -> dict[str, Any]:
    """Remove some values, and return them."""
    return {name: values.pop(name) for name in names}


def _write(drawing: Drawing, judgments: Judgments, path: str) -> None:
    from bws.analysis.pictures import finished
    from bws.base.charts import write_chart

    write_chart(finished(drawing, judgments), path)


reliability = judgments_command(
    "bws-reliability",
    RELIABILITY,
    "Estimate the reliability of the scores by split halves and from variance components.",
    """
    bws-reliability judgments.csv
    bws-reliability judgments.csv --metadata dialogues.jsonl --by source,n_turns
    bws-reliability judgments.csv --split annotator --curve
    bws-reliability judgments.csv --format latex --caption "Split-half reliability" > reliability.tex
    bws-reliability pilot.csv --plan --target 0.95 --price 0.05 --figure plan.svg
    """,
)
agreement = judgments_command(
    "bws-agreement",
    AGREEMENT,
    "Compute inter-annotator agreement: Krippendorff's alpha and strong agreement.",
    """
    bws-agreement judgments.csv
    bws-agreement judgments.csv --metadata dialogues.jsonl --by source,n_turns --intervals
    bws-agreement judgments.csv --annotators --items --figure annotators=annotators.svg
    """,
)
