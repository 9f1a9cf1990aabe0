"""Ranking data: positive pairs and background samples (EvalRank, section 4.2)."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bws.base.problems import Problem

Level = Literal["sentence", "word"]


@dataclass(frozen=True, eq=False)
class RankingData:
    """Background texts, with pairs of an anchor and the positive to be ranked."""

    name: str
    """Name of the folder or benchmark as given by the user."""
    level: Level
    texts: tuple[str, ...]
    """Distinct background texts."""
    pairs: NDArray[np.intp]
    """(M, 2) indices of anchors and positives in `texts`."""
    warnings: tuple[Problem, ...] = ()
    """Non-fatal problems of the data."""

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of pairs and background, including their order."""
        content = json.dumps([self.texts, self.pairs.tolist()], ensure_ascii=False)
        return hashlib.sha256(content.encode("utf-8")).hexdigest()

    def first(self, n: int, /) -> RankingData:
        """Return the data with the first `n` pairs and the whole background."""
        return replace(self, pairs=self.pairs[:n])

    def described(self) -> str:
        """Return the size as text, such as ``6,989 pairs among 24,957 sentences``."""
        return f"{len(self.pairs):,} pairs among {len(self.texts):,} {self.level}s"
