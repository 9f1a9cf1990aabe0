"""What is ranked: positive pairs among background samples (EvalRank, section 4.2)."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bws.problems import Problem

__all__ = ["Level", "RankingData"]

Level = Literal["sentence", "word"]


@dataclass(frozen=True, eq=False)
class RankingData:
    """Texts, and which of them are to be found from which."""

    name: str
    """How it was called: a folder, a benchmark."""
    level: Level
    texts: tuple[str, ...]
    """The background; each text once."""
    pairs: NDArray[np.intp]
    """(M, 2) an anchor and its positive a row, as places in `texts`."""
    warnings: tuple[Problem, ...] = ()
    """What is odd but does not make it unusable."""

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over pairs and background, in their order."""
        content = json.dumps([self.texts, self.pairs.tolist()], ensure_ascii=False)
        return hashlib.sha256(content.encode("utf-8")).hexdigest()

    def first(self, n: int, /) -> RankingData:
        """Return the first `n` pairs among the whole background."""
        return replace(self, pairs=self.pairs[:n])

    def described(self) -> str:
        """Return how much it holds: ``6,989 pairs among 24,957 sentences``."""
        return f"{len(self.pairs):,} pairs among {len(self.texts):,} {self.level}s"
