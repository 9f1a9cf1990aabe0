"""Results computed from a study are cached and shared by all visitors: the study, its noise ceiling."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ParamSpec, TypeVar

import streamlit as st

from app.explorer.study import Study, load, stamp
from giccs.measures.metrics import Estimate

__all__ = ["cached", "ceiling_of", "study_of"]

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


def ceiling_of(study: Study) -> Mapping[str, Estimate] | None:
    """Return the noise ceiling that is stored with the results, or else computed from the judgments, once.

    None where there are no judgments and no ceiling is stored.
    """
    from giccs.measures.ceiling import read_ceiling

    judged = None if study.judgments is None else _digest(study)
    stored = None
    if study.store is not None:
        stored = read_ceiling(study.store.folder, study.benchmark.fingerprint, judged)
    return _computed(study) if stored is None and study.judgments is not None else stored


@cached
def _digest(study: Study) -> str:
    from giccs.measures.ceiling import judgments_digest

    assert study.judgments is not None
    return judgments_digest(study.judgments)


@cached
def _computed(study: Study) -> Mapping[str, Estimate]:
    from giccs.measures.ceiling import noise_ceiling

    assert study.judgments is not None
    return noise_ceiling(study.judgments, study.benchmark)
