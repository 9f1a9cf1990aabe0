"""The page "Overview": the scores, domains and lengths, the noise ceiling, reliability and agreement."""

from __future__ import annotations

import math
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import altair as alt
import polars as pl
import streamlit as st

from bws.analysis.analysis import Answers
from bws.analysis.judgments import ABSOLUTE, MEANS_PICTURE
from bws.base.ids import normal_id
from bws.base.problems import InputError
from giccs_app.explorer import links
from giccs_app.explorer.analysis_view import show_picture
from giccs_app.explorer.caching import cached, ceiling_of
from giccs_app.explorer.dialogues.data import candidates
from giccs_app.explorer.dialogues.pairs_section import show_pairs
from giccs_app.explorer.display import (
    number_column,
    offer_dialogue,
    section,
    show_chart,
    show_missing_package,
    show_problems,
    show_result,
    show_selected_item,
    show_table,
)
from giccs_app.explorer.labels import format_number, literal, local_numbers, plain, say
from giccs_app.explorer.labels.remarks import local_remark
from giccs_app.explorer.models.data import DIVISIONS
from giccs_app.explorer.models.selection import local_metric_title
from giccs_app.explorer.overview import data as frames
from giccs_app.explorer.overview.charts import sizes_chart
from giccs_app.explorer.overview.verdict import show_verdict
from giccs_app.explorer.study import Study
from giccs_app.explorer.uploads import without_folder

if TYPE_CHECKING:
    from bws.base.tables import ResultTable
    from bws.stats.estimates import Estimate
    from giccs.description.distribution import Bin

MAX_JUDGMENTS_AT_ONCE = 30_000
"""Reliability and agreement of more judgments are computed on request only."""
MAX_DOMAINS_SHOWN = 30
BY_ITEM = {"item": "item_id"}
"""Parameters of the link -> columns by which an item is selected."""
AXIS_HEIGHT = 60
"""Height of the axis of a chart with a row per item in pixels, which is part of its height on a page."""


def show(study: Study) -> None:
    """Show the page."""
    has_verdict = study.judgments is not None or study.store is not None
    verdict = st.container()
    if has_verdict:
        verdict.subheader(say("overview.verdict"), anchor=False)
    _show_counts(study)
    if study.is_plain:
        _show_plain_items(study)
    else:
        _show_benchmark(study)
    if has_verdict:  # it may take seconds, in which the other sections can be read
        with verdict:
            _show_verdict(study)


def _show_benchmark(study: Study) -> None:
    """Show scored items of dialogues."""
    left, right = st.columns(2, gap="large")
    with left:
        _show_distribution(study)
    with right:
        _show_sizes(study)
    _show_ceiling(study)
    _show_means(study)
    _show_consistency(study)
    _show_subsets(study)
    _show_ranked(study)
    _show_description(study)


def _show_plain_items(study: Study) -> None:
    """Show items without dialogues: their scores, and those on which annotators disagree most."""
    st.caption(say("overview.unit"))
    _show_distribution(study)
    _show_ranked(study)
    _show_means(study)
    _show_pairs(study)
    st.subheader(say("overview.doubtful"), anchor=False, help=say("overview.doubtful_help"))
    names = ("item_id", "utterance", "score", "low", "high", "rank_set", "disagreement")
    columns = [name for name in names if name in study.items.columns]
    frame = study.items.select(columns).sort("disagreement", descending=True, nulls_last=True)
    config: dict[str, object] = {}
    for name in columns:
        title, is_number = say(f"overview.plain_{name}"), frame.schema[name].is_float()
        config[name] = (
            number_column(title, format="%.3f") if is_number else st.column_config.Column(title)
        )
    show_table(frame, "items", column_config=config)
    _show_consistency(study)


def _show_pairs(study: Study) -> None:
    """Show the comparisons of plain items, of a group if there are several."""
    groups = study.items["dialogue_id"].unique(maintain_order=True).to_list()
    group = groups[0]
    if len(groups) > 1:
        group = links.selectbox("dialogue", say("overview.plain_group"), groups)
    items = candidates(study.items, group)
    show_pairs(study, group, items)
    columns = {
        "letter": say("models.title_letter"),
        "utterance": st.column_config.Column(say("overview.plain_utterance")),
        "score": number_column(say("overview.plain_score"), format="%.3f"),
    }
    shown = items.select("item_id", *columns)
    show_table(shown, f"letters {group}", select=BY_ITEM, column_config=columns | {"item_id": None})


def _show_verdict(study: Study) -> None:
    n_judgments = 0 if study.judgments is None else len(study.judgments)
    if _is_requested("verdict", n_judgments > MAX_JUDGMENTS_AT_ONCE):
        show_verdict(study)


def _show_counts(study: Study) -> None:
    with st.container(horizontal=True, gap="large"):
        for name, count in frames.counts(study).items():
            st.metric(say(f"overview.{name}"), _grouped(count), width="content")


