"""The page "Annotation": progress, annotators, reliability and agreement; live if there is a ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, get_args

import numpy as np
import polars as pl
import streamlit as st
from numpy.typing import NDArray

from bws.analysis.analysis import Analysis, Answers
from bws.analysis.judgments import (
    AGREEMENT,
    ANNOTATORS,
    COMPONENTS,
    CURVE,
    PAIRS,
    PAIRS_PICTURE,
    PLAN,
    RELIABILITY,
    SCALES_PICTURE,
    AgreementSettings,
    ReliabilitySettings,
)
from bws.analysis.registry import further_analyses
from bws.base.problems import InputError
from giccs_app.explorer import links
from giccs_app.explorer.analysis_view import show_picture, show_tables
from giccs_app.explorer.annotation.charts import (
    annotators_chart,
    positions_chart,
    seconds_chart,
    time_chart,
    tuples_chart,
)
from giccs_app.explorer.annotation.data import (
    AnnotationFigures,
    AnnotationProgress,
    compute_figures,
    cumulative_judgments,
    from_judgments,
    from_ledger,
    incomplete_tuples,
    judgment_frame,
    ledger_version,
    tuple_counts,
)
from giccs_app.explorer.annotation.exclusion import show_exclusion
from giccs_app.explorer.annotation.history_section import history_of, show_history
from giccs_app.explorer.annotation.models_section import show_people_and_models
from giccs_app.explorer.caching import cached, reliability_of
from giccs_app.explorer.display import (
    BY_JUDGMENT,
    number_column,
    offer_dialogue,
    section,
    show_chart,
    show_problems,
    show_result,
    show_table,
)
from giccs_app.explorer.labels import current_language, format_number, literal, plain, say
from giccs_app.explorer.labels.remarks import local_remark, local_title
from giccs_app.explorer.study import Study, index_in_judgments
from giccs_app.stages import load_further_analysis

if TYPE_CHECKING:
    from bws.base.tables import ResultTable
    from bws.records import Judgments, Tuples

UPDATE_INTERVAL_SECONDS = 10
"""Interval of automatic updates from a ledger."""
MAX_REQUESTED = 1000
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
    *(
        "flags",
        "reasons",
        "compliance",
        "by_compliance",
        "majority",
        "seconds",
        "shortest",
        "duration",
        "place_p",
    ),
    *("scale", "scale_low", "scale_high", "scale_first", "scale_second"),
    *("same_answer", "look", "fine", "from", "to", "answer", "best", "worst", "place"),
    *("count", "low", "high", "expected", "comment", "dialogue"),
)
TARGETS = (0.9, 0.8, 0.95)
"""Target reliabilities, the default first."""
PICTURE_SETTINGS = {"reliability": {"height": 440}}
BY_ANNOTATOR = {"annotator": "annotator"}
"""Parameters of the link -> columns by which an annotator is selected."""
MAX_JUDGMENTS_AT_ONCE = 30_000
"""Reliability and agreement of more judgments are computed on request only."""


def show(study: Study) -> None:
    """Show the page."""
    sources = [name for name in ("ledger", "file") if _is_available(study, name)]
    if not sources:
        st.info(say("annotation.nothing"))
        return
    source = sources[0]
    if len(sources) > 1:
        source = links.segmented(
            "source",
            say("annotation.source"),
            sources,
            format_option=lambda name: say(f"annotation.from_{name}"),
        )
    if source == "file":
        _show_file(study)
    else:
        _show_ledger(study, str(study.ledger))


def _is_available(study: Study, source: str) -> bool:
    return bool(study.ledger) if source == "ledger" else study.judgments is not None


def prepare(study: Study) -> None:
    """Compute what takes long in advance."""
    if study.judgments is None:
        return
    progress = _file_progress(study)
    judgments, key = progress.judgments, progress.key
    assert judgments is not None
    _figures(key, judgments)
    _item_indices(key, study.key, study, judgments)
    computed: list[tuple[Answers, Analysis]] = [(_agreement(key, judgments), ANNOTATORS)]
    if len(judgments) <= MAX_JUDGMENTS_AT_ONCE and not judgments.is_adaptive:
        computed += [(reliability_of(key, judgments), each) for each in (RELIABILITY, PLAN, CURVE)]
        computed.append((_agreement(key, judgments), AGREEMENT))
        with suppress(ValueError):
            history_of(key, judgments, None)
    for answers, analysis in computed:
        with suppress(ValueError):  # told on the page
            answers.result(analysis)


def _show_file(study: Study) -> None:
    progress = _file_progress(study)
    requested = links.number(
        "wanted",
        say("annotation.wanted"),
        1,
        MAX_REQUESTED,
        min(progress.judgments_per_tuple, MAX_REQUESTED),
        help=say("annotation.wanted_help"),
        width=260,
    )
    _show_all(study, progress, requested)


@cached
def _file_progress(study: Study) -> AnnotationProgress:
    assert study.judgments is not None
    key = study.judgments_key
    return replace(from_judgments(study.judgments), key=key, names=study.annotator_names)


def _show_ledger(study: Study, path: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        is_live = links.toggle("live", say("annotation.live"))
        st.button(say("annotation.refresh"), key="refresh", icon=":material/refresh:")
    interval = UPDATE_INTERVAL_SECONDS if is_live else None
    st.fragment(_show_ledger_progress, run_every=interval)(study, path)


def _show_ledger_progress(study: Study, path: str) -> None:
    links.leave_fragment()
    try:
        progress = _ledger_progress(path, ledger_version(path))
    except InputError as error:
        show_problems(say("page.cannot_read"), error.problems)
    else:
        if progress.simulated:
            st.caption(say("annotation.simulated"))
        _show_all(study, progress, progress.judgments_per_tuple)


@st.cache_resource(show_spinner=False, max_entries=4)
def _ledger_progress(path: str, version: tuple[int, ...]) -> AnnotationProgress:
    """Return the progress of a ledger; it is read again only if it has changed."""
    return replace(from_ledger(path), key=f"{path} {version}")


@st.cache_resource(show_spinner=False, max_entries=8)
def _figures(key: str, _judgments: Judgments) -> AnnotationFigures:
    return compute_figures(_judgments)


@st.cache_resource(show_spinner=False, max_entries=8)
def _agreement(key: str, _judgments: Judgments) -> Answers:
    return Answers(_judgments, AgreementSettings(intervals=True))


def _reliability(key: str, judgments: Judgments, target: float) -> Answers:
    """Return `reliability_of` with another target, on which only the plan depends."""
    answers = reliability_of(key, judgments)
    results: dict[str, object] = {}
    for analysis in (RELIABILITY, COMPONENTS, CURVE):
        with suppress(ValueError):  # told by the section
            results[analysis.name] = answers.result(analysis)
    if CURVE.name in results:
        results[CURVE.name] = replace(answers.result(CURVE), target=target)
    return Answers(judgments, ReliabilitySettings(target=target), results=results)


@st.cache_resource(show_spinner=False, max_entries=8)
def _further_answers(key: str, _judgments: Judgments, name: str) -> Answers:
    return Answers(_judgments, load_further_analysis(name).settings())


@st.cache_resource(show_spinner=False, max_entries=8)
def _stopping(key: str, _judgments: Judgments, _tuples: Tuples | None) -> ResultTable:
    """Return the evidence for the end of an adaptive study."""
    from bws.adaptive import stopping

    return stopping(_judgments, _tuples).result_table()


@st.cache_resource(show_spinner=False, max_entries=8)
def _item_indices(
    key: str, study_key: str, _study: Study, _judgments: Judgments
) -> list[NDArray[np.int64]]:
    """Return `index_in_judgments` of the judgments of people and of each file of models."""
    sources = (_judgments, *_study.model_judgments)
    return [index_in_judgments(_study.benchmark, source.tuples) for source in sources]


def _judgments_where(
    study: Study, progress: AnnotationProgress, mask: Callable[[Judgments], NDArray[np.bool_]]
) -> pl.DataFrame:
    """Return the judgments of people and models for which a mask (J,) is true, as `judgment_frame`."""
    people = progress.judgments
    assert people is not None
    indices = _item_indices(progress.key, study.key, study, people)
    sources = zip((people, *study.model_judgments), indices, strict=True)
    frame = pl.concat(
        [
            judgment_frame(source.select(mask(source)), study.items, index)
            for source, index in sources
        ],
        how="diagonal",
    )
    return frame.with_columns(dialogue=pl.lit(None, pl.String)) if study.is_plain else frame


def _show_all(study: Study, progress: AnnotationProgress, requested: int) -> None:
    judgments = progress.judgments
    titles = {name: say(f"annotation.title_{name}") for name in TITLES}
    figures = None if judgments is None else _figures(progress.key, judgments)
    if progress.replaced:
        st.caption(say("annotation.replaced", n=progress.replaced))
    _show_state(progress)
    _show_numbers(progress, requested)
    _show_progress(progress, requested, titles)
    if judgments is None or figures is None:
        st.info(say("annotation.no_judgments"))
        return
    _show_annotators(figures, titles, progress)
    if figures.annotators is not None:
        flagged = figures.annotators.filter(pl.col("flags").list.len() > 0)["annotator"].to_list()
        show_exclusion(study, judgments, progress.key, flagged, progress.names)
    _show_annotator(study, progress, titles)
    show_people_and_models(study, judgments, progress.key)
    _show_pairs(progress)
    _show_times(figures, titles)
    _show_positions(figures, titles)
    _show_consistency(study, progress)
    _show_further_analyses(progress)
    _show_comments(figures, titles)
    _offer_dialogue(study, progress, "comments")


def _show_state(progress: AnnotationProgress) -> None:
    """Show the state of HITs and assignments, and skipped data."""
    if progress.hits:
        from mturk.study.status import local_time

        collected_at = progress.collected
        caption = (
            say("annotation.collected", time=local_time(collected_at)) if collected_at else None
        )
        st.caption(caption or say("annotation.none_collected"))
        lines = [say("annotation.hits", said=_describe_counts("hit", progress.hits))]
        if progress.assignments:
            lines.append(
                say("annotation.assignments", said=_describe_counts("state", progress.assignments))
            )
        st.text("\n".join(lines))
    if skipped := _describe_counts("left", progress.left_out):
        st.warning(say("annotation.left_out", said=skipped))


def _describe_counts(prefix: str, counts: Mapping[str, int]) -> str:
    texts = [say(f"annotation.{prefix}_{name}", n=n) for name, n in counts.items() if n]
    return ", ".join(texts)


def _show_numbers(progress: AnnotationProgress, requested: int) -> None:
    total = len(progress.n_by_tuple)
    complete = sum(n >= requested for n in progress.n_by_tuple.values())
    judgments = progress.judgments
    annotators = 0 if judgments is None else len({*judgments.annotator_of.tolist()} - {-1})
    with st.container(horizontal=True):
        st.metric(
            say("annotation.judgments_in"), format_number(sum(progress.n_by_tuple.values()), ",")
        )
        st.metric(
            say("annotation.tuples_complete"),
            say("annotation.complete_of", n=complete, total=total),
            format_number(complete / total, ".0%") if total else None,
            delta_color="off",
            delta_arrow="off",
        )
        st.metric(say("annotation.annotators_in"), annotators)
        if progress.pace is not None and progress.pace.per_hour == progress.pace.per_hour:
            from mturk.study.status import local_time

            end = progress.pace.end
            end_text = say("annotation.pace_end", time=local_time(end)) if end == end else None
            st.metric(
                say("annotation.pace"),
                format_number(progress.pace.per_hour, ",.0f"),
                end_text,
                delta_color="off",
                delta_arrow="off",
            )


def _show_progress(progress: AnnotationProgress, requested: int, titles: Mapping[str, str]) -> None:
    st.subheader(say("annotation.progress"), anchor=False)
    left, right = st.columns(2)
    with left:
        st.markdown(f"**{say('annotation.per_tuple')}**")
        counts = tuple_counts(progress.n_by_tuple)
        show_chart(tuples_chart(counts, requested, titles), "tuples", counts)
    with right:
        if progress.submitted is None:
            st.info(say("annotation.no_judgments" if progress.hits else "annotation.no_times"))
        else:
            st.markdown(f"**{say('annotation.over_time')}**")
            cumulative = cumulative_judgments(progress.submitted)
            show_chart(time_chart(cumulative, titles), "judgments-over-time", cumulative)
    incomplete = incomplete_tuples(progress.n_by_tuple, requested)
    if len(incomplete):
        with st.expander(say("annotation.behind_title", n=len(incomplete))):
            show_table(incomplete, "tuples-behind", column_config=_columns(incomplete, titles))


def _show_annotators(
    figures: AnnotationFigures, titles: Mapping[str, str], progress: AnnotationProgress
) -> None:
    from bws.annotators import FALSE_ALARM_RATE, MAX_RANDOM_SCALE, MIN_JUDGMENTS, Flag

    section("annotators", say("annotation.annotators"))
    frame = figures.annotators
    if frame is None:
        st.info(say("annotation.no_annotators"))
        return
    n_flagged = frame.filter(pl.col("flags").list.len() > 0).height
    summary = say("annotation.look_at", n=n_flagged, total=len(frame))
    st.markdown(summary if n_flagged else say("annotation.nobody_to_look_at"))
    if figures.too_few:
        st.caption(say("annotation.too_few", n=figures.too_few, total=len(frame)))
    if figures.unnamed:
        st.caption(say("annotation.unnamed", n=figures.unnamed))
    assert progress.judgments is not None
    if progress.judgments.is_adaptive:
        st.caption(say("annotation.adaptive_annotators"))
    show_picture(_agreement(progress.key, progress.judgments), AGREEMENT, SCALES_PICTURE)
    chart = annotators_chart(frame, titles)
    show_chart(chart, "annotators-chart", frame, select=BY_ANNOTATOR)
    flag_names = {flag: say(f"annotation.flag_{flag}") for flag in get_args(Flag)}
    translated = frame.with_columns(pl.col("flags").list.eval(pl.element().replace(flag_names)))
    columns = [column.name for column in translated if column.null_count() < len(column)]
    config = _columns(frame, titles)
    show_table(translated.select(columns), "annotators", select=BY_ANNOTATOR, column_config=config)
    with st.expander(say("annotation.flags_title")):
        st.markdown(
            say(
                "annotation.flags",
                few=MIN_JUDGMENTS,
                share=format_number(MAX_RANDOM_SCALE, "g"),
                alarm=format_number(FALSE_ALARM_RATE, "g"),
            )
        )


def _show_pairs(progress: AnnotationProgress) -> None:
    """Show the matrix of the agreement of all pairs of annotators."""
    assert progress.judgments is not None
    st.subheader(say("annotation.pairs"), anchor=False)
    n_annotators = len(progress.judgments.annotators)
    if n_annotators > (PAIRS_PICTURE.max_annotators or n_annotators) and not links.toggle(
        "pairs", say("annotation.many_pairs", n=n_annotators)
    ):
        return
    show_picture(_agreement(progress.key, progress.judgments), PAIRS, PAIRS_PICTURE)


def _show_annotator(study: Study, progress: AnnotationProgress, titles: Mapping[str, str]) -> None:
    """Show the judgments of the annotator that is selected in the link."""
    annotator = links.value("annotator") or ""
    own = _judgments_where(study, progress, lambda source: _is_by(source, annotator))
    own = own.drop("annotator")
    if own.is_empty():
        st.caption(say("annotation.select_annotator"))
        return
    st.markdown(f"**{say('annotation.judgments_of')}** {literal(annotator)}")
    columns = [column.name for column in own if column.null_count() < len(column)]
    config = _columns(own, titles)
    name = f"judgments {annotator}"
    show_table(own.select(columns), name, select={"tuple": "tuple"}, column_config=config)
    _offer_dialogue(study, progress, "annotator")


def _is_by(judgments: Judgments, annotator: str) -> NDArray[np.bool_]:
    """Return (J,) which judgments are those of an annotator."""
    is_by: NDArray[np.bool_] = np.append(judgments.annotators == annotator, False)
    return is_by[judgments.annotator_of]


def _offer_dialogue(study: Study, progress: AnnotationProgress, place: str) -> None:
    """Show a button that opens the dialogue of the selected tuple; place: distinguishes several buttons."""
    selected = links.value("tuple") or ""
    judged = _judgments_where(
        study, progress, lambda source: (source.tuples.ids == selected)[source.tuple_of]
    )
    dialogues = judged["dialogue"].drop_nulls()
    if len(dialogues):
        offer_dialogue(dialogues[0], place=place)


def _show_times(figures: AnnotationFigures, titles: Mapping[str, str]) -> None:
    st.subheader(say("annotation.times"), anchor=False)
    if not len(figures.seconds):
        st.info(say("annotation.no_seconds"))
        return
    if figures.untimed:
        st.caption(say("annotation.untimed", n=figures.untimed))
    chart_titles = {**titles, "seconds": titles["duration"]}
    show_chart(seconds_chart(figures.seconds, chart_titles), "times", figures.seconds)


def _show_positions(figures: AnnotationFigures, titles: Mapping[str, str]) -> None:
    st.subheader(say("annotation.places"), anchor=False)
    if figures.positions is None:
        st.info(say("annotation.no_shown"))
        return
    st.markdown(say("annotation.places_said", k=figures.positions["place"].max()))
    show_chart(positions_chart(figures.positions, titles), "places", figures.positions)


def _show_consistency(study: Study, progress: AnnotationProgress) -> None:
    judgments = progress.judgments
    assert judgments is not None
    kind = "stopping" if judgments.is_adaptive else "reliability"
    section("scores", say(f"annotation.{kind}"))
    st.markdown(say(f"annotation.{kind}_said"))
    if len(judgments) > MAX_JUDGMENTS_AT_ONCE and not links.toggle(
        "consistency", say("annotation.compute")
    ):
        return
    with st.spinner(say("annotation.computing")):
        if judgments.is_adaptive:
            show_result(_stopping(progress.key, judgments, progress.tuples), kind)
            return
        show_tables(reliability_of(progress.key, judgments), RELIABILITY)
        show_tables(_agreement(progress.key, judgments), AGREEMENT)
        _offer_paragraph(progress.key, judgments)
    target = links.segmented(
        "target",
        say("annotation.target"),
        TARGETS,
        format_option=lambda value: format_number(value, "g"),
    )
    with st.spinner(say("annotation.computing")):
        answers = _reliability(progress.key, judgments, target)
        for picture in RELIABILITY.pictures:
            if not picture.is_on_request:
                settings = PICTURE_SETTINGS.get(picture.name, {})
                show_picture(answers, RELIABILITY, picture, **settings)
    show_history(study, judgments, progress.key, target, progress.submitted)


def _offer_paragraph(key: str, judgments: Judgments) -> None:
    """Show the paragraph on reliability and agreement for the methods section of a paper."""
    from bws.paragraphs import LANGUAGES, paragraph
    from bws.paragraphs.judgments import study_sentences, version_sentence

    sentences = [*study_sentences(judgments)]
    for answers, analysis in (
        (reliability_of(key, judgments), RELIABILITY),
        (_agreement(key, judgments), AGREEMENT),
    ):
        if analysis.sentences and answers.result(analysis) is not None:
            sentences += analysis.sentences(answers)
    with st.expander(say("annotation.paragraph"), icon=":material/article:"):
        language = links.segmented(
            "paragraph", say("annotation.paragraph_language"), LANGUAGES, current_language()
        )
        text = paragraph([*sentences, version_sentence()], language, "markdown")
        st.code(text, language=None, wrap_lines=True)


def _show_further_analyses(progress: AnnotationProgress) -> None:
    """Show the analyses that have no place of their own on the page."""
    assert progress.judgments is not None
    for name in further_analyses():
        try:
            found = load_further_analysis(name)
            answers = _further_answers(progress.key, progress.judgments, name)
            st.subheader(local_title(found.title or name), anchor=False)
            st.markdown(found.text if answers.result(found) is not None else found.absent)
            show_tables(answers, found)
            for picture in found.pictures:
                if not picture.is_on_request:
                    show_picture(answers, found, picture)
        except ValueError as error:
            st.info(plain(f"{name}: {local_remark(str(error))}"))


def _show_comments(figures: AnnotationFigures, titles: Mapping[str, str]) -> None:
    st.subheader(say("annotation.comments"), anchor=False)
    if not len(figures.comments):
        st.info(say("annotation.no_comments"))
        return
    query = links.text("comments", say("annotation.search_comments"))
    lower_case = pl.col("comment").str.to_lowercase()
    matches = figures.comments.filter(lower_case.str.contains(query.lower(), literal=True))
    config = _columns(matches, titles)
    show_table(matches, "comments", select=BY_JUDGMENT, column_config=config)


def _columns(frame: pl.DataFrame, titles: Mapping[str, str]) -> dict[str, object]:
    """Return the titles and formats of the columns of a table."""
    columns: dict[str, object] = {}
    for name, kind in frame.schema.items():
        position = name.removeprefix("best at ")
        title = titles.get(name) or f"{say('annotation.title_best_at')} {position}"
        if kind.is_float():
            number_format = "%.1f" if name in ("seconds", "shortest") else "%.3f"
            columns[name] = number_column(title, format=number_format)
        elif isinstance(kind, pl.List):
            columns[name] = st.column_config.ListColumn(title)
        else:
            columns[name] = st.column_config.Column(
                title, width="large" if name == "comment" else None
            )
    return columns
