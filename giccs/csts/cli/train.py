"""giccs csts train: train encoders for similarity under a condition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from bws.base.commands import Console, command
from bws.base.options import (
    INPUT,
    MODEL,
    SEED,
    UPDATED,
    Choice,
    RenamedOption,
    click_option,
    click_options,
    declarations,
)
from bws.base.problems import InputError, Problem
from giccs.cli.options import set_offline_mode
from giccs.cli.remarks import Remarks
from giccs.csts.encoders.settings import Settings, why_impossible
from giccs.models import ModelOptions

if TYPE_CHECKING:
    from bws.stats.estimates import Estimate
    from giccs.csts.encoders.curve import CurvePoint
    from giccs.csts.encoders.runs import Outcome
    from giccs.csts.encoders.settings import Machine
    from giccs.csts.encoders.splits import Splits
    from giccs.csts.encoders.sweep import Grid, SweepResult

TITLES = ("Spearman ρ [95 %]", "Pearson r [95 %]", "pairwise ordering accuracy [95 %]")
"""Headers of `_cells`, as in giccs report."""


def _sizes(ctx: click.Context, parameter: click.Parameter, value: str | None) -> list[int] | None:
    if value is None:
        return None
    size: Any = declarations(Settings)["train_rows"].click_type(int)
    try:
        return [size.convert(part, parameter, ctx) for part in value.split(",")]
    except click.BadParameter:
        ends = f"{size.min} to {size.max}"
        message = (
            f"{value!r} is invalid; expected comma-separated integers from {ends}, such as 100,200"
        )
        raise click.BadParameter(message) from None


@command(
    "giccs csts train",
    example="""
    giccs csts train csts-sample --model package:minilm --pooling mean -o trained
    giccs csts train c-sts --model princeton-nlp/sup-simcse-roberta-large --seed 42 --seed 43 --seed 44
    giccs csts train c-sts --model roberta-base --sweep c-sts-sweep -o sweep
    giccs csts train c-sts --recipe c-sts-paper -o results
    giccs csts train c-sts --model roberta-base --encoding bi --encoding cross --curve 1000,3000,7000
    accelerate launch --num_processes 4 "$(which giccs)" csts train c-sts --model roberta-base
    """,
    interrupt_message="finished epochs are in {folder}; repeat the command to resume after the last one",
)
@click.argument("data", type=INPUT, metavar="DATA")
@click.option(
    "--model", "models", cls=RenamedOption, former_names=["--base"], multiple=True,
    type=MODEL, metavar="MODEL",
    help="Base encoder: a folder, a hub id, package:minilm. Can be repeated.",
)  # fmt: skip
@click_option(ModelOptions, "revision")
@click_option(Settings, "encoding", "--encoding", "encodings", multiple=True, default=["bi"])
@click_options(Settings, "objective", "pooling", "transform", "operation", "condition", "sentences")
@click_option(Settings, "texts", "--answers", "answers", type=INPUT, default=None, metavar="FILE")
@click_options(Settings, "learning_rate", "weight_decay", "warmup", "epochs", "select", "batch")
@click_options(Settings, "margin", "max_length", "frozen_layers", "mixed_precision")
@click.option(
    "--seed", "seeds", type=SEED, multiple=True, default=[42], show_default=True,
    help="Seed of a training. Can be repeated for mean and standard deviation.",
)  # fmt: skip
@click_option(Settings, "train_rows")
@click.option(
    "--sweep", type=INPUT, metavar="FILE",
    help="Grid of settings: a file, or c-sts-sweep; the best settings of each encoding on validation are "
         "trained with the final seeds.",
)  # fmt: skip
@click.option(
    "--recipe", type=INPUT, metavar="RECIPE",
    help="Train the models of a recipe (a file, or a name of giccs data list) with its settings; --model "
         "selects some of them.",
)  # fmt: skip
@click.option(
    "--curve", "sizes", callback=_sizes, metavar="N,N,...",
    help="Train on subsets with these numbers of rows; writes curve.csv and curve.svg to the folder.",
)  # fmt: skip
@click.option(
    "-o", "--output", "folder", default="results", show_default=True, type=UPDATED, metavar="FOLDER",
    help="Folder of results, trained models and checkpoints.",
)  # fmt: skip
@click.option("--no-models", is_flag=True, help="Do not save trained models.")
@click.option("--force", is_flag=True, help="Train again and replace existing results.")
@click.option(
    "--device", type=Choice(["auto", "cpu"]), default="auto", show_default=True,
    help="auto uses a GPU if available; use accelerate launch for several devices.",
)  # fmt: skip
@click_option(
    Settings, "batch", "--micro-batch-size", "rows_at_once", default=None,
    cls=RenamedOption, former_names=["--rows-at-once"],
    help="Rows of a batch that a device processes at a time, to limit memory.",
)  # fmt: skip
@click_options(ModelOptions, "offline")
def train(
    console: Console,
    data: str,
    models: tuple[str, ...],
    encodings: tuple[str, ...],
    answers: str | None,
    sweep: str | None,
    recipe: str | None,
    sizes: list[int] | None,
    folder: str,
    no_models: bool,
    force: bool,
    device: str,
    rows_at_once: int | None,
    offline: bool,
    **how: Any,
) -> None:
    """Train encoders on C-STS and evaluate them on test, or on validation if the labels of test are hidden.

    DATA is a folder with csts_train.csv, csts_validation.csv and csts_test.csv, or csts-sample. Validation is
    scored after each epoch. The model of the last epoch is saved, or with --select best that of the epoch
    with the highest Spearman correlation on validation. A * marks scores by which something was selected.

    Existing results in FOLDER are reused. After an interruption of any kind, repeat the command to resume a
    training after its last complete epoch, with the same numbers on the same type of CPU.

    A recipe specifies the training of each of its models, and no trained models are saved. Other settings are
    ignored, except seeds.

    If the labels of test are hidden, its rows are predicted: FOLDER/submissions has a test_predictions.json
    per seed, in the format of the C-STS server.

    --json: data, split, results (as in giccs eval), models, submissions if test has hidden labels; with
    --sweep also sweep, with --curve also curve.
    """
    set_offline_mode(offline)
    if len([source for source in (sweep, recipe, sizes) if source]) > 1:
        raise click.UsageError("--sweep, --recipe and --curve are mutually exclusive")
    if sizes and how["train_rows"]:
        raise click.UsageError("--curve sets the number of training rows; omit --rows")
    from giccs.csts.encoders.splits import read_splits
    from giccs.csts.encoders.sweep import read_grid

    grid = read_grid(sweep) if sweep else None
    if recipe:
        lines = _of_recipe(console, recipe, models, how["seeds"], answers)
    else:
        lines = list(_settings(models or _models_of(grid), encodings, answers, how))
    _check(lines, grid)
    read = {
        texts: read_splits(data, answers=answers if texts == "answers" else None)
        for texts in sorted({settings.texts for settings in lines})
    }
    splits = read[lines[0].texts]
    from giccs.csts.encoders.settings import Machine, is_first

    first, machine = is_first(), Machine(device, rows_at_once)
    console = console if first else replace(console, quiet=True)
    if first:
        console.warn(
            [*dict.fromkeys(warning for part in read.values() for warning in part.warnings)]
        )
    console.note(f"{splits.name}: {splits.described()}")
    if grid is not None:
        answer = _swept(console, grid, lines, splits, folder, machine, force)
    elif sizes:
        answer = _curved(console, lines, sizes, splits, folder, machine, force)
    else:
        keep = not no_models and not recipe
        answer = _trained(console, lines, read, folder, machine, keep, force)
    if first:
        text, document = answer
        shared = {"data": splits.name, "split": splits.reported}
        console.answer(text, shared | document)
        console.note(f"\nmetrics are of {splits.reported}; results in {folder}")


def _models_of(grid: Grid | None) -> Sequence[str]:
    if grid is None or "model" not in grid.values:
        raise click.UsageError("Missing option '--model'.")
    return grid.values["model"]


def _settings(
    models: Sequence[str], encodings: Sequence[str], answers: str | None, options: Mapping[str, Any]
) -> Iterator[Settings]:
    """Yield the settings of every model with every encoding."""
    values = {**options, "texts": "answers" if answers else "sentences"}
    for model in dict.fromkeys(models):
        for encoding in dict.fromkeys(encodings):
            try:
                yield Settings(model, encoding=encoding, **values).canonical()
            except ValueError as error:
                raise click.UsageError(str(error)) from None


def _of_recipe(
    console: Console, file: str, models: Sequence[str], seeds: Sequence[int], answers: str | None
) -> list[Settings]:
    """Return the trainings of a recipe, without those with other answers."""
    from giccs.evaluation.recipe import TRAINING, read_recipe

    recipe = read_recipe(file)
    runs = recipe.select(models, [TRAINING]).runs
    named = recipe.answers_of(answers or "")
    usable = [
        run
        for run in runs
        if (
            answers and run.answers == named if run.settings.texts == "answers" else not named
        )  # A file that runs name is for these alone.
    ]
    skipped = [run for run in runs if run not in usable]
    if named:
        console.note(f"{len(usable)} trainings use {named}; {len(skipped)} others are skipped")
    elif skipped:
        files = ", ".join(dict.fromkeys(f"--answers {run.answers or 'FILE'}" for run in skipped))
        console.note(f"{len(skipped)} trainings are skipped: they require {files}")
    if not usable:
        raise click.UsageError(f"every training of {file} requires --answers FILE")
    return [replace(run.settings, seeds=tuple(seeds)) for run in usable]


def _check(lines: Sequence[Settings], grid: Grid | None) -> None:
    """Raise InputError for every unavailable model, and for contradictory settings."""
    from giccs.csts.encoders.base import base_folder

    problems: dict[tuple[str, str], Problem] = {}
    for settings in lines:
        if grid is None and (reason := why_impossible(settings)):
            problems[settings.model, reason] = Problem(settings.model, None, reason)
        try:
            base_folder(settings.model, settings.revision)
        except InputError as error:
            problems |= {(settings.model, str(problem)): problem for problem in error.problems}
    if problems:
        raise InputError(problems.values())


def _trained(
    console: Console, lines: Sequence[Settings], splits: Mapping[str, Splits], folder: str,
    machine: Machine, keep: bool, force: bool,
) -> tuple[str, dict[str, Any]]:  # fmt: skip
    from giccs.csts.encoders.runs import train as run

    outcomes = []
    remarks = Remarks(console)
    for settings in lines:
        console.note(f"{settings.model}: {settings.described()} ...")
        outcome = run(
            settings, splits[settings.texts], folder, machine, console.progress,
            keep=keep, force=force,
        )  # fmt: skip
        if outcome.is_reused:
            console.note("  existing result")
        if keep and len(outcome.models) < len(settings.seeds):
            console.note("  its trained models were not saved; use --force to train them again")
        _note_losses(console, outcome)
        remarks.print_for(outcome.result)
        outcomes.append(outcome)
    models = [str(path) for outcome in outcomes for path in outcome.models]
    for path in models:
        console.note(f"model: {path}")
    return _table(outcomes), _document(console, outcomes) | {"models": models}


def _note_losses(console: Console, outcome: Outcome) -> None:
    """Report data that was ignored or truncated."""
    for seed in outcome.seeds:
        numbers = seed.signature["settings"]["seeds"]
        if left_out := seed.environment["rows"]["left_out"]:
            message = "are in no pair of two rows with different labels, which quad requires"
            console.note(f"  seed {numbers[0]}: {left_out} training rows {message}")
        if truncated := seed.environment["truncated"]:
            console.note(f"  seed {numbers[0]}: {truncated} texts were too long and truncated")


def _swept(
    console: Console, grid: Grid, lines: Sequence[Settings], splits: Splits, folder: str,
    machine: Machine, force: bool,
) -> tuple[str, dict[str, Any]]:  # fmt: skip
    from giccs.csts.encoders.sweep import points
    from giccs.csts.encoders.sweep import sweep as run

    runs = _spread(grid, lines)
    for sweep_run in runs:
        points(grid, sweep_run)  # Report impossible settings before any training.
    sweeps = [
        run(grid, sweep_run, splits, folder, machine, console.progress, console.note, force=force)
        for sweep_run in runs
    ]
    for reason, count in sum((Counter(sweep.impossible) for sweep in sweeps), Counter()).items():
        console.note(f"{count} combinations skipped: {reason}")
    best = [outcome for sweep_result in sweeps for outcome in sweep_result.best]
    remarks = Remarks(console)
    for outcome in best:
        _note_losses(console, outcome)
        remarks.print_for(outcome.result)
    rows = [_point_row(point) for swept in sweeps for point in swept.points]
    headers = ["model", "setting", *TITLES[:2]]
    text = f"{_rows(rows, headers)}\n(on validation)\n\n{_table(best)}"
    return text, _document(console, best) | {"models": [], "sweep": _sweep_document(sweeps)}


def _spread(grid: Grid, lines: Sequence[Settings]) -> list[Settings]:
    """Return the base settings of a grid, one per combination of settings that the grid does not vary."""
    by_key: dict[tuple[Any, ...], Settings] = {}
    for line in lines:
        left = (value for name, value in asdict(line).items() if name not in grid.values)
        by_key.setdefault(tuple(left), line)
    return list(by_key.values())


def _sweep_document(sweeps: Sequence[SweepResult]) -> list[dict[str, Any]]:
    from giccs.csts.encoders.runs import validated

    return [
        {
            "settings": asdict(point.settings),
            "validation": {name: e.document() for name, e in validated(point.result).items()},
        }
        for sweep_result in sweeps
        for point in sweep_result.points
    ]


def _curved(
    console: Console, lines: Sequence[Settings], sizes: Sequence[int], splits: Splits, folder: str,
    machine: Machine, force: bool,
) -> tuple[str, dict[str, Any]]:  # fmt: skip
    from pathlib import Path

    from bws.base.charts import write_chart
    from bws.base.text import write_atomic
    from bws.cli.options import drawn_figure
    from giccs.csts.encoders.curve import curve, curve_chart, curve_csv
    from giccs.csts.encoders.settings import is_first

    points = curve(
        lines, sizes, splits, folder, machine, console.progress, console.note, force=force
    )  # fmt: skip
    if is_first():
        write_atomic(Path(folder, "curve.csv"), curve_csv(points))
        with drawn_figure(console, "of the curve", folder):
            write_chart(curve_chart(points), Path(folder, "curve.svg"))
    rows = [
        [
            point.settings.model,
            point.settings.described(),
            point.rows,
            *_cells(point.result.metrics),
        ]
        for point in points
    ]
    text = _rows(rows, ["model", "setting", "rows", *TITLES])
    console.note(f"curve: {Path(folder, 'curve.csv')}, {Path(folder, 'curve.svg')}")
    return text, {
        "results": [],
        "models": [],
        "curve": [_curve_document(curve_point) for curve_point in points],
    }


def _curve_document(point: CurvePoint) -> dict[str, Any]:
    return {
        "model": point.settings.model,
        "setting": point.settings.described(),
        "rows": point.rows,
        "metrics": {name: e.document() for name, e in point.result.metrics.items()},
    }


def _document(console: Console, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the results as JSON; report the files with predictions of rows with hidden labels."""
    submissions = [str(path) for outcome in outcomes for path in outcome.submissions]
    console.warn([problem for outcome in outcomes for problem in outcome.problems])
    for path in submissions:
        console.note(f"predictions for the server of C-STS: {path}")
    results = {"results": [outcome.result.document() for outcome in outcomes]}
    return results | ({"submissions": submissions} if submissions else {})


