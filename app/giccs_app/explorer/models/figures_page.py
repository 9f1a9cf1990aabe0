"""The view "Figures": differences of all pairs of models, subsets of all models, calibration, prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl
import streamlit as st

from bws.base.problems import InputError
from giccs.measures.results import Result, history_of
from giccs.report.figures.calibration import (
    TITLES as CALIBRATION_TITLES,
)
from giccs.report.figures.calibration import (
    Calibration,
    calibration_chart,
    calibrations,
    unusable_reason,
)
from giccs.report.figures.differences import (
    MAX_LISTED_PAIRS,
    difference_chart,
    difference_frame,
    difference_matrix,
)
from giccs.report.figures.differences import (
    TITLES as DIFFERENCE_TITLES,
)
from giccs.report.figures.effects import PROMPT_TITLES, prompt_chart, prompt_frame
from giccs.report.figures.leaderboard import (
    MAX_MODELS,
    leaderboard_chart,
    leaderboard_frame,
)
from giccs.report.figures.leaderboard import (
    TITLES as LEADERBOARD_TITLES,
)
from giccs.report.figures.panels import full_name, model_and_prompt
from giccs.report.figures.subsets import TITLES as SUBSET_TITLES
from giccs.report.figures.subsets import main_metric_of, subset_chart, subset_frame
from giccs.report.model_comparison import Leaderboard, ModelComparison
from giccs.report.setting_effects import prompt_table
from giccs.tasks import result_kind
from giccs_app.explorer import links
from giccs_app.explorer.caching import cached
from giccs_app.explorer.display import (
    number_column,
    offer_view,
    show_chart,
    show_problems,
    show_table,
)
from giccs_app.explorer.labels import format_number, literal, plain, say
from giccs_app.explorer.labels.remarks import local_remark
from giccs_app.explorer.models.comparisons import compare_results, stamp_of, with_predictions
from giccs_app.explorer.models.data import METRICS, best_first, key
from giccs_app.explorer.models.selection import (
    BY_CHOOSER,
    BY_MODEL,
    choose,
    history_name,
    history_names,
    local_metric_title,
    show_selected_model,
)
from giccs_app.explorer.study import Study

BY_PAIR = {"first": "first_key", "second": "second_key"}
"""Parameters of the link -> columns by which a pair of models is selected."""
MAX_VALUES_AT_ONCE = 100_000
"""Number of items times models above which differences are computed on request only."""


def show_figures(study: Study, results: list[Result]) -> None:
    """Show the figure given by the link."""
    is_choice = result_kind(results[0].task).tables == "choices"
    figures = {
        "leaderboard": _show_leaderboard,
        "differences": _show_differences,
        "subsets": _show_subsets,
    }
    if is_choice:
        figures["calibration"] = _show_calibration
    elif result_kind(results[0].task).tables == "pairs":
        figures["prompts"] = _show_prompts
    name = links.segmented(
        "figure",
        say("figures.figure"),
        list(figures),
        format_option=lambda figure: say(f"figures.name_{figure}"),
    )
    figures[name](study, results)


def _choose_board(study: Study, results: list[Result]) -> Leaderboard | None:
    """Return the leaderboard of the selected metric and history, or show why there is none."""
    comparison = _comparison(study, results)
    if comparison is None:
        return None
    boards = {(board.metric, board.history): board for board in comparison.leaderboards}
    for reason in dict.fromkeys(map(str, comparison.skipped)):
        st.caption(plain(local_remark(reason)))
    if not boards:
        st.info(say("figures.no_differences"))
        return None
    metric = _choose_metric(list(dict.fromkeys(metric for metric, _ in boards)))
    history = _choose_history([history for name, history in boards if name == metric])
    return boards[metric, history]


def _show_leaderboard(study: Study, results: list[Result]) -> None:
    board = _choose_board(study, results)
    if board is None:
        return
    frame, metric = leaderboard_frame(board, history_names()), board.metric
    drawn = frame.head(MAX_MODELS)
    if len(frame) > MAX_MODELS:
        further = links.multiselect(
            "further", say("figures.further_models"), frame["model"][MAX_MODELS:].to_list(),
            placeholder=say("page.choose"),
        )  # fmt: skip
        drawn = frame.filter((pl.col("row") <= MAX_MODELS) | pl.col("model").is_in(further))
        st.caption(say("figures.best_models", n=MAX_MODELS, total=len(frame)))
    titles = _titles(LEADERBOARD_TITLES) | {"value": local_metric_title(metric)}
    table = frame.select("row", "model", "value", "low", "high", "rank_low", "rank_high")
    config = _columns(table, titles | {"row": titles["rank"]})
    show_table(table, f"leaderboard {metric} table", column_config=config)
    keys = pl.Series([model.key for model in board.models], dtype=pl.String)
    drawn = drawn.with_columns(key=keys.gather(drawn["row"] - 1))
    chart = leaderboard_chart(drawn, titles, is_stretched=True)
    show_chart(chart, f"leaderboard {metric}", frame, select=_by_model(results))
    _show_selected(results)
    st.caption(say("figures.leaderboard_said"))


def _show_differences(study: Study, results: list[Result]) -> None:
    board = _choose_board(study, results)
    if board is None:
        return
    metric = board.metric
    frame = difference_frame(board, history_names())
    visible = _pairs_of_model(board, frame)
    draw = difference_chart if len(visible) <= MAX_LISTED_PAIRS else difference_matrix
    if len(visible) < len(frame):
        draw = difference_chart
    titles = _titles(DIFFERENCE_TITLES) | {"value": local_metric_title(metric)}
    keys = {
        full_name(model.model, model.history, history_names()): model.key for model in board.models
    }
    keyed = visible.with_columns(
        pl.col(name).replace_strict(keys, return_dtype=pl.String).alias(f"{name}_key")
        for name in ("first", "second")
    )
    select = BY_PAIR if _are_pairwise(results) else None
    chart = draw(keyed, titles, is_stretched=True)
    show_chart(chart, f"differences {metric}", visible, select=select)
    if select and links.value("first") and links.value("second"):
        offer_view("models.view_against", view="against")
    st.caption(say("figures.differences_said", n=len(frame)))
    verdicts = {name: titles[name] for name in ("significant", "not_significant", "untested")}
    columns = ["first", "second", "value", "low", "high", "p", "p_holm", "verdict", "n", "reason"]
    table = visible.select(columns).with_columns(pl.col("verdict").replace(verdicts))
    show_table(table, f"differences {metric} table", column_config=_columns(table, titles))


def _pairs_of_model(board: Leaderboard, frame: pl.DataFrame) -> pl.DataFrame:
    """Show a widget to select a model, and return its pairs; by default all pairs."""
    models = list(dict.fromkeys([*frame["first"], *frame["second"]]))
    options = ["", *(str(number) for number in range(len(models)))]
    chosen = links.selectbox(
        "pairs_of",
        say("figures.pairs_of"),
        options,
        format_option=lambda number: models[int(number)] if number else say("figures.all_pairs"),
    )
    if not chosen:
        return frame
    name = models[int(chosen)]
    return frame.filter((pl.col("first") == name) | (pl.col("second") == name))


def _comparison(study: Study, results: Sequence[Result]) -> ModelComparison | None:
    """Return the comparison of all pairs; None if it is large and not requested."""
    if len(study.items) * len(results) > MAX_VALUES_AT_ONCE and not links.toggle(
        "interval", say("models.interval"), help=say("models.interval_help")
    ):
        return None
    with st.spinner(say("models.working")):
        comparison, problems = compare_results(study, results)
    if problems:
        show_problems(say("models.no_predictions"), problems)
    return comparison


def _show_subsets(study: Study, results: list[Result]) -> None:
    metric = main_metric_of(results)
    if result_kind(results[0].task).tables == "pairs":
        metric = _choose_metric(METRICS)
    frame = subset_frame(results, metric, history_names())
    divisions = list(dict.fromkeys(frame["division"]))
    if not divisions:
        st.info(say("models.no_parts"))
        return
    by = links.segmented("by", say("models.by"), divisions, format_option=_division_name)
    cells = frame.filter(pl.col("division") == by).with_columns(
        pl.col("subset").str.strip_prefix(f"{by}=")
    )
    titles = _titles(SUBSET_TITLES) | {"value": local_metric_title(metric)}
    titles["subset"] = _division_name(by)
    select = _by_model(results)
    keyed = cells
    if select:
        keys = _keys_by_name(results)
        key_of_row = pl.col("model").replace_strict(keys, default=None, return_dtype=pl.String)
        keyed = cells.with_columns(key=key_of_row)
    chart = subset_chart(keyed, titles, is_stretched=True)
    show_chart(chart, f"subsets {metric} {by}", cells, select=select)
    _show_selected(results)
    st.caption(say("figures.subsets_said"))
    if n_missing := cells["value"].null_count():
        st.caption(say("figures.subsets_missing", n=n_missing))
    table = cells.drop("label", "division")
    show_table(table, f"subsets {metric} {by} table", column_config=_columns(table, titles))


def _division_name(division: str) -> str:
    is_known = division in ("domain", "n_turns", "source")
    return say(f"models.by_{division}") if is_known else literal(division)


def _show_calibration(study: Study, results: list[Result]) -> None:
    result = choose("chooser", say("models.model"), best_first(results, "accuracy"))
    try:
        measured, reason = _calibrated(study, stamp_of(study, [result]), result)
    except InputError as error:
        show_problems(say("models.no_predictions"), error.problems)
        return
    if not measured:
        st.info(say("figures.no_calibration", reason=plain(local_remark(reason))))
        return
    history = _choose_history(list(measured))
    chosen, titles = measured[history], _titles(CALIBRATION_TITLES)
    show_chart(calibration_chart(chosen.bins, titles), f"calibration {history}", chosen.bins)
    error_text = format_number(chosen.error, ".3f")
    st.markdown(say("figures.calibration_error", value=error_text, n=chosen.questions))
    if chosen.skipped:
        st.caption(say("figures.calibration_skipped", n=chosen.skipped))
    st.caption(say("figures.calibration_said"))
    columns = _columns(chosen.bins, titles)
    show_table(chosen.bins, f"calibration {history} table", column_config=columns)


@cached
def _calibrated(study: Study, stamp: str, _result: Result) -> tuple[Mapping[str, Calibration], str]:
    """Return the calibration per history, or no calibration and the reason."""
    predicted = with_predictions(study, _result)
    if reason := unusable_reason(predicted):
        return {}, reason
    return dict(calibrations(predicted)), ""


def _show_prompts(study: Study, results: list[Result]) -> None:
    table = prompt_table(results)
    if table is None:
        st.info(say("figures.no_prompts"))
        return
    frame = prompt_frame(table, history_names())
    titles = _titles(PROMPT_TITLES) | {"value": local_metric_title("spearman")}
    show_chart(prompt_chart(frame, titles), "prompts", frame)
    st.caption(say("figures.prompts_said"))
    ordered = frame.select("label", "prompts", "minimum", "median", "maximum", "ranks")
    columns = _columns(ordered, titles | {"label": titles["model"]})
    show_table(ordered, "prompts table", column_config=columns)


def _are_pairwise(results: Sequence[Result]) -> bool:
    return result_kind(results[0].task).tables == "pairs"


def _by_model(results: Sequence[Result]) -> Mapping[str, str] | None:
    """Return by which parameter of the link a model is selected; None for tasks without views of a model."""
    kind = result_kind(results[0].task).tables
    return {"pairs": BY_MODEL, "choices": BY_CHOOSER}.get(kind)


def _show_selected(results: list[Result]) -> None:
    if _are_pairwise(results):
        show_selected_model(results)


def _keys_by_name(results: Sequence[Result]) -> dict[str, str]:
    """Return the keys of results by the full names of their models, for all histories of a result."""
    return {
        full_name(model_and_prompt(result), history, history_names()): key(result)
        for result in results
        for history in ([history_of(result)] if _are_pairwise(results) else ("with", "without", ""))
    }


def _choose_metric(metrics: Sequence[str]) -> str:
    return links.segmented(
        "metric", say("models.metric"), metrics, format_option=local_metric_title
    )


def _choose_history(histories: Sequence[str]) -> str:
    if len(histories) == 1:
        return histories[0]
    return links.segmented(
        "history", say("models.view_histories"), histories, format_option=history_name
    )


def _titles(names: Mapping[str, str]) -> dict[str, str]:
    return {name: say(f"figures.{name}") for name in names}


def _columns(table: pl.DataFrame, titles: Mapping[str, str]) -> dict[str, object]:
    formats = dict.fromkeys(("p", "p_holm"), "%.2g")
    return {
        name: number_column(titles[name], format=formats.get(name, "%.3f"))
        if kind.is_float()
        else titles[name]
        for name, kind in table.schema.items()
    }
