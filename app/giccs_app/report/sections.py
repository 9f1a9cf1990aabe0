"""The sections of the report: study, dialogues, agreement, reliability, scores, models, signatures."""

from __future__ import annotations

import logging
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from bws.analysis.analysis import Analysis, Answers
from bws.analysis.judgments import (
    AGREEMENT,
    RELIABILITY,
    AgreementSettings,
    ReliabilitySettings,
)
from bws.analysis.registry import further_analyses
from bws.paragraphs import prose
from bws.paragraphs.judgments import study_sentences
from giccs.benchmark.items import ABSOLUTE_SUFFIX, ABSOLUTE_TARGET
from giccs.measures.formatting import few_clusters_note
from giccs.report.pairs import METRICS
from giccs.tasks import result_kind
from giccs_app.report.content import (
    Cell,
    Figure,
    Section,
    Source,
    Table,
    chart_svg_for_page,
)
from giccs_app.report.inputs import Inputs
from giccs_app.report.reading import reading_section
from giccs_app.report.study_figures import (
    analysis_figures,
    drawing_figure,
    effect_figures,
    failure_figures,
    score_figures,
)
from giccs_app.stages import load_further_analysis

if TYPE_CHECKING:
    import polars as pl

    from bws.records import Judgments
    from bws.stats.estimates import Estimate
    from giccs.description.lemmas import Lemmatiser
    from giccs.measures.results import Limits, Result

STUDY_ANALYSES: Sequence[tuple[Analysis, Any]] = (
    (AGREEMENT, AgreementSettings(intervals=True)),
    (RELIABILITY, ReliabilitySettings()),
)
"""Analyses of judgments with their settings (GiCCS, Tables 1 and 3)."""
BY = ("source", "n_turns")
"""Grouping columns of Tables 1 and 3."""
log = logging.getLogger(__name__)
TITLES = {
    "value": "accuracy", "model": "model", "history": "history", "n": "questions", "chance": "chance level",
}  # fmt: skip
IndexedResult = tuple[int, "Result"]
"""A result and its index in the JSON of giccs report."""
CITE = (
    "If you use the method: Shima Asaadi, Zahra Kolagar, Alina Liebel and Alessandra Zarcone (2022), "
    "GiCCS: A German in-Context Conversational Similarity Benchmark.",
    "If you use the software: The giccs developers, giccs: conversational semantic textual similarity, "
    "from dialogues to model evaluation, version {version}.",
)


def sections(inputs: Inputs) -> Iterator[Section]:
    """Yield the sections of a page in order; sections with missing files are omitted."""
    results, reliability_source = _source_of_results(inputs), None
    answers_of = _study_answers(inputs)
    if inputs.judgments is not None or inputs.results:
        yield _verdict_section(inputs, answers_of.get(RELIABILITY.name))
    if inputs.has(*inputs.study):
        yield _study_section(inputs)
    has_statistics = not statistics_problem(inputs)
    if has_statistics:
        yield _statistics_section(inputs)
    if inputs.judgments is not None and inputs.judgments.is_adaptive:
        yield _stopping_section(inputs, inputs.judgments)
    elif inputs.judgments is not None:
        for analysis, _ in STUDY_ANALYSES:
            section, source = _analysis_section(inputs, analysis, answers_of[analysis.name])
            reliability_source = source if analysis is RELIABILITY else reliability_source
            yield section
    if inputs.judgments is not None:
        yield from _further_sections(inputs, inputs.judgments)
    yield _scores_section(inputs, has_command=has_statistics)
    yield from _model_sections(inputs, results)
    yield _signature_section(inputs, results, reliability_source)
    yield reading_section(inputs.benchmark.items, inputs.benchmark_file)
    cite = [line.format(version=version("giccs")) for line in CITE]
    yield Section("cite", "How to cite", cite, about_scores=False)


def _study_answers(inputs: Inputs) -> dict[str, Answers]:
    """Return the answers of each of `STUDY_ANALYSES`; none without judgments or for adaptive ones."""
    if inputs.judgments is None or inputs.judgments.is_adaptive:
        return {}
    return {
        analysis.name: _answers(inputs, inputs.judgments, analysis, settings)
        for analysis, settings in STUDY_ANALYSES
    }


