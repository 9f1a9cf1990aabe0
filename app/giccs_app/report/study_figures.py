"""Figures of the report: analyses of judgments, scores, effects, failures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from bws.analysis.analysis import MissingPictureError
from bws.analysis.pictures import TALL, WIDE
from giccs_app.report.content import Figure, chart_svg_for_page

if TYPE_CHECKING:
    import polars as pl

    from bws.analysis.analysis import Analysis, Answers, Drawing
    from giccs.measures.results import Result
    from giccs_app.report.inputs import Inputs

LABEL_CHARACTERS = 24
"""Maximum length of the label of an item, beside its chart on a phone."""
DIVISIONS = {"domain": "domain", "n_turns": "number of turns", "source": "source"}
"""Column of the items -> name in the caption."""


def analysis_figures(analysis: Analysis, answers: Answers) -> Iterator[Figure]:
    """Yield the pictures of an analysis that the data permit and that fit on a page."""
    n_annotators = len(answers.judgments.annotators)
    for picture in analysis.pictures:
        is_large = picture.max_annotators and n_annotators > picture.max_annotators
        if is_large or picture.is_on_request:
            continue
        with suppress(MissingPictureError):
            yield drawing_figure(answers.drawing(analysis, picture))


def drawing_figure(drawing: Drawing) -> Figure:
    """Return a drawing as a figure; its title and remarks are the caption."""
    svg = chart_svg_for_page(drawing.chart, **drawing.size)
    caption = ". ".join([drawing.title, *drawing.sentences])
    return Figure(svg, f"{caption}.", drawing.alternative)


def score_figures(inputs: Inputs) -> Iterator[Figure]:
    """Yield all items by score with their intervals, and the scores by domain, turns and source."""
    from bws.study_charts import ranked_chart, ranked_rows
    from giccs_app.explorer.study import load

    has_judgments = inputs.judgments is not None
    judgments = str(inputs.path(inputs.judgments_file)) if has_judgments else None
    items = load(str(inputs.path(inputs.benchmark_file)), judgments).items
    limits = [
        items[name].fill_null(math.nan).to_numpy() if name in items.columns else None
        for name in ("low", "high")
    ]
    rows, bands = ranked_rows(items["item_id"].to_list(), items["score"].to_numpy(), *limits)
    caption = "All items, the highest score first"
    caption += ", with 95 % intervals." if any("low" in row for row in rows) else "."
    if len(rows) < len(items):
        caption += f" Drawn: {len(rows)} of {len(items)} items; grey band: the intervals of all."
    ends = f"{rows[0]['score']:.2f} to {rows[-1]['score']:.2f}"
    yield Figure(
        chart_svg_for_page(ranked_chart(rows, bands), width=WIDE, height=_height(rows)),
        caption,
        f"Scores from {ends}.",
    )
    yield from _subset_figures(items)


def _height(rows: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the height of the chart of all items; None for that of a row per named item."""
    from bws.study_charts import MAX_NAMED_ITEMS

    return TALL if len(rows) > MAX_NAMED_ITEMS else None


def _subset_figures(items: pl.DataFrame) -> Iterator[Figure]:
    """Yield the scores by domain, number of turns and source, as far as these vary."""
    from giccs.report.figures.distributions import (
        MAX_SUBSETS,
        distribution_chart,
        distribution_frame,
        largest_subsets,
    )

    for division, name in DIVISIONS.items():
        if items[division].n_unique() > 1:
            frame = distribution_frame(items[division].to_list(), items["score"].to_list())
            n_subsets, drawn = frame["subset"].n_unique(), largest_subsets(frame)
            yield Figure(
                chart_svg_for_page(distribution_chart(drawn)),
                f"Share of the items in each fifth of the scale, by {name}"
                + (
                    f"; the {MAX_SUBSETS} largest of {n_subsets}."
                    if len(drawn) < len(frame)
                    else "."
                )
                + " White: a fifth of the items; blue: fewer; orange: more.",
                f"Heat map of the scores by {name}.",
            )


def effect_figures(results: Sequence[Result]) -> Iterator[Figure]:
    """Yield what history and prompts change in results with predictions, as far as they exist."""
    from giccs.report.figures.effects import history_panels, prompt_panels
    from giccs.report.figures.panels import MissingFigureError

    for panels_of in (history_panels, prompt_panels):
        try:
            panels = panels_of(results)
        except MissingFigureError:
            continue
        for panel in panels:
            caption = " ".join([f"{panel.title}.", *panel.notes[:1]])
            names = ", ".join(panel.frame["label"])
            yield Figure(chart_svg_for_page(panel.chart), caption, f"Chart of {names}.")


def failure_figures(results: Sequence[Result], inputs: Inputs) -> Iterator[Figure]:
    """Yield failures of the best model: where people agree, and in the dialogue that it orders worst."""
    from giccs.measures.results import Store
    from giccs.report.figures.failures import failure_panels
    from giccs.report.figures.ranks import rank_chart, rank_frame, worst_ordered_dialogue
    from giccs.report.figures.subsets import best_first
    from giccs.report.model_names import cut_end

    store = Store(inputs.path(inputs.results_folder))
    ordered = ((name, store.with_predictions(result)) for name, result in best_first(results))
    name, best = next((each for each in ordered if each[1].predictions is not None), ("", None))
    if best is None or best.predictions is None:
        return
    if disagreement := _disagreement(inputs):
        for panel in failure_panels([best], disagreement):
            caption = " ".join([f"{panel.title}.", *panel.notes])
            yield Figure(chart_svg_for_page(panel.chart, width=WIDE), caption, f"{panel.title}.")
    if dialogue := worst_ordered_dialogue(best.predictions):
        texts = {
            item.item_id: cut_end(item.utterance, LABEL_CHARACTERS)
            for item in inputs.benchmark.items
        }
        chart = rank_chart(rank_frame(best.predictions, dialogue, texts), {"rank": ""})
        caption = f"Ranks in {dialogue}, which {name} orders worst; 1: most similar."
        yield Figure(chart_svg_for_page(chart), caption, caption)


def _disagreement(inputs: Inputs) -> dict[str, float]:
    """Return the disagreement of people on each item; empty without the judgments behind the scores."""
    from giccs.measures.judged_items import disagreement_of_items

    if inputs.judgments is None:
        return {}
    return disagreement_of_items(inputs.judgments, inputs.benchmark)
