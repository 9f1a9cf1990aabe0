"""The views of pairwise STS: leaderboard, one model, subsets, history conditions, comparison of two
models."""

from __future__ import annotations

import math
from collections.abc import Mapping

import polars as pl
import streamlit as st

from bws.base.problems import InputError
from bws.stats.estimates import Estimate
from giccs.measures.comparison import paired_correlations
from giccs.measures.results import Result
from giccs.report.setting_effects import history_pairs
from giccs_app.explorer import links
from giccs_app.explorer.caching import cached_table, ceiling_of, limits_of
from giccs_app.explorer.display import (
    number_column,
    show_chart,
    show_item,
    show_missing_values,
    show_selected_item,
    show_table,
)
from giccs_app.explorer.labels import current_language, format_number, literal, plain, say
from giccs_app.explorer.labels.remarks import local_remark
from giccs_app.explorer.models import charts as views
from giccs_app.explorer.models import data as frames
from giccs_app.explorer.models.data import DIVISIONS, METRICS, best_first, key, metric_of
from giccs_app.explorer.models.filters import choose_metrics, show_leaderboard_table
from giccs_app.explorer.models.selection import (
    BY_MODEL,
    PredictionTable,
    choose,
    choose_two,
    history_names,
    load_predictions,
    local_metric_title,
    numbers,
    show_selected_model,
    texts,
    titles,
)
from giccs_app.explorer.study import Study
from giccs_app.explorer.uploads import without_folder

MAX_POINTS = 5_000
"""Maximum number of points of a chart; more are binned or sampled."""
MAX_JUDGMENTS_AT_ONCE = 50_000
"""The noise ceiling of more judgments is computed on request only."""
MAX_ITEMS_AT_ONCE = 20_000
"""Intervals of more items are computed on request only."""
RESAMPLES = 1000
"""Number of resamples of intervals, that of the report."""
TEXT_COLUMNS = ("item_id", "last_turn", "utterance")
METADATA_COLUMNS = ("item_id", "domain", "n_turns")
BY_ITEM = {"item": "item_id"}
"""Parameter of the link -> column by which a row or point is selected."""


def show_leaderboard(study: Study, results: list[Result]) -> None:
    """Show all models, best first, and the noise ceiling."""
    metric = _choose_metric()
    metric_titles = {name: local_metric_title(name) for name in METRICS}
    further = choose_metrics("metrics", METRICS, metric_titles)
    by_metric = {
        name: frames.leaderboard(results, name) for name in dict.fromkeys([metric, *further])
    }
    frame = by_metric[metric]
    ceiling = _ceiling(study, metric)
    chart = views.leaderboard(frame, ceiling, _titles(metric, "model", "ceiling"))
    show_chart(chart, f"leaderboard {metric}", frame.drop("key"), select=BY_MODEL)
    show_missing_values(frame, "model", history_names())
    st.caption(say("models.leaderboard_said"))
    _show_reasons(frame)
    by_metric[metric] = by_metric[metric].drop("baseline")
    columns = {**titles("model", "history", "reason"), **numbers("low", "high"), "n": _size(metric)}
    show_selected_model(results)
    show_leaderboard_table(
        study, results, metric, by_metric, metric_titles, columns, select=BY_MODEL
    )


def show_predictions(study: Study, results: list[Result]) -> None:
    """Show the predictions of one model against the scores."""
    result = choose("model", say("models.model"), best_first(results))
    predictions = load_predictions(study, result)
    if predictions is None:
        return
    items = _joined(study, predictions.stamp, predictions)
    _show_missing(study, items)
    st.markdown("  \n".join(_format_estimate(name, metric_of(result, name)) for name in METRICS))
    labels = titles("score", "prediction", "items", *TEXT_COLUMNS)
    name = f"predictions {key(result)}"
    _show_points(items, "score", "prediction", labels, name)
    item = links.value("item")
    show_selected_item(study, item)
    columns = texts("last_turn", "utterance") | numbers("score", "prediction")
    columns |= titles(*METADATA_COLUMNS)
    show_table(items.select(*columns), f"{name} table", select=BY_ITEM, column_config=columns)
    _show_item(study, item, items, "score", "prediction")