def _answers(inputs: Inputs, judgments: Judgments, analysis: Analysis, settings: Any) -> Answers:
    """Return the answers of an analysis, by source and turns if it has parts."""
    by = _group_values(inputs, judgments) if analysis.has_parts else None
    return Answers(judgments, settings, by)


def _verdict_section(inputs: Inputs, reliability: Answers | None) -> Section:
    """Return the answers to the questions of a study, as printed by giccs report --verdict."""
    from giccs.report.verdict import QUESTIONS, findings
    from giccs_app.explorer.study import under_pseudonyms

    judgments = inputs.judgments
    answers = findings(
        under_pseudonyms(judgments)[0] if judgments else None,
        _with_predictions(inputs, inputs.results),
        reliability,
    )
    file = f" --judgments {inputs.judgments_file}" if judgments else ""
    allowed = " --allow-copies" if judgments and judgments.copies else ""
    text, figures = [], []
    for finding in answers:
        question = QUESTIONS[finding.name]
        if finding.draw is None:
            text.append(f"{question} {finding.text}")
            continue
        figure = drawing_figure(finding.draw(str))
        figures.append(replace(figure, title=question, text=finding.text))
    command = f"giccs report {inputs.results_folder} --verdict{file}{allowed} --json"
    return Section("verdict", "Verdict", text, [command], figures)


def _study_section(inputs: Inputs) -> Section:
    """Return the section on the study and its cost."""
    source = _source_of_study(inputs)
    currency = str(source.document["currency"])
    rows: list[tuple[str, Cell]] = [
        ("HITs", source.number("/hits")),
        ("assignments", source.number("/assignments")),
        ("reward per assignment", ["$", source.number("/reward")]),
        ("rewards", ["$", source.number("/rewards")]),
        ("fees (as charged by Mechanical Turk)", ["$", source.number("/fees")]),
        ("rewards and fees", ["$", source.number("/total")]),
        ("expected seconds per HIT (setting)", source.number("/expected_seconds")),
        ("resulting hourly wage", [source.number("/hourly"), f" {currency}"]),
        ("minimum wage", [source.number("/minimum_wage"), f" {currency}"]),
    ]
    text = [
        "Annotators read a dialogue and several candidate utterances, and choose those that are most and "
        "least similar to the target utterance. A HIT is one page with such questions."
    ]
    table = Table("HITs and their cost with real workers", ("", ""), rows)
    return Section("study", "The study", text, [source.command], tables=[table], about_scores=False)


def _source_of_study(inputs: Inputs) -> Source:
    from bws.files import read_tuples
    from giccs.benchmark.assemble import read_dialogues
    from giccs.benchmark.languages import data_language
    from mturk.kinds.tuples.plan import plan
    from mturk.money import round_to_cents
    from mturk.study.cost import estimate_cost
    from mturk.study.settings_file import read_settings

    tuples, dialogues, settings_file = inputs.study
    study_files = read_tuples(inputs.path(tuples)), read_dialogues(inputs.path(dialogues))
    settings = read_settings(inputs.path(settings_file), data_language(study_files[1], dialogues))
    cost = estimate_cost([settings.assignments] * len(plan(*study_files, settings)), settings)
    amounts = {
        "reward": cost.reward,
        "rewards": cost.rewards,
        "fees": cost.fees,
        "total": cost.total,
        "hourly": round_to_cents(cost.hourly),
        "minimum_wage": cost.minimum,
        "currency": cost.currency,
    }
    counts = {
        "hits": cost.hits,
        "assignments": cost.assignments,
        "expected_seconds": cost.expected_seconds,
    }
    command = (
        f"giccs annotate estimate {tuples} --dialogues {dialogues} --config {settings_file} --json"
    )
    return Source(command, counts | {name: str(amount) for name, amount in amounts.items()})


