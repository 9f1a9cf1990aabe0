"""giccs stats: statistics of dialogues and distribution of scores."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

from bws.base.charts import check_chart_path, write_chart
from bws.base.commands import Console, command
from bws.base.options import INPUT, Choice
from bws.base.problems import InputError, Problem
from bws.base.tables import TableStyle, rendered
from bws.base.text import read_bytes
from bws.cli.options import arguments, drawn_figure, figures_option, plain_table_options
from giccs.benchmark.languages import required_language
from giccs.cli.options import language_option_with_alias
from giccs.description.distribution import Bin, distribution, distribution_table, score_distribution
from giccs.description.statistics import (
    GROUPINGS,
    MTLD_CHOICES,
    MTLD_THRESHOLD,
    TABLE_2,
    describe,
    statistics_table,
)

if TYPE_CHECKING:
    from giccs.benchmark.items import Dialogue, Item
    from giccs.description.lemmas import Lemmatiser

REQUIRED_PACKAGES = {
    "stats": {"spacy": "spaCy", "simplemma": "simplemma", "lexicalrichness": "LexicalRichness"},
    "charts": {"altair": "Altair", "vl_convert": "vl-convert"},
}
"""Extra -> module -> name of the package."""
CSV_COLUMNS = (
    "dialogues", "turns", "tokens", "rttr", "mtld", "lemmas", "mean_turn_length", "reasons"
)  # fmt: skip


@command(
    "giccs stats",
    example="""
    giccs stats giccs-sample
    giccs stats benchmark.jsonl --by source,n_turns --format latex
    giccs stats dialogues.jsonl --language en
    giccs stats sasaadi/GiCCS --mtld lexicalrichness
    giccs stats benchmark.jsonl --figure scores.svg --figure subsets=subsets.svg
    """,
)
@click.argument("data", type=INPUT, metavar="DATA")
@click.option(
    "--by",
    default=",".join(TABLE_2),
    show_default=True,
    metavar="COLUMN,...",
    help=f"One row for each combination of {', '.join(GROUPINGS)}.",
)
@language_option_with_alias
@click.option(
    "--mtld",
    type=Choice(MTLD_CHOICES),
    default=MTLD_CHOICES[0],
    show_default=True,
    help="MTLD of texts too short to complete a factor: undefined (strict), or the value of "
    "LexicalRichness, as in the paper's Table 2.",
)
@plain_table_options("CSV has full precision, and no score distribution.")
@figures_option(
    "the score distribution (Figure 1)",
    {"distribution": "the default", "subsets": "the distribution by each column of --by"},
)
def stats(
    console: Console,
    data: str,
    by: str,
    language: str | None,
    mtld: str,
    style: TableStyle,
    figures: Sequence[tuple[str, str]],
) -> None:
    """Describe the dialogues as in the paper's Table 2, and the scores as in its Figure 1.

    DATA is a benchmark JSONL file, a folder with the GiCCS release, a hub id, giccs-sample or
    giccs-sample-en; or a JSONL file of dialogues, which have no scores. A dialogue counts once, without
    candidates. Lemmas are those of the stated language of the data, or of --language.
    """
    columns = _parse_columns(by)
    _require_packages("stats")
    if figures:
        _require_packages("charts")
    for _, path in figures:
        check_chart_path(path)
    dataset = _read(data)
    lang = required_language(dataset.dialogues, data, language, "lemmas")
    lemmatiser = _lemmatiser(lang, data, console)
    console.warn(dataset.warnings)
    bins = distribution(dataset.scores) if dataset.scores else ()
    if figures and not bins:
        console.failures.append(Problem(data, None, "has no scores, which --figure requires"))
    for name, path in figures if bins else ():
        with drawn_figure(console, name, data):
            _draw(name, path, dataset, columns, bins, console)
    if not (figures or bins):
        console.note(f"{data}: dialogues without scores, so no score distribution")
    groups = describe(dataset.dialogues, lemmatiser, columns, console.progress, mtld)
    document = {
        "groups": [group.document() for group in groups],
        "distribution": [asdict(score_bin) for score_bin in bins],
        "lemmatiser": lemmatiser.name,
        "signature": _signature(dataset.digest, lang, mtld),
    }
    table = statistics_table(groups, columns)
    if style.form == "csv":
        keys = style.columns or ["part", *CSV_COLUMNS]
        with arguments():
            text = rendered([table], replace(style, columns=keys))
        console.answer(text.rstrip("\n"), document)
        return
    notes = [*table.notes, *_provenance_lines(document)]
    tables = [replace(table, title="", notes=notes)]
    tables += [distribution_table(bins, bars=style.form == "table")] if bins else []
    with arguments():
        console.answer(rendered(tables, style), document)


@dataclass(frozen=True, slots=True)
class _Data:
    dialogues: Sequence[Dialogue | Item]
    scores: Sequence[float]
    """Empty for dialogues without scores."""
    digest: str
    """SHA-256 of a benchmark's content, or of a file of dialogues."""
    warnings: Sequence[Problem] = ()


