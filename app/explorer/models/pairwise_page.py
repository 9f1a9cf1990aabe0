"""The views of pairwise STS: the leaderboard, one model, histories side by side, two models compared."""

from __future__ import annotations

import math
from collections.abc import Mapping

import polars as pl
import streamlit as st

from app.explorer import links
from app.explorer.caching import cached, ceiling_of
from app.explorer.display import show_chart, show_table
from app.explorer.labels import literal, say
from app.explorer.models import charts as views
from app.explorer.models import data as frames
from app.explorer.models.data import DIVISIONS, METRICS, best_first, key, metric_of
from app.explorer.models.selection import (
    Predicted,
    choose,
    choose_two,
    condition,
    numbers,
    predicted,
    texts,
    titles,
)
from app.explorer.study import Study
from bws.problems import InputError
from giccs.measures.comparison import paired_correlations
from giccs.measures.metrics import Estimate
from giccs.measures.results import Result

__all__ = [
    "show_against",
    "show_histories",
    "show_leaderboard",
    "show_parts",
    "show_predictions",
]

MOST_POINTS = 5_000
"""Points of a chart; more are counted in cells, or drawn from."""
MOST_JUDGMENTS = 50_000
"""With more, the noise ceiling is computed when it is asked for."""
MOST_AT_ONCE = 20_000
"""Items to be resampled; with more, an interval is computed when it is asked for."""
RESAMPLES = 1000
WORK = 5_000_000
"""Items times resamples that are gone through while a person waits, where that leaves 100 or more."""
TEXTS = ("item_id", "last_turn", "utterance")
ABOUT = ("item_id", "domain", "n_turns")


def show_leaderboard(study: Study, results: list[Result]) -> None:
    """Show all models, best first, beside the noise ceiling."""
    metric = _metric()
    frame = frames.leaderboard(results, metric).drop("key")
    ceiling = _ceiling(study, metric)
    chart = views.leaderboard(frame, ceiling, _titles(metric, "model", "ceiling"))
    show_chart(chart, f"leaderboard {metric}", frame)
    st.caption(say("models.leaderboard_said"))
    table = frame.select(pl.exclude("baseline"), "baseline")
    _show_estimates(table, f"leaderboard {metric} table", metric, titles("model", "baseline"))


def show_predictions(study: Study, results: list[Result]) -> None:
    """Show what one model predicts against the scores."""
    result = choose("model", say("models.model"), best_first(results))
    found = predicted(study, result)
    if found is None:
        return
    items = _joined(study, found.stamp, found)
    _say_missing(study, items)
    st.markdown("  \n".join(_said(name, metric_of(result, name)) for name in METRICS))
    said = titles("score", "prediction", "items", *TEXTS)
    _show_points(items, "score", "prediction", said, f"predictions {key(result)}")


def show_parts(study: Study, results: list[Result]) -> None:
    """Show one model's correlation in each part of the data, with and without history."""
    every = best_first(results)
    result = choose("model", say("models.model"), every)
    metric = _metric()
    there = [by for by in DIVISIONS if len(frames.parts([result], metric, by))]
    if not there:
        st.info(say("models.no_parts"))
        return
    by = links.segmented("by", say("models.by"), there, shown=lambda one: say(f"models.by_{one}"))
    pair = next((p for p in frames.pairs_of_histories(every) if result in p), (result,))
    frame = frames.parts(pair, metric, by)
    name = f"{metric} by {by} {key(result)}"
    part = {"part": say(f"models.by_{by}")}
    show_chart(views.dots(frame, "part", _titles(metric) | part, zero=True), name, frame)
    _show_estimates(frame, f"{name} table", metric, part)


def show_histories(study: Study, results: list[Result]) -> None:
    """Show what the history changes for each model that was asked with and without it."""
    pairs = frames.pairs_of_histories(best_first(results))
    if not pairs:
        st.info(say("models.no_pairs"))
        return
    metric = _metric()
    both = frames.leaderboard([one for pair in pairs for one in pair], metric).drop("key")
    resamples = _resamples(len(study.items) * len(pairs))
    with st.spinner(say("models.working")):
        changes = [_change(study, *pair, resamples) if resamples else {} for pair in pairs]
    frame = frames.side_by_side(pairs, metric, changes)
    left, right = st.columns(2)
    with left:
        chart = views.dots(both, "model", _titles(metric, "model"), zero=True)
        show_chart(chart, f"histories {metric}", both)
    with right:
        said = _titles(metric, "model") | titles("value")
        show_chart(views.dots(frame, "model", said, zero=True), f"changes {metric}", frame)
    st.caption(say("models.histories_said"))
    columns = titles("model") | numbers("with", "without", "value")
    _show_estimates(frame, f"histories {metric} table", metric, columns)


