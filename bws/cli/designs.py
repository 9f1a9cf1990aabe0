"""giccs design and giccs simulate: designs and simulated judgments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import click
from click.core import ParameterSource

from bws.base.commands import Console, check_combinations, command
from bws.base.options import INPUT, MAX_COUNT, OUTPUT, Number, flag_of
from bws.base.problems import Problem
from bws.base.tables import TableStyle, rendered
from bws.base.terminal import echo
from bws.cli.options import arguments, format_option, option, output_option, seed_option

if TYPE_CHECKING:
    from bws.files import Items
    from bws.model_savings import ModelSavings
    from bws.power_analysis import AnchorPower
    from bws.records import Tuples

OPTION_NAMES = {
    "count": "tuples",
    "rounds": "fresh",
    "keep_apart": "keep-apart",
    "keep_together": "keep-together",
}
"""Parameter -> name of its option, where they differ."""


@command(
    "giccs design",
    example="""
    giccs design items.txt -k 4 --factor 2 --seed 0 -o tuples.csv
    giccs design items.txt -k 4 --fresh 4 -o rounds.csv
    giccs design dialogues.jsonl -k 3 --tuples 10 --audit -o tuples.csv
    giccs design dialogues.jsonl -k 3 --factor 2 --anchors rating:2 --anchors-output plan.csv -o tuples.csv
    """,
)
@click.argument("items", type=INPUT, metavar="ITEMS")
@option("-k", "Items per tuple.", type=click.IntRange(2, 12), required=True)
@option(
    "--factor",
    "Tuples per item.  [default: 2]",
    type=Number(0, 1000, min_open=True),
    metavar="F",
)
@option(
    "--tuples count",
    "Tuples per group, instead of --factor.",
    type=click.IntRange(1, MAX_COUNT),
    metavar="T",
)
@seed_option
@option("--item-column", "Column of the items in .csv, .tsv, .jsonl.", metavar="COL")
@option("--group-column", "Column of the groups; each group gets its own design.", metavar="COL")
@option(
    "--keep-apart",
    "Sets of items, one per line; no tuple contains two items of a set.",
    type=INPUT,
    metavar="FILE",
    former_names="--apart",
)
@option(
    "--keep-together",
    "Sets of items, one per line; at least one tuple contains each set.",
    type=INPUT,
    metavar="FILE",
    former_names="--together",
)
@option(
    "--extend",
    "An existing design, to which tuples for the new items are added.",
    type=INPUT,
    metavar="TUPLES",
)
@option(
    "--fresh rounds",
    "Rounds of such tuples, none of which repeats; give each tuple to one annotator. Better than as many "
    "annotators per tuple.",
    type=click.IntRange(1, 1000),
    metavar="ROUNDS",
)
@option("--compat", "Reproduce the generator of Kiritchenko and Mohammad.", choices="km")
@option(
    "--allow-repeats",
    "Allow repeated tuples if there are not enough distinct ones.",
    is_flag=True,
)
@option(
    "--anchors",
    "Plan of anchors, answers to single items after the tuples of a group, for one scale across groups: two "
    "items that each person rates, in rotation, or marks of all acceptable items.",
    choices="rating:2 mark",
)
@option("--anchors-output", "File of this plan, as CSV.", type=OUTPUT, metavar="FILE")
@option("--audit audited", "Print an audit of the design.", is_flag=True, show_default=False)
@format_option("Format of the audit.", "--audit-format audit_form")
@option(
    "--format form",
    "CSV with header, or the tab-separated lines of Kiritchenko and Mohammad (km).",
    choices="csv km",
    default="csv",
)
@output_option
def make_tuples(
    console: Console,
    items: str,
    item_column: str | None,
    group_column: str | None,
    extend: str | None,
    anchors: str | None,
    anchors_output: str | None,
    form: Literal["csv", "km"],
    output: str,
    audited: bool,
    audit_form: str,
    **options: Any,
) -> None:
    """Generate balanced tuples of items, separately for each group if there are groups.

    ITEMS is a .txt file with one item per line, a .csv, .tsv or .jsonl file with columns, or dialogues with
    candidates, grouped by dialogue; - is standard input with one item per line.
    """
    from bws.absolute.design import plan_anchors
    from bws.absolute.files import write_plan
    from bws.base.text import display_name
    from bws.design import audit
    from bws.files import read_items, write_tuples
    from bws.files.dialogue_texts import repeated_dialogues_of_file
    from bws.files.variants import find_variants

    _check_together("--anchors", anchors, "--anchors-output", anchors_output)
    listed = read_items(items, item_column, group_column)
    set_options = {name: value for name, value in options.items() if value is not None}
    with arguments():
        design = (
            _extended(extend, listed, set_options) if extend else _make_design(listed, set_options)
        )
        plan = plan_anchors(design, anchors, seed=options["seed"]) if anchors else ()
    design_audit = audit(design) if audited else None
    if output != "-" or not console.as_json:
        write_tuples(design, output, form)
    if anchors_output:
        write_plan(plan, anchors_output)
    groups = f" in {len(design.groups)} groups" if listed.groups else ""
    console.note(f"{len(design)} tuples of {len(design.items)} items{groups}")
    for note in design.notes:
        console.note(note)
    if found_variants := find_variants(listed.items, listed.groups):
        message = found_variants.message("each spelling is a separate item")
        console.warn([Problem(display_name(items), None, message)])
    if items != "-" and items.removesuffix(".gz").endswith((".jsonl", ".ndjson")):
        console.warn([*repeated_dialogues_of_file(items)])
    if design.n_repeated:
        message = f"{design.n_repeated} of {len(design)} tuples repeat the items of another"
        console.warn([Problem(display_name(items), None, message)])
    if console.as_json:
        document = _design_document(design, rows=output == "-")
        console.answer("", document | ({"audit": design_audit.document()} if design_audit else {}))
    elif design_audit:
        text = rendered([design_audit.result_table()], TableStyle(audit_form), titles=False)
        echo(text.rstrip("\n"), err=output == "-")


def _check_together(name: str, value: object, other_name: str, other: object) -> None:
    """Raise UsageError if only one of two options is given."""
    if (value is None) != (other is None):
        raise click.UsageError(f"{name} and {other_name} must be used together")


def _is_given(option_name: str) -> bool:
    """Return whether an option with a default is on the command line."""
    name = option_name.removeprefix("--").replace("-", "_")
    source = click.get_current_context().get_parameter_source(name)
    return source is ParameterSource.COMMANDLINE


def _design_document(design: Tuples, *, rows: bool) -> dict[str, Any]:
    counts = {
        "tuples": len(design),
        "items": len(design.items),
        "groups": len(design.groups),
        "repeated_tuples": design.n_repeated,
        "notes": list(design.notes),
    }
    if not rows:
        return counts
    names = ("tuple_id", "group", "items")
    return counts | {"design": [dict(zip(names, row, strict=True)) for row in design.rows()]}


def _make_design(listed: Items, options: dict[str, Any]) -> Tuples:
    from bws.design import fresh_rounds
    from bws.design import make_tuples as made
    from bws.files import read_item_sets

    if "factor" in options and "count" in options:
        raise click.UsageError("--factor and --tuples are mutually exclusive")
    rounds = options.pop("rounds", None)
    if rounds is not None:
        unfit = [
            name for name in ("keep_together", "compat", "allow_repeats") if options.pop(name, None)
        ]
        if unfit:
            raise click.UsageError(f"--fresh cannot be combined with {flag_of(unfit[0])}")
    for rule in options.keys() & {"keep_apart", "keep_together"}:
        options[rule] = read_item_sets(options[rule])
    if rounds is not None:
        return fresh_rounds(listed.items, rounds=rounds, groups=listed.groups, **options)
    return made(listed.items, groups=listed.groups, **options)


def _extended(running: str, listed: Items, options: dict[str, Any]) -> Tuples:
    """Return the existing design with additional tuples for new items."""
    from bws.design import extend_tuples
    from bws.files import read_tuples

    unfit = sorted(options.keys() - {"k", "factor", "seed", "allow_repeats"})
    if unfit:
        option_list = ", ".join(f"--{OPTION_NAMES.get(name, name)}" for name in unfit)
        raise click.UsageError(f"--extend cannot be combined with {option_list}")
    old = read_tuples(running)
    if old.k != options.pop("k"):
        raise click.UsageError(f"the tuples in {running} have {old.k} items; use -k {old.k}")
    groups = listed.groups or [""] * len(listed.items)
    old_items = set(old.item_keys)
    new = [row for row in zip(groups, listed.items, strict=True) if row not in old_items]
    if not new:
        raise click.UsageError(f"{running} contains all items already; expected new ones")
    return extend_tuples(
        old, [item for _, item in new], groups=[group for group, _ in new], **options
    )


@command(
    "giccs simulate",
    example="""
    giccs simulate tuples.csv --truth scores.csv --annotators 5 --noise 0.25 -o simulated.csv
    giccs simulate tuples.csv --truth dialogues.jsonl --annotators 5 --careless 0.05 -o simulated.csv
    giccs simulate fresh.csv --truth scores.csv --annotators 8 --per-tuple 1 -o simulated.csv
    giccs simulate tuples.csv --truth scores.csv --anchors plan.csv --anchors-output anchors.csv -o sim.csv
    giccs simulate tuples.csv --truth scores.csv --anchor-designs rating:1,rating:2,mark -o simulated.csv
    giccs simulate tuples.csv --truth scores.csv --annotators 10 --model-correlation 0.8 -o simulated.csv
    """,
)
@click.argument("tuples", type=INPUT, metavar="TUPLES")
@option(
    "--truth",
    "True scores, or dialogues whose candidates have intended levels.",
    required=True,
    type=INPUT,
    metavar="SCORES",
)
@option(
    "--annotators",
    "Number of annotators; each judges every tuple once, unless --per-tuple is given.",
    type=click.IntRange(1, 100_000),
    default=5,
    metavar="N",
)
@option(
    "--per-tuple",
    "Annotators per tuple, who take turns; 1 for fresh tuples.  [default: all]",
    type=click.IntRange(1, 100_000),
    metavar="M",
)
@option(
    "--noise",
    "Scale of the error of a judgment, in units of the truth.",
    type=Number(0, 1e6),
    default=0.25,
    metavar="S",
)
@option(
    "--distribution model",
    "Distribution of the error: that of the best-worst logit, or normal.",
    former_names="--model",
    choices="gumbel thurstone",
    default="gumbel",
)
@option(
    "--disagreement",
    "Systematic differences between annotators (SD), in units of the truth.",
    type=Number(0, 1e6),
    default=0.0,
    metavar="SD",
)
@option(
    "--careless",
    "Share of judgments made at random.",
    type=Number(0, 1),
    default=0.0,
    metavar="SHARE",
)
@option(
    "--position-bias",
    "Advantage of the item displayed first, in units of the truth.",
    type=Number(-1e6, 1e6),
    default=0.0,
    metavar="P",
)
@option(
    "--anchors",
    "Plan of anchors (giccs design --anchors): also simulate the answers to them, with thresholds of "
    "people (SD 1 logit) and noise of the slider.",
    type=INPUT,
    metavar="PLAN",
)
@option("--anchors-output", "File of these answers, as CSV.", type=OUTPUT, metavar="FILE")
@option(
    "--offset-sd",
    "Anchors: differences between groups (SD), relative to those of the truth within groups.",
    type=Number(0, 1000),
    default=0.7,
    metavar="S",
)
@option(
    "--slider-sd",
    "Anchors: noise of a rating (SD), in logits.",
    type=Number(0, 1000),
    default=2.0,
    metavar="S",
)
@option(
    "--anchor-designs",
    "Designs of anchors, such as rating:1,rating:2,mark: print the expected correlation of absolute scores "
    "with the truth over the items of all groups, by number of anchors, from --studies such studies.",
    metavar="NAME,...",
)
@option(
    "--studies",
    "With --anchor-designs: number of simulated studies.",
    type=click.IntRange(1, 10_000),
    default=10,
    metavar="N",
)
@option(
    "--model-correlation",
    "Correlation of a language model's scores with the true ones: print how many of the judgments people "
    "would still have to make with this model. Requires five annotators.",
    type=Number(0, 1, max_open=True),
    metavar="R",
)
@seed_option
@output_option
def simulate(
    console: Console,
    tuples: str,
    truth: str,
    output: str,
    anchors: str | None,
    anchors_output: str | None,
    offset_sd: float,
    slider_sd: float,
    anchor_designs: str | None,
    studies: int,
    model_correlation: float | None,
    seed: int,
    **options: Any,
) -> None:
    """Simulate judgments of tuples by annotators of known accuracy.

    With --model-correlation, a table shows the number of judgments by people that prediction-powered and
    pooled scores (giccs score --model-judgments) need for the width of the intervals of the simulated
    judgments alone, by the share of tuples that people judge. The model is simulated as
    well: it judges all tuples. With --anchor-designs, a table shows how many anchors give which correlation
    over the items of all groups.
    """
    from bws.absolute.files import read_plan, write_anchors
    from bws.files import read_tuples, write_judgments
    from bws.simulation import read_truth
    from bws.simulation import simulate as simulated

    _check_together("--anchors", anchors, "--anchors-output", anchors_output)
    either = "--anchors or --anchor-designs"
    check_combinations(
        {
            **{name: _is_given(name) for name in ("--studies", "--offset-sd", "--slider-sd")},
            "--anchor-designs": anchor_designs,
            either: anchors or anchor_designs,
        },
        requires={"--studies": "--anchor-designs", "--offset-sd": either, "--slider-sd": either},
    )
    design = read_tuples(tuples)
    true_scores = read_truth(truth, design)
    plan = read_plan(anchors, design) if anchors else ()
    tables: dict[str, ModelSavings | AnchorPower] = {}
    sds: dict[str, Any] = {"offset_sd": offset_sd, "slider_sd": slider_sd}
    with arguments():
        judgments = simulated(design, true_scores, seed=seed, **options)
        if plan:
            from bws.absolute.simulation import simulate_anchors

            shared = {name: options[name] for name in ("noise", "disagreement", "careless")}
            answers = simulate_anchors(
                judgments,
                true_scores,
                plan,
                per_group=options["per_tuple"],
                seed=seed,
                **shared,
                **sds,
            )
        if anchor_designs is not None:
            from bws.power_analysis import anchor_power

            names = [name.strip() for name in anchor_designs.split(",")]
            tables["anchor_designs"] = anchor_power(
                design, true_scores, designs=names, studies=studies, seed=seed, **options, **sds
            )
        if model_correlation is not None:
            from bws.model_savings import simulated_savings

            tables["savings"] = simulated_savings(
                judgments, true_scores, model_correlation, seed=seed
            )
    if output != "-" or not console.as_json:
        write_judgments(judgments, output)
    if anchors_output:
        write_anchors(answers.rows, anchors_output)
    summary = f"{len(judgments)} judgments of {len(design)} tuples by {len(judgments.annotators)} annotators"
    console.note(summary)
    if console.as_json:
        settings = {name: value for name, value in options.items() if value is not None}
        document = {"judgments": len(judgments), "tuples": len(design), **settings, "seed": seed}
        if model_correlation is not None:
            document |= {"model_correlation": model_correlation}
        document |= {name: table.document() for name, table in tables.items()}
        console.answer("", document)
    elif tables:
        results = [table.result_table() for table in tables.values()]
        text = rendered(results, TableStyle("table"), titles=False)
        echo(text.rstrip("\n"), err=output == "-")
