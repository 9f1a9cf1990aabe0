"""The noise ceiling of a study: stored with the results, or computed from the judgments."""

from __future__ import annotations

from collections.abc import Mapping

from app.explorer.caching import cached
from app.explorer.study import Study
from giccs.measures.metrics import Estimate

__all__ = ["ceiling_of"]


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