def show_subsets(study: Study, results: list[Result]) -> None:
    """Show the correlation of one model by subset, with and without history."""
    ordered = best_first(results)
    result = choose("model", say("models.model"), ordered)
    metric = _choose_metric()
    divisions = [
        division for division in DIVISIONS if len(frames.subset_metrics([result], metric, division))
    ]
    if not divisions:
        st.info(say("models.no_parts"))
        return
    by = links.segmented(
        "by", say("models.by"), divisions, format_option=lambda name: say(f"models.by_{name}")
    )
    pair = next((p for p in history_pairs(ordered) if result in p), (result,))
    frame = frames.subset_metrics(pair, metric, by)
    name = f"{metric} by {by} {key(result)}"
    title = {"part": say(f"models.by_{by}")}
    show_chart(views.dot_plot(frame, "part", _titles(metric) | title, mark_zero=True), name, frame)
    show_missing_values(frame, "part", history_names())
    _show_estimates(frame, f"{name} table", metric, title)


def show_histories(study: Study, results: list[Result]) -> None:
    """Show the effect of the history on each model that has results with and without it."""
    pairs = history_pairs(best_first(results))
    if not pairs:
        st.info(say("models.no_pairs"))
        return
    metric = _choose_metric()
    both_conditions = frames.leaderboard([result for pair in pairs for result in pair], metric)
    resamples = _resamples(len(study.items) * len(pairs))
    with st.spinner(say("models.working")):
        changes = [
            _history_difference(study, *pair, resamples) if resamples else {} for pair in pairs
        ]
    frame = frames.side_by_side(pairs, metric, changes)
    rows = frame["model"].to_list()
    domain = _shared_domain(both_conditions, frame)
    labels = _titles(metric, "model")
    left, right = st.columns(2)
    with left:
        chart = views.dot_plot(
            both_conditions, "model", labels, mark_zero=True, rows=rows, domain=domain
        )
        frame_of_file = both_conditions.drop("key")
        show_chart(chart, f"histories {metric}", frame_of_file, select=BY_MODEL)
    with right:
        labels |= titles("value")
        keyed = frame.with_columns(
            key=pl.Series([key(first) for first, _ in pairs], dtype=pl.String)
        )
        chart = views.dot_plot(keyed, "model", labels, mark_zero=True, rows=rows, domain=domain)
        show_chart(chart, f"changes {metric}", frame, select=BY_MODEL)
    show_selected_model(results)
    show_missing_values(both_conditions, "model", history_names())
    show_missing_values(
        frame.with_columns(history=pl.lit(labels["value"])), "model", history_names()
    )
    st.caption(say("models.histories_said"))
    columns = titles("model") | numbers("with", "without", "value")
    _show_estimates(frame, f"histories {metric} table", metric, columns)


def _shared_domain(*tables: pl.DataFrame) -> tuple[float, float] | None:
    """Return the range of all values and intervals, with 0; None without values."""
    numbers = pl.concat([frame[name] for frame in tables for name in ("value", "low", "high")])
    defined = numbers.fill_nan(None).drop_nulls().to_list()
    return (min(0.0, *defined), max(0.0, *defined)) if defined else None


def show_comparison(study: Study, results: list[Result]) -> None:
    """Show the comparison of two models: differences of the correlations and of the ranks of items."""
    selection = choose_two(study, best_first(results))
    if selection is None:
        return
    first, second, first_predictions, second_predictions = selection
    items = _compared(
        study,
        first_predictions.stamp,
        second_predictions.stamp,
        first_predictions,
        second_predictions,
    )
    _show_missing(study, items)
    _show_difference(study, first_predictions, second_predictions)
    _show_disagreement(study, items, f"{key(first)} {key(second)}")


def _show_difference(study: Study, first: PredictionTable, second: PredictionTable) -> None:
    """Show the difference between two models by each metric."""
    resamples = _resamples(len(study.items))
    with st.spinner(say("models.working")):
        differences = _paired(study, first.stamp, second.stamp, resamples, first, second)
    for metric in (name for name in METRICS if name in differences):
        estimate = differences[metric]
        verdict = say(f"models.{_verdict(estimate)}")
        st.markdown(f"{_format_estimate(metric, estimate, signed=True)}: {verdict}")
    st.caption(say("models.difference_said"))


