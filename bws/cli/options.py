"""What several commands share: options, reading judgments, and how a wrong argument ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from bws.command import Console
from bws.problems import InputError, Problem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bws.files import Form, OnInvalid
    from bws.records import Judgments

__all__ = [
    "FORMS", "arguments", "by_options", "judgments_from", "judgments_options", "option",
    "output_option", "seed_option", "values_by",
]  # fmt: skip

FORMS = ("auto", "csv", "km", "semrel", "semeval", "hollis", "potato", "long", "mturk-batch")
PARTS = ("items", "best", "worst", "tuple_id", "group", "annotator")
Decorator = Callable[[Any], Any]


def option(names: str, text: str, *, choices: str = "", **settings: Any) -> Decorator:
    """Return click's option of these names; a default is shown in its help."""
    if choices:
        settings["type"] = click.Choice(choices.split())
    settings.setdefault("show_default", "default" in settings)
    return click.option(*names.split(), help=text, **settings)


output_option = option(
    "-o --output", "Where to write (.gz is packed).  [default: standard output]",
    default="-", show_default=False, metavar="FILE",
)  # fmt: skip
seed_option = option("--seed", "Seed of what is random.", default=0, metavar="S")


def _parts(ctx: click.Context, parameter: click.Parameter, given: Sequence[str]) -> dict[str, str]:
    parts = dict(text.partition("=")[::2] for text in given)
    for part, column in parts.items():
        if part not in PARTS or not column:
            raise click.BadParameter(f"PART=COLUMN with PART one of {', '.join(PARTS)}")
    return parts


def judgments_options(function: Any) -> Any:
    """Add what every command that reads judgments takes."""
    for add in (
        option(
            "--part parts",
            "With --from mturk-batch: the column of items (several with commas between), best, worst, "
            "tuple_id, group or annotator; may be given several times.",
            multiple=True, callback=_parts, metavar="PART=COLUMN",
        ),
        option(
            "--on-invalid", "Rows that are no valid judgment: stop, or leave them out and say so.",
            choices="error skip", default="error",
        ),
        option("--from form", "Format of JUDGMENTS.", choices=" ".join(FORMS), default="auto"),
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
    console: Console, path: str, form: Form, on_invalid: OnInvalid, parts: Mapping[str, str]
) -> Judgments:
    """Read judgments and say what was read and what was left out."""
    from bws.files import read_judgments

    with arguments():
        judgments = read_judgments(path, form, on_invalid=on_invalid, parts=parts)
    console.note(
        f"{judgments.source}: {len(judgments)} judgments of {len(judgments.tuples)} tuples, "
        f"{len(judgments.tuples.items)} items, {len(judgments.annotators)} annotators"
    )
    if judgments.left_out:
        console.warn(judgments.left_out)
        lines = len({(problem.file, problem.line) for problem in judgments.left_out})
        what = f"{lines} rows were left out"
        console.warn([Problem(path, None, what)])
    return judgments


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
