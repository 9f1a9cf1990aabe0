"""The sections about the benchmark: the words of its dialogues (Table 2) and its scores (Figure 1)."""

from __future__ import annotations

from dataclasses import asdict

from app.report.content import Figure, Section, Source
from app.report.inputs import Inputs

__all__ = ["benchmark_sections"]


def benchmark_sections(inputs: Inputs) -> tuple[Section, Section]:
    """Return what giccs-stats prints: Table 2 of the paper, and Figure 1 as a chart and as numbers."""
    from app.report.svg import svg_of
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