def _table(outcomes: Sequence[Outcome]) -> str:
    from giccs.csts.encoders.runs import validated

    headers = ["model", "setting", *TITLES, "epoch", "validation ρ [95 %]"]
    rows = []
    for outcome in outcomes:
        result = outcome.result
        epochs = ", ".join(map(str, result.environment["selected_epochs"]))
        epochs = f"{epochs} ({result.signature['settings']['select']})"
        on_validation = _number(validated(result)["spearman"])
        setting = result.signature["setting"]
        rows.append([result.model, setting, *_cells(result.metrics), epochs, on_validation])
    return _rows(rows, headers)


def _point_row(point: Any) -> list[str]:
    from giccs.csts.encoders.runs import validated

    on_validation = validated(point.result)
    numbers = [_number(on_validation[name]) for name in ("spearman", "pearson")]
    return [point.settings.model, point.settings.described(), *numbers]


def _cells(metrics: Mapping[str, Estimate]) -> list[str]:
    return [_number(metrics[name]) for name in ("spearman", "pearson", "pair_accuracy")]


def _number(estimate: Estimate) -> str:
    """Return ``value ± SD over seeds [interval]``, as far as defined, with a mark if it was used for
    selection."""
    from giccs.measures.formatting import interval

    sd = estimate.extra.get("sd")
    text = interval(estimate)
    return text if sd is None else text.replace(" ", f" ± {sd:.3f} ", 1)


def _rows(rows: Sequence[Sequence[Any]], headers: Sequence[str]) -> str:
    from bws.base.tables import tabulated
    from giccs.measures.formatting import SELECTED_REMARK

    table = tabulated(rows, headers, "table")
    has_marks = any(str(cell).endswith("*") for row in rows for cell in row)
    return f"{table}\n\n{SELECTED_REMARK}" if has_marks else table
