"""The commands of analyses of judgments, made from their declarations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from bws.analysis.analysis import Also, Analysis, Answers, Picture
from bws.analysis.registry import load_analysis
from bws.base.commands import Command, Console, command
from bws.base.options import click_options, declarations
from bws.cli.options import (
    Decorator,
    allow_copies_option,
    answer_paragraph,
    answer_tables,
    arguments,
    by_options,
    check_figure,
    drawn_figure,
    exclude_option,
    figures_option,
    judgments_from,
    judgments_options,
    option,
    paragraph_option,
    plain_table_options,
    values_by,
    variants_document,
)

if TYPE_CHECKING:
    from bws.analysis.analysis import Drawing
    from bws.base.tables import ResultTable, TableStyle
    from bws.records import Judgments


def judgments_command(name: str, analysis: Analysis) -> Command:
    """Return the command of an analysis of judgments.

    Its options are those of files of judgments and of tables, the settings, one for each further analysis,
    and the pictures.
    """
    pictures = {picture.name: picture for picture in analysis.pictures}

    def run(
        console: Console, style: TableStyle, metadata: str | None = None, by: str | None = None,
        figures: Sequence[tuple[str, str]] = (), paragraph: str | None = None, **values: Any,
    ) -> None:  # fmt: skip
        if paragraph and by:
            raise click.UsageError("--paragraph cannot be combined with --by")
        with arguments():
            settings = analysis.settings(**_taken(values, declarations(analysis.settings)))
        given = vars(settings) | _taken(values, _flags(analysis))
        flags = [name for name in analysis.also if given[name]]
        further = dict.fromkeys(each for flag in flags for each in analysis.also[flag].analyses)
        for _, path in figures:
            check_figure(path)
        judgments = judgments_from(console, values.pop("judgments"), **values)
        answers = Answers(judgments, settings, values_by(judgments, metadata, by))
        with arguments():
            document = (answers.document(analysis) or {}) | variants_document(judgments)
            document |= {each.name: answers.document(each) for each in further}
            tables = [
                table for each in (analysis, *further) for table in _tables(answers, each, style)
            ]
            for each in (analysis, *further):
                if answers.result(each) is None:
                    console.note(each.absent)
        for picture, path in figures:
            with drawn_figure(console, picture, judgments.file):
                _write(answers.drawing(analysis, pictures[picture]), judgments, path)
        if paragraph and analysis.sentences:
            from bws.paragraphs.judgments import study_sentences

            sentences = [*study_sentences(judgments), *analysis.sentences(answers)]
            notes = (text for table in tables for text in table.notes)
            answer_paragraph(console, sentences, paragraph, style, document, notes)
        else:
            answer_tables(console, tables, style, document)

    run.__doc__ = analysis.summary or analysis.title
    for add in reversed(_options(analysis, pictures)):
        run = add(run)
    return command(name, example=analysis.example or f"{name} judgments.csv")(run)


def _options(analysis: Analysis, pictures: Mapping[str, Picture]) -> list[Decorator]:
    kinds = {name: picture.text for name, picture in pictures.items()}
    return [
        judgments_options,
        allow_copies_option,
        exclude_option,
        click_options(analysis.settings),
        *([by_options] if analysis.has_parts else []),
        *(option(f"--{flag}", also.text, is_flag=True) for flag, also in _flags(analysis).items()),
        *([figures_option(next(iter(kinds.values())), kinds)] if kinds else []),
        *([paragraph_option] if analysis.sentences else []),
        plain_table_options(),
    ]


def _flags(analysis: Analysis) -> dict[str, Also]:
    """Return what flags add; the others are settings."""
    settings = declarations(analysis.settings)
    return {name: also for name, also in analysis.also.items() if name not in settings}


def _tables(answers: Answers, analysis: Analysis, style: TableStyle) -> list[ResultTable]:
    tables = answers.tables(analysis)
    if not analysis.max_rows or style.form != "table":
        return [*tables]
    return [table.head(analysis.max_rows) for table in tables]


def _taken(values: dict[str, Any], names: Mapping[str, object]) -> dict[str, Any]:
    """Remove some values, and return them."""
    return {name: values.pop(name) for name in names}


def _write(drawing: Drawing, judgments: Judgments, path: str) -> None:
    from bws.analysis.pictures import finished
    from bws.base.charts import write_chart

    write_chart(finished(drawing, judgments), path)


reliability = judgments_command("giccs reliability", load_analysis("reliability"))
agreement = judgments_command("giccs agreement", load_analysis("agreement"))