def show_against(study: Study, results: list[Result]) -> None:
    """Show two models against each other: how much better one is, and on which items they differ."""
    two = choose_two(study, best_first(results))
    if two is None:
        return
    first, second, one, other = two
    items = _compared(study, one.stamp, other.stamp, one, other)
    _say_missing(study, items)
    _show_difference(study, one, other)
    _show_disagreement(items, f"{key(first)} {key(second)}")


def _show_difference(study: Study, one: Predicted, other: Predicted) -> None:
    """Say which of two models is better, by each metric."""
    resamples = _resamples(len(study.items))
    with st.spinner(say("models.working")):
        found = _paired(study, one.stamp, other.stamp, resamples, one, other)
    for metric in METRICS:
        estimate = found[metric]
        verdict = say(f"models.{_verdict(estimate)}")
        st.markdown(f"{_said(metric, estimate, signed=True)}: {verdict}")
    st.caption(say("models.difference_said"))


def _verdict(estimate: Estimate) -> str:
    """Return the key of what an interval of a difference says.

    >>> _verdict(Estimate(0.2, 0.1, 0.3, 10)), _verdict(Estimate(0.2, -0.1, 0.3, 10))
    ('first_better', 'not_apart')
    """
    if math.isnan(estimate.low):
        return "no_interval"
    if estimate.low > 0:
        return "first_better"
    return "second_better" if estimate.high < 0 else "not_apart"


def _show_disagreement(items: pl.DataFrame, name: str) -> None:
    """Show two models' ranks against each other, and the items on which they differ most."""
    st.subheader(say("models.disagreement"), anchor=False, help=say("models.disagreement_help"))
    who = {which: say(f"models.nearer_{which}") for which in frames.NEARER}
    drawn = items.with_columns(pl.col("nearer").replace(who))
    said = titles("rank_first", "rank_second", "nearer", "score", "items", *TEXTS)
    kinds = list(who.values())
    _show_points(drawn, "rank_first", "rank_second", said, f"ranks {name}", ("nearer", kinds))
    ranks = ("difference", "rank_first", "rank_second", "rank_score")
    predictions = ("score", "first", "second")
    columns = (
        titles("nearer", *ABOUT) | texts("last_turn", "utterance") | numbers(*ranks, *predictions)
    )
    table = drawn.select(
        "difference", "last_turn", "utterance", "nearer", *ranks[1:], *predictions, *ABOUT
    )
    show_table(table, f"differing items {name}", column_config=columns)


def _show_points(
    items: pl.DataFrame,
    x: str,
    y: str,
    said: Mapping[str, str],
    name: str,
    kinds: tuple[str, list[str]] | None = None,
) -> None:
    """Show a point an item; of very many, how many lie where, or some of them."""
    columns = [*TEXTS, x, y, *([kinds[0]] if kinds else [])]
    shown = items.select(columns)
    if len(items) > MOST_POINTS:
        how = links.segmented(
            "points",
            say("models.points"),
            ["cells", "sample"],
            shown=lambda one: say(f"models.points_{one}"),
        )
        if how == "cells":
            counted = frames.in_cells(items, x, y)
            st.caption(say("models.in_cells", n=len(items)))
            show_chart(views.cells(counted, x, y, said), name, counted)
            return
        shown = frames.sample(shown, MOST_POINTS)
        st.caption(say("models.sampled", n=MOST_POINTS, total=len(items)))
    chart = views.scatter(shown, x, y, said, TEXTS, kinds, diagonal=kinds is not None)
    show_chart(chart, name, shown)


