"""Results computed from a study are cached and shared by all visitors."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import streamlit as st

from app.explorer.study import Study, load, stamp

__all__ = ["cached", "study_of"]

P = ParamSpec("P")
R = TypeVar("R")


def cached(function: Callable[P, R]) -> Callable[P, R]:
    """Keep what a function of a study (and of plain values) returns until its benchmark or judgments change.

    Results and ledgers change without the study: what depends on them takes what tells them apart as a plain
    value. What is returned is shared, not copied: nobody may change it.
    """
    keep = st.cache_resource(
        show_spinner=False, max_entries=64, hash_funcs={Study: lambda study: study.key}
    )
    return keep(function)


def study_of(data: str, judgments: str | None, results: str | None, ledger: str | None) -> Study:
    """Return what `load` reads, read again only when one of the files has changed."""
    return _loaded(data, judgments, results, ledger, stamp(data, judgments))


@st.cache_resource(show_spinner=False, max_entries=8)
def _loaded(
    data: str, judgments: str | None, results: str | None, ledger: str | None, state: str
) -> Study:
    return load(data, judgments, results, ledger)
