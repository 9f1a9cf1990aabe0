"""The page "Annotation": progress, annotators, reliability and agreement; live if there is a ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl
import streamlit as st

from app.explorer import links
from app.explorer.annotation.charts import (
    annotators_chart,
    places_chart,
    seconds_chart,
    time_chart,
    tuples_chart,
)
from app.explorer.annotation.data import (
    Figures,
    Progress,
    behind,
    consistency,
    figures,
    from_judgments,
    from_ledger,
    ledger_version,
    over_time,
    tuple_counts,
)
from app.explorer.caching import cached
from app.explorer.display import show_chart, show_problems, show_result, show_table
from app.explorer.labels import say
from app.explorer.study import Study
from bws.problems import InputError

if TYPE_CHECKING:
    from bws.records import Judgments
    from bws.tables import ResultTable

__all__ = ["show"]

SECONDS = 10
"""Between two looks at a ledger."""
MOST_WANTED = 1000
TITLES = (
    *(
        "tuple",
        "tuples",
        "judgments",
        "missing",
        "share",
        "complete",
        "behind",
        "time",
        "annotator",
    ),
    *("flags", "reasons", "compliance", "majority", "seconds", "shortest", "duration", "place_p"),
    *("same_answer", "look", "fine", "from", "to", "answer", "best", "worst", "place"),
    *("count", "low", "high", "expected", "comment"),
)
MOST_JUDGMENTS = 30_000
"""Of more, reliability and agreement are computed when they are asked for."""


def show(study: Study) -> None:
    """Show the page."""
    sources = [name for name in ("ledger", "file") if _given(study, name)]
    if not sources:
        st.info(say("annotation.nothing"))
        return
    source = sources[0]
    if len(sources) > 1:
        source = links.segmented(
            "source",
            say("annotation.source"),
            sources,
            shown=lambda name: say(f"annotation.from_{name}"),
        )
    if source == "file":
        _show_file(study)
    else:
        _show_ledger(str(study.ledger))


def _given(study: Study, source: str) -> bool:
    return bool(study.ledger) if source == "ledger" else study.judgments is not None


def _show_file(study: Study) -> None:
    progress = _of_file(study)
    wanted = links.number(
        "wanted",
        say("annotation.wanted"),
        1,
        MOST_WANTED,
        min(progress.usual, MOST_WANTED),
        help=say("annotation.wanted_help"),
        width=260,
    )
    _show_all(progress, wanted)


@cached
def _of_file(study: Study) -> Progress:
    assert study.judgments is not None
    return replace(from_judgments(study.judgments), key=study.key)


def _show_ledger(path: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        live = links.toggle("live", say("annotation.live"))
        st.button(say("annotation.refresh"), key="refresh", icon=":material/refresh:")
    st.fragment(_look_at_ledger, run_every=SECONDS if live else None)(path)


def _look_at_ledger(path: str) -> None:
    try:
        progress = _of_ledger(path, ledger_version(path))
    except InputError as error:
        show_problems(say("page.cannot_read"), error.problems)
    else:
        if progress.simulated:
            st.caption(say("annotation.simulated"))
        _show_all(progress, progress.usual)


@st.cache_resource(show_spinner=False, max_entries=4)
def _of_ledger(path: str, version: tuple[int, ...]) -> Progress:
    """Read a ledger anew only where something was written to it."""
    return replace(from_ledger(path), key=f"{path} {version}")


@st.cache_resource(show_spinner=False, max_entries=8)
def _figures(key: str, _judgments: Judgments) -> Figures:
    return figures(_judgments)


@st.cache_resource(show_spinner=False, max_entries=8)
def _consistency(key: str, _judgments: Judgments) -> dict[str, ResultTable]:
    return consistency(_judgments)


def _show_all(progress: Progress, wanted: int) -> None:
    judgments = progress.judgments
    titles = {name: say(f"annotation.title_{name}") for name in TITLES}
    known = None if judgments is None else _figures(progress.key, judgments)
    if progress.replaced:
        st.caption(say("annotation.replaced", n=progress.replaced))
    _show_state(progress)
    _show_numbers(progress, known, wanted)
    _show_progress(progress, wanted, titles)
    if known is None:
        st.info(say("annotation.no_judgments"))
        return
    _show_annotators(known, titles)
    _show_times(known, titles)
    _show_places(known, titles)
    _show_consistency(progress)
    _show_comments(known, titles)


def _show_state(progress: Progress) -> None:
    """Say what the ledger knows besides judgments, and what is left out."""
    from mturk.study.status import local_time

    if progress.hits:
        at = progress.collected
        known = say("annotation.collected", time=local_time(at)) if at else None
        st.caption(known or say("annotation.none_collected"))
        lines = [say("annotation.hits", said=_counted("hit", progress.hits))]
        if progress.assignments:
            lines.append(
                say("annotation.assignments", said=_counted("state", progress.assignments))
            )
        st.text("\n".join(lines))
    if left := _counted("left", progress.left_out):
        st.warning(say("annotation.left_out", said=left))


def _counted(prefix: str, counts: Mapping[str, int]) -> str:
    said = [say(f"annotation.{prefix}_{name}", n=n) for name, n in counts.items() if n]
    return ", ".join(said)


def _show_numbers(progress: Progress, known: Figures | None, wanted: int) -> None:
    from mturk.study.status import local_time

    total = len(progress.of_tuple)
    complete = sum(n >= wanted for n in progress.of_tuple.values())
    annotators = 0 if known is None or known.annotators is None else len(known.annotators)
    with st.container(horizontal=True):
        st.metric(say("annotation.judgments_in"), f"{sum(progress.of_tuple.values()):,}")
        st.metric(
            say("annotation.tuples_complete"),
            say("annotation.complete_of", n=complete, total=total),
            f"{complete / total:.0%}" if total else None,
            delta_color="off",
            delta_arrow="off",
        )
        st.metric(say("annotation.annotators_in"), annotators)
        if progress.pace is not None and progress.pace.per_hour == progress.pace.per_hour:
            end = progress.pace.end
            ends = say("annotation.pace_end", time=local_time(end)) if end == end else None
            st.metric(
                say("annotation.pace"),
                f"{progress.pace.per_hour:,.0f}",
                ends,
                delta_color="off",
                delta_arrow="off",
            )


def _show_progress(progress: Progress, wanted: int, titles: Mapping[str, str]) -> None:
    st.subheader(say("annotation.progress"), anchor=False)
    left, right = st.columns(2)
    with left:
        st.markdown(f"**{say('annotation.per_tuple')}**")
        counts = tuple_counts(progress.of_tuple)
        show_chart(tuples_chart(counts, wanted, titles), "tuples", counts)
    with right:
        if progress.submitted is None:
            st.info(say("annotation.no_judgments" if progress.hits else "annotation.no_times"))
        else:
            st.markdown(f"**{say('annotation.over_time')}**")
            grown = over_time(progress.submitted)
            show_chart(time_chart(grown, titles), "judgments-over-time", grown)
    lacking = behind(progress.of_tuple, wanted)
    if len(lacking):
        with st.expander(say("annotation.behind_title", n=len(lacking))):
            show_table(lacking, "tuples-behind", column_config=_columns(lacking, titles))


def _show_annotators(known: Figures, titles: Mapping[str, str]) -> None:
    from bws.annotators import FALSE_ALARM_RATE, MAX_SDS_BELOW_MEDIAN, MIN_JUDGMENTS

    st.subheader(say("annotation.annotators"), anchor=False)
    frame = known.annotators
    if frame is None:
        st.info(say("annotation.no_annotators"))
        return
    unusual = frame.filter(pl.col("flags").list.len() > 0).height
    told = say("annotation.look_at", n=unusual, total=len(frame))
    st.markdown(told if unusual else say("annotation.nobody_to_look_at"))
    if known.unnamed:
        st.caption(say("annotation.unnamed", n=known.unnamed))
    show_chart(annotators_chart(frame, titles), "annotators-chart", frame)
    words = {
        flag: say(f"annotation.flag_{flag}") for flag in ("compliance", "seconds", "places", "same")
    }
    told_frame = frame.with_columns(pl.col("flags").list.eval(pl.element().replace(words)))
    known_of_some = [column.name for column in told_frame if column.null_count() < len(column)]
    show_table(
        told_frame.select(known_of_some), "annotators", column_config=_columns(frame, titles)
    )
    with st.expander(say("annotation.flags_title")):
        st.markdown(
            say(
                "annotation.flags",
                few=MIN_JUDGMENTS,
                far=MAX_SDS_BELOW_MEDIAN,
                alarm=FALSE_ALARM_RATE,
            )
        )


def _show_times(known: Figures, titles: Mapping[str, str]) -> None:
    st.subheader(say("annotation.times"), anchor=False)
    if not len(known.seconds):
        st.info(say("annotation.no_seconds"))
        return
    if known.untimed:
        st.caption(say("annotation.untimed", n=known.untimed))
    axis = {**titles, "seconds": titles["duration"]}
    show_chart(seconds_chart(known.seconds, axis), "times", known.seconds)


def _show_places(known: Figures, titles: Mapping[str, str]) -> None:
    st.subheader(say("annotation.places"), anchor=False)
    if known.places is None:
        st.info(say("annotation.no_shown"))
        return
    st.markdown(say("annotation.places_said", k=known.places["place"].max()))
    show_chart(places_chart(known.places, titles), "places", known.places)


def _show_consistency(progress: Progress) -> None:
    judgments = progress.judgments
    assert judgments is not None
    st.subheader(say("annotation.reliability"), anchor=False)
    st.markdown(say("annotation.reliability_said"))
    if len(judgments) > MOST_JUDGMENTS and not links.toggle(
        "consistency", say("annotation.compute")
    ):
        return
    with st.spinner(say("annotation.computing")):
        tables = _consistency(progress.key, judgments)
    for name, table in tables.items():
        show_result(table, name)


def _show_comments(known: Figures, titles: Mapping[str, str]) -> None:
    st.subheader(say("annotation.comments"), anchor=False)
    if not len(known.comments):
        st.info(say("annotation.no_comments"))
        return
    wanted = links.text("comments", say("annotation.search_comments"))
    lower = pl.col("comment").str.to_lowercase()
    shown = known.comments.filter(lower.str.contains(wanted.lower(), literal=True))
    show_table(shown, "comments", column_config=_columns(shown, titles))


def _columns(frame: pl.DataFrame, titles: Mapping[str, str]) -> dict[str, object]:
    """Return titles and formats of a table's columns."""
    columns: dict[str, object] = {}
    for name, kind in frame.schema.items():
        place = name.removeprefix("best at ")
        title = titles.get(name) or f"{say('annotation.title_best_at')} {place}"
        if kind.is_float():
            digits = "%.1f" if name in ("seconds", "shortest") else "%.3f"
            columns[name] = st.column_config.NumberColumn(title, format=digits)
        elif isinstance(kind, pl.List):
            columns[name] = st.column_config.ListColumn(title)
        else:
            columns[name] = st.column_config.Column(
                title, width="large" if name == "comment" else None
            )
    return columns
