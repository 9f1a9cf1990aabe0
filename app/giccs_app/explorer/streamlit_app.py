"""The script that Streamlit runs for each session and each change; started by `giccs explore`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import streamlit as st

from bws.base.problems import InputError
from giccs.benchmark import SAMPLE
from giccs_app.explorer import links
from giccs_app.explorer.caching import on_absolute_scale, study_of
from giccs_app.explorer.display import SECTIONS, show_problems
from giccs_app.explorer.labels import LANGUAGES, current_language, literal, say
from giccs_app.explorer.study import Study, TaskData
from giccs_app.explorer.uploads import upload_files

PAGES = ("overview", "dialogues", "annotation", "models", "errors")
PLAIN_PAGES = ("overview", "annotation")  # about items without dialogues
# Scrolls to a section of `display.section`, when the charts above it have their heights.
SCROLL = (
    "<script>setTimeout(() => document.querySelector('.st-key-section-{section}')"
    "?.scrollIntoView(), 500)</script>"
)
SCALES = ("published", "absolute")  # the default first
STYLES = Path(__file__).with_name("styles.css")
MAX_VALUE_LENGTH = 40  # characters of an invalid value in a link that are shown


def main(arguments: Sequence[str] | None = None) -> None:
    """Show the page given by the link, for the data given as arguments or uploaded.

    arguments: by default those of the command line.
    For Streamlit this is a single page: all pages have the same address, see `giccs_app.explorer.links`.
    """
    links.begin()
    st.set_page_config(page_title=say("page.title"), layout="wide")
    st.html(STYLES)
    st.html(
        f'<script>document.documentElement.lang = "{current_language()}"</script>',
        unsafe_allow_javascript=True,
    )
    warnings = st.container()
    parsed = _parsed(arguments)
    is_plain = bool(parsed.items or parsed.scores)
    name = _choose_page(PLAIN_PAGES if is_plain else PAGES)
    try:
        study = _on_chosen_scale(_load_study(parsed))
        _show_notes(study)
        if study.task_data is not None:
            _show_task_data(study.benchmark.name, study.task_data)
        if study.task_data is None or name == "models":
            import_module(f"giccs_app.explorer.{name}.page").show(study)
    except InputError as error:
        show_problems(say("page.cannot_read"), error.problems)
    section = links.section_to_open()
    if section in SECTIONS:
        st.html(SCROLL.format(section=section), unsafe_allow_javascript=True)
    with warnings:
        for key, value in links.ignored().items():
            st.warning(
                say("page.ignored", key=literal(key), value=literal(value[:MAX_VALUE_LENGTH]))
            )


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default=SAMPLE)
    for name in ("--judgments", "--results", "--ledger", "--items", "--scores", "--absolute"):
        parser.add_argument(name)
    parser.add_argument("--model-judgments", action="append", default=[])
    parser.add_argument("--without-uploads", action="store_true")
    return parser.parse_args(arguments)


def _choose_page(pages: Sequence[str]) -> str:
    return links.segmented(
        "page",
        say("page.pages"),
        pages,
        format_option=lambda name: say(f"page.{name}"),
        label_visibility="collapsed",
    )


def _load_study(arguments: argparse.Namespace) -> Study:
    """Return the study given on the command line, with uploaded files in place of its files."""
    with st.sidebar:
        st.header(say("page.title"), anchor=False)
        links.segmented(
            "lang", say("page.language"), list(LANGUAGES), format_option=LANGUAGES.__getitem__
        )
        summary = st.container()
        st.button(say("page.reload"), icon=":material/refresh:", help=say("page.reload_help"))
        takes_files = not (arguments.without_uploads or arguments.items or arguments.scores)
        uploaded, problems = upload_files() if takes_files else ({}, [])
    with st.spinner(say("page.reading")):
        try:
            study = _study(arguments, uploaded)
        except InputError as error:
            if not uploaded:
                raise
            problems = [*problems, *error.problems]
            study = _study(arguments, {})
    summary.caption(say("page.data_is", data=literal(_short_name(study.benchmark.name))))
    return replace(study, problems=(*problems, *study.problems)) if problems else study


def _study(arguments: argparse.Namespace, uploaded: Mapping[str, str]) -> Study:
    """Return the study of the uploaded files, and of those of the command line in place of missing ones."""
    data = uploaded.get("benchmark", arguments.data)
    is_same = data == arguments.data
    return study_of(
        data,
        uploaded.get("judgments", arguments.judgments if is_same else None),
        uploaded.get("results", arguments.results),
        arguments.ledger,
        arguments.model_judgments if is_same else [],
        arguments.items,
        arguments.scores,
        arguments.absolute if is_same and "judgments" not in uploaded else None,
    )


def _on_chosen_scale(study: Study) -> Study:
    """Return the study with the scores of the scale that is chosen, if the items have both."""
    if not study.has_absolute_scores:
        return study
    with st.sidebar:
        scale = links.segmented(
            "scale",
            say("page.scale"),
            SCALES,
            format_option=lambda name: say(f"page.scale_{name}"),
            help=say("page.scale_help"),
        )
        if scale == SCALES[0]:
            return study
        has_draws = study.anchors is not None and links.toggle(
            "draws", say("page.draws"), help=say("page.draws_help")
        )
    try:
        with st.spinner(say("page.drawing")):
            return on_absolute_scale(study, with_draws=has_draws)
    except InputError as error:
        show_problems(say("page.no_draws"), error.problems)
        return on_absolute_scale(study, with_draws=False)


def _short_name(path: str) -> str:
    return path if path == SAMPLE else Path(path).name or path


def _show_task_data(data: str, task_data: TaskData) -> None:
    tasks = ", ".join(map(literal, task_data.tasks))
    st.info(say("page.task_data", data=literal(_short_name(data)), tasks=tasks))


def _show_notes(study: Study) -> None:
    if study.published is not None:
        st.caption(say("page.absolute"))
    if study.is_simulated:
        st.caption(say("page.simulated"))
    if study.problems:
        show_problems(say("page.left_out"), study.problems)
    for note in study.notes:
        st.caption(say(note))


if __name__ == "__main__":
    main()