def _verdict(estimate: Estimate) -> str:
    """Return the label key of the conclusion from the interval of a difference.

    >>> _verdict(Estimate(0.2, 0.1, 0.3, 10)), _verdict(Estimate(0.2, -0.1, 0.3, 10))
    ('first_better', 'not_apart')
    """
    if math.isnan(estimate.low):
        return "no_interval"
    if estimate.low > 0:
        return "first_better"
    return "second_better" if estimate.high < 0 else "not_apart"


def _show_disagreement(study: Study, items: pl.DataFrame, name: str) -> None:
    """Show the ranks by two models, and the items with the largest differences."""
    st.subheader(say("models.disagreement"), anchor=False, help=say("models.disagreement_help"))
    winners = {side: say(f"models.nearer_{side}") for side in frames.NEARER}
    labelled = items.with_columns(pl.col("nearer").replace(winners))
    labels = titles("rank_first", "rank_second", "nearer", "score", "items", *TEXT_COLUMNS)
    categories = list(winners.values())
    _show_points(
        labelled, "rank_first", "rank_second", labels, f"ranks {name}", ("nearer", categories)
    )
    item = links.value("item")
    show_selected_item(study, item)
    ranks = ("difference", "rank_first", "rank_second", "rank_score")
    predictions = ("score", "first", "second")
    columns = (
        titles("nearer", *METADATA_COLUMNS)
        | texts("last_turn", "utterance")
        | numbers(*ranks, *predictions)
    )
    table = labelled.select(
        "difference",
        "last_turn",
        "utterance",
        "nearer",
        *ranks[1:],
        *predictions,
        *METADATA_COLUMNS,
    )
    show_table(table, f"differing items {name}", select=BY_ITEM, column_config=columns)
    _show_item(study, item, labelled, "score", *ranks)


def _show_item(study: Study, item: str | None, items: pl.DataFrame, *columns: str) -> None:
    """Show the dialogue of an item with numbers of its candidates."""
    formats = dict.fromkeys(columns, ".3f")
    show_item(study, item, items, titles("utterance", *columns), formats)


def _show_points(
    items: pl.DataFrame,
    x: str,
    y: str,
    labels: Mapping[str, str],
    name: str,
    categories: tuple[str, list[str]] | None = None,
) -> None:
    """Show one point per item; many points are binned or sampled."""
    columns = [*TEXT_COLUMNS, x, y, *([categories[0]] if categories else [])]
    drawn = items.filter(pl.all_horizontal(pl.col(x, y).is_finite()))
    if len(drawn) < len(items):
        st.caption(say("models.infinite", n=len(items) - len(drawn)))
    items, points = drawn, drawn.select(columns)
    if len(items) > MAX_POINTS:
        display = links.segmented(
            "points",
            say("models.points"),
            ["cells", "sample"],
            format_option=lambda name: say(f"models.points_{name}"),
        )
        if display == "cells":
            counts = frames.bin_counts(items, x, y)
            st.caption(say("models.in_cells", n=len(items)))
            show_chart(views.heatmap(counts, x, y, labels), name, counts)
            return
        points = frames.sample(points, MAX_POINTS)
        st.caption(say("models.sampled", n=MAX_POINTS, total=len(items)))
    chart = views.scatter(
        points, x, y, labels, TEXT_COLUMNS, categories, diagonal=categories is not None
    )
    show_chart(chart, name, points, select=BY_ITEM)


def _show_estimates(
    frame: pl.DataFrame,
    name: str,
    metric: str,
    columns: Mapping[str, object],
) -> None:
    """Show a table of estimates, and the reasons for missing values and intervals."""
    table = frame
    if "history" in frame.columns:
        table = frame.with_columns(pl.col("history").replace(history_names()))
    _show_reasons(frame)
    value = {"value": number_column(local_metric_title(metric), format="%.3f")}
    config = {
        **titles("history", "reason"),
        **numbers("low", "high"),
        "n": _size(metric),
        **value,
        **columns,
    }
    if not (frame["reason"] != "").any():
        table = table.drop("reason")
    show_table(table, name, column_config=config)


def _show_reasons(frame: pl.DataFrame) -> None:
    for reason in filter(None, frame["reason"].unique(maintain_order=True)):
        st.caption(plain(local_remark(reason)))


def _size(metric: str) -> str:
    """Return the title of the sample size of a metric."""
    return say("models.title_dialogues" if metric == "rank_spearman" else "models.title_items")


def _choose_metric() -> str:
    return links.segmented(
        "metric", say("models.metric"), METRICS, format_option=local_metric_title
    )


