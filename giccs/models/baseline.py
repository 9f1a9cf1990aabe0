"""Baselines: random scores and lexical overlap."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bws.base.problems import InputError, Problem, suggestion
from giccs.models.abilities import PairModel
from giccs.progress import Progress

if TYPE_CHECKING:
    from giccs.models import ModelOptions


@dataclass(frozen=True, slots=True)
class Chance(PairModel):
    """A random number from 0 to 1 for each pair of texts; it depends only on the texts and the seed."""

    name: str
    seed: int

    @property
    def identity(self) -> Mapping[str, Any]:
        """Return the settings that determine the predictions."""
        return {"kind": "baseline", "model_seed": self.seed}

    def environment(self) -> Mapping[str, Any]:
        """Return an empty mapping, because no framework is used."""
        return {}

    def pair_scores(
        self, left: Sequence[str], right: Sequence[str], progress: Progress
    ) -> NDArray[np.float64]:
        """Return a random number per pair."""
        pairs = progress(zip(left, right, strict=True), "chance", len(left))
        return np.array([self._draw(first, second) for first, second in pairs])

    def _draw(self, first: str, second: str) -> float:
        text = f"{self.seed}\x1f{first}\x1f{second}".encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest()) / 2**64


@dataclass(frozen=True, slots=True)
class CharNgram(PairModel):
    """Overlap of character n-gram sets: Dice's coefficient, 2|A ∩ B| / (|A| + |B|)."""

    name: str
    n: int = 3

    @property
    def identity(self) -> Mapping[str, Any]:
        """Return the settings that determine the predictions."""
        return {"kind": "baseline", "n": self.n}

    def environment(self) -> Mapping[str, Any]:
        """Return an empty mapping, because no framework is used."""
        return {}

    def pair_scores(
        self, left: Sequence[str], right: Sequence[str], progress: Progress
    ) -> NDArray[np.float64]:
        """Return the overlap of each pair, from 0 to 1."""
        pairs = progress(zip(left, right, strict=True), "overlap", len(left))
        return np.array(
            [_dice(self._ngrams(first), self._ngrams(second)) for first, second in pairs]
        )

    def _ngrams(self, text: str) -> frozenset[str]:
        # Case, white space and Unicode form are ignored; outer spaces mark word boundaries.
        padded = f" {' '.join(unicodedata.normalize('NFC', text).casefold().split())} "
        return frozenset(padded[at : at + self.n] for at in range(len(padded) - self.n + 1))


def _dice(first: frozenset[str], second: frozenset[str]) -> float:
    return 2 * len(first & second) / (len(first) + len(second))


def open_baseline(name: str, baseline: str, options: ModelOptions) -> Chance | CharNgram:
    """Return the baseline with the given name."""
    if baseline == "chance":
        return Chance(name, options.seed)
    if baseline == "char-ngram":
        return CharNgram(name)
    guess = suggestion(name, ["baseline:chance", "baseline:char-ngram"])
    message = f"no such baseline; expected baseline:chance or baseline:char-ngram{guess}"
    raise InputError(Problem(name, None, message))
