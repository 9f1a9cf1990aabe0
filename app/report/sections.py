"""The sections of the report: study, dialogues, agreement, reliability, scores, models, signatures."""

from __future__ import annotations

import logging
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from app.report.content import Cell, Figure, Section, Source, Table, part_label, svg_of
from app.report.inputs import Inputs
from giccs.measures.formatting import few_clusters_note
from giccs.tasks import result_kind

if TYPE_CHECKING:
    import polars as pl

    from bws.records import Judgments
    from giccs.measures.metrics import Estimate
    from giccs.measures.results import Result

__all__ = ["sections"]

BY = ("source", "n_turns")
"""What tells the parts of Tables 1 and 3 apart."""
log = logging.getLogger(__name__)
CORRELATIONS = ("pearson", "spearman", "rank_spearman")
ACCURACIES = {
    "accuracy_tokens": "per token",
    "accuracy_bytes": "per byte",
    "accuracy_pmi": "PMI",
}
TITLES = {
    "value": "accuracy", "model": "model", "history": "history", "n": "questions", "chance": "guessing",
}  # fmt: skip
DIVISIONS = ("n_turns", "source")
IndexedResult = tuple[int, "Result"]
"""A result and its place in the document of giccs-report."""
CITE = (
    "If you use the method: Shima Asaadi, Zahra Kolagar, Alina Liebel and Alessandra Zarcone (2022), "
    "GiCCS: A German in-Context Conversational Similarity Benchmark.",
    "If you use the software: The giccs developers, giccs: conversational semantic textual similarity, "
    "from dialogues to model evaluation, version {version}.",
)


def sections(inputs: Inputs) -> Iterator[Section]:
    """Yield the sections of a page, in their order; those without files are left out."""
    results, halves = _source_of_results(inputs), None
    if inputs.has(*inputs.study):
        yield _study_section(inputs)
    dialogues, scores = _benchmark_sections(inputs)
    yield dialogues
    if inputs.judgments is not None:
        yield _agreement_section(inputs, inputs.judgments)
        reliability, halves = _reliability_section(inputs, inputs.judgments)
        yield reliability
    yield scores
    yield from _model_sections(inputs, results)
    yield _signature_section(inputs, results, halves)
    cite = [line.format(version=version("giccs")) for line in CITE]
    yield Section("cite", "How to cite", cite, about_scores=False)


def _study_section(inputs: Inputs) -> Section:
    """Return what was asked and what it would cost."""
    source = _source_of_study(inputs)
    unit = str(source.document["currency"])
    rows: list[tuple[str, Cell]] = [
        ("HITs", source.number("/hits")),
        ("assignments", source.number("/assignments")),
        ("reward of an assignment", ["$", source.number("/reward")]),
        ("rewards", ["$", source.number("/rewards")]),
        ("fees as Mechanical Turk took them", ["$", source.number("/fees")]),
        ("rewards and fees", ["$", source.number("/total")]),
        ("seconds a HIT takes a person, as set", source.number("/expected_seconds")),
        ("earned an hour then", [source.number("/hourly"), f" {unit}"]),
        ("minimum wage", [source.number("/minimum_wage"), f" {unit}"]),
    ]
    text = [
        "People see a dialogue and some of its candidate utterances, and choose the one that is most "
        "similar to the last turn and the one that is least. A HIT is a page of such questions."
    ]
    table = Table("HITs, and what they would cost with people", ("", ""), rows)
    return Section("study", "The study", text, [source.command], tables=[table], about_scores=False)


