"""How well could a model do at best, given how uncertain the scores are?"""

from __future__ import annotations

from app.caching import cached
from app.study import Study
from giccs.metrics import Estimate

__all__ = ["ceiling_of"]


@cached
def ceiling_of(study: Study) -> dict[str, Estimate]:
    """Return `giccs.ceiling.noise_ceiling` of a study that has judgments, computed once."""
    from giccs.ceiling import noise_ceiling

    assert study.judgments is not None
    return noise_ceiling(study.judgments, study.benchmark)
