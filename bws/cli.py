"""bws-make-tuples, bws-score, bws-reliability, bws-agreement, bws-simulate. Thin: others do the work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from bws.command import Console, command
from bws.problems import InputError, Problem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bws.files import Form, Items, OnInvalid
    from bws.records import Judgments, Scores, Tuples

__all__ = ["agreement", "make_tuples", "reliability", "score", "simulate"]

FORMS = ("auto", "csv", "km", "semrel", "semeval", "hollis", "potato", "long", "mturk-batch")
METHODS = (
    "counting",
    "analytical",
    "abw",
    "elo",
    "rescorla-wagner",
    "value-learning",
    "bradley-terry",
    "plackett-luce",
    "best-worst-logit",
    "maxdiff",
)
ENDS = 5
"""How many items the table shows from the top and from the bottom."""
Decorated = TypeVar("Decorated", bound=Callable[..., Any])

output_option = click.option(
    "-o",
    "--output",
    default="-",
    metavar="FILE",
    help="Where to write (.gz is packed).  [default: standard output]",
)
seed_option = click.option(
    "--seed", default=0, show_default=True, metavar="S", help="Seed of what is random."
)


def _parts(ctx: click.Context, parameter: click.Parameter, given: Sequence[str]) -> dict[str, str]:
    parts = dict(text.partition("=")[::2] for text in given)
    allowed = ("items", "best", "worst", "tuple_id", "group", "annotator")
    for part, column in parts.items():
        if part not in allowed or not column:
            raise click.BadParameter(f"PART=COLUMN with PART one of {', '.join(allowed)}")
    return parts


def judgments_options(function: Decorated) -> Decorated:
    """Add what every command that reads judgments takes."""
    for option in (
        click.option(
            "--part",
            "parts",
            multiple=True,
            callback=_parts,
            metavar="PART=COLUMN",
            help="With --from mturk-batch: the column of items (several with commas between), best, "
            "worst, tuple_id, group or annotator; may be given several times.",
        ),
        click.option(
            "--on-invalid",
            type=click.Choice(["error", "skip"]),
            default="error",
            show_default=True,
            help="Rows that are no valid judgment: stop, or leave them out and say so.",
        ),
        click.option(
            "--from",
            "form",
            type=click.Choice(FORMS),
            default="auto",
            show_default=True,
            help="Format of JUDGMENTS.",
        ),
        click.argument("judgments", metavar="JUDGMENTS"),
    ):
        function = option(function)
    return function


def by_options(function: Decorated) -> Decorated:
    """Add what every command takes that can tell parts of the judgments apart."""
    columns = click.option(
        "--by", metavar="COL,COL", help="Columns of the metadata; each combination is a part."
    )
    metadata = click.option(
        "--metadata",
        metavar="FILE",
        help="CSV, TSV or JSONL about tuples, groups or items; dialogues and a benchmark will do.",
    )
    return metadata(columns(function))


@contextmanager
def _arguments() -> Iterator[None]:
    """Let a ValueError about an argument end the command as a wrong call."""
    try:
        yield
    except InputError:
        raise
    except ValueError as error:
        raise _WrongArgument(str(error)) from error


class _WrongArgument(click.ClickException):
    exit_code = 2


def _read(
    console: Console, path: str, form: Form, on_invalid: OnInvalid, parts: Mapping[str, str]
) -> Judgments:
    """Read judgments and say what was read and what was left out."""
    from bws.files import read_judgments

    with _arguments():
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


def _by(
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


@command(
    "bws-make-tuples",
    example="""
    bws-make-tuples items.txt -k 4 --factor 2 --seed 0 -o tuples.csv
    bws-make-tuples dialogues.jsonl -k 3 --tuples 10 --audit -o tuples.csv
    """,
)
@click.argument("items", metavar="ITEMS")
@click.option("-k", type=click.IntRange(2, 12), required=True, help="Items in a tuple.")
@click.option(
    "--factor",
    type=click.FloatRange(0, min_open=True),
    metavar="F",
    help="Tuples an item.  [default: 2]",
)
@click.option(
    "--tuples",
    "count",
    type=click.IntRange(1),
    metavar="T",
    help="Tuples a group, instead of --factor.",
)
@seed_option
@click.option("--item-column", metavar="COL", help="Column of the items in .csv, .tsv, .jsonl.")
@click.option("--group-column", metavar="COL", help="Column of the groups; a design for each.")
@click.option(
    "--apart", metavar="FILE", help="Sets of items (a line each) of which no tuple holds two."
)
@click.option("--together", metavar="FILE", help="Sets of items of which some tuple holds all.")
@click.option(
    "--extend", metavar="TUPLES", help="A running design that gets tuples for the new items."
)
@click.option("--compat", type=click.Choice(["km"]), help="Reproduce the canonical algorithm.")
@click.option("--audit", "audited", is_flag=True, help="Print what the design is like.")
@click.option(
    "--format", "form", type=click.Choice(["csv", "km"]), default="csv", show_default=True
)
@output_option
def make_tuples(
    console: Console,
    items: str,
    item_column: str | None,
    group_column: str | None,
    extend: str | None,
    form: Literal["csv", "km"],
    output: str,
    audited: bool,
    **options: Any,
) -> None:
    """Make balanced tuples of items, within each group where there are groups.

    ITEMS is a .txt file (an item a line), a .csv, .tsv or .jsonl file with columns, or dialogues with
    candidates, grouped by dialogue; - is standard input, an item a line.
    """
    from bws.design import audit
    from bws.files import read_items, write_tuples

    listed = read_items(items, item_column, group_column)
    given = {name: value for name, value in options.items() if value is not None}
    with _arguments():
        design = _extended(extend, listed, given) if extend else _made(listed, given)
    found = audit(design) if audited else None
    if output != "-" or not console.as_json:
        write_tuples(design, output, form)
    groups = f" in {len(design.groups)} groups" if listed.groups else ""
    console.note(f"{len(design)} tuples of {len(design.items)} items{groups}")
    if console.as_json:
        document = _design_document(design, rows=output == "-")
        console.answer("", document | ({"audit": found.document()} if found else {}))
    elif found:
        click.echo(found.table(), err=output == "-")


def _design_document(design: Tuples, *, rows: bool) -> dict[str, Any]:
    counts = {"tuples": len(design), "items": len(design.items), "groups": len(design.groups)}
    if not rows:
        return counts
    names = ("tuple_id", "group", "items")
    return counts | {"design": [dict(zip(names, row, strict=True)) for row in design.rows()]}


def _made(listed: Items, options: dict[str, Any]) -> Tuples:
    from bws.design import make_tuples as made
    from bws.files import read_item_sets

    if "factor" in options and "count" in options:
        raise click.UsageError("--factor and --tuples say the same; give one of them")
    for rule in options.keys() & {"apart", "together"}:
        options[rule] = read_item_sets(options[rule])
    return made(listed.items, groups=listed.groups, **options)


def _extended(running: str, listed: Items, options: dict[str, Any]) -> Tuples:
    """Return the running design with tuples for the items that it does not have."""
    from bws.design import extend_tuples
    from bws.files import read_tuples

    unfit = sorted(options.keys() - {"k", "factor", "seed"})
    if unfit:
        named = ", ".join("--tuples" if name == "count" else f"--{name}" for name in unfit)
        raise click.UsageError(f"--extend does not go with {named}")
    old = read_tuples(running)
    if old.k != options.pop("k"):
        raise click.UsageError(f"the tuples in {running} have {old.k} items; give -k {old.k}")
    groups = listed.groups or [""] * len(listed.items)
    known = set(zip(old.groups[old.group_of_item], old.items, strict=True))
    new = [row for row in zip(groups, listed.items, strict=True) if row not in known]
    if not new:
        raise click.UsageError(f"all items are in {running} already; give the new ones")
    return extend_tuples(
        old, [item for _, item in new], groups=[group for group, _ in new], **options
    )


@command(
    "bws-score",
    example="""
    bws-score judgments.csv -o scores.csv
    bws-score judgments.csv --scale unit --bootstrap 1000 --cluster annotator
    bws-score annotations.csv --from km --method bradley-terry --format km -o scores.tsv
    """,
)
@judgments_options
@click.option("--method", type=click.Choice(METHODS), default="counting", show_default=True)
@click.option(
    "--scale",
    type=click.Choice(["signed", "unit"]),
    default="signed",
    show_default=True,
    help="Scores in [-1, 1], or (score + 1) / 2 in [0, 1].",
)
@click.option(
    "--bootstrap",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="95 % intervals from N resamples.  [default: none]",
)
@click.option(
    "--cluster",
    type=click.Choice(["annotator", "tuple"]),
    default="annotator",
    show_default=True,
    help="What is resampled as a whole.",
)
@click.option(
    "--model-interval", is_flag=True, help="95 % intervals from the model's standard errors."
)
@click.option(
    "--prior",
    type=float,
    metavar="SD",
    help="Choice models: the prior's standard deviation, in logits.",
)
@click.option(
    "--passes",
    type=click.IntRange(1),
    metavar="N",
    help="Elo and learning methods: passes over the judgments.",
)
@click.option(
    "--anchor",
    "anchors",
    multiple=True,
    metavar="JUDGMENTS",
    help="An earlier batch that shares items; scores are put on its scale.",
)
@seed_option
@click.option(
    "--format",
    "output_form",
    type=click.Choice(["csv", "km", "semrel"]),
    default="csv",
    show_default=True,
)
@output_option
def score(
    console: Console,
    judgments: str,
    form: Form,
    on_invalid: OnInvalid,
    parts: Mapping[str, str],
    method: str,
    model_interval: bool,
    anchors: Sequence[str],
    output_form: Literal["csv", "km", "semrel"],
    output: str,
    **options: Any,
) -> None:
    """Score the items of judgments."""
    from bws.files import write_scores
    from bws.scoring import anchor
    from bws.scoring import score as scored

    options = {name: value for name, value in options.items() if value is not None}
    options["interval"] = "model" if model_interval else "bootstrap"
    batches = [_read(console, path, form, on_invalid, parts) for path in (*anchors, judgments)]
    with _arguments():
        scores = [scored(batch, method, **options) for batch in batches]
        last = anchor(scores)[-1] if anchors else scores[-1]
    for note in last.notes:
        console.note(note)
    if output != "-" or not console.as_json:
        write_scores(last, output, output_form)
    if output != "-" or console.as_json:
        console.answer(_ends(last), _scores_document(last, batches[-1]))


def _ends(scores: Scores) -> str:
    """Return a table of the items with the highest and the lowest scores."""
    import numpy as np
    from tabulate import tabulate

    order = np.argsort(-scores.score, kind="stable")
    order = order[~np.isnan(scores.score[order])]
    shown: list[int] = order.tolist()
    if len(order) > 2 * ENDS:
        shown = [*order[:ENDS], -1, *order[-ENDS:]]
    grouped = any(scores.groups)
    rows = []
    for place in shown:
        if place < 0:
            rows.append(["..."])
            continue
        group = [scores.groups[place]] if grouped else []
        counts = [scores.appearances[place], scores.best[place], scores.worst[place]]
        ends = (
            []
            if scores.low is None or scores.high is None
            else [
                f"{scores.low[place]:.3f}",
                f"{scores.high[place]:.3f}",
            ]
        )
        name = scores.items[place]
        rows.append([*group, name[:40], f"{scores.score[place]:.3f}", *ends, *counts])
    interval = ["low", "high"] if scores.low is not None else []
    headers = [
        *(["group"] if grouped else []),
        "item",
        "score",
        *interval,
        "appearances",
        "best",
        "worst",
    ]
    return str(tabulate(rows, headers, disable_numparse=True))


def _scores_document(scores: Scores, judgments: Judgments) -> dict[str, Any]:
    columns = {
        "item": scores.items,
        "group": scores.groups,
        "score": scores.score,
        "appearances": scores.appearances,
        "best": scores.best,
        "worst": scores.worst,
        "low": scores.low,
        "high": scores.high,
    }
    present = {name: column.tolist() for name, column in columns.items() if column is not None}
    return {
        "scores": [
            dict(zip(present, row, strict=True)) for row in zip(*present.values(), strict=True)
        ],
        "source": judgments.source,
        "left_out": [str(problem) for problem in judgments.left_out],
        "notes": list(scores.notes),
        "signature": dict(scores.signature),
    }


@command(
    "bws-reliability",
    example="""
    bws-reliability judgments.csv
    bws-reliability judgments.csv --metadata dialogues.jsonl --by source,n_turns
    bws-reliability judgments.csv --split annotator --curve
    """,
)
@judgments_options
@click.option(
    "--trials",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    metavar="N",
    help="Random splits.",
)
@click.option(
    "--split",
    type=click.Choice(["annotation", "annotator"]),
    default="annotation",
    show_default=True,
    help="What goes half and half: each tuple's judgments, or the annotators.",
)
@click.option(
    "--odd",
    type=click.Choice(["coin", "second"]),
    default="coin",
    show_default=True,
    help="Who gets one more of an odd number: either half by chance, or always the second (2 against 3).",
)
@click.option(
    "--missing",
    type=click.Choice(["drop", "zero"]),
    default="drop",
    show_default=True,
    help="An item that one half does not score: leave it out of the trial, or take its score as 0.",
)
@by_options
@click.option(
    "--curve",
    is_flag=True,
    help="Add reliability against the number of annotations, and how many --target needs.",
)
@click.option(
    "--target",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.9,
    show_default=True,
    metavar="R",
    help="Reliability to estimate the annotations for.",
)
@seed_option
def reliability(
    console: Console,
    judgments: str,
    form: Form,
    on_invalid: OnInvalid,
    parts: Mapping[str, str],
    metadata: str | None,
    by: str | None,
    curve: bool,
    target: float,
    **options: Any,
) -> None:
    """Tell by split halves how reliable the scores are."""
    from bws.curve import reliability_curve
    from bws.reliability import reliability as split_halves

    data = _read(console, judgments, form, on_invalid, parts)
    with _arguments():
        found = split_halves(data, by=_by(data, metadata, by), **options)
    text, document = found.table(), found.document()
    if curve:
        shared = {name: options[name] for name in ("trials", "odd", "seed")}
        with _arguments():
            points = reliability_curve(data, target=target, **shared)
        text, document["curve"] = f"{text}\n\n{points.table()}", points.document()
    console.answer(text, document)


@command(
    "bws-agreement",
    example="""
    bws-agreement judgments.csv
    bws-agreement judgments.csv --metadata dialogues.jsonl --by source,n_turns --bootstrap 1000
    bws-agreement judgments.csv --annotators
    """,
)
@judgments_options
@click.option(
    "--strong",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.8,
    show_default=True,
    metavar="SHARE",
    help="Strong agreement: at least this share of a tuple's annotators gave the same answer.",
)
@click.option(
    "--bootstrap",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="95 % intervals from N resamples.  [default: none]",
)
@by_options
@click.option(
    "--annotators", is_flag=True, help="Add a report on each annotator, and whom to look at."
)
@seed_option
def agreement(
    console: Console,
    judgments: str,
    form: Form,
    on_invalid: OnInvalid,
    parts: Mapping[str, str],
    metadata: str | None,
    by: str | None,
    annotators: bool,
    **options: Any,
) -> None:
    """Tell how far annotators agree: Krippendorff's alpha and strong agreement."""
    from bws.agreement import agreement as agreed
    from bws.annotators import annotator_report

    data = _read(console, judgments, form, on_invalid, parts)
    with _arguments():
        found = agreed(data, by=_by(data, metadata, by), **options)
    text, document = found.table(), found.document()
    if annotators:
        report = annotator_report(data)
        text, document["annotators"] = f"{text}\n\n{report.table()}", report.document()
    console.answer(text, document)