def _analysis_section(
    inputs: Inputs, analysis: Analysis, answers: Answers
) -> tuple[Section, Source]:
    """Return the section of an analysis and its command's output."""
    from giccs_app.explorer.study import under_pseudonyms

    judgments, settings = answers.judgments, answers.settings
    allowed = " --allow-copies" if judgments.copies else ""
    parts = f" --metadata {inputs.metadata_file} --by {','.join(BY)}" if analysis.has_parts else ""
    options = "".join(
        f" --{field.name}" for field in fields(settings) if getattr(settings, field.name) is True
    )
    command = f"giccs {analysis.name} {inputs.judgments_file}{allowed}{parts}{options} --json"
    source = Source(command, answers.document(analysis) or {})
    explanation = analysis.text if answers.result(analysis) is not None else analysis.absent
    text = [explanation, *(f"Warning: {problem.message}." for problem in judgments.copies)]
    commands = [command]
    if analysis.sentences and answers.result(analysis) is not None:
        sentences = [*study_sentences(judgments), *analysis.sentences(answers)]
        text.insert(1, f"For a methods section: {prose(sentences)}")
        commands.append(f"{command.removesuffix(' --json')} --paragraph")
    tables = [source.table(table) for table in answers.tables(analysis)]
    figures = list(analysis_figures(analysis, Answers(under_pseudonyms(judgments)[0], settings)))
    section = Section(analysis.name, analysis.title, text, commands, figures, tables)
    return section, source


def _further_sections(inputs: Inputs, judgments: Judgments) -> Iterator[Section]:
    """Yield the sections of further analyses, or why they have no result."""
    for name in further_analyses():
        try:
            analysis = load_further_analysis(name)
            answers = _answers(inputs, judgments, analysis, analysis.settings())
            yield _analysis_section(inputs, analysis, answers)[0]
        except ValueError as error:
            yield Section(name, name, [f"No result: {error}."])
        except (LookupError, TypeError) as error:
            text = f"No result: the sources of its columns are not in its document ({error!r})."
            yield Section(name, name, [text])


def _stopping_section(inputs: Inputs, judgments: Judgments) -> Section:
    """Return the evidence for the end of an adaptive study.

    It replaces agreement and reliability, which are biased on tuples that were chosen to be hard.
    """
    from bws.adaptive import stopping

    result = stopping(judgments)
    source = Source(f"giccs stop {inputs.judgments_file} --json", result.document())
    text = [
        "The study was adaptive: each round of tuples was chosen from the judgments so far, and a fifth of "
        "its tuples were random audit tuples. It can end if all three gates are passed."
    ]
    tables = [source.table(result.result_table())]
    return Section("adaptive", "Adaptive study", text, [source.command], tables=tables)


def _group_values(inputs: Inputs, judgments: Judgments) -> Mapping[str, Any]:
    from bws.metadata import read_metadata

    return dict(read_metadata(inputs.path(inputs.metadata_file)).of_tuples(judgments.tuples, BY))


def _lemmatiser(inputs: Inputs) -> Lemmatiser:
    from giccs.benchmark.languages import required_language
    from giccs.description.lemmas import lemmatiser

    language = required_language(inputs.benchmark.items, inputs.benchmark_file, None, "lemmas")
    return lemmatiser(language)


def statistics_problem(inputs: Inputs) -> str:
    """Return why the page has no statistics of the dialogues, or an empty string."""
    try:
        _lemmatiser(inputs)
    except ValueError as error:  # no language, several, or one without lemmas
        return str(error)
    return ""


def _source_of_statistics(inputs: Inputs, document: Mapping[str, Any]) -> Source:
    return Source(f"giccs stats {inputs.benchmark_file} --json", document)


def _statistics_section(inputs: Inputs) -> Section:
    """Return Table 2 of the paper, as printed by giccs stats."""
    from giccs.description.statistics import describe, statistics_table

    lemmas = _lemmatiser(inputs)
    groups = describe(inputs.benchmark.items, lemmas)
    document = {"groups": [group.document() for group in groups], "lemmatiser": lemmas.name}
    source = _source_of_statistics(inputs, document)
    text = [
        "Statistics of the turns of the dialogues. RTTR: types / √tokens. MTLD: mean length of token "
        "sequences with a type–token ratio above a threshold; undefined (dash) for texts that are too short. "
        f"Lemmas: {lemmas.name}."
    ]
    return Section(
        "statistics",
        "The dialogues",
        text,
        [source.command],
        tables=[source.table(statistics_table(groups))],
        about_scores=False,
    )


