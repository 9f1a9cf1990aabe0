"""The script that Streamlit runs on each visit and each change; `giccs-explore` starts it."""

from __future__ import annotations

import argparse
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import streamlit as st

from app.explorer import links
from app.explorer.caching import study_of
from app.explorer.display import show_problems
from app.explorer.labels import LANGUAGES, literal, say
from app.explorer.study import Study
from app.explorer.uploads import dropped
from bws.problems import InputError
from giccs.benchmark import SAMPLE

PAGES = ("overview", "dialogues", "annotation", "models", "errors")
MOST_TOLD = 40  # characters of a link's wrong value that are repeated


def main() -> None:
    """Show the page that the link names, of the data that the command names or a visitor uploads.

    Streamlit knows of one page only: all of ours have the same address, see `app.explorer.links`.
    """
    st.set_page_config(page_title="giccs explorer", layout="wide")
    links.begin()
    told = st.container()
    name = _choose_page()
    try:
        study = _chosen_study(_arguments())
        _tell_about(study)
        import_module(f"app.explorer.{name}.page").show(study)
    except InputError as error:
        show_problems(say("page.cannot_read"), error.problems)
    with told:
        for key, asked in links.ignored().items():
            st.warning(say("page.ignored", key=literal(key), value=literal(asked[:MOST_TOLD])))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default=SAMPLE)
    for name in ("--judgments", "--results", "--ledger"):
        parser.add_argument(name)
    return parser.parse_args()


def _choose_page() -> str:
    return links.segmented(
        "page",
        say("page.pages"),
        PAGES,
        shown=lambda name: say(f"page.{name}"),
        label_visibility="collapsed",
    )


def _chosen_study(asked: argparse.Namespace) -> Study:
    """Return what the command names, with what was uploaded in its place."""
    with st.sidebar:
        st.header(say("page.title"), anchor=False)
        links.segmented("lang", say("page.language"), list(LANGUAGES), shown=LANGUAGES.__getitem__)
        about = st.container()
        st.button(say("page.reload"), icon=":material/refresh:", help=say("page.reload_help"))
        uploaded, problems = dropped()
    data = uploaded.get("benchmark", asked.data)
    judgments = uploaded.get("judgments", asked.judgments if data == asked.data else None)
    results = uploaded.get("results", asked.results)
    with st.spinner(say("page.reading")):
        study = study_of(data, judgments, results, asked.ledger)
    about.caption(say("page.data_is", data=literal(_name(study.benchmark.name))))
    return replace(study, problems=(*problems, *study.problems)) if problems else study


def _name(path: str) -> str:
    return path if path == SAMPLE else Path(path).name or path


def _tell_about(study: Study) -> None:
    if study.simulated:
        st.caption(say("page.simulated"))
    if study.problems:
        show_problems(say("page.left_out"), study.problems)
    for note in study.notes:
        st.caption(say(note))


if __name__ == "__main__":
    main()
