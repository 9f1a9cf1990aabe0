"""Options, reading of judgments and argument errors shared by several commands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from bws.command import Console
from bws.options import SEED, RegisteredName, RenamedOption
from bws.problems import InputError, Problem
from bws.tables import FORMATS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bws.files import OnInvalid
    from bws.records import Judgments

__all__ = [
    "arguments", "by_options", "check_merges_judgments", "format_option", "judgments_from",
    "judgments_options", "merge_variants_option", "option", "output_option", "report_judgments",
    "seed_option", "values_by", "variants_document",
]  # fmt: skip

PARTS = ("items", "best", "worst", "tuple_id", "group", "annotator")
MAX_LISTED_NAMES = 3
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
        settings["type"] = click.Choice(choices.split())
    if former_names:
        settings |= {"cls": RenamedOption, "former_names": former_names.split()}
    settings.setdefault("show_default", "default" in settings)
    return click.option(*names.split(), help=text, **settings)


output_option = option(
    "-o --output", "Output file (.gz is compressed).  [default: standard output]",
    default="-", show_default=False, metavar="FILE",
)  # fmt: skip
merge_variants_option = option(
    "--merge-variants", "Merge items that differ only in white space, case and punctuation.",
    is_flag=True,
)  # fmt: skip
seed_option = option("--seed", "Random seed.", type=SEED, default=0, metavar="S")


def format_option(help: str | None = None) -> Decorator:  # noqa: A002
    """Return the option ``--format`` for commands that print tables, with the parameter `form`."""
    return click.option(
        "--format",
        "form",
        type=click.Choice([*FORMATS, "csv"]),
        default="table",
        show_default=True,
        help=help,
    )


def _parts(ctx: click.Context, parameter: click.Parameter, values: Sequence[str]) -> dict[str, str]:
    parts = dict(text.partition("=")[::2] for text in values)
    for part, column in parts.items():
        if part not in PARTS or not column:
            raise click.BadParameter(f"must be ROLE=COLUMN, with ROLE one of {', '.join(PARTS)}")
    return parts


def _format_names() -> Sequence[str]:
    from bws.files import format_names

    return format_names()


def judgments_options(function: Any) -> Any:
    """Add the options of all commands that read judgments."""
    for add in (
        merge_variants_option,
        option(
            "--column parts",
            "With --from mturk-batch: the column of items (comma-separated if several), best, worst, "
            "tuple_id, group or annotator. Can be repeated.",
            multiple=True, callback=_parts, metavar="ROLE=COLUMN", former_names="--part",
        ),
        option(
            "--on-invalid", "Treatment of invalid rows: stop with an error, or skip and report them.",
            choices="error skip", default="error",
        ),
        option("--from form", "Format of JUDGMENTS.", choices=_format_names, default="auto"),
        click.argument("judgments", metavar="JUDGMENTS"),
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
    path: str,
    form: str,
    on_invalid: OnInvalid,
    parts: Mapping[str, str],
    merge_variants: bool,
) -> Judgments:
    """Read judgments and report their size, skipped rows, and spelling variants of items."""
    from bws.files import read_judgments

    with arguments():
        judgments = read_judgments(
            path, form, on_invalid=on_invalid, parts=parts, merge_variants=merge_variants
        )
    console.note(
        f"{judgments.source}: {len(judgments)} judgments of {len(judgments.tuples)} tuples, "
        f"{len(judgments.tuples.items)} items, {len(judgments.annotators)} annotators"
    )
    report_judgments(console, judgments, path)
    return judgments


def report_judgments(console: Console, judgments: Judgments, path: str) -> None:
    """Warn of skipped rows and of spelling variants of items."""
    from bws.files.columns import quoted

    if judgments.left_out:
        console.warn(judgments.left_out)
        message = f"{judgments.n_left_out} rows were skipped"
        if items := judgments.items_left_out:
            first = ", ".join(map(quoted, items[:MAX_LISTED_NAMES])) + (
                ", ..." if len(items) > MAX_LISTED_NAMES else ""
            )
            message += f"; {len(items)} items occur in no other row: {first}"
        console.warn([Problem(path, None, message)])
    if judgments.variants and judgments.variants.merged:
        console.note(f"{path}: {judgments.variants.message()}")
    elif judgments.variants:
        console.warn([Problem(path, None, judgments.variants.message())])


def check_merges_judgments(merge_variants: bool, judgments: str | None) -> None:
    """Raise UsageError if --merge-variants is given without judgments."""
    if merge_variants and judgments is None:
        raise click.UsageError("--merge-variants requires --judgments")


def variants_document(judgments: Judgments) -> dict[str, Any]:
    """Return the entry of --json about spelling variants of items; empty without variants."""
    return {"variants": judgments.variants.document()} if judgments.variants else {}


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