def _scores_section(inputs: Inputs, *, has_command: bool) -> Section:
    """Return Figure 1 of the paper as a chart and as numbers, as printed by giccs stats.

    has_command: whether giccs stats accepts the benchmark.
    """
    from giccs.description.distribution import distribution, distribution_table, score_distribution

    bins = distribution([item.score for item in inputs.benchmark.items])
    document = {"distribution": [asdict(score_bin) for score_bin in bins]}
    source = _source_of_statistics(inputs, document)
    counts = "; ".join(f"{score_bin.items} from {score_bin.label}" for score_bin in bins)
    figure = Figure(
        chart_svg_for_page(score_distribution(bins), width=320, height=160),
        "Number of items in each fifth of the scale (Figure 1 of the paper).",
        f"Bar chart of the scores: {counts}.",
    )
    is_adaptive = inputs.judgments is not None and inputs.judgments.is_adaptive
    scores, is_chosen = (
        ("Scores are those of a choice model in [0, 1]", "would always be")
        if is_adaptive
        else ("Scores are in [0, 1]", "was always")
    )
    text = [
        f"{scores}: 1 if an item {is_chosen} chosen as most similar, 0 if always as least similar."
    ]
    tables = [source.table(distribution_table(bins))]
    figures = [figure, *score_figures(inputs)]
    commands = [source.command] if has_command else []
    return Section("scores", "The scores", text, commands, figures, tables)


def _source_of_results(inputs: Inputs) -> Source:
    """Return the output of giccs report: all results and, with judgments, the noise ceiling."""
    from giccs.report.setting_effects import effects_document

    command = f"giccs report {inputs.results_folder} --json"
    document: dict[str, Any] = {"results": [result.document() for result in inputs.results]}
    document |= effects_document(_with_predictions(inputs, inputs.results))
    if inputs.judgments is None or not _pairwise_results(inputs):
        return Source(command, document)
    from giccs.measures.absolute_ceiling import limits_document, with_within_ceiling
    from giccs.measures.ceiling import cached_ceiling

    folder = inputs.path(inputs.results_folder)
    ceiling = cached_ceiling(folder, inputs.judgments, inputs.benchmark, log.debug)
    ceiling = with_within_ceiling(ceiling, inputs.limits) or ceiling
    document["ceiling"] = {name: estimate.document() for name, estimate in ceiling.items()}
    document |= limits_document(inputs.limits)
    options = f"--data {inputs.benchmark_file} --judgments {inputs.judgments_file} "
    options += f"--absolute {inputs.anchors_file} " if inputs.limits else ""
    return Source(command.replace("--json", f"{options}--json"), document)


def _pairwise_results(inputs: Inputs, target: str = "score") -> list[IndexedResult]:
    """Return the pairwise results on this benchmark with the scores of a target."""
    has_target = all(getattr(item, target) is not None for item in inputs.benchmark.items)
    data = inputs.benchmark.with_target(target).fingerprint if has_target else ""
    return [
        (index, result)
        for index, result in enumerate(inputs.results)
        if result_kind(result.task).tables == "pairs" and result.signature.get("data") == data
    ]


def _model_sections(inputs: Inputs, source: Source) -> Iterator[Section]:
    """Yield sections for pairwise results on this benchmark and multiple-choice results on any."""
    if pairs := _pairwise_results(inputs):
        results = _with_predictions(inputs, [result for _, result in pairs])
        effects = _effects(results, source)
        figures = [*effect_figures(results), *failure_figures(results, inputs)]
        yield _pairwise_section(sorted(pairs, key=_correlation_key), source, effects, figures)
    if absolute := _pairwise_results(inputs, ABSOLUTE_TARGET):
        yield _absolute_section(sorted(absolute, key=_correlation_key), source)
    indexed = enumerate(inputs.results)
    if choices := [
        indexed_result
        for indexed_result in indexed
        if result_kind(indexed_result[1].task).tables == "choices"
    ]:
        yield _choices_section(sorted(choices, key=_accuracy_key), source)


def _correlation_key(indexed: IndexedResult) -> tuple[float, str]:
    return _descending(indexed[1].metrics["spearman"]), indexed[1].model


def _accuracy_key(indexed: IndexedResult) -> tuple[float, str]:
    return _descending(indexed[1].metrics["accuracy"]), indexed[1].model


def _descending(estimate: Estimate) -> float:
    return math.inf if math.isnan(estimate.value) else -estimate.value


