"""The sections about the benchmark: the words of its dialogues (Table 2) and its scores (Figure 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from app.report.content import Cell, Figure, Section, Source, Table, part_label
from app.report.inputs import Inputs

__all__ = ["dialogues_section", "scores_section", "source_of_statistics"]

UNBROKEN = "\N{WORD JOINER}–\N{WORD JOINER}"


def source_of_statistics(inputs: Inputs) -> Source:
    """Return what giccs-stats prints."""
    from giccs.benchmark.languages import required_language
    from giccs.description.distribution import distribution
    from giccs.description.lemmas import lemmatiser
    from giccs.description.statistics import describe

    items = inputs.benchmark.items
    lemmas = lemmatiser(required_language(items, inputs.benchmark_file, None, "lemmas"))
    document = {
        "groups": [group.document() for group in describe(items, lemmas)],
        "distribution": [asdict(one) for one in distribution([item.score for item in items])],
        "lemmatiser": lemmas.name,
    }
    return Source(f"giccs-stats {inputs.benchmark_file} --json", document)


def dialogues_section(source: Source) -> Section:
    """Return Table 2 of the paper."""
    forms = {
        "dialogues": "",
        "turns": "",
        "tokens": "",
        "mean_turn_length": ".2f",
        "rttr": ".2f",
        "mtld": ".1f",
        "lemmas": "",
    }
    rows: list[Sequence[Cell]] = [
        [
            part_label(group["by"]),
            *(source.number(f"/groups/{place}/{name}", form) for name, form in forms.items()),
        ]
        for place, group in enumerate(source.document["groups"])
    ]
    headers = ["", "dialogues", "turns", "tokens", "tokens a turn", "RTTR", "MTLD", "lemmas"]
    note = (
        "RTTR: types by the root of tokens. MTLD: how long a stretch of text stays rich; it needs longer "
        "texts than single cells have, and is a dash where it is not defined. Lemmas: "
    )
    table = Table("Descriptive statistics (Table 2 of the paper)", headers, rows,
                  f"{note}{source.document['lemmatiser']}.")  # fmt: skip
    text = ["What was said before the candidates: the turns of the dialogues."]
    return Section("statistics", "The dialogues", text, [source.command], tables=[table],
                   about_scores=False)  # fmt: skip


def scores_section(inputs: Inputs, source: Source) -> Section:
    """Return Figure 1 of the paper, as a chart and as numbers."""
    from app.report.svg import svg_of
    from giccs.description.distribution import distribution
    from giccs.description.figures import score_distribution

    bins = distribution([item.score for item in inputs.benchmark.items])
    row = [source.number(f"/distribution/{place}/items") for place in range(len(bins))]
    said = "; ".join(f"{one.items} from {one.label}" for one in bins)
    figure = Figure(
        svg_of(score_distribution(bins), width=320, height=160),
        "How many items have a score in each fifth of the scale (Figure 1 of the paper).",
        f"Bar chart of the scores: {said}.",
    )
    table = Table(
        "Items by score",
        ["", *(one.label.replace("–", UNBROKEN) for one in bins)],
        [["items", *row]],
    )
    text = ["Scores lie in [0, 1]: 1 is what annotators always found most similar, 0 never."]
    return Section("scores", "The scores", text, [source.command], [figure], [table])