def _read(data: str) -> _Data:
    """Read a benchmark, or the dialogues in a file whose first line has turns but no ``utterance``."""
    from giccs.benchmark import read_benchmark
    from giccs.benchmark.assemble import is_dialogues_file, read_dialogues

    if is_dialogues_file(data):
        digest = hashlib.sha256(read_bytes(data)).hexdigest()
        return _Data(read_dialogues(data, candidates=False), (), digest)
    benchmark = read_benchmark(data)
    scores = [item.score for item in benchmark.items]
    return _Data(benchmark.items, scores, benchmark.fingerprint, benchmark.warnings)


def _parse_columns(by: str) -> tuple[str, ...]:
    columns = tuple(dict.fromkeys(name.strip() for name in by.split(",")))
    if unknown := [name for name in columns if name not in GROUPINGS]:
        message = f"unknown column {unknown[0]!r}; expected one of {', '.join(GROUPINGS)}"
        raise click.BadParameter(message, param_hint="--by")
    return columns


def _require_packages(extra: str) -> None:
    """Raise ClickException if a package of the extra is missing."""
    for module, name in REQUIRED_PACKAGES[extra].items():
        if find_spec(module) is None:
            message = f"needs {name}; install it with: pip install 'giccs[{extra}]'"
            raise click.ClickException(message)


def _lemmatiser(lang: str, data: str, console: Console) -> Lemmatiser:
    from giccs.description.lemmas import lemmatiser

    try:
        result = lemmatiser(lang)
    except ValueError as error:
        raise InputError(Problem(data, None, str(error))) from None
    console.warn([Problem(data, None, remark) for remark in result.remarks])
    return result


def _draw(
    name: str,
    path: str,
    dataset: _Data,
    columns: Sequence[str],
    bins: Sequence[Bin],
    console: Console,
) -> None:
    """Write Figure 1, or the distribution of the scores by each column."""
    from giccs.report.figures.distributions import distribution_panels
    from giccs.report.figures.panels import layout

    if name == "distribution":
        write_chart(score_distribution(bins), path)
        console.note(f"Figure 1 written to {path}")
        return
    values = {column: [GROUPINGS[column](item) for item in dataset.dialogues] for column in columns}
    write_chart(layout(distribution_panels(values, dataset.scores)), path)
    console.note(f"figure {name} written to {path}")


def _signature(digest: str, lang: str, mtld: str) -> dict[str, Any]:
    return {
        "data": digest,
        "giccs": version("giccs"),
        **{name: version(name) for name in REQUIRED_PACKAGES["stats"]},
        "mtld": mtld,
        "mtld_threshold": MTLD_THRESHOLD,
        "lang": lang,
    }


def _provenance_lines(document: dict[str, Any]) -> list[str]:
    """Return lines with the provenance of the numbers."""
    signature = document["signature"]
    return [
        f"Lemmas by {document['lemmatiser']}; RTTR and MTLD (threshold {signature['mtld_threshold']}) "
        f"by lexicalrichness {signature['lexicalrichness']}.",
        f"Data {signature['data'][:12]}, giccs {signature['giccs']}.",
    ]