def _pairwise_section(
    pairs: Sequence[IndexedResult],
    source: Source,
    effects: Sequence[Table],
    charts: Sequence[Figure],
) -> Section:
    from giccs.report.pairs import limit_notes

    text = [
        "Correlation between the model’s similarity of two utterances and the scores, with 95 % intervals "
        "over dialogues."
    ]
    if "ceiling" in source.document:
        text += _describe_ceiling(source)
    text += limit_notes(_limits_of(pairs, source))
    commands = [source.command, *_evaluation_commands(pairs)]
    tables = [
        _correlations(pairs, source), *_orders(pairs, source), *effects, *_by_part(pairs, source)
    ]  # fmt: skip
    figures = [_leaderboard(pairs, source), *charts]
    return Section("models", "Models: pairs of utterances", text, commands, figures, tables)


def _absolute_section(pairs: Sequence[IndexedResult], source: Source) -> Section:
    """Return the results on absolute scores."""
    from giccs.report.pairs import limit_notes

    text = [
        "Correlation between the model’s similarity of two utterances and the absolute scores, which are on "
        "one scale for all dialogues.",
        *limit_notes(_limits_of(pairs, source)),
    ]
    commands = [source.command, *_evaluation_commands(pairs)]
    figures = [_leaderboard(pairs, source, "absolute_ceiling")]
    tables = [_correlations(pairs, source, "Correlation with the absolute scores")]
    return Section("absolute", "Models: over all items", text, commands, figures, tables)


def _limits_of(pairs: Sequence[IndexedResult], source: Source) -> Limits:
    """Return the limits in the output of giccs report for the data of results."""
    from giccs.measures.absolute_ceiling import read_limits
    from giccs.measures.results import limits_of

    return limits_of(pairs[0][1], read_limits(source.document))


def _describe_ceiling(source: Source) -> list[str]:
    """Return the explanation of the noise ceiling and notes on it."""
    from giccs.measures.ceiling import explain_ceiling
    from giccs.measures.formatting import other_reasons
    from giccs.measures.results import read_estimates

    ceiling = read_estimates(source.document["ceiling"])
    reasons = dict.fromkeys(filter(None, map(other_reasons, ceiling.values())))
    return [*explain_ceiling(ceiling), *(f"Noise ceiling: {reason}." for reason in reasons)]


def _correlations(
    pairs: Sequence[IndexedResult],
    source: Source,
    title: str = "Correlation with the scores (Table 5 of the paper)",
) -> Table:
    from giccs.measures.results import ceiling_of, read_estimates
    from giccs.report.clustering import population_note
    from giccs.report.pairs import main_table

    results = [result for _, result in pairs]
    ceiling = ceiling_of(results[0], read_estimates(source.document.get("ceiling", {})))
    limits = _limits_of(pairs, source)
    sources = [f"/results/{index}/metrics" for index, _ in pairs]
    estimates = [result.metrics.get(name) for result in results for name in METRICS]
    table = replace(
        main_table(results, ceiling, _display_names(pairs), sources, limits),
        title=title,
        notes=[*few_clusters_note(estimates), population_note(results)],
    )
    return source.table(table)


def _orders(pairs: Sequence[IndexedResult], source: Source) -> list[Table]:
    """Return the table of cross-encoders and similar models about the order of the texts, if any."""
    from giccs.report.pairs import ORDER_NOTE, order_table

    sources = [f"/results/{index}/metrics" for index, _ in pairs]
    table = order_table([result for _, result in pairs], _display_names(pairs), sources)
    return [source.table(replace(table, notes=[ORDER_NOTE]))] if table else []


def _effects(results: Sequence[Result], source: Source) -> list[Table]:
    """Return the tables of what history and prompts change in results with predictions."""
    from giccs.measures.results import comparison_key
    from giccs.report.setting_effects import EFFECT_TABLES

    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        groups.setdefault(comparison_key(result), []).append(result)
    return [
        source.table(replace(table, sources=_sources(source, name, key)))
        for key, group in groups.items()
        for name, table_of in EFFECT_TABLES.items()
        if (table := table_of(group))
    ]