@command(
    "bws-simulate",
    example="""
    bws-simulate tuples.csv --truth scores.csv --annotators 5 --noise 0.25 -o judgments.csv
    bws-simulate tuples.csv --truth dialogues.jsonl --annotators 5 --careless 0.05 -o judgments.csv
    """,
)
@click.argument("tuples", metavar="TUPLES")
@click.option(
    "--truth",
    required=True,
    metavar="SCORES",
    help="True scores, or dialogues whose candidates have intended levels.",
)
@click.option(
    "--annotators",
    type=click.IntRange(1),
    default=5,
    show_default=True,
    metavar="N",
    help="Each judges every tuple once.",
)
@click.option(
    "--noise",
    type=click.FloatRange(0),
    default=0.25,
    show_default=True,
    metavar="S",
    help="How far judgments stray, in units of the truth.",
)
@click.option(
    "--model",
    type=click.Choice(["gumbel", "thurstone"]),
    default="gumbel",
    show_default=True,
    help="What the noise is: that of the best-worst logit, or normal.",
)
@click.option(
    "--careless",
    type=click.FloatRange(0, 1),
    default=0.0,
    metavar="SHARE",
    help="Share of the judgments that are made at random.  [default: 0]",
)
@click.option(
    "--position-bias",
    type=float,
    default=0.0,
    metavar="P",
    help="How much better the item shown first seems.  [default: 0]",
)
@seed_option
@output_option
def simulate(console: Console, tuples: str, truth: str, output: str, **options: Any) -> None:
    """Judge tuples as people of stated accuracy would."""
    from bws.files import read_tuples, write_judgments
    from bws.simulate import read_truth
    from bws.simulate import simulate as simulated

    design = read_tuples(tuples)
    judgments = simulated(design, read_truth(truth, design), **options)
    if output != "-" or not console.as_json:
        write_judgments(judgments, output)
    said = f"{len(judgments)} judgments of {len(design)} tuples by {len(judgments.annotators)} annotators"
    if console.as_json:
        console.answer("", {"judgments": len(judgments), "tuples": len(design), **options})
    console.note(said)
