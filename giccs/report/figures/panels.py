"""Parts that the figures share: their data, panels, labels of models, and the layout of a file."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from giccs.measures.results import Result, comparison_key, data_of, model_of, prompt_of
from giccs.report.model_comparison import Leaderboard, compare, history_titles
from giccs.report.model_names import chart_names

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

Titles = Mapping[str, str]
"""Texts of a chart, for other languages; each chart has English defaults."""
LINE_CHARACTERS = 86
"""Length of a line of notes below the title of a panel."""
WIDTH = 440
"""Width of the plot area of a single panel in pixels."""
PAGE_LABEL_CHARACTERS = 28
"""Longest line of a label in a stretched chart, for small screens."""
MAX_NAMED_REASONS = 4
MAX_PANELS = 12
"""Largest number of panels of one figure; those of the best models."""


class MissingFigureError(ValueError):
    """The data cannot give a figure; the message is the reason."""


@dataclass(frozen=True, eq=False)
class Panel:
    """A chart of one task, data set and metric."""

    title: str
    chart: alt.Chart | alt.LayerChart
    frame: pl.DataFrame
    """The numbers of the chart."""
    notes: Sequence[str] = ()
    """Sentences on the definition, and on what is missing."""


def best_panels(panels: Sequence[Panel], missing: Sequence[str]) -> list[Panel]:
    """Return the first `MAX_PANELS` panels; notes of the first one say what is not shown, and why.

    panels: at least one, the best model first. missing: what has no panel, with the reason.
    """
    notes = [f"Not shown: {reason}." for reason in missing]
    if len(panels) > MAX_PANELS:
        notes.append(f"Not shown: {len(panels) - MAX_PANELS} panels of less accurate models.")
    first = panels[0]
    first = replace(first, notes=[*first.notes, *notes])
    return [first, *panels[1:MAX_PANELS]]


def nan_notes(model: str, predictions: pl.DataFrame) -> list[str]:
    """Return what a panel of a model's predictions does not show: its predictions of NaN, if any."""
    n = int(predictions["prediction"].is_nan().sum())
    return [f"{model}: {n} predictions are NaN"] if n else []


def results_by_data(results: Sequence[Result]) -> list[tuple[str, list[Result]]]:
    """Return the results of each task and data set, with a title: ``pairwise-sts on giccs-sample``."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        groups.setdefault(comparison_key(result), []).append(result)
    titles = data_titles([(*key, data_of(group[0])) for key, group in groups.items()])
    return list(zip(titles, groups.values(), strict=True))


def titled_leaderboards(results: Sequence[Result]) -> list[tuple[Leaderboard, str]]:
    """Return each leaderboard of `compare` with its task, data and history as a title.

    Raises MissingFigureError, with the reasons, if there is none.
    """
    comparison = compare(results)
    boards = comparison.leaderboards
    if not boards:
        reasons = list(dict.fromkeys(map(str, comparison.skipped)))
        raise MissingFigureError(" ".join(reasons[:MAX_NAMED_REASONS]) or "no results to compare")
    titles = data_titles([(board.task, board.content, board.data) for board in boards])
    histories = history_titles(boards)
    return [
        (board, f"{title}{history}")
        for board, title, history in zip(boards, titles, histories, strict=True)
    ]


def data_titles(keys: Sequence[tuple[str, str, str]]) -> list[str]:
    """Return a title of each (task, fingerprint of the data, name of the data).

    Equal names of different data are distinguished by the fingerprint.

    >>> data_titles([("csts", "0123456789", "a"), ("csts", "a123456789", "a"), ("csts", "0", "b")])
    ['csts on a (content 012345)', 'csts on a (content a12345)', 'csts on b']
    """
    contents: dict[tuple[str, str], set[str]] = {}
    for task, content, name in keys:
        contents.setdefault((task, name), set()).add(content)
    return [
        f"{task} on {name}" + (f" (content {content[:6]})" if len(contents[task, name]) > 1 else "")
        for task, content, name in keys
    ]


def model_and_prompt(result: Result) -> str:
    """Return the name of the model, for multiple choice with its prompt template."""
    prompt = prompt_of(result)
    return f"{model_of(result)} ({prompt})" if prompt else model_of(result)


def full_name(model: str, history: str, titles: Titles | None = None) -> str:
    """Return the name of a model with its history condition, if any.

    titles: of the conditions ``with`` and ``without``.

    >>> full_name("m", "with (speakers)"), full_name("m", "")
    ('m (with history, speakers)', 'm')
    """
    condition, _, encoding = history.partition(" (")
    title = (titles or {}).get(condition, f"{condition} history")
    return (
        f"{model} ({', '.join(filter(None, [title, encoding.rstrip(')')]))})" if history else model
    )


def model_labels(models: Sequence[tuple[str, str]], titles: Titles | None = None) -> list[str]:
    """Return a short label of each (model, history), in this order; equal models have equal labels.

    The names are those of `chart_names`. The history is part of the labels if it varies; titles: as in
    `full_name`.

    >>> model_labels([("org/mini", "with"), ("org/mini", "without")])
    ['mini (with history)', 'mini (without history)']
    >>> model_labels([("sentence-transformers/distiluse-base-multilingual-cased-v2", "without")])
    ['distiluse-base-m…ingual-cased-v2']
    """
    names = chart_names(model for model, _ in models)
    varies = len({history for _, history in models}) > 1
    return [
        names[model] + full_name("", history if varies else "", titles) for model, history in models
    ]


def with_titles(defaults: Titles, titles: Titles | None) -> dict[str, str]:
    """Return the texts of a chart: the defaults, replaced by those that are given."""
    return {**defaults, **(titles or {})}


def layout(panels: Sequence[Panel], columns: int = 1) -> alt.TopLevelMixin:
    """Return the panels as one chart with titles and notes, for a file."""
    import altair as alt

    from bws.base.charts import AXIS, FONT

    width = WIDTH if columns == 1 else WIDTH // 2
    charts = [_titled(panel, width) for panel in panels]
    combined: Any = charts[0] if len(charts) == 1 else alt.concat(*charts, columns=columns)
    if len(charts) > 1:
        combined = combined.resolve_scale(
            color="independent", shape="independent", strokeDash="independent"
        )
    configured: alt.TopLevelMixin = combined.configure_axis(**AXIS).configure_legend(**FONT)
    return configured


def _titled(panel: Panel, width: int) -> alt.Chart | alt.LayerChart:
    import altair as alt

    from bws.base.charts import specification

    characters = LINE_CHARACTERS if width == WIDTH else LINE_CHARACTERS // 2
    lines = [line for note in panel.notes for line in textwrap.wrap(note, characters)]
    title = alt.TitleParams(
        textwrap.wrap(panel.title, characters),
        subtitle=lines,
        anchor="start",
        frame="group",
        fontSize=15 if width == WIDTH else 13,
        subtitleFontSize=12,
    )
    chart: alt.Chart | alt.LayerChart = panel.chart.properties(title=title)
    return chart if specification(chart).get("width") else chart.properties(width=width)