def _sources(source: Source, name: str, key: tuple[str, str]) -> list[str]:
    """Return the JSON Pointers of the rows of a table of effects, of one task and data set."""
    rows = enumerate(source.document[name])
    return [f"/{name}/{n}" for n, row in rows if (row["task"], row["content"]) == key]


def _with_predictions(inputs: Inputs, results: Sequence[Result]) -> list[Result]:
    from giccs.measures.results import Store
    from giccs.report.clustering import with_predictions_of_dialogues

    return with_predictions_of_dialogues(results, Store(inputs.path(inputs.results_folder)))


def _by_part(pairs: Sequence[IndexedResult], source: Source) -> list[Table]:
    """Return the table of Spearman's ρ by subset, if there are any."""
    from giccs.report.pairs import BREAKDOWN_METRIC, breakdown_table

    results = [result for _, result in pairs]
    sources = [f"/results/{index}" for index, _ in pairs]
    table = breakdown_table(results, _display_names(pairs), sources)
    groups = [group for result in results for group in result.groups]
    notes = few_clusters_note(group.metrics.get(BREAKDOWN_METRIC) for group in groups)
    return [source.table(replace(table, notes=[*table.introduction, *notes]))] if table else []


def _display_names(indexed: Sequence[IndexedResult]) -> list[str]:
    """Return the display names of the models, unique per result."""
    from giccs_app.explorer.models.data import key, names

    names_by_key = names([result for _, result in indexed])
    return [names_by_key[key(result)] for _, result in indexed]


def _leaderboard(
    pairs: Sequence[IndexedResult], source: Source, ceiling_name: str = "ceiling"
) -> Figure:
    from giccs_app.explorer.models.charts import leaderboard
    from giccs_app.explorer.models.data import leaderboard as leaderboard_frame

    frame = leaderboard_frame([result for _, result in pairs], "spearman")
    ceiling = _ceiling_of(source, ceiling_name)
    return Figure(
        chart_svg_for_page(
            leaderboard(
                frame if frame["history"].n_unique() > 1 else frame.drop("history"), ceiling
            )
        ),
        "Spearman’s ρ of each model with 95 % interval; hollow marks: baselines"
        + ("; dashed line: noise ceiling." if ceiling else ".")
        + _without_value(frame),
        f"Chart of Spearman’s rho: {_alternative_text(frame)}"
        + (f"; noise ceiling {ceiling[0]:.2f}." if ceiling else "."),
    )


def _without_value(frame: pl.DataFrame) -> str:
    """Return a sentence with the models that the chart does not contain, and the reasons; or no text."""
    missing = [
        f"{row['model']} {row['history']} history ({row['reason']})"
        for row in frame.filter(frame["value"].is_nan()).iter_rows(named=True)
    ]
    return f" Without a value: {'; '.join(missing)}." if missing else ""


def _alternative_text(frame: pl.DataFrame) -> str:
    return "; ".join(
        f"{row['model']} {row['history']} history {row['value']:.2f}"
        for row in frame.filter(frame["value"].is_not_nan()).iter_rows(named=True)
    )


def _ceiling_of(source: Source, name: str) -> tuple[float, float, float] | None:
    if name not in source.document:
        return None
    spearman = source.document[name]["spearman"]
    value, low, high = (
        math.nan if spearman[name] is None else float(spearman[name])
        for name in ("value", "low", "high")
    )
    return None if math.isnan(value) else (value, low, high)


def _evaluation_commands(indexed: Sequence[IndexedResult]) -> list[str]:
    """Return the command that computes (or reuses) the results, for each data set."""
    models: dict[str, dict[str, None]] = {}
    for _, result in indexed:
        models.setdefault(str(result.environment.get("data", "")), {})[result.model] = None
    task = indexed[0][1].task
    calls = []
    for data, names in models.items():
        target = ["--target", ABSOLUTE_TARGET] if data.endswith(ABSOLUTE_SUFFIX) else []
        file = data.removesuffix(ABSOLUTE_SUFFIX)
        options = ["--task", task, "--data", file, *target, "-o", "results", "--json"]
        calls.append(shlex.join(["giccs", "eval", *names, *options]))
    return calls


