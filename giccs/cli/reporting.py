"""giccs report: print results as tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from textwrap import fill
from typing import TYPE_CHECKING, Any

import click

from bws.base.commands import Console, check_combinations, command
from bws.base.options import FIGURE, INPUT, OUTPUT_FOLDER, UPDATED, Number
from bws.base.problems import InputError, Problem, suggestion
from bws.base.tables import remarks
from bws.cli.options import (
    allow_copies_option,
    answer_paragraph,
    answer_tables,
    arguments,
    check_figure,
    check_requires_judgments,
    control_option,
    drawn_figure,
    exclude_option,
    merge_variants_option,
    option,
    paragraph_option,
    report_judgments,
    table_options,
    without_excluded,
)
from giccs.cli.options import (
    absolute_option,
    baseline_option,
    cluster_option,
    finish_checks,
    junit_option,
    language_option,
)
from giccs.measures.clusters import DIALOGUES

if TYPE_CHECKING:
    from bws.base.tables import TableStyle
    from bws.records import Judgments
    from bws.stats.estimates import Estimate
    from giccs.benchmark import Benchmark
    from giccs.measures.results import Limits, Result, Store
    from giccs.report.checks import Check

LINE_LENGTH = 100
"""Characters per line of the sentences of --verdict."""
Selection = Mapping[str, Sequence[str]]
"""Field of results -> selected values; empty for all. The arguments of `select_results`."""


def detect_option(text: str) -> Callable[[Any], Any]:
    """Return the option ``--detect``, with the parameter `target`."""
    return click.option(
        "--detect",
        "target",
        type=Number(0, 1, min_open=True),
        metavar="DIFFERENCE",
        help=f"{text}, for planning the number of dialogues.  [default: 0.02]",
    )


def _model_names(
    ctx: click.Context, parameter: click.Parameter, values: Sequence[str]
) -> dict[str, str]:
    names = dict(value.partition("=")[::2] for value in values)
    if not all(names.values()):
        raise click.BadParameter("must be MODEL=NAME")
    return names


def _figure_paths(
    ctx: click.Context, parameter: click.Parameter, values: Sequence[str]
) -> list[tuple[str, str]]:
    """Return the name and the file of each figure."""
    if not values:
        return []
    from giccs.report.figures import FIGURES

    paths = [value.partition("=")[::2] for value in values]
    for name, path in paths:
        if name not in FIGURES:
            expected = "; ".join(f"{name} ({kind.summary})" for name, kind in FIGURES.items())
            message = (
                f"unknown figure {name!r}{suggestion(name, FIGURES)}; expected one of {expected}"
            )
            raise click.BadParameter(message)
        if not path:
            raise click.BadParameter("must be NAME=FILE")
    return paths


all_pairs_option = option(
    "--all-pairs",
    "List all pairs also of more than eight models.  [default: neighbours in rank, and the best model with "
    "those that do not differ from it]",
    is_flag=True,
)
model_name_option = option(
    "--model-name model_names",
    "Name of a model in the tables. Can be repeated.  [default: the model; in LaTeX, the last part of a hub "
    "id or path]",
    multiple=True, callback=_model_names, metavar="MODEL=NAME", show_default=False,
)  # fmt: skip


REQUIRED_OPTIONS = {
    "--dialogue": "--figure ranks=FILE",
    "--eval-results": "--data OWNER/NAME",
    "--all-pairs": "--compare",
    "--detect": "--compare",
    "--language": "--mteb",
    "--absolute": "--judgments",
}
EXCLUDED_OPTIONS = {
    "--against": ("--judgments",),
    "--compare": ("--against", "--judgments"),
    "--people": ("--against", "--judgments", "--compare"),
    "--verdict": (
        "--absolute",
        "--against",
        "--compare",
        "--people",
        "--figure",
        "--format",
        "--model-name",
        "--lm-eval",
        "--mteb",
        "--every-eval-ever",
        "--eval-results",
    ),
}
SELECTION_OPTIONS = (
    option(
        "--model", "Only results of this model, by its name with or without settings. Can be repeated.",
        multiple=True, metavar="MODEL", show_default=False,
    ),
    option(
        "--task", "Only results of this task. Can be repeated.",
        multiple=True, metavar="NAME", show_default=False,
    ),
    option(
        "--history", "Only results with or without history.  [default: both conditions, compared separately]",
        choices="with without", multiple=True, show_default=False,
    ),
    option(
        "--data", "Only results on this data, by its name in results or at least six first digits of its "
        "fingerprint; can be repeated. In giccs report also the benchmark of --judgments, --dialogue and "
        "--against, and OWNER/NAME of the hub of --eval-results.",
        type=INPUT, multiple=True, metavar="DATA", show_default=False,
    ),
)  # fmt: skip


def selection_options(function: Any) -> Any:
    """Add the options that select results, with the parameter `selection`."""

    @wraps(function)
    def with_selection(
        *args: Any,
        model: Sequence[str],
        task: Sequence[str],
        history: Sequence[str],
        data: Sequence[str],
        **values: Any,
    ) -> Any:
        selection = {"model": model, "task": task, "history": history, "data": data}
        return function(*args, selection=selection, **values)

    decorated: Any = with_selection
    for add in reversed(SELECTION_OPTIONS):
        decorated = add(decorated)
    return decorated


@command(
    "giccs report",
    example="""
    giccs report results
    giccs report results --format latex --columns model,spearman --bold-best --caption "Results" > table.tex
    giccs report results --data benchmark.jsonl --judgments judgments.csv
    giccs report results --verdict --judgments judgments.csv
    giccs report results --against giccs-paper
    giccs report results --compare --history with --task pairwise-sts
    giccs report results --every-eval-ever records --organization "University of X"
    giccs report results --eval-results for-the-hub --data my-lab/my-benchmark
    giccs report results --people scores.csv
    giccs report results --figure differences=differences.svg --figure subsets=subsets.png
    giccs report results --figure ranks=ranks.svg --dialogue d12 --data benchmark.jsonl
    """,
)
@click.argument("folder", type=UPDATED, metavar="RESULTS_FOLDER")
@table_options
@model_name_option
@selection_options
@cluster_option
@click.option(
    "--judgments",
    type=INPUT,
    metavar="FILE",
    help="The judgments behind the scores; adds the noise ceiling, and intervals of correlations over "
    "dialogues and annotators.  [default: those of the sample, for the noise ceiling]",
)
@absolute_option
@merge_variants_option
@control_option
@allow_copies_option
@exclude_option
@click.option(
    "--against",
    "recipe",
    type=INPUT,
    metavar="RECIPE",
    help="Print the results beside the published numbers of a recipe.",
)
@click.option(
    "--compare",
    is_flag=True,
    help="Print a comparison of all pairs of models: difference, interval, p, ranks, power.",
)
@all_pairs_option
@detect_option("With --compare: difference to detect")
@click.option(
    "--verdict",
    is_flag=True,
    help="Print in sentences whether the scores are reliable, which items differ, which annotators need "
    "review, and which model is best. The first three need --judgments or results on a sample.",
)
@click.option(
    "--people",
    type=INPUT,
    metavar="SCORES",
    help="People's scores of a random part of the dialogues of a benchmark with the scores of a model judge: "
    "print prediction-powered correlations with people's scores, and accuracies of multiple choice.",
)
@click.option(
    "--lm-eval",
    type=OUTPUT_FOLDER,
    metavar="FOLDER",
    help="Also write multiple-choice results as JSON of lm-evaluation-harness.",
)
@click.option(
    "--mteb",
    type=OUTPUT_FOLDER,
    metavar="FOLDER",
    help="Also write pairwise results as JSON of mteb.",
)
@click.option(
    "--every-eval-ever",
    type=OUTPUT_FOLDER,
    metavar="FOLDER",
    help="Also write pairwise and multiple-choice results as records of the schema Every Eval Ever.",
)
@click.option(
    "--organization",
    metavar="NAME",
    help="With --every-eval-ever: who ran the evaluation.",
)
@click.option(
    "--eval-results",
    type=OUTPUT_FOLDER,
    metavar="FOLDER",
    help="Also write results on the data set --data of the hub as .eval_results of the models' repositories.",
)
@option(
    "--figure figures",
    "Also draw a figure: .svg, .png, .json. NAME: leaderboard (ranks that tests "
    "permit), differences (of all pairs of models), subsets (heat map), "
    "calibration (of multiple choice), histories (with and without), prompts (range per model), ranks (in "
    "one dialogue, by people and models), failures (items on which people agree and a model fails; with "
    "--judgments). Can be repeated.",
    multiple=True, callback=_figure_paths, type=FIGURE, metavar="NAME=FILE", show_default=False,
)  # fmt: skip
@click.option(
    "--dialogue", metavar="ID", help="The dialogue of --figure ranks; with --data, items are texts."
)
@language_option
def report(
    console: Console,
    folder: str,
    style: TableStyle,
    model_names: Mapping[str, str],
    selection: Selection,
    cluster: str,
    judgments: str | None,
    absolute: str | None,
    merge_variants: bool,
    control: Sequence[str],
    allow_copies: bool,
    exclude: str | None,
    recipe: str | None,
    compare: bool,
    all_pairs: bool,
    target: float | None,
    verdict: bool,
    people: str | None,
    lm_eval: str | None,
    mteb: str | None,
    every_eval_ever: str | None,
    organization: str | None,
    eval_results: str | None,
    figures: Sequence[tuple[str, str]],
    dialogue: str | None,
    language: str | None,
) -> None:
    """Print the results in a folder as tables, best model first."""  # fmt: skip
    from giccs.measures.absolute_ceiling import limits_document, with_within_ceiling
    from giccs.measures.ceiling import cached_ceiling
    from giccs.measures.results import Store
    from giccs.report import report as tables
    from giccs.report.clustering import over_clusters, with_predictions_of_dialogues
    from giccs.report.setting_effects import effects_document
    from giccs.tasks import result_kind

    data = None
    if (judgments and not verdict) or recipe or dialogue or eval_results:
        data, selection = _single_data(selection)
    given = {
        "--absolute": absolute, "--against": recipe, "--all-pairs": all_pairs, "--compare": compare,
        "--data OWNER/NAME": data, "--detect": target, "--dialogue": dialogue,
        "--eval-results": eval_results, "--figure ranks=FILE": "ranks" in dict(figures),
        "--judgments": judgments, "--language": language, "--mteb": mteb, "--people": people,
        "--verdict": verdict, "--figure": figures, "--format": style.form != "table",
        "--model-name": model_names, "--lm-eval": lm_eval, "--every-eval-ever": every_eval_ever,
    }  # fmt: skip
    check_combinations(given, requires=REQUIRED_OPTIONS, excludes=EXCLUDED_OPTIONS)
    _check_style(style, model_names)
    check_requires_judgments(
        judgments, merge_variants=merge_variants, control=control, allow_copies=allow_copies,
        exclude=exclude,
    )  # fmt: skip
    for _, path in figures:
        check_figure(path)
    store = Store(folder)
    if verdict:
        options = {
            "merge_variants": merge_variants,
            "control": control,
            "allow_copies": allow_copies,
        }
        _print_verdict(console, store, selection, cluster, judgments, exclude, **options)
        return
    results = _results(store, folder, selection)
    if bool(every_eval_ever) != bool(organization):
        raise click.UsageError("--every-eval-ever and --organization require each other")
    names = _all_names(results, model_names, style)
    _export(console, results, lm_eval, mteb, language)
    if every_eval_ever and organization:
        _export_records(console, results, every_eval_ever, organization)
    if eval_results and data:
        _export_eval_results(console, results, eval_results, data)
    pairwise = [result for result in results if result_kind(result.task).has_ceiling]
    judgments_and_data = (
        None
        if recipe or compare or people
        else _load_judgments(
            console, pairwise, judgments, merge_variants, control, allow_copies, exclude, data
        )
    )
    if figures:
        texts = _texts(data) if dialogue and data else None
        predicted = _renamed([store.with_predictions(result) for result in results], names)
        _draw(console, folder, predicted, figures, dialogue, texts, judgments_and_data)
    if recipe:
        if cluster != DIALOGUES:
            results = with_predictions_of_dialogues(results, store)
        _compare_published(console, results, recipe, data, cluster, style, names)
        return
    if compare:
        _compare_models(console, store, results, cluster, target, style, names, all_pairs=all_pairs)
        return
    if people:
        _compare_with_people(console, store, results, people, cluster, style, names)
        return
    ceiling = (
        cached_ceiling(folder, *judgments_and_data, console.note)
        if judgments_and_data
        else _stored_ceiling(console, folder, pairwise)
    )
    limits = _limits(console, folder, pairwise, judgments_and_data, absolute)
    ceiling = with_within_ceiling(ceiling, limits)
    document: dict[str, Any] = {"results": [], **limits_document(limits)}
    if ceiling:
        document["ceiling"] = {name: estimate.document() for name, estimate in ceiling.items()}
    over_annotators: list[Result] = []
    if judgments_and_data and judgments:
        over_annotators = _over_annotators(console, store, pairwise, *judgments_and_data, cluster)
        document["over_annotators"] = [
            _over_annotators_document(metrics) for metrics in over_annotators
        ]
    results = over_clusters(with_predictions_of_dialogues(results, store), cluster)
    document["results"] = [result.document() for result in results]
    if console.as_json:  # Not needed otherwise, and slow with many models.
        document |= effects_document(results)
    renamed, over_annotators = (_renamed(each, names) for each in (results, over_annotators))
    with arguments():
        text = tables(renamed, style, ceiling, over_annotators, limits).rstrip("\n")
    console.answer(text + _key(names, style), document)


@command(
    "giccs compare",
    example="""
    giccs compare results
    giccs compare results --detect 0.05 --format latex
    giccs compare results --task pairwise-sts --history without --model MODEL --model MODEL
    """,
)
@click.argument("folder", type=INPUT, metavar="RESULTS_FOLDER")
@table_options
@model_name_option
@selection_options
@cluster_option
@all_pairs_option
@detect_option("Difference to detect")
@paragraph_option
@baseline_option
@junit_option
def compare_models(
    console: Console,
    folder: str,
    style: TableStyle,
    model_names: Mapping[str, str],
    selection: Selection,
    cluster: str,
    all_pairs: bool,
    target: float | None,
    paragraph: str | None,
    baseline: str | None,
    junit: str | None,
) -> None:
    """Compare all pairs of models with results in a folder, like giccs report --compare.

    Results of one task, data set and history are compared, and each model with and without history.
    """
    from giccs.measures.results import Store

    _check_style(style, model_names)
    store = Store(folder)
    results = _results(store, folder, selection)
    names = _all_names(results, model_names, style)
    if junit and not baseline:
        raise click.UsageError("--junit requires --fail-if-worse-than")
    options: dict[str, Any] = {"all_pairs": all_pairs, "paragraph": paragraph, "baseline": baseline}
    checks = _compare_models(console, store, results, cluster, target, style, names, **options)
    finish_checks(console, checks, junit)


def _single_data(selection: Selection) -> tuple[str | None, Selection]:
    """Return the data set that is read, and the selection without it; UsageError for several."""
    if len(selection["data"]) > 1:
        raise click.UsageError(
            "--data cannot be repeated with --judgments, --against, --dialogue or --eval-results"
        )
    return next(iter(selection["data"]), None), {**selection, "data": ()}


def _all_names(
    results: Sequence[Result], names: Mapping[str, str], style: TableStyle
) -> dict[str, str]:
    """Return the names of models in the tables: the given ones, and in LaTeX short names of others.

    Raises UsageError for a name of an unknown model, and for a name of several models.
    """
    from giccs.report.model_names import short_names

    models = list(dict.fromkeys(result.model for result in results))
    for name in names:
        if name not in models:
            message = f"--model-name: no result of {name!r}{suggestion(name, models)}"
            raise click.UsageError(f"{message}; expected one of {', '.join(models)}")
    all_names = {**(short_names(models) if style.form == "latex" else {}), **names}
    table_names = [all_names.get(model, model) for model in models]
    if repeated := [name for name in table_names if table_names.count(name) > 1]:
        raise click.UsageError(f"--model-name: {repeated[0]!r} would be the name of several models")
    return all_names


def _renamed(results: Sequence[Result], names: Mapping[str, str]) -> list[Result]:
    """Return the results with other names of models."""
    return [replace(result, model=names.get(result.model, result.model)) for result in results]


def _key(names: Mapping[str, str], style: TableStyle) -> str:
    """Return comments about the models behind the names in LaTeX, otherwise nothing."""
    lines = [f"{name}: {model}" for model, name in names.items()]
    return "\n".join(["\n", *remarks(lines, "latex")]) if lines and style.form == "latex" else ""


def _check_style(style: TableStyle, model_names: Mapping[str, str]) -> None:
    if style.form == "csv" and style.columns:
        raise click.UsageError("--columns is for tables; the CSV of results has one row per number")
    if style.form == "csv" and model_names:
        raise click.UsageError("--model-name is for tables; the CSV of results has the full names")


def _results(store: Store, folder: str, selection: Selection) -> list[Result]:
    from giccs.report.selection import select_results

    results = list(store.results())
    if not results:
        message = "contains no results; create them with giccs eval -o"
        raise InputError(Problem(folder, None, message))
    with arguments():
        return select_results(results, store.with_predictions, **selection)


def _export(
    console: Console,
    results: Sequence[Result],
    lm_eval: str | None,
    mteb: str | None,
    language: str | None,
) -> None:
    if lm_eval:
        from giccs.evaluation.interop.lm_eval import write_results as write_lm_eval

        console.note(f"{len(write_lm_eval(results, lm_eval))} results written to {lm_eval}")
    if mteb:
        from giccs.evaluation.interop.mteb import write_results as write_mteb

        console.note(f"{len(write_mteb(results, mteb, language))} results written to {mteb}")


def _export_records(
    console: Console, results: Sequence[Result], folder: str, organization: str
) -> None:
    import time

    from giccs.evaluation.interop.every_eval_ever import write_results

    paths, n_undefined = write_results(results, folder, organization, time.time())
    undefined = f"; {n_undefined} undefined scores are left out" if n_undefined else ""
    console.note(f"{len(paths)} results written to {folder}{undefined}")


def _export_eval_results(
    console: Console, results: Sequence[Result], folder: str, name: str
) -> None:
    from giccs.evaluation.interop.eval_results import read_hub_data, write_results

    data = read_hub_data(name)
    paths, left_out = write_results(results, data, folder)
    console.note(
        f"{len(paths)} results on {data.id} at {data.revision[:12]} written to {folder}; the hub shows them "
        "if it lists the data set as a benchmark"
    )
    for reason, count in left_out.items():
        console.note(f"left out: {count} {reason}")


def _texts(data: str) -> dict[str, str]:
    """Return the utterance of each item of a benchmark."""
    from giccs.benchmark import read_benchmark

    return {item.item_id: item.utterance for item in read_benchmark(data).items}


def _draw(
    console: Console,
    folder: str,
    results: Sequence[Result],
    figures: Sequence[tuple[str, str]],
    dialogue: str | None,
    texts: Mapping[str, str] | None,
    judgments_and_data: tuple[Judgments, Benchmark] | None,
) -> None:
    """Write the figures of results with predictions."""
    from bws.base.charts import write_chart
    from giccs.measures.judged_items import disagreement_of_items
    from giccs.report.figures import draw

    disagreement = None
    if judgments_and_data and "failures" in dict(figures):
        disagreement = disagreement_of_items(*judgments_and_data)
    for name, path in figures:
        with drawn_figure(console, name, folder):
            chart = draw(name, results, dialogue=dialogue, texts=texts, disagreement=disagreement)
            write_chart(chart, path)
            console.note(f"figure {name} written to {path}")


def _compare_models(
    console: Console,
    store: Store,
    results: Sequence[Result],
    cluster: str,
    target: float | None,
    style: TableStyle,
    names: Mapping[str, str],
    *,
    all_pairs: bool,
    paragraph: str | None = None,
    baseline: str | None = None,
) -> list[Check]:
    """Print the comparison, or its paragraph; return the checks against a baseline."""
    from giccs.report.checks import baseline_checks, newest
    from giccs.report.clustering import over_clusters
    from giccs.report.comparison_paragraph import comparison_sentences
    from giccs.report.comparison_tables import comparison_tables
    from giccs.report.equal_predictions import equal_predictions
    from giccs.report.model_comparison import TARGET_DIFFERENCE, compare

    if baseline and len(present := newest(results)) < len(results):
        console.note(f"{len(results) - len(present)} older results of the same models are left out")
        results = present
    predicted = [store.with_predictions(result) for result in results]
    console.warn([*equal_predictions(predicted)])
    # JSON has the full names.
    named = predicted if console.as_json else _renamed(predicted, names)
    comparison = compare(over_clusters(named, cluster), target=target or TARGET_DIFFERENCE)
    document = comparison.document()
    if baseline and not console.as_json:
        baseline = names.get(baseline, baseline)
    with arguments():
        checks = baseline_checks(comparison, baseline) if baseline else []
    if checks:
        document["checks"] = [check.document() for check in checks]
    if paragraph:
        with arguments():
            sentences = [*comparison_sentences(comparison)]
        reasons = map(str, comparison.skipped)
        answer_paragraph(console, sentences, paragraph, style, document, reasons)
        return checks
    with arguments():
        text = comparison_tables(comparison, style, all_pairs=all_pairs).rstrip("\n")
    console.answer(text + _key(names, style), document)
    return checks


def _print_verdict(
    console: Console,
    store: Store,
    selection: Selection,
    cluster: str,
    path: str | None,
    exclude: str | None,
    **options: Any,
) -> None:
    """Print the answers to four questions from the judgments, or those of a sample, and the results."""
    from giccs.report.clustering import over_clusters
    from giccs.report.selection import select_results
    from giccs.report.verdict import QUESTIONS, findings

    results = list(store.results())
    if results or any(selection.values()):
        with arguments():
            results = select_results(results, store.with_predictions, **selection)
    predicted = over_clusters([store.with_predictions(result) for result in results], cluster)
    judgments = _judgments_of_study(results, path, **options)
    if judgments and exclude:
        judgments = without_excluded(console, judgments, exclude)
    if judgments and path:
        _check_same_study(judgments, predicted, path)
        _check_scores(judgments, predicted)
        report_judgments(console, judgments, path)
    answers = findings(judgments, predicted)
    texts = [f"{QUESTIONS[finding.name]}\n{fill(finding.text, LINE_LENGTH)}" for finding in answers]
    document = {finding.name: finding.document() for finding in answers}
    console.answer("\n\n".join(texts), {"verdict": document})


def _check_same_study(judgments: Judgments, results: Sequence[Result], path: str) -> None:
    """Raise InputError for judgments of none of the dialogues, or without groups items, of the results."""
    tuples = judgments.tuples
    has_groups = any(tuples.groups)
    known = {str(name) for name in (tuples.groups if has_groups else tuples.items)}
    names = ("dialogue_id",) if has_groups else ("item_id", "utterance_id")
    predicted = {
        value
        for result in results
        if result.predictions is not None
        for name in names
        if name in result.predictions.columns
        for value in result.predictions[name].cast(str).unique()
    }
    if predicted and predicted.isdisjoint(known):
        of = "dialogues" if has_groups else "items"
        message = (
            f"judgments of none of the {of} of the results; expected those behind their scores"
        )
        raise InputError(Problem(path, None, message))


def _check_scores(judgments: Judgments, results: Sequence[Result]) -> None:
    """Raise InputError if the scores of a benchmark at hand are not those of the judgments."""
    from pathlib import Path

    from giccs.benchmark import SAMPLES, read_benchmark
    from giccs.measures.judged_items import judged_items
    from giccs.measures.results import data_of
    from giccs.tasks import result_kind

    for name in dict.fromkeys(data_of(result) for result in results):
        fingerprints = {
            result.signature.get("data")
            for result in results
            if data_of(result) == name and result_kind(result.task).has_ceiling
        }
        if fingerprints and (name in SAMPLES or Path(name).is_file()):
            benchmark = read_benchmark(name)
            if benchmark.fingerprint in fingerprints:
                judged_items(judgments, benchmark)


def _judgments_of_study(
    results: Sequence[Result], path: str | None, **options: Any
) -> Judgments | None:
    """Return the judgments in a file, or those of the only sample among the data of the results."""
    from giccs.benchmark import SAMPLES, read_benchmark
    from giccs.measures.ceiling import load_judgments
    from giccs.measures.results import data_of

    if path:
        from bws.files import read_judgments

        return read_judgments(path, **options)
    samples = [name for name in dict.fromkeys(map(data_of, results)) if name in SAMPLES]
    return load_judgments(read_benchmark(samples[0])) if len(samples) == 1 else None


def _compare_with_people(
    console: Console,
    store: Store,
    results: Sequence[Result],
    people: str,
    cluster: str,
    style: TableStyle,
    names: Mapping[str, str],
) -> None:
    from bws.files import read_scores
    from giccs.report.people_comparison import compare_with_people
    from giccs.tasks import result_kind

    compared = [
        result
        for result in results
        if (kind := result_kind(result.task)).has_ceiling or kind.tables == "choices"
    ]
    if not compared:
        raise click.UsageError("--people: no pairwise or multiple-choice results")
    predicted = [store.with_predictions(result) for result in compared]
    named = predicted if console.as_json else _renamed(predicted, names)
    comparison = compare_with_people(named, read_scores(people), people, cluster)
    answer_tables(console, [comparison.result_table()], style, comparison.document())


def _compare_published(
    console: Console,
    results: Sequence[Result],
    recipe: str,
    data: str | None,
    cluster: str,
    style: TableStyle,
    names: Mapping[str, str],
) -> None:
    from giccs.evaluation.recipe import read_recipe
    from giccs.report.published import compare_with_published, published_table, with_names

    comparison = compare_with_published(
        results, read_recipe(recipe), local_name=data, cluster=cluster
    )
    with arguments():
        text = published_table(with_names(comparison, names), style).rstrip("\n")
    console.answer(text + _key(names, style), comparison.document())


def _load_judgments(
    console: Console,
    pairwise: Sequence[Result],
    judgments: str | None,
    merge_variants: bool,
    control: Sequence[str],
    allow_copies: bool,
    exclude: str | None,
    data: str | None,
) -> tuple[Judgments, Benchmark] | None:
    """Return the judgments, or those of the only sample, and the benchmark of the pairwise results."""
    from giccs.benchmark import SAMPLES, read_benchmark
    from giccs.measures.ceiling import load_judgments
    from giccs.measures.results import data_of, is_on_absolute_scores

    published = [result for result in pairwise if not is_on_absolute_scores(result)]
    names = list(dict.fromkeys(map(data_of, published)))
    samples = [name for name in names if name in SAMPLES]
    if not judgments and len(samples) != 1:
        return None
    if not pairwise:
        raise click.UsageError("--judgments: no pairwise results for which to compute a ceiling")
    benchmark = read_benchmark((data or _single_name(names)) if judgments else samples[0])
    if all(result.signature.get("data") != benchmark.fingerprint for result in pairwise):
        message = "its content differs from the data of the pairwise results"
        if judgments:
            raise InputError(Problem(benchmark.name, None, message))
        return None  # A part of the sample, from --limit.
    score_judgments = load_judgments(
        benchmark,
        judgments,
        merge_variants=merge_variants,
        control=control,
        allow_copies=allow_copies,
    )
    if score_judgments and exclude:
        score_judgments = without_excluded(console, score_judgments, exclude)
    if score_judgments and judgments:
        report_judgments(console, score_judgments, judgments)
    return (score_judgments, benchmark) if score_judgments else None


def _over_annotators(
    console: Console,
    store: Store,
    pairwise: Sequence[Result],
    judgments: Judgments,
    data: Benchmark,
    cluster: str,
) -> list[Result]:
    """Return the results on the data with intervals over clusters of dialogues and annotators."""
    from giccs.measures.annotator_uncertainty import results_over_annotators

    predicted = [store.with_predictions(result) for result in pairwise]
    for result in predicted:
        if result.predictions is None:
            console.note(
                f"{result.model}: no interval over annotators: its predictions are missing"
            )
    return results_over_annotators(predicted, judgments, data, cluster)


def _over_annotators_document(result: Result) -> dict[str, Any]:
    from giccs.measures.results import data_of, history_of

    metrics = {name: estimate.document() for name, estimate in result.metrics.items()}
    names = {"model": result.model, "data": data_of(result), "history": history_of(result)}
    return {**names, "metrics": metrics}


def _stored_ceiling(
    console: Console, folder: str, pairwise: Sequence[Result]
) -> Mapping[str, Estimate] | None:
    """Return the noise ceiling stored in the folder for the data of its pairwise results, if it is unique."""
    from giccs.measures.ceiling import read_ceiling

    data = dict.fromkeys(str(result.signature.get("data", "")) for result in pairwise)
    ceilings = [read_ceiling(folder, fingerprint, None, console.note) for fingerprint in data]
    stored = [ceiling for ceiling in ceilings if ceiling]
    if len(stored) > 1:
        console.note(
            f"{len(stored)} data sets have a stored noise ceiling; select one with --judgments and --data"
        )
    return stored[0] if len(stored) == 1 else None


def _limits(
    console: Console,
    folder: str,
    pairwise: Sequence[Result],
    judgments_and_data: tuple[Judgments, Benchmark] | None,
    path: str | None,
) -> Limits:
    """Return the limits from the anchors in a file, or those in the folder for its pairwise results."""
    from giccs.measures.absolute_ceiling import cached_limits, load_anchors, stored_limits

    if judgments_and_data and path:
        judgments, data = judgments_and_data
        anchors = load_anchors(data, path)
        assert anchors is not None
        return cached_limits(folder, judgments, anchors, data, console.note)
    fingerprints = [str(result.signature.get("data", "")) for result in pairwise]
    return stored_limits(folder, fingerprints, console.note)


def _single_name(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    message = f"pairwise results are on {len(names)} data sets ({', '.join(names)})"
    raise click.UsageError(f"{message}; specify that of the judgments with --data")