def _grouped(count: int) -> str:
    """Return a number with thousands separators."""
    return format_number(count, ",")


def _show_distribution(study: Study) -> None:
    from giccs.description.distribution import distribution_table, score_distribution

    st.subheader(say("overview.distribution"), anchor=False)
    bins = _bins(study)
    chart = score_distribution(bins)
    x = say("overview.plain_score" if study.is_plain else "overview.score")
    y = say("overview.items")
    chart.encoding.x.title, chart.encoding.y.title = x, y
    chart.encoding.tooltip = [alt.Tooltip("score:O", title=x), alt.Tooltip("items:Q", title=y)]
    for row in chart.data.values:
        row["score"] = local_numbers(row["score"])
    table = distribution_table(bins).select("low", "high", "items")
    show_chart(chart, "scores", table.to_frame("polars"), alt=say("overview.distribution"))


@cached
def _bins(study: Study) -> tuple[Bin, ...]:
    from giccs.description.distribution import distribution

    return distribution(study.items["score"].to_list())


def _show_sizes(study: Study) -> None:
    st.subheader(say("overview.sizes"), anchor=False)
    sizes = _sizes(study)
    domains = sizes.group_by("domain").agg(pl.col("items").sum()).sort("items", descending=True)
    displayed_sizes = sizes
    if len(domains) > MAX_DOMAINS_SHOWN:
        displayed_sizes = sizes.filter(
            pl.col("domain").is_in(domains["domain"].head(MAX_DOMAINS_SHOWN).implode())
        )
        st.caption(say("overview.most_domains", most=MAX_DOMAINS_SHOWN, total=len(domains)))
    titles = {name: say(f"overview.{name}") for name in ("domain", "turns", "items", "dialogues")}
    show_chart(sizes_chart(displayed_sizes, titles), "sizes", sizes, alt=say("overview.sizes"))


@cached
def _sizes(study: Study) -> pl.DataFrame:
    return frames.sizes(study.items)


def _show_subsets(study: Study) -> None:
    """Show the distribution of the scores by domain, number of turns or source."""
    from giccs.report.figures.distributions import MAX_SUBSETS, TITLES, distribution_chart

    divisions = [name for name in DIVISIONS if study.items[name].n_unique() > 1]
    if not divisions:
        return
    st.subheader(say("overview.by_subset"), anchor=False)
    by = links.segmented(
        "scores_by",
        say("models.by"),
        divisions,
        format_option=lambda name: say(f"models.by_{name}"),
    )
    frame = _distributions(study, by)
    drawn = _largest(study, by)
    if (total := frame["subset"].n_unique()) > MAX_SUBSETS:
        st.caption(say("overview.largest_subsets", most=MAX_SUBSETS, total=total))
    titles = {name: say(f"overview.subset_{name}") for name in TITLES}
    labels = {text: local_numbers(text) for text in drawn["score"].unique()}
    chart = distribution_chart(drawn.with_columns(pl.col("score").replace(labels)), titles)
    show_chart(chart, f"scores by {by}", frame)
    st.caption(say("overview.by_subset_said"))


@cached
def _distributions(study: Study, by: str) -> pl.DataFrame:
    from giccs.report.figures.distributions import distribution_frame

    return distribution_frame(study.items[by].to_list(), study.items["score"].to_list())


@cached
def _largest(study: Study, by: str) -> pl.DataFrame:
    from giccs.report.figures.distributions import largest_subsets

    return largest_subsets(_distributions(study, by))


def _show_ranked(study: Study) -> None:
    """Show all items by score, with their intervals."""
    from bws.study_charts import RANKED_TITLES, ranked_chart

    section("items", say("overview.ranked"))
    rows, bands = _ranked(study)
    titles = {name: say(f"overview.ranked_{name}") for name in (*RANKED_TITLES, "utterance")}
    columns = ["item_id", "utterance", "score", "low", "high"]
    frame = study.items.select(name for name in columns if name in study.items.columns)
    frame = frame.sort("score", descending=True, maintain_order=True)
    chart = ranked_chart(rows, bands, titles)
    select = BY_ITEM
    if study.is_plain and study.items["dialogue_id"].n_unique() > 1:
        select = {**BY_ITEM, "dialogue": "dialogue_id"}
    taller = chart.properties(height=chart.height + AXIS_HEIGHT)
    show_chart(taller, "items by score", frame, select=select)
    show_selected_item(study, links.value("item"))
    is_judged = any("low" in row for row in rows)
    said = "ranked_intervals" if is_judged else "ranked_plain"
    st.caption(say("overview.ranked_absolute" if study.published else f"overview.{said}"))
    if len(rows) < len(study.items):
        st.caption(say("overview.ranked_thinned", n=len(rows), total=len(study.items)))


