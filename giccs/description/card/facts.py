"""Numbers about a benchmark for its card, with the commands that reproduce them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bws.base.tables import Column, ResultTable
from bws.model_annotators import model_name
from bws.stats.estimates import Estimate
from giccs.benchmark import Benchmark
from giccs.measures.formatting import few_clusters_note, other_reasons

if TYPE_CHECKING:
    from bws.metadata import By
    from bws.records import Judgments

BY = ("source", "n_turns")
COEFFICIENTS = {"pearson": "Pearson r", "spearman": "Spearman ρ"}
DATA, JUDGMENTS = "benchmark.jsonl", "judgments.csv"
"""Files that the card explains how to create from the published ones; the commands read them."""
STATS = f"giccs stats {DATA}"
COUNTING_SCORE = (
    "The score of an utterance is (times best − times worst) / appearances, mapped from [-1, 1] to [0, 1] "
    "(counting, Orme 2009; `giccs score --scale unit`)."
)
MODEL_SCORE = (
    "The score of an utterance is {quantity} under the choice model {method} (`giccs score --method {method} "
    "--scale {scale}`)."
)
QUANTITIES = {
    "counting": "its expected counting score, mapped from [-1, 1] to [0, 1],",
    "unit": "its utility, mapped to [0, 1],",
}


@dataclass(frozen=True, slots=True)
class Section:
    """A table with its source."""

    title: str
    command: str
    """Command that prints these numbers."""
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def facts_of_dialogues(benchmark: Benchmark, lang: str) -> Section:
    """Return statistics of the dialogues, by length and domain (paper Table 2).

    Raises ValueError if required libraries are missing, or the language has no lemmatiser.
    """
    try:
        from giccs.description.lemmas import lemmatiser
        from giccs.description.statistics import describe, statistics_table

        words = lemmatiser(lang)
        statistics = describe(benchmark.items, words)
    except ImportError as error:
        message = f"{error.name} is not installed; pip install 'giccs[stats]'"
        raise ValueError(message) from None
    notes = (f"lemmas: {words.name}", *words.remarks)
    return _section("The dialogues", STATS, statistics_table(statistics), notes)


def _section(title: str, command: str, table: ResultTable, notes: Sequence[str] = ()) -> Section:
    headers = tuple(column.header for column in table.text_columns())
    rows = tuple(map(tuple, table.text_rows("undefined")))
    return Section(title, command, headers, rows, (*notes, *table.notes))


def facts_of_scores(benchmark: Benchmark) -> Section:
    """Return the distribution of the scores (paper Figure 1)."""
    from giccs.description.distribution import distribution, distribution_table

    bins = distribution([item.score for item in benchmark.items])
    return _section("Distribution of the scores", STATS, distribution_table(bins))


def how_judged(judgments: Judgments, benchmark: Benchmark) -> str:
    """Return the numbers of judgments, tuples and annotators, and the definition of the scores.

    Raises InputError if the scores were not computed from the judgments.
    """
    import numpy as np

    from giccs.measures.judged_items import judged_items

    judged = judged_items(judgments, benchmark)
    score = COUNTING_SCORE
    if judged.method != "counting":
        quantity = QUANTITIES[judged.scale]
        score = MODEL_SCORE.format(quantity=quantity, method=judged.method, scale=judged.scale)
    tuples = len(np.unique(judgments.tuple_of))
    annotators = f"{len(judgments.annotators)} annotators"
    if judgments.by_model.all():
        names = ", ".join(map(model_name, judgments.annotators))
        annotators = f"language models, not people: {names}"
    judgment_text = (
        f"{len(judgments)} best-worst judgments of {tuples} tuples of {judgments.tuples.k} utterances, by "
        f"{annotators}. {score}"
    )
    if judgments.is_adaptive:
        judgment_text += " The study was adaptive: tuples were chosen from earlier judgments."
    if not any(judgments.tuples.groups):
        return judgment_text
    return (
        f"{judgment_text} Utterances were compared only within their dialogue: a score is relative to the "
        "other utterances of the dialogue."
    )


def facts_of_judgments(benchmark: Benchmark, judgments: Judgments) -> Iterator[Section]:
    """Yield agreement (paper Table 1), reliability (Table 3) and the noise ceiling.

    For an adaptive study, the evidence of its end replaces agreement and reliability, which are biased on
    tuples that were chosen to be hard. Raises InputError if the scores were not computed from the judgments.
    """
    from giccs.measures.ceiling import noise_ceiling

    ceiling = noise_ceiling(judgments, benchmark)
    by = _parts(benchmark, judgments)
    if judgments.is_adaptive:
        yield _stopping(judgments)
    else:
        yield _agreement(judgments, by)
        yield _reliability(judgments, by)
    yield _ceiling(ceiling)


def _parts(benchmark: Benchmark, judgments: Judgments) -> By | None:
    """Return source and length of each tuple's dialogue, or None if the judgments do not name dialogues."""
    from bws.metadata import Metadata

    if not any(judgments.tuples.groups):
        return None
    first = {item.dialogue_id: item for item in reversed(benchmark.items)}
    columns = {
        "dialogue_id": list(first),
        "source": [item.source for item in first.values()],
        "n_turns": [str(item.n_turns) for item in first.values()],
    }
    described = Metadata(benchmark.name, "dialogue_id", range(1, len(first) + 1), columns)
    return described.of_tuples(judgments.tuples, BY)


def _command(name: str, by: By | None) -> str:
    parts = f" --metadata {DATA} --by {','.join(by)}" if by else ""
    return f"{name} {JUDGMENTS}{parts}"


def _agreement(judgments: Judgments, by: By | None) -> Section:
    from bws.chance_agreement import agreement

    table = agreement(judgments, by=by).result_table()
    return _section("Inter-annotator agreement", _command("giccs agreement", by), table)


def _reliability(judgments: Judgments, by: By | None) -> Section:
    from bws.split_half import reliability

    table = reliability(judgments, by=by).result_table()
    return _section("Reliability of the scores", _command("giccs reliability", by), table)


def _stopping(judgments: Judgments) -> Section:
    from bws.adaptive import stopping

    table = stopping(judgments).result_table()
    return _section("End of the adaptive study", f"giccs stop {JUDGMENTS}", table)


def _ceiling(ceilings: Mapping[str, Estimate]) -> Section:
    from giccs.measures.ceiling import explain_ceiling

    columns = [
        Column("correlation", "correlation"),
        Column("reliability", "reliability of the scores", ".3f"),
        Column("ceiling", "ceiling [95 %]", ".3f"),
    ]
    rows = [
        (COEFFICIENTS[name], ceiling.extra["reliability"], ceiling)
        for name, ceiling in ceilings.items()
    ]
    command = f"giccs eval baseline:char-ngram --data {DATA}\ngiccs report results --judgments {JUDGMENTS}"
    notes = [
        f"{COEFFICIENTS[name]}: {other_reasons(ceiling)}"
        for name, ceiling in ceilings.items()
        if other_reasons(ceiling)
    ]
    notes += [*few_clusters_note(ceilings.values()), *explain_ceiling(ceilings)]
    return _section("Noise ceiling", command, ResultTable(columns, rows, notes))
