"""What several commands share: options, reading judgments, and how a wrong argument ends."""

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
NAMED = 3
Decorator = Callable[[Any], Any]


def option(
    names: str,
    text: str,
    *,
    choices: str | Callable[[], Iterable[str]] = "",
    former_names: str = "",
    **settings: Any,
) -> Decorator:
    """Return click's option of these names; a default is shown in its help.

    choices: the allowed values with spaces between, or a function that returns the names in a registry.
    former_names: deprecated names with spaces between.
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
    "-o --output", "Where to write (.gz is packed).  [default: standard output]",
    default="-", show_default=False, metavar="FILE",
)  # fmt: skip
merge_variants_option = option(
    "--merge-variants", "Take items for one that differ in white space, case and punctuation only.",
    is_flag=True,
)  # fmt: skip
seed_option = option("--seed", "Seed of what is random.", type=SEED, default=0, metavar="S")


def format_option(help: str | None = None) -> Decorator:  # noqa: A002
    """Return the option ``--format`` of commands that print tables, which take it as `form`."""
    return click.option(
        "--format",
        "form",
        type=click.Choice([*FORMATS, "csv"]),
        default="table",
        show_default=True,
        help=help,
    )


def _parts(ctx: click.Context, parameter: click.Parameter, given: Sequence[str]) -> dict[str, str]:
    parts = dict(text.partition("=")[::2] for text in given)
    for part, column in parts.items():
        if part not in PARTS or not column:
            raise click.BadParameter(f"must be ROLE=COLUMN, with ROLE one of {', '.join(PARTS)}")
    return parts


def _format_names() -> Sequence[str]:
    from bws.files import format_names

    return format_names()


def judgments_options(function: Any) -> Any:
    """Add what every command that reads judgments takes."""
    for add in (
        merge_variants_option,
        option(
            "--column parts",
            "With --from mturk-batch: the column of items (several with commas between), best, worst, "
            "tuple_id, group or annotator; may be given several times.",
            multiple=True, callback=_parts, metavar="ROLE=COLUMN", former_names="--part",
        ),
        option(
            "--on-invalid", "Rows that are no valid judgment: stop, or leave them out and say so.",
            choices="error skip", default="error",
        ),
        option("--from form", "Format of JUDGMENTS.", choices=_format_names, default="auto"),
        click.argument("judgments", metavar="JUDGMENTS"),
    ):  # fmt: skip
        function = add(function)
    return function


def by_options(function: Any) -> Any:
    """Add what every command takes that can tell parts of the judgments apart."""
    columns = option(
        "--by", "Columns of the metadata; each combination is a part.", metavar="COL,COL"
    )
    metadata = option(
        "--metadata",
        "CSV, TSV or JSONL about tuples, groups or items; dialogues and a benchmark will do.",
        metavar="FILE",
    )
    return metadata(columns(function))


@contextmanager
def arguments() -> Iterator[None]:
    """Let a ValueError about an argument end the command as a wrong call."""
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
    """Read judgments and say what was read, what was left out, and which items are variants of one."""
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
    """Warn of rows that were left out and of items that are variants of one."""
    from bws.files.columns import quoted

    if judgments.left_out:
        console.warn(judgments.left_out)
        what = f"{judgments.n_left_out} rows were left out"
        if items := judgments.items_left_out:
            first = ", ".join(map(quoted, items[:NAMED])) + (", ..." if len(items) > NAMED else "")
            what += f"; {len(items)} items are in no other row: {first}"
        console.warn([Problem(path, None, what)])
    if judgments.variants and judgments.variants.merged:
        console.note(f"{path}: {judgments.variants.message()}")
    elif judgments.variants:
        console.warn([Problem(path, None, judgments.variants.message())])


def check_merges_judgments(merge_variants: bool, judgments: str | None) -> None:
    """Raise UsageError for --merge-variants in a command that was given no judgments."""
    if merge_variants and judgments is None:
        raise click.UsageError("--merge-variants belongs to --judgments; give both or neither")


def variants_document(judgments: Judgments) -> dict[str, Any]:
    """Return what --json tells of items that are variants of one; nothing where there are none."""
    return {"variants": judgments.variants.document()} if judgments.variants else {}


def values_by(
    judgments: Judgments, metadata: str | None, by: str | None
) -> dict[str, NDArray[Any]] | None:
    """Return the value of each column of --by for every tuple."""
    if (metadata is None) != (by is None):
        raise click.UsageError("--metadata and --by go together: give both or neither")
    if metadata is None or by is None:
        return None
    from bws.metadata import read_metadata

    names = [name.strip() for name in by.split(",") if name.strip()]
    return dict(read_metadata(metadata).of_tuples(judgments.tuples, names))