def _show_estimates(
    frame: pl.DataFrame, name: str, metric: str, columns: Mapping[str, object]
) -> None:
    """Show a table of estimates, and why some of them have no number or no interval."""
    words = {one: condition(one) for one in ("with", "without")}
    shown = frame
    if "history" in frame.columns:
        shown = frame.with_columns(pl.col("history").replace(words))
    for reason in filter(None, frame["reason"].unique(maintain_order=True)):
        st.caption(literal(reason))
    n = say("models.title_dialogues" if metric == "rank_spearman" else "models.title_items")
    value = {"value": st.column_config.NumberColumn(_of(metric), format="%.3f")}
    config = {**titles("history", "reason"), **numbers("low", "high"), "n": n, **value, **columns}
    if not (frame["reason"] != "").any():
        shown = shown.drop("reason")
    show_table(shown, name, column_config=config)


def _metric() -> str:
    return links.segmented("metric", say("models.metric"), METRICS, shown=_of)


def _of(metric: str) -> str:
    return say(f"models.{metric}")


def _titles(metric: str, *columns: str) -> dict[str, str]:
    """Return what a chart of a metric says."""
    words = {name: condition(name) for name in ("with", "without")}
    return titles("history", "n", "low", "high", *columns) | words | {"value": _of(metric)}


def _said(metric: str, estimate: Estimate, signed: bool = False) -> str:
    """Return a number with its interval as Markdown."""
    form = "+.3f" if signed else ".3f"
    if math.isnan(estimate.value):
        return f"{_of(metric)}: {literal(estimate.reason)}"
    interval = f" [{estimate.low:{form}}, {estimate.high:{form}}]"
    if math.isnan(estimate.low):
        interval = f" [–] ({literal(estimate.reason)})" if estimate.reason else " [–]"
    return f"{_of(metric)} **{estimate.value:{form}}**{interval}"


def _say_missing(study: Study, items: pl.DataFrame) -> None:
    if missing := len(study.items) - len(items):
        st.caption(say("models.missing", n=missing))


def _resamples(items: int) -> int:
    """Return how often to resample: not at all, for no interval, until one of very many items is wanted."""
    wanted = items <= MOST_AT_ONCE or links.toggle(
        "interval", say("models.interval"), help=say("models.interval_help")
    )
    return max(100, min(RESAMPLES, WORK // items)) if wanted else 0


def _change(
    study: Study, with_it: Result, without: Result, resamples: int
) -> Mapping[str, Estimate]:
    """Return how the history changes a model's correlations; nothing where predictions cannot be read."""
    one, other = predicted(study, with_it), predicted(study, without)
    if one is None or other is None:
        return {}
    return _paired(study, one.stamp, other.stamp, resamples, one, other)


def _ceiling(study: Study, metric: str) -> tuple[float, float, float] | None:
    """Return the noise ceiling; None, after saying why, where there is none."""
    if metric == "rank_spearman":
        st.caption(say("models.no_ceiling_inside"))
        return None
    much = study.judgments is not None and len(study.judgments) > MOST_JUDGMENTS
    if much and not links.toggle(
        "ceiling", say("models.ceiling_wanted"), help=say("models.interval_help")
    ):
        return None
    try:
        with st.spinner(say("models.working")):
            ceiling = ceiling_of(study)
    except InputError as error:
        st.caption(" ".join([say("models.no_ceiling"), *map(literal, error.problems)]))
        return None
    if ceiling is None:
        st.caption(say("models.no_judgments"))
        return None
    found = ceiling[metric]
    if found.extra.get("equal_dialogue_means"):
        st.caption(say("models.equal_dialogue_means"))
    if found.reason:
        st.caption(literal(found.reason))
    return found.value, found.low, found.high


@cached
def _joined(study: Study, stamp: str, _found: Predicted) -> pl.DataFrame:
    return frames.joined(study.items, _found.table)


@cached
def _compared(
    study: Study, stamp: str, stamp_too: str, _one: Predicted, _other: Predicted
) -> pl.DataFrame:
    return frames.compared(study.items, _one.table, _other.table)


@cached
def _paired(
    study: Study,
    stamp: str,
    stamp_too: str,
    resamples: int,
    _one: Predicted,
    _other: Predicted,
) -> dict[str, Estimate]:
    both = frames.joined(frames.joined(study.items, _one.table, "first"), _other.table, "second")
    first, second, score = (both[name].to_numpy() for name in ("first", "second", "score"))
    dialogue = frames.dialogue_index(both)
    return paired_correlations(first, second, score, dialogue, resamples=resamples)