def _source_of_study(inputs: Inputs) -> Source:
    from bws.files import read_tuples
    from giccs.benchmark.assemble import read_dialogues
    from giccs.benchmark.languages import data_language
    from mturk.kinds.tuples.plan import plan
    from mturk.money import cents
    from mturk.study.cost import estimate
    from mturk.study.settings_file import read_settings

    tuples, dialogues, settings_file = inputs.study
    asked = read_tuples(inputs.path(tuples)), read_dialogues(inputs.path(dialogues))
    settings = read_settings(inputs.path(settings_file), data_language(asked[1], dialogues))
    price = estimate([settings.assignments] * len(plan(*asked, settings)), settings)
    amounts = {
        "reward": price.reward,
        "rewards": price.rewards,
        "fees": price.fees,
        "total": price.total,
        "hourly": cents(price.hourly),
        "minimum_wage": price.minimum,
        "currency": price.currency,
    }
    counts = {
        "hits": price.hits,
        "assignments": price.assignments,
        "expected_seconds": price.expected_seconds,
    }
    command = (
        f"mturk-hits estimate {tuples} --dialogues {dialogues} --config {settings_file} --json"
    )
    return Source(command, counts | {name: str(amount) for name, amount in amounts.items()})


def _agreement_section(inputs: Inputs, judgments: Judgments) -> Section:
    """Return the agreement of the annotators (Table 1 of the paper)."""
    from bws.agreement import agreement

    found = agreement(judgments, by=_by(inputs, judgments))
    source = Source(_command("bws-agreement", inputs), found.document())
    text = [
        "Did different annotators give the same answers to the same tuples? Strong agreement: four of "
        "five annotators, or that share, gave the same answer."
    ]
    tables = [source.table(found.result_table())]
    return Section("agreement", "Agreement", text, [source.command], tables=tables)


def _reliability_section(inputs: Inputs, judgments: Judgments) -> tuple[Section, Source]:
    """Return the split-half reliability (Table 3 of the paper), and what bws-reliability prints."""
    from bws.split_half import reliability

    found = reliability(judgments, by=_by(inputs, judgments))
    source = Source(_command("bws-reliability", inputs), found.document())
    text = ["Would other judgments of the same tuples have given the same scores?"]
    tables = [source.table(found.result_table())]
    return Section("reliability", "Reliability", text, [source.command], tables=tables), source


def _command(name: str, inputs: Inputs) -> str:
    by = ",".join(BY)
    return f"{name} {inputs.judgments_file} --metadata {inputs.metadata_file} --by {by} --json"


def _by(inputs: Inputs, judgments: Judgments) -> Mapping[str, Any]:
    from bws.metadata import read_metadata

    return dict(read_metadata(inputs.path(inputs.metadata_file)).of_tuples(judgments.tuples, BY))


def _benchmark_sections(inputs: Inputs) -> tuple[Section, Section]:
    """Return what giccs-stats prints: Table 2 of the paper, and Figure 1 as a chart and as numbers."""
    from giccs.benchmark.languages import required_language
    from giccs.description.distribution import distribution, distribution_table
    from giccs.description.figures import score_distribution
    from giccs.description.lemmas import lemmatiser
    from giccs.description.statistics import describe, statistics_table

    items = inputs.benchmark.items
    lemmas = lemmatiser(required_language(items, inputs.benchmark_file, None, "lemmas"))
    groups, bins = describe(items, lemmas), distribution([item.score for item in items])
    document = {
        "groups": [group.document() for group in groups],
        "distribution": [asdict(one) for one in bins],
        "lemmatiser": lemmas.name,
    }
    source = Source(f"giccs-stats {inputs.benchmark_file} --json", document)
    text = [
        "What was said before the candidates: the turns of the dialogues. RTTR: types by the root of "
        "tokens. MTLD: how long a stretch of text stays rich; it needs longer texts than single cells "
        f"have, and is a dash where it is not defined. Lemmas: {lemmas.name}."
    ]
    dialogues = Section(
        "statistics",
        "The dialogues",
        text,
        [source.command],
        tables=[source.table(statistics_table(groups))],
        about_scores=False,
    )
    said = "; ".join(f"{one.items} from {one.label}" for one in bins)
    figure = Figure(
        svg_of(score_distribution(bins), width=320, height=160),
        "How many items have a score in each fifth of the scale (Figure 1 of the paper).",
        f"Bar chart of the scores: {said}.",
    )
    text = ["Scores lie in [0, 1]: 1 is what annotators always found most similar, 0 never."]
    tables = [source.table(distribution_table(bins))]
    return dialogues, Section("scores", "The scores", text, [source.command], [figure], tables)


