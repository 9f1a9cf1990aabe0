"""The page "Overview": the scores, domains and lengths, the noise ceiling, reliability and agreement."""

from __future__ import annotations

import math
from importlib.util import find_spec
from typing import TYPE_CHECKING

import polars as pl
import streamlit as st

from app.explorer import links
from app.explorer.caching import cached, ceiling_of
from app.explorer.display import show_chart, show_missing_package, show_problems, show_result
from app.explorer.labels import literal, say
from app.explorer.overview import data as frames
from app.explorer.overview.charts import sizes_chart
from app.explorer.study import Study
from bws.problems import InputError

if TYPE_CHECKING:
    from bws.tables import ResultTable
    from giccs.description.distribution import Bin
    from giccs.measures.metrics import Estimate

__all__ = ["show"]

MOST_JUDGMENTS = 30_000
"""So many are broken down at once; of more, only when asked for."""
MOST_DOMAINS = 30


def show(study: Study) -> None:
    """Show the page."""
    _show_facts(study)
    left, right = st.columns(2, gap="large")
    with left:
        _show_distribution(study)
    with right:
        _show_sizes(study)
    _show_ceiling(study)
    _show_consistency(study)
    _show_description(study)


def _show_facts(study: Study) -> None:
    with st.container(horizontal=True, gap="large"):
        for name, count in frames.facts(study).items():
            st.metric(say(f"overview.{name}"), _grouped(count), width="content")


def _grouped(count: int) -> str:
    """Return a number in groups of three as both languages write it: 3 000."""
    return f"{count:,}".replace(",", "\u202f")


def _show_distribution(study: Study) -> None:
    from giccs.description.distribution import distribution_table
    from giccs.description.figures import score_distribution

    st.subheader(say("overview.distribution"), anchor=False)
    bins = _bins(study)
    chart = score_distribution(bins)
    chart.encoding.x.title, chart.encoding.y.title = say("overview.score"), say("overview.items")
    table = distribution_table(bins).select("low", "high", "items")
    show_chart(chart, "scores", table.frame(), alt=say("overview.distribution"))


@cached
def _bins(study: Study) -> tuple[Bin, ...]:
    from giccs.description.distribution import distribution

    return distribution(study.items["score"].to_list())


def _show_sizes(study: Study) -> None:
    st.subheader(say("overview.sizes"), anchor=False)
    sizes = _sizes(study)
    domains = sizes.group_by("domain").agg(pl.col("items").sum()).sort("items", descending=True)
    drawn = sizes
    if len(domains) > MOST_DOMAINS:
        drawn = sizes.filter(pl.col("domain").is_in(domains["domain"].head(MOST_DOMAINS).implode()))
        st.caption(say("overview.most_domains", most=MOST_DOMAINS, total=len(domains)))
    titles = {name: say(f"overview.{name}") for name in ("domain", "turns", "items", "dialogues")}
    show_chart(sizes_chart(drawn, titles), "sizes", sizes, alt=say("overview.sizes"))


@cached
def _sizes(study: Study) -> pl.DataFrame:
    return frames.sizes(study.items)


def _wanted(key: str, much: bool) -> bool:
    """Return whether to compute a part now: at once where it is little, else when it is asked for."""
    return not much or links.toggle(
        f"overview-{key}", say("overview.compute"), help=say("overview.much")
    )


def _show_ceiling(study: Study) -> None:
    if study.judgments is None:
        return
    st.subheader(say("overview.ceiling"), anchor=False, help=say("overview.ceiling_help"))
    if not _wanted("ceiling", len(study.judgments) > MOST_JUDGMENTS):
        return
    try:
        with st.spinner(say("overview.working")):
            found = ceiling_of(study) or {}
    except InputError as error:
        show_problems(say("overview.no_ceiling"), error.problems)
        return
    with st.container(horizontal=True, gap="large"):
        for name, estimate in found.items():
            st.metric(
                say(f"overview.{name}"),
                _number(estimate.value),
                _interval(estimate),
                delta_color="off",
                delta_arrow="off",
                width="content",
            )
    for reason in dict.fromkeys(estimate.reason for estimate in found.values() if estimate.reason):
        st.caption(literal(reason))


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}"


def _interval(estimate: Estimate) -> str:
    if math.isnan(estimate.low):
        return "–"
    return f"{estimate.low:.3f} – {estimate.high:.3f}"


def _show_consistency(study: Study) -> None:
    st.subheader(say("overview.consistency"), anchor=False, help=say("overview.consistency_help"))
    if study.judgments is None:
        st.caption(say("dialogues.no_judgments"))
        return
    if not _wanted("consistency", len(study.judgments) > MOST_JUDGMENTS):
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
    if not _wanted("description", True):  # tables of lemmas take seconds to load, whatever the size
        return
    try:
        with st.spinner(say("overview.working")):
            lemmatiser, table = _description(study)
    except ValueError as error:  # no language, or none that has lemmas
        st.info(say("overview.no_lemmas", why=literal(str(error))))
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
