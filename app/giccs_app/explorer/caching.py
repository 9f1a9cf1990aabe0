"""Caches shared by all sessions: studies, and results computed from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ParamSpec, TypeVar

import streamlit as st

from bws.analysis.analysis import Answers
from bws.analysis.judgments import ReliabilitySettings
from bws.records import Judgments
from bws.stats.estimates import Estimate
from giccs_app.explorer.study import Study, load, stamp

P = ParamSpec("P")
R = TypeVar("R")
MAX_TABLES = 2
"""Number of tables with a row per item that a function keeps."""


def cached(function: Callable[P, R]) -> Callable[P, R]:
    """Cache the return value of a function of a study (and plain values) until the study changes.

    The key of a study covers the benchmark and the judgments only. A function that depends on results or
    ledgers therefore needs a further argument that changes with them. Return values are shared, so callers
    must not modify them.
    """
    return _cache(64)(function)


def cached_table(function: Callable[P, R]) -> Callable[P, R]:
    """Cache tables with a row per item as `cached`; only a few, because each may have many megabytes."""
    return _cache(MAX_TABLES)(function)


def _cache(max_entries: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    return st.cache_resource(
        show_spinner=False, max_entries=max_entries, hash_funcs={Study: lambda study: study.key}
    )


def study_of(
    data: str,
    judgments: str | None,
    results: str | None,
    ledger: str | None,
    model_judgments: Sequence[str] = (),
    item_texts: str | None = None,
    scores: str | None = None,
) -> Study:
    """Return the study that `load` reads; it is read again if the benchmark or the judgments changed."""
    state = stamp(data, judgments, item_texts, scores, *model_judgments)
    return _load(
        data, judgments, results, ledger, tuple(model_judgments), item_texts, scores, state
    )


@st.cache_resource(show_spinner=False, max_entries=8)
def _load(
    data: str,
    judgments: str | None,
    results: str | None,
    ledger: str | None,
    model_judgments: tuple[str, ...],
    item_texts: str | None,
    scores: str | None,
    state: str,
) -> Study:
    return load(data, judgments, results, ledger, model_judgments, item_texts, scores)


@st.cache_resource(show_spinner=False, max_entries=8)
def reliability_of(key: str, _judgments: Judgments) -> Answers:
    """Return the reliability of judgments with the default settings; key: changes with the judgments."""
    return Answers(_judgments, ReliabilitySettings())


def ceiling_of(study: Study) -> Mapping[str, Estimate] | None:
    """Return the noise ceiling stored with the results, or else compute it from the judgments.

    None if there are neither judgments nor a stored ceiling.
    """
    from giccs.measures.ceiling import read_ceiling

    digest = None if study.judgments is None else _judgments_digest(study)
    stored = None
    if study.store is not None:
        stored = read_ceiling(study.store.folder, study.benchmark.fingerprint, digest)
    return _compute_ceiling(study) if stored is None and study.judgments is not None else stored


@cached
def _judgments_digest(study: Study) -> str:
    from giccs.measures.ceiling import judgments_digest

    assert study.judgments is not None
    return judgments_digest(study.judgments)


@cached
def _compute_ceiling(study: Study) -> Mapping[str, Estimate]:
    from giccs.measures.ceiling import noise_ceiling

    assert study.judgments is not None
    return noise_ceiling(study.judgments, study.benchmark)