@cached
def _ranked(study: Study) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the drawn items and bands of `bws.study_charts.ranked_rows`, with utterances and ids."""
    from bws.study_charts import ranked_rows

    items = study.items
    limits = [
        items[name].fill_null(math.nan).to_numpy() if name in items.columns else None
        for name in ("low", "high")
    ]
    is_named_by_text = study.is_plain and items["utterance"].n_unique() == len(items)
    names = items["utterance" if is_named_by_text else "item_id"]
    rows, bands = ranked_rows(names.to_list(), items["score"].to_numpy(), *limits)
    further = items.select("item_id", "dialogue_id", "utterance").to_dicts()
    further_of = dict(zip(names, further, strict=True))
    return [{**row, **further_of[row["item"]]} for row in rows], bands


def _is_requested(key: str, is_slow: bool) -> bool:
    """Return whether to compute a section now: always if it is fast, otherwise on request."""
    return not is_slow or links.toggle(
        f"overview-{key}", say("overview.compute"), help=say("overview.much")
    )


def _show_means(study: Study) -> None:
    """Show the mean absolute scores of the groups with their intervals."""
    if study.published is None:
        return
    if study.scale is None:
        st.caption(say("overview.no_means"))
        return
    st.subheader(say("overview.means"), anchor=False, help=say("overview.means_help"))
    assert study.judgments is not None
    answers = Answers(study.judgments, results={ABSOLUTE.name: study.scale})
    show_picture(answers, ABSOLUTE, MEANS_PICTURE)
    dialogue = normal_id(links.value("dialogue") or "")
    if dialogue in study.scale.groups and not study.is_plain:
        st.caption(literal(dialogue))
        offer_dialogue(dialogue, place="means")


def _show_ceiling(study: Study) -> None:
    if study.judgments is None:
        return
    if study.published is not None and ceiling_of(study) is None:
        return  # see `_show_means`
    st.subheader(say("overview.ceiling"), anchor=False, help=say("overview.ceiling_help"))
    if not _is_requested("ceiling", len(study.judgments) > MAX_JUDGMENTS_AT_ONCE):
        return
    try:
        with st.spinner(say("overview.working")):
            ceiling = ceiling_of(study) or {}
    except InputError as error:
        show_problems(say("overview.no_ceiling"), error.problems)
        return
    with st.container(horizontal=True, gap="large"):
        for name, estimate in ceiling.items():
            st.metric(
                local_metric_title(name),
                _number(estimate.value),
                _interval(estimate),
                delta_color="off",
                delta_arrow="off",
                width="content",
            )
    for reason in dict.fromkeys(
        estimate.reason for estimate in ceiling.values() if estimate.reason
    ):
        st.caption(plain(local_remark(reason)))


def _number(value: float) -> str:
    return "–" if math.isnan(value) else format_number(value, ".3f")


def _interval(estimate: Estimate) -> str:
    if math.isnan(estimate.low):
        return "–"
    return f"{format_number(estimate.low, '.3f')} – {format_number(estimate.high, '.3f')}"


def _show_consistency(study: Study) -> None:
    st.subheader(say("overview.consistency"), anchor=False, help=say("overview.consistency_help"))
    if study.judgments is None:
        st.caption(say("dialogues.no_judgments"))
        return
    if not _is_requested("consistency", len(study.judgments) > MAX_JUDGMENTS_AT_ONCE):
        return
    with st.spinner(say("overview.working")):
        tables = _consistency(study)
    if not tables:
        st.caption(say("overview.nothing_judged"))
    for name, table in tables.items():
        st.markdown(f"**{say(f'overview.{name}')}**", help=say(f"overview.{name}_help"))
        show_result(table, name)


@cached
def _consistency(study: Study) -> dict[str, ResultTable]:
    return frames.consistency(study)


def _show_description(study: Study) -> None:
    st.subheader(say("overview.description"), anchor=False, help=say("overview.description_help"))
    if missing := [
        name for name in ("spacy", "simplemma", "lexicalrichness") if not find_spec(name)
    ]:
        show_missing_package(say("overview.description"), ", ".join(missing), "stats")
        return
    if not _is_requested("description", True):  # loading the lemma tables takes seconds
        return
    try:
        with st.spinner(say("overview.working")):
            lemmatiser, table = _description(study)
    except ValueError as error:  # no language, or a language without lemmas
        st.info(say("overview.no_lemmas", why=literal(without_folder(error))))
        return
    show_result(table, "description")
    st.caption(say("overview.lemmas_by", name=literal(lemmatiser)))


@cached
def _description(study: Study) -> tuple[str, ResultTable]:
    from giccs.benchmark.languages import required_language
    from giccs.description.lemmas import lemmatiser
    from giccs.description.statistics import describe, statistics_table

    items = study.benchmark.items
    lemmas = lemmatiser(required_language(items, study.benchmark.name, None, "lemmas"))
    return lemmas.name, statistics_table(describe(items, lemmas))
