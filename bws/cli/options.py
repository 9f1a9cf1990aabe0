"""Options, reading of judgments and argument errors shared by several commands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from bws.base.commands import Console
from bws.base.file_kinds import ROLES
from bws.base.options import (
    FIGURE,
    INPUT,
    OUTPUT,
    SEED,
    Choice,
    Number,
    RegisteredName,
    RenamedOption,
    flag_of,
)
from bws.base.problems import InputError, Problem, suggestion
from bws.base.tables import FORMATS, ResultTable, TableStyle, rendered

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bws.files import OnInvalid
    from bws.paragraphs import Sentence
    from bws.records import Judgments

MAX_LISTED_NAMES = 3
LABEL = re.compile(r"[A-Za-z0-9:./_+-]+")
Decorator = Callable[[Any], Any]


def option(
    names: str,
    text: str,
    *,
    choices: str | Callable[[], Iterable[str]] = "",
    former_names: str = "",
    **settings: Any,
) -> Decorator:
    """Return a click option with these names; the help includes the default.

    choices: the allowed values separated by spaces, or a function that returns the names in a registry.
    former_names: deprecated names separated by spaces.
    """
    if callable(choices):
        settings["type"] = RegisteredName(choices)
    elif choices:
        settings["type"] = Choice(choices.split())
    if former_names:
        settings |= {"cls": RenamedOption, "former_names": former_names.split()}
    settings.setdefault("show_default", "default" in settings)
    return click.option(*names.split(), help=text, **settings)


output_option = option(
    "-o --output", "Output file (.gz is compressed).  [default: standard output]",
    default="-", show_default=False, type=OUTPUT, metavar="FILE",
)  # fmt: skip
merge_variants_option = option(
    "--merge-variants", "Merge items that differ only in white space, case and punctuation.",
    is_flag=True,
)  # fmt: skip
control_option = option(
    "--control",
    "Control item, which has no score and is in no result on items, and may occur several times in a row; "
    "with =best or =worst the answer expected. In addition to those of the column control. Can be repeated.",
    multiple=True, metavar="ITEM[=best|=worst]", show_default=False,
)  # fmt: skip
allow_copies_option = option(
    "--allow-copies",
    "Use judgments that occur again under other ids, which are refused because they make all judgments look "
    "more consistent.",
    is_flag=True,
)
exclude_option = option(
    "--exclude",
    "File with the annotators whose judgments in JUDGMENTS are left out, one per line, such as the explorer "
    "writes.",
    type=INPUT, metavar="FILE",
)  # fmt: skip
paragraph_option = option(
    "--paragraph",
    "Print a paragraph for the methods section of a paper, in English (en) or German (de), and the BibTeX "
    "entries of its references, instead of the tables.  [with --paragraph alone: en]",
    choices="en de", is_flag=False, flag_value="en", show_default=False,
)  # fmt: skip
seed_option = option("--seed", "Random seed.", type=SEED, default=0, metavar="S")
target_option = option(
    "--target", "Required correlation of the scores with the true scores.",
    type=Number(0, 1, min_open=True, max_open=True), default=0.95, metavar="R",
)  # fmt: skip
new_items_option = option(
    "--new-items",
    "Items of which those that are new enter the study: the round links each to earlier items, instead of "
    "choosing tuples. A file as for giccs design.",
    type=INPUT,
    metavar="ITEMS",
)


def format_option(
    help: str | None = None,  # noqa: A002
    names: str = "--format form",
    default: str = "table",
    other_formats: Sequence[str] = (),
) -> Decorator:
    """Return the option ``--format`` for commands that print tables, with the parameter `form`."""
    return click.option(
        *names.split(),
        type=Choice([*other_formats, *(form for form in FORMATS if form not in other_formats)]),
        default=default,
        show_default=True,
        help=help,
    )


def table_options(function: Any) -> Any:
    """Add the options for printed tables, with the parameter `style`: a `TableStyle`."""
    best = option(
        "--bold-best", "LaTeX: best values in bold, and those that look equal.", is_flag=True
    )
    return _with_style(best(_with_style_parameter(function)))


def plain_table_options(help: str | None = None, **settings: Any) -> Decorator:  # noqa: A002
    """Return `table_options` for tables without best values; the arguments are those of `format_option`."""
    return lambda function: _with_style(_with_style_parameter(function), help, **settings)


def _with_style(function: Any, help: str | None = None, **settings: Any) -> Any:  # noqa: A002
    for add in (
        option(
            "--label", "LaTeX: label of the table.", default="", metavar="NAME", show_default=False,
            callback=_label,
        ),
        option(
            "--caption", "LaTeX: caption of the table.", default="", metavar="TEXT", show_default=False
        ),
        option(
            "--columns", "Columns of the tables, in order, by their names in CSV.  [default: all]",
            default="", metavar="COL,COL", show_default=False,
        ),
        format_option(help, "--format table_form", **settings),
    ):  # fmt: skip
        function = add(function)
    return function


def _with_style_parameter(function: Any) -> Any:
    @wraps(function)
    def with_style(
        *args: Any,
        table_form: str,
        columns: str,
        caption: str,
        label: str,
        bold_best: bool = False,
        **values: Any,
    ) -> Any:
        for name, value in {"caption": caption, "label": label, "bold-best": bold_best}.items():
            if value and table_form != "latex":
                raise click.UsageError(f"--{name} requires --format latex")
        keys = [key.strip() for key in columns.split(",") if key.strip()]
        style = TableStyle(table_form, keys, caption, label, bold_best)
        return function(*args, style=style, **values)

    return with_style


def _label(ctx: click.Context, parameter: click.Parameter, name: str) -> str:
    if name and not LABEL.fullmatch(name):
        raise click.BadParameter(f"{name!r}; expected letters, digits and any of : . / _ + -")
    return name


def figure_option(text: str) -> Decorator:
    """Return the option ``--figure`` of a chart."""
    return option("--figure", f"Also draw {text}: .svg, .png, .json.", type=OUTPUT, metavar="FILE")


def figures_option(text: str, kinds: Mapping[str, str]) -> Decorator:
    """Return the option ``--figure`` of a command with several charts, as pairs of a name and a file.

    text: of the first of `kinds`, which is drawn for a value without a name. kinds: name -> description.
    """
    first, *others = kinds
    further = ", ".join(f"{name} ({kinds[name]})" for name in others)
    with_name = f" With NAME=: {further}." if others else ""

    def parse(
        ctx: click.Context, parameter: click.Parameter, values: Sequence[str]
    ) -> list[tuple[str, str]]:
        figures = []
        for value in values:
            name, equals, path = value.partition("=")
            if not equals or "/" in name:
                name, path = first, value
            if name not in kinds:
                expected = f"unknown figure {name!r}{suggestion(name, kinds)}; expected one of "
                raise click.BadParameter(expected + ", ".join(kinds))
            figures.append((name, path))
        return figures

    return option(
        "--figure figures",
        f"Also draw {text}: .svg, .png, .json.{with_name} Can be repeated.",
        multiple=True, callback=parse, type=FIGURE, metavar="[NAME=]FILE", show_default=False,
    )  # fmt: skip


@contextmanager
def drawn_figure(console: Console, name: str, source: str) -> Iterator[None]:
    """Report a figure that cannot be drawn or written, and its source, after all other output."""
    try:
        yield
    except (ValueError, OSError) as error:
        console.failures.append(Problem(source, None, f"no figure {name}: {error}"))


def check_figure(path: str | None) -> None:
    """Raise an error, before any computation, if a chart cannot be written to this path."""
    if path is None:
        return
    from bws.base.charts import check_chart_path

    check_chart_path(path)
    import_module("altair")
    import_module("vl_convert")


def answer_paragraph(
    console: Console,
    sentences: Iterable[Sentence],
    language: str,
    style: TableStyle,
    document: Mapping[str, Any],
    notes: Iterable[str] = (),
) -> None:
    """Print a paragraph with its references, or with --json the document with it; notes are messages."""
    from bws.paragraphs import paragraph
    from bws.paragraphs.judgments import version_sentence

    if style.form == "csv" or style.columns or style.caption or style.label:
        raise click.UsageError(
            "--paragraph requires --format table, markdown or latex, and no --columns, --caption or --label"
        )
    for text in dict.fromkeys(notes):
        console.note(text)
    form = "markdown" if console.as_json else style.form
    text = paragraph([*sentences, version_sentence()], language, form)
    console.answer(text, {**document, "paragraph": text})


def answer_tables(
    console: Console,
    tables: Sequence[ResultTable],
    style: TableStyle,
    document: Mapping[str, Any],
) -> None:
    """Print the tables, without titles on the terminal, or with --json the document."""
    with arguments():
        text = "" if console.as_json else rendered(tables, style, titles=style.form != "table")
    console.answer(text.rstrip("\n"), document)


def _parts(ctx: click.Context, parameter: click.Parameter, values: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=")[::2] for text in values]
    parts = dict(pairs)
    if len(parts) < len(pairs):
        repeated = next(part for part, _ in pairs if [p for p, _ in pairs].count(part) > 1)
        raise click.BadParameter(f"names {repeated} twice; expected each role once")
    for part, column in parts.items():
        if part not in ROLES or not column:
            raise click.BadParameter(f"must be ROLE=COLUMN, with ROLE one of {', '.join(ROLES)}")
    return parts


def _format_names() -> Sequence[str]:
    from bws.files import format_names

    return format_names()


def judgments_options(function: Any) -> Any:
    """Add the options of all commands that read judgments."""
    for add in (
        control_option,
        merge_variants_option,
        option(
            "--column parts",
            "Column of items (comma-separated if several), best, worst, tuple_id, group, annotator or (long "
            "form) value, if it has another name than in the format. Can be repeated.",
            multiple=True, callback=_parts, metavar="ROLE=COLUMN", former_names="--part",
        ),
        option(
            "--on-invalid", "Treatment of invalid rows: stop with an error, or skip and report them.",
            choices="error skip", default="error",
        ),
        option("--from form", "Format of JUDGMENTS.", choices=_format_names, default="auto"),
        click.argument("judgments", type=INPUT, metavar="JUDGMENTS...", nargs=-1, required=True),
    ):  # fmt: skip
        function = add(function)
    return function


def by_options(function: Any) -> Any:
    """Add the options for breakdowns of the judgments by metadata."""
    columns = option(
        "--by", "Columns of the metadata; each combination of values is a group.", metavar="COL,COL"
    )
    metadata = option(
        "--metadata",
        "CSV, TSV or JSONL about tuples, groups or items; also dialogues or a benchmark.",
        type=INPUT,
        metavar="FILE",
    )
    return metadata(columns(function))


@contextmanager
def arguments() -> Iterator[None]:
    """Convert ValueErrors about arguments to usage errors."""
    try:
        yield
    except InputError:
        raise
    except ValueError as error:
        raise _WrongArgument(str(error)) from error


class _WrongArgument(click.ClickException):
    exit_code = 2


def judgments_from(
    console: Console,
    paths: str | Sequence[str],
    form: str,
    on_invalid: OnInvalid,
    parts: Mapping[str, str],
    merge_variants: bool,
    control: Sequence[str] = (),
    allow_copies: bool = True,
    *,
    control_optional: bool = False,
    exclude: str | None = None,
) -> Judgments:
    """Read judgments of one or more files and report their size, skipped rows, variants of items, and copies.

    exclude: file with annotators whose judgments are left out.

    Raises InputError for copies that are not allowed.
    """
    from bws.files import read_judgments

    with arguments():
        judgments = read_judgments(
            paths,
            form,
            on_invalid=on_invalid,
            parts=parts,
            merge_variants=merge_variants,
            control=control,
            control_optional=control_optional,
            allow_copies=allow_copies,
        )
    if exclude:
        judgments = without_excluded(console, judgments, exclude)
    annotators = "annotators"
    if len(judgments) and judgments.by_model.all():
        annotators = "language models"
    console.note(
        f"{judgments.source}: {len(judgments)} judgments of {len(judgments.tuples)} tuples, "
        f"{len(judgments.tuples.items)} items, {len(judgments.annotators)} {annotators}"
    )
    names = [paths] if isinstance(paths, str) else paths
    report_judgments(console, judgments, names[0] if len(names) == 1 else judgments.file)
    return judgments


def without_excluded(console: Console, judgments: Judgments, path: str) -> Judgments:
    """Return the judgments without those of the annotators in a file."""
    from bws.base.text import read_text
    from bws.files import without_annotators

    # not splitlines: ids may contain further line breaks of Unicode
    lines = read_text(path).replace("\r", "\n").split("\n")
    names = [line.strip() for line in lines if line.strip()]
    if not names:
        raise InputError(Problem(path, None, "no annotators; expected one per line"))
    remaining = without_annotators(judgments, names)
    n_left_out = len(judgments) - len(remaining)
    console.note(f"{path}: {n_left_out} judgments of {len({*names})} annotators are left out")
    return remaining


def report_judgments(console: Console, judgments: Judgments, path: str) -> None:
    """Warn of skipped rows, spelling variants of items, similar annotators and copies, and print the notes.

    Raises InputError for copies that are not allowed.
    """
    from bws.copies import similar_annotators
    from bws.files.columns import quoted

    judgments.check_no_copies()
    console.warn([*judgments.copies, *similar_annotators(judgments)])
    if judgments.left_out:
        console.warn(judgments.left_out)
        message = f"{judgments.n_left_out} rows were skipped"
        if items := judgments.items_left_out:
            first = ", ".join(map(quoted, items[:MAX_LISTED_NAMES])) + (
                ", ..." if len(items) > MAX_LISTED_NAMES else ""
            )
            message += f"; {len(items)} items occur in no other row: {first}"
        console.warn([Problem(path, None, message)])
    for note in judgments.notes:
        console.note(f"{path}: {note}")
    if judgments.variants and judgments.variants.merged:
        console.note(f"{path}: {judgments.variants.message()}")
    elif judgments.variants:
        console.warn([Problem(path, None, judgments.variants.message())])


def check_requires_judgments(judgments: str | None, **options: object) -> None:
    """Raise UsageError if an option about judgments is given without them."""
    for name, value in options.items():
        if value and judgments is None:
            raise click.UsageError(f"{flag_of(name)} requires --judgments")


def variants_document(judgments: Judgments) -> dict[str, Any]:
    """Return the entries of --json about spelling variants of items and about copies, if there are any."""
    variants = {"variants": judgments.variants.document()} if judgments.variants else {}
    copies = {"copies": [str(problem) for problem in judgments.copies]}
    return variants | (copies if judgments.copies else {})


def values_by(
    judgments: Judgments, metadata: str | None, by: str | None
) -> dict[str, NDArray[Any]] | None:
    """Return the values of each column of --by for every tuple."""
    if (metadata is None) != (by is None):
        raise click.UsageError("--metadata and --by must be used together")
    if metadata is None or by is None:
        return None
    from bws.metadata import read_metadata

    names = [name.strip() for name in by.split(",") if name.strip()]
    return dict(read_metadata(metadata).of_tuples(judgments.tuples, names))
