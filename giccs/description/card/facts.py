"""What can be said of a benchmark in numbers, and by which command each can be had again."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bws.metadata import part_name
from giccs.benchmark import Benchmark
from giccs.measures.formatting import few_clusters_note, interval, other_reasons
from giccs.measures.metrics import Estimate

if TYPE_CHECKING:
    from bws.metadata import By
    from bws.records import Judgments
    from giccs.description.lemmas import Lemmatiser
    from giccs.description.statistics import Description

__all__ = [
    "DATA",
    "JUDGMENTS",
    "Section",
    "facts_of_dialogues",
    "facts_of_judgments",
    "facts_of_scores",
    "how_judged",
]

BY = ("source", "n_turns")
TABLE_2 = ("n_turns", "domain")
COEFFICIENTS = {"pearson": "Pearson r", "spearman": "Spearman ρ"}
DATA, JUDGMENTS = "benchmark.jsonl", "judgments.csv"
"""The card tells how to make these files of what is published; the commands read them."""
STATS = f"giccs-stats {DATA}"


@dataclass(frozen=True, slots=True)
class Section:
    """A table with its source."""

    title: str
    command: str
    """Prints these numbers."""
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def facts_of_dialogues(benchmark: Benchmark, lang: str) -> Section:
    """Return what is said in the dialogues, by length and domain (paper Table 2).

    Without the libraries that this needs, or for a language without lemmas, a note says so instead.
    """
    title, command = "The dialogues", STATS
    try:
        from giccs.description.lemmas import lemmatiser
        from giccs.description.statistics import describe

        words = lemmatiser(lang)
        found = describe(benchmark.items, words)
    except ImportError as error:
        note = f"Not counted: {error.name} is not installed; pip install 'giccs[stats]'."
        return Section(title, command, (), (), (note,))
    except ValueError as error:
        return Section(title, command, (), (), (f"Not counted: {error}.",))
    headers = (
        *TABLE_2, "dialogues", "RTTR", "MTLD", "tokens", "lemmas", "mean turn length"
    )  # fmt: skip
    return Section(
        title, command, headers, tuple(map(_described, found)), tuple(_remarks(words, found))
    )


def _described(one: Description) -> tuple[str, ...]:
    return (
        *_part(one.by, TABLE_2),
        str(one.dialogues),
        _number(one.rttr, 2),
        _number(one.mtld, 2),
        str(one.tokens),
        str(one.lemmas),
        _number(one.mean_turn_length, 2),
    )


def _remarks(words: Lemmatiser, found: Sequence[Description]) -> Iterator[str]:
    yield f"lemmas: {words.name}"
    yield from words.remarks
    for one in found:
        for name, reason in one.reasons.items():
            yield f"{part_name(one.by)}: {name}: {reason}"


def facts_of_scores(benchmark: Benchmark) -> Section:
    """Return how the scores are spread (paper Figure 1)."""
    from giccs.description.distribution import distribution

    bins = distribution([item.score for item in benchmark.items])
    rows = tuple((one.label, str(one.items)) for one in bins)
    return Section("Distribution of the scores", STATS, ("score", "items"), rows)


def how_judged(judgments: Judgments) -> str:
    """Return a sentence on how many judgments there are of what."""
    import numpy as np

    tuples = len(np.unique(judgments.tuple_of))
    people = len(judgments.annotators)
    said = (
        f"{len(judgments)} best-worst judgments of {tuples} tuples of {judgments.tuples.k} utterances, "
        f"by {people} annotators. The score of an utterance is how often it was judged best less how often "
        "worst, by how often it was shown, mapped from [-1, 1] to [0, 1] (counting, Orme 2009; "
        "`bws-score --scale unit`)."
    )
    if not any(judgments.tuples.groups):
        return said
    return (
        f"{said} Utterances were compared with others of their dialogue only: a score tells where an "
        "utterance stands among these."
    )


def facts_of_judgments(benchmark: Benchmark, judgments: Judgments) -> Iterator[Section]:
    """Yield agreement (paper Table 1), reliability (Table 3) and the noise ceiling.

    InputError where the judgments are not those behind the scores.
    """
    from giccs.measures.ceiling import noise_ceiling

    ceiling = noise_ceiling(judgments, benchmark)
    by = _parts(benchmark, judgments)
    yield _agreement(judgments, by)
    yield _reliability(judgments, by)
    yield _ceiling(ceiling)


def _parts(benchmark: Benchmark, judgments: Judgments) -> By | None:
    """Return source and length of each tuple's dialogue; None where the judgments name no dialogues."""
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
    from bws.agreement import agreement

    groups = agreement(judgments, by=by).groups
    rows = tuple(
        (
            *_part(group.by),
            str(group.tuples),
            str(group.annotations),
            *(_number(group.alpha[name].value, 3) for name in ("both", "best", "worst")),
            *(_number(group.strong[name].value, 1) for name in ("best", "worst")),
        )
        for group in groups
    )
    headers = (
        *BY, "tuples", "judgments", "α", "α best", "α worst", "strong best %", "strong worst %"
    )  # fmt: skip
    notes = tuple(dict.fromkeys(note for group in groups for note in group.notes))
    command = _command("bws-agreement", by)
    return Section("Agreement of the annotators", command, headers, rows, notes)


def _reliability(judgments: Judgments, by: By | None) -> Section:
    from bws.split_half import reliability

    groups = reliability(judgments, split="annotation", by=by).groups
    rows = tuple(
        (
            *_part(group.by),
            str(group.items),
            *(
                _number(value, 4)
                for found in (group.spearman, group.pearson)
                for value in (found.mean, found.sd, found.spearman_brown)
            ),
        )
        for group in groups
    )
    headers = (
        *BY, "items", "Spearman ρ of halves", "SD", "Spearman-Brown", "Pearson r of halves", "SD",
        "Spearman-Brown",
    )  # fmt: skip
    notes = tuple(dict.fromkeys(note for group in groups for note in group.notes))
    command = _command("bws-reliability", by)
    return Section("Reliability of the scores", command, headers, rows, notes)


def _ceiling(found: Mapping[str, Estimate]) -> Section:
    from giccs.measures.ceiling import meaning

    rows = tuple(
        (COEFFICIENTS[name], _number(one.extra["reliability"], 3), interval(one))
        for name, one in found.items()
    )
    command = f"giccs-eval baseline:char-ngram --data {DATA}\ngiccs-report results --judgments {JUDGMENTS}"
    headers = ("correlation", "reliability of the scores", "ceiling [95 %]")
    notes = tuple(
        f"{COEFFICIENTS[name]}: {other_reasons(one)}"
        for name, one in found.items()
        if other_reasons(one)
    )
    notes += (*few_clusters_note(found.values()), *meaning(found))
    return Section("Noise ceiling", command, headers, rows, notes)


def _part(by: Mapping[str, Any], names: Sequence[str] = BY) -> tuple[str, ...]:
    return tuple(str(by[name]) for name in names) if by else ("all",) * len(names)


def _number(value: float, decimals: int) -> str:
    return "not defined" if math.isnan(value) else f"{value:.{decimals}f}"