def _source_of_results(inputs: Inputs) -> Source:
    """Return what giccs-report prints: all results, and where there are judgments the noise ceiling."""
    command = f"giccs-report {inputs.results_folder} --json"
    document: dict[str, Any] = {"results": [result.document() for result in inputs.results]}
    if inputs.judgments is None or not _on_pairs(inputs):
        return Source(command, document)
    from giccs.measures.ceiling import cached_ceiling

    folder = inputs.path(inputs.results_folder)
    found = cached_ceiling(folder, inputs.judgments, inputs.benchmark, log.debug)
    document["ceiling"] = {name: one.document() for name, one in found.items()}
    with_ceiling = f"--data {inputs.benchmark_file} --judgments {inputs.judgments_file} --json"
    return Source(command.replace("--json", with_ceiling), document)


def _on_pairs(inputs: Inputs) -> list[IndexedResult]:
    """Return the results of pairs on this benchmark; others may lie in the folder too."""
    data = inputs.benchmark.fingerprint
    return [
        (place, one)
        for place, one in enumerate(inputs.results)
        if result_kind(one.task).tables == "pairs" and one.signature.get("data") == data
    ]


def _model_sections(inputs: Inputs, source: Source) -> Iterator[Section]:
    """Yield the sections for which there are results: pairs of this benchmark, questions of any."""
    if pairs := _on_pairs(inputs):
        yield _pairs(sorted(pairs, key=_best_correlation), source)
    placed = enumerate(inputs.results)
    if choices := [one for one in placed if result_kind(one[1].task).tables == "choices"]:
        yield _choices(sorted(choices, key=_most_accurate), source)


def _best_correlation(one: IndexedResult) -> tuple[float, str]:
    return _descending(one[1].metrics["spearman"]), one[1].model


def _most_accurate(one: IndexedResult) -> tuple[float, str]:
    return _descending(one[1].metrics["accuracy"]), one[1].model


def _descending(found: Estimate) -> float:
    return math.inf if math.isnan(found.value) else -found.value


def _pairs(pairs: Sequence[IndexedResult], source: Source) -> Section:
    text = [
        "How well does the cosine of two utterances’ vectors follow the scores? Intervals are 95 % "
        "intervals over dialogues."
    ]
    if "ceiling" in source.document:
        text += _of_ceiling(source)
    commands = [source.command, *_made_by(pairs)]
    tables = [_correlations(pairs, source)]
    by_part = _by_part(pairs, source)
    tables += [by_part] if by_part.rows else []
    figures = [_leaderboard(pairs, source)]
    return Section("models", "Models: pairs of utterances", text, commands, figures, tables)


def _of_ceiling(source: Source) -> list[str]:
    """Return what the noise ceiling means, and what must be known of it."""
    from giccs.measures.ceiling import explain_ceiling
    from giccs.measures.formatting import other_reasons
    from giccs.measures.results import read_estimates

    ceiling = read_estimates(source.document["ceiling"])
    reasons = dict.fromkeys(filter(None, map(other_reasons, ceiling.values())))
    return [*explain_ceiling(ceiling), *(f"Noise ceiling: {reason}." for reason in reasons)]


def _correlations(pairs: Sequence[IndexedResult], source: Source) -> Table:
    from giccs.measures.results import read_estimates
    from giccs.report.pairs import main_table

    results = [result for _, result in pairs]
    ceiling = read_estimates(source.document.get("ceiling", {}))
    sources = [f"/results/{place}/metrics" for place, _ in pairs]
    shown = [result.metrics.get(name) for result in results for name in CORRELATIONS]
    table = replace(
        main_table(results, ceiling, _called(pairs), sources),
        title="Correlation with the scores (Table 5 of the paper)",
        notes=few_clusters_note(shown),
    )
    return source.table(table)


