"""Caches shared by all sessions: studies, and results computed from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import streamlit as st

from bws.analysis.analysis import Answers
from bws.analysis.judgments import ReliabilitySettings
from bws.records import Judgments
from bws.stats.estimates import Estimate
from giccs_app.explorer.study import Study, load, stamp, with_absolute_scores

if TYPE_CHECKING:
    from bws.absolute.scores import AbsoluteScale
    from giccs.measures.results import Limits

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
    absolute: str | None = None,
) -> Study:
    """Return the study that `load` reads; it is read again if the benchmark or the judgments changed."""
    files = data, judgments, results, ledger, tuple(model_judgments), item_texts, scores, absolute
    return _load(*files, stamp(data, judgments, item_texts, scores, absolute, *model_judgments))


@st.cache_resource(show_spinner=False, max_entries=8)
def _load(
    data: str,
    judgments: str | None,
    results: str | None,
    ledger: str | None,
    model_judgments: tuple[str, ...],
    item_texts: str | None,
    scores: str | None,
    absolute: str | None,
    state: str,
) -> Study:
    return load(data, judgments, results, ledger, model_judgments, item_texts, scores, absolute)


@st.cache_resource(show_spinner=False, max_entries=8)
def reliability_of(key: str, _judgments: Judgments) -> Answers:
    """Return the reliability of judgments with the default settings; key: changes with the judgments."""
    return Answers(_judgments, ReliabilitySettings())


def ceiling_of(study: Study) -> Mapping[str, Estimate] | None:
    """Return the noise ceiling stored with the results, or else compute it from the judgments.

    None if there are neither judgments nor a stored ceiling. The ceiling of absolute scores, and that of the
    published ones within dialogues, are among the `limits_of` a study.
    """
    from giccs.measures.absolute_ceiling import with_within_ceiling
    from giccs.measures.ceiling import read_ceiling

    if study.published is not None:
        return limits_of(study).get("absolute_ceiling")
    digest = None if study.judgments is None else _judgments_digest(study)
    stored = None
    if study.store is not None:
        stored = read_ceiling(study.store.folder, study.benchmark.fingerprint, digest)
    if stored is None and study.judgments is not None:
        stored = _compute_ceiling(study)
    return with_within_ceiling(stored, limits_of(study))


def limits_of(study: Study) -> Limits:
    """Return what limits correlations: from the absolute scale, else as stored with the results."""
    from giccs.measures.absolute_ceiling import stored_limits

    if study.limits or study.store is None:
        return study.limits
    return stored_limits(study.store.folder, study.fingerprints)


def on_absolute_scale(study: Study, *, with_draws: bool) -> Study:
    """Return the study with the absolute scores of its items as scores.

    with_draws: compute the absolute scale from the anchors: intervals, means of groups, limits of
    correlations. Raises InputError if the absolute scores are not those of the anchors.
    """
    drawn = _absolute_scale(study) if with_draws else None
    folder = "" if study.store is None else str(study.store.folder)
    sources = "\n".join([folder, study.ledger or "", *map(str, study.problems)])
    return _with_absolute_scores(study, sources, with_draws, drawn)


@cached_table
def _with_absolute_scores(
    study: Study, sources: str, with_draws: bool, _drawn: tuple[AbsoluteScale, Limits] | None
) -> Study:
    return with_absolute_scores(study, _drawn)


@cached_table
def _absolute_scale(study: Study) -> tuple[AbsoluteScale, Limits]:
    from bws.absolute.scores import absolute_scale
    from giccs.measures.absolute_ceiling import absolute_limits, published_scores

    assert study.judgments is not None
    assert study.anchors is not None
    published = published_scores(study.judgments, study.benchmark)
    scale = absolute_scale(study.judgments, study.anchors, published)
    return scale, absolute_limits(study.judgments, study.anchors, study.benchmark, scale)


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