def _choices_section(choices: Sequence[IndexedResult], source: Source) -> Section:
    from giccs.report.choices import CHOICE_NOTE, LENGTH_NORMALISED, TITLES, choice_table
    from giccs.report.clustering import population_note

    results = [result for _, result in choices]
    sources = [f"/results/{index}" for index, _ in choices]
    table = choice_table(results, _display_names(choices), sources)
    estimates = [
        group.metrics.get(name)
        for result in results
        for group in result.groups
        for name in TITLES
        if set(group.by) == {"history"}
    ]
    explained = [CHOICE_NOTE] if LENGTH_NORMALISED & {*table.column_keys()} else []
    table = replace(
        table,
        title="Accuracy of choosing the most similar of five utterances (Table 6 of the paper)",
        notes=[*explained, *few_clusters_note(estimates), population_note(results)],
    )
    data = ", ".join({str(result.environment.get("data", "")): None for result in results})
    text = [
        "Accuracy of language models in choosing the most similar of five utterances, with and "
        f"without the history of the dialogue. Data: {data}."
    ]
    commands = [source.command, *_evaluation_commands(choices)]
    figures = [_accuracy_chart(choices)] if table.rows else []
    tables = [source.table(table)]
    return Section("choices", "Models: multiple choice", text, commands, figures, tables)


def _accuracy_chart(choices: Sequence[IndexedResult]) -> Figure:
    from giccs_app.explorer.models.charts import accuracies
    from giccs_app.explorer.models.data import accuracies as accuracy_frame

    frame = accuracy_frame([result for _, result in choices], "accuracy")
    return Figure(
        chart_svg_for_page(accuracies(frame, TITLES)),
        "Accuracy with 95 % interval; dashed line: chance level.",
        f"Chart of accuracies: {_alternative_text(frame)}; chance level {frame.item(0, 'chance'):.2f}.",
    )


def _signature_section(inputs: Inputs, results: Source, reliability: Source | None) -> Section:
    """Return data digests, versions and seeds of all numbers. reliability: output of giccs reliability."""
    validated = _validated(inputs)
    rows: list[Sequence[Cell]] = [
        ["items", validated.number("/items")],
        ["dialogues", validated.number("/dialogues")],
        ["fingerprint (SHA-256 of the content)", validated.number("/fingerprint")],
    ]
    sources, tables = [validated], [Table("The benchmark", ("", ""), rows)]
    if reliability:
        sources.append(reliability)
        tables.append(_signature_of_judgments(reliability))
    if inputs.results:
        sources.append(results)
        tables.append(_signatures(inputs, results))
    text = ["Results with equal signatures are equal."]
    commands = [source.command for source in sources]
    return Section("signatures", "Signatures", text, commands, tables=tables, about_scores=False)


def _validated(inputs: Inputs) -> Source:
    facts = {
        "items": len(inputs.benchmark.items),
        "dialogues": len(inputs.benchmark.dialogue_ids),
        "fingerprint": inputs.benchmark.fingerprint,
    }
    return Source(f"giccs validate {inputs.benchmark_file} --json", facts)


def _signature_of_judgments(reliability: Source) -> Table:
    names = {
        "judgments": "SHA-256 of the answers",
        "score": "scores by",
        "trials": "random halves",
        "seed": "seed",
        "version": "giccs",
    }
    rows: list[Sequence[Cell]] = [
        [title, reliability.number(f"/signature/{name}")] for name, title in names.items()
    ]
    return Table("The judgments", ("", ""), rows)


def _signatures(inputs: Inputs, source: Source) -> Table:
    keys = {"revision": "revision", "dtype": "dtype", "history": "history", "giccs": "giccs"}
    rows: list[Sequence[Cell]] = []
    for index, result in enumerate(inputs.results):
        pointer = f"/results/{index}/signature"
        cells = [
            source.number(f"{pointer}/{key}") if key in result.signature else "" for key in keys
        ]
        rows.append([result.model, result.task, *cells, *_seed(source, pointer, result)])
    return Table("The results", ["model", "task", *keys.values(), "seed"], rows)


def _seed(source: Source, pointer: str, result: Result) -> list[Cell]:
    for key in ("interval", "bootstrap"):  # results of earlier versions have a bootstrap
        method = result.signature.get(key)
        if isinstance(method, Mapping) and "seed" in method:
            return [source.number(f"{pointer}/{key}/seed")]
    return [""]