def _by_part(pairs: Sequence[IndexedResult], source: Source) -> Table:
    parts = {
        tuple(group.by.items()): None
        for _, result in pairs
        for group in result.groups
        if set(group.by) <= set(DIVISIONS) and len(group.by) == 1
    }
    rows = [
        [part_label(dict(part)), *(_of_part(source, one, part) for one in pairs)] for part in parts
    ]
    estimates = [
        group.metrics["spearman"]
        for _, result in pairs
        for group in result.groups
        if tuple(group.by.items()) in parts
    ]
    shown = [
        f"{name} (with history)" if result.signature.get("history") == "with" else name
        for name, (_, result) in zip(_called(pairs), pairs, strict=True)
    ]
    headers = ["", *shown]
    note = " ".join(few_clusters_note(estimates))
    return Table("Spearman’s ρ by part of the data", headers, rows, note)


def _called(placed: Sequence[IndexedResult]) -> list[str]:
    """Return the models' names, with what tells several results of one model apart."""
    from app.explorer.models.data import key, names

    known = names([result for _, result in placed])
    return [known[key(result)] for _, result in placed]


def _of_part(source: Source, one: IndexedResult, part: Sequence[tuple[str, Any]]) -> Cell:
    place, result = one
    for number, group in enumerate(result.groups):
        if tuple(group.by.items()) == tuple(part):
            return source.interval(f"/results/{place}/groups/{number}/metrics/spearman", ".2f")
    return ""


def _leaderboard(pairs: Sequence[IndexedResult], source: Source) -> Figure:
    from app.explorer.models.charts import leaderboard
    from app.explorer.models.data import leaderboard as frame_of

    frame = frame_of([result for _, result in pairs], "spearman")
    top = _ceiling_of(source)
    return Figure(
        svg_of(
            leaderboard(frame if frame["history"].n_unique() > 1 else frame.drop("history"), top)
        ),
        "Spearman’s ρ of each model with its 95 % interval; hollow: baselines"
        + ("; dashed: the noise ceiling." if top else "."),
        f"Chart of Spearman’s rho: {_aloud(frame)}"
        + (f"; noise ceiling {top[0]:.2f}." if top else "."),
    )


def _aloud(frame: pl.DataFrame) -> str:
    return "; ".join(
        f"{row['model']} {row['history']} history {row['value']:.2f}"
        for row in frame.iter_rows(named=True)
    )


def _ceiling_of(source: Source) -> tuple[float, float, float] | None:
    if "ceiling" not in source.document:
        return None
    found = source.document["ceiling"]["spearman"]
    value, low, high = (
        math.nan if found[end] is None else float(found[end]) for end in ("value", "low", "high")
    )
    return None if math.isnan(value) else (value, low, high)


def _made_by(placed: Sequence[IndexedResult]) -> list[str]:
    """Return for each data set the command that computed the results, or finds them where they lie."""
    models: dict[str, dict[str, None]] = {}
    for _, result in placed:
        models.setdefault(str(result.environment.get("data", "")), {})[result.model] = None
    task = placed[0][1].task
    return [
        shlex.join(
            ["giccs-eval", *names, "--task", task, "--data", data, "-o", "results", "--json"]
        )
        for data, names in models.items()
    ]


def _choices(choices: Sequence[IndexedResult], source: Source) -> Section:
    rows: list[Sequence[Cell]] = []
    for name, (place, result) in zip(_called(choices), choices, strict=True):
        for number, group in enumerate(result.groups):
            if set(group.by) == {"history"}:
                at = f"/results/{place}/groups/{number}/metrics"
                rows.append(
                    [name, str(group.by["history"]), *_accuracies(source, at, group.metrics)]
                )
    headers = ["model", "history", "accuracy ± SE [95 %]", *ACCURACIES.values(), "ρ inside dialogues",
               "guessing", "questions"]  # fmt: skip
    note = "Per token, per byte, PMI: other ways to compare answers of different length."
    rank_correlations = [
        group.metrics.get("rank_spearman")
        for _, result in choices
        for group in result.groups
        if set(group.by) == {"history"}
    ]
    table = Table(
        "Accuracy of choosing the most similar of five utterances (Table 6 of the paper)",
        headers, rows, " ".join([note, *few_clusters_note(rank_correlations)]),
    )  # fmt: skip
    data = ", ".join({str(result.environment.get("data", "")): None for _, result in choices})
    text = [
        "Which of the five utterances does a causal language model find likeliest to be the most similar "
        f"one, with the dialogue’s history and without? Data: {data}."
    ]
    commands = [source.command, *_made_by(choices)]
    figures = [_accuracy_chart(choices)] if rows else []
    return Section("choices", "Models: multiple choice", text, commands, figures, [table])