def _titles(metric: str, *columns: str) -> dict[str, str]:
    """Return the titles of a chart of a metric."""
    return (
        titles("history", "n", "low", "high", *columns)
        | history_names()
        | {"value": local_metric_title(metric)}
    )


def _format_estimate(metric: str, estimate: Estimate, signed: bool = False) -> str:
    """Return an estimate with its interval as Markdown."""
    if math.isnan(estimate.value):
        return f"{local_metric_title(metric)}: {plain(local_remark(estimate.reason))}"
    spec = "+.3f" if signed else ".3f"
    value, low, high = (
        format_number(number, spec) for number in (estimate.value, estimate.low, estimate.high)
    )
    interval = f" [{low}{'; ' if current_language() == 'de' else ', '}{high}]"
    if math.isnan(estimate.low):
        interval = f" [–] ({plain(local_remark(estimate.reason))})" if estimate.reason else " [–]"
    return f"{local_metric_title(metric)} **{value}**{interval}"


def _show_missing(study: Study, items: pl.DataFrame) -> None:
    if n_missing := len(study.items) - len(items):
        st.caption(say("models.missing", n=n_missing))


def _resamples(n_items: int) -> int:
    """Return the number of resamples; 0 (no interval) for many items unless an interval is requested."""
    is_requested = n_items <= MAX_ITEMS_AT_ONCE or links.toggle(
        "interval", say("models.interval"), help=say("models.interval_help")
    )
    return RESAMPLES if is_requested else 0


def _history_difference(
    study: Study, with_history: Result, without_history: Result, resamples: int
) -> Mapping[str, Estimate]:
    """Return the differences of the correlations with and without history; empty if unreadable."""
    first, second = load_predictions(study, with_history), load_predictions(study, without_history)
    if first is None or second is None:
        return {}
    return _paired(study, first.stamp, second.stamp, resamples, first, second)


def _ceiling(study: Study, metric: str) -> tuple[float, float, float] | None:
    """Return value, low and high of the noise ceiling; if undefined, show the reason and return None."""
    is_slow = study.judgments is not None and len(study.judgments) > MAX_JUDGMENTS_AT_ONCE
    if is_slow and not links.toggle(
        "ceiling", say("models.ceiling_wanted"), help=say("models.interval_help")
    ):
        return None
    try:
        with st.spinner(say("models.working")):
            ceiling = ceiling_of(study)
    except InputError as error:
        reasons = [literal(without_folder(problem)) for problem in error.problems]
        st.caption(" ".join([say("models.no_ceiling"), *reasons]))
        return None
    if ceiling is None:
        is_absolute = study.published is not None
        st.caption(say("models.no_absolute_ceiling" if is_absolute else "models.no_judgments"))
        return None
    if metric not in ceiling:
        st.caption(say("models.no_ceiling_inside"))
        return None
    estimate = ceiling[metric]
    if (
        limit := limits_of(study).get("ipsative_limit", {}).get(metric)
        if study.published is None
        else None
    ):
        st.caption(say("models.ipsative_limit", value=format_number(limit.value, ".3f")))
    elif estimate.extra.get("equal_dialogue_means"):
        st.caption(say("models.equal_dialogue_means"))
    if estimate.reason:
        st.caption(plain(local_remark(estimate.reason)))
    return estimate.value, estimate.low, estimate.high


@cached_table
def _joined(study: Study, stamp: str, _predictions: PredictionTable) -> pl.DataFrame:
    return frames.join_predictions(study.items, _predictions.table)


@cached_table
def _compared(
    study: Study, stamp: str, second_stamp: str, _first: PredictionTable, _second: PredictionTable
) -> pl.DataFrame:
    return frames.compare_ranks(study.items, _first.table, _second.table)


@cached_table
def _paired(
    study: Study,
    stamp: str,
    second_stamp: str,
    resamples: int,
    _first: PredictionTable,
    _second: PredictionTable,
) -> dict[str, Estimate]:
    predicted_items = frames.join_predictions(
        frames.join_predictions(study.items, _first.table, "first"), _second.table, "second"
    )
    first, second, score = (
        predicted_items[name].to_numpy() for name in ("first", "second", "score")
    )
    dialogue = frames.dialogue_index(predicted_items)
    return paired_correlations(first, second, score, dialogue, resamples=resamples)