def _accuracies(source: Source, at: str, known: Mapping[str, Estimate]) -> list[Cell]:
    value, *limits = source.interval(f"{at}/accuracy")
    accuracy: Cell = [value, " ± ", source.number(f"{at}/accuracy/stderr", ".3f"), *limits]
    return [
        accuracy,
        *(
            source.number(f"{at}/{name}/value", ".3f") if name in known else ""
            for name in ACCURACIES
        ),
        source.interval(f"{at}/rank_spearman"),
        source.number(f"{at}/accuracy/chance", ".3f"),
        source.number(f"{at}/accuracy/n"),
    ]


def _accuracy_chart(choices: Sequence[IndexedResult]) -> Figure:
    from app.explorer.models.charts import accuracies
    from app.explorer.models.data import accuracies as frame_of

    frame = frame_of([result for _, result in choices], "accuracy")
    return Figure(
        svg_of(accuracies(frame, TITLES)),
        "Accuracy with its 95 % interval; dashed: what guessing reaches.",
        f"Chart of accuracies: {_aloud(frame)}; guessing {frame.item(0, 'chance'):.2f}.",
    )


def _signature_section(inputs: Inputs, results: Source, halves: Source | None) -> Section:
    """Return what all the numbers depend on: data, versions, seeds. halves: what bws-reliability prints."""
    validated = _validated(inputs)
    rows: list[Sequence[Cell]] = [
        ["items", validated.number("/items")],
        ["dialogues", validated.number("/dialogues")],
        ["fingerprint (SHA-256 of the content)", validated.number("/fingerprint")],
    ]
    sources, tables = [validated], [Table("The benchmark", ("", ""), rows)]
    if halves:
        sources.append(halves)
        tables.append(_signature_of_judgments(halves))
    if inputs.results:
        sources.append(results)
        tables.append(_signatures(inputs, results))
    text = ["Equal signatures give equal numbers."]
    commands = [source.command for source in sources]
    return Section("signatures", "Signatures", text, commands, tables=tables, about_scores=False)


def _validated(inputs: Inputs) -> Source:
    facts = {
        "items": len(inputs.benchmark.items),
        "dialogues": len(inputs.benchmark.dialogue_ids),
        "fingerprint": inputs.benchmark.fingerprint,
    }
    return Source(f"giccs-validate {inputs.benchmark_file} --json", facts)


def _signature_of_judgments(halves: Source) -> Table:
    names = {
        "judgments": "SHA-256 of the answers",
        "score": "scores by",
        "trials": "random halves",
        "seed": "seed",
        "version": "giccs",
    }
    rows: list[Sequence[Cell]] = [
        [title, halves.number(f"/signature/{name}")] for name, title in names.items()
    ]
    return Table("The judgments", ("", ""), rows)


def _signatures(inputs: Inputs, source: Source) -> Table:
    keys = {"revision": "revision", "dtype": "dtype", "history": "history", "giccs": "giccs"}
    rows: list[Sequence[Cell]] = []
    for place, result in enumerate(inputs.results):
        at = f"/results/{place}/signature"
        known = [source.number(f"{at}/{key}") if key in result.signature else "" for key in keys]
        rows.append([result.model, result.task, *known, *_seed(source, at, result)])
    return Table("The results", ["model", "task", *keys.values(), "seed"], rows)


def _seed(source: Source, at: str, result: Result) -> list[Cell]:
    for key in ("interval", "bootstrap"):  # older results have a bootstrap
        method = result.signature.get(key)
        if isinstance(method, Mapping) and "seed" in method:
            return [source.number(f"{at}/{key}/seed")]
    return [""]
