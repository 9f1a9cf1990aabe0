"""Baselines: what a score is worth is seen beside chance and beside lexical overlap."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bws.problems import InputError, Problem
from giccs.models.abilities import PairModel
from giccs.progress import Progress

if TYPE_CHECKING:
    from giccs.models import ModelOptions

__all__ = ["Chance", "CharNgram", "open_baseline"]


@dataclass(frozen=True, slots=True)
class Chance(PairModel):
    """A number from 0 to 1 drawn for each pair of texts, the same for a seed wherever the pair stands."""

    name: str
    seed: int

    @property
    def identity(self) -> Mapping[str, Any]:
        """Return what the predictions depend on."""
        return {"kind": "baseline", "model_seed": self.seed}

    def environment(self) -> Mapping[str, Any]:
        """Return nothing: there is no framework."""
        return {}

    def pair_scores(
        self, left: Sequence[str], right: Sequence[str], progress: Progress
    ) -> NDArray[np.float64]:
        """Return a draw a pair."""
        pairs = progress(zip(left, right, strict=True), "chance", len(left))
        return np.array([self._draw(one, other) for one, other in pairs])

    def _draw(self, one: str, other: str) -> float:
        text = f"{self.seed}\x1f{one}\x1f{other}".encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest()) / 2**64


@dataclass(frozen=True, slots=True)
class CharNgram(PairModel):
    """Overlap of the texts' sets of character n-grams: Dice's coefficient, 2|A ∩ B| / (|A| + |B|)."""

    name: str
    n: int = 3

    @property
    def identity(self) -> Mapping[str, Any]:
        """Return what the predictions depend on."""
        return {"kind": "baseline", "n": self.n}

    def environment(self) -> Mapping[str, Any]:
        """Return nothing: there is no framework."""
        return {}

    def pair_scores(
        self, left: Sequence[str], right: Sequence[str], progress: Progress
    ) -> NDArray[np.float64]:
        """Return the overlap of each pair, from 0 to 1."""
        pairs = progress(zip(left, right, strict=True), "overlap", len(left))
        return np.array([_dice(self._ngrams(one), self._ngrams(other)) for one, other in pairs])

    def _ngrams(self, text: str) -> frozenset[str]:
        # case, white space and Unicode form do not count; the spaces outside mark the words' ends
        padded = f" {' '.join(unicodedata.normalize('NFC', text).casefold().split())} "
        return frozenset(padded[at : at + self.n] for at in range(len(padded) - self.n + 1))


def _dice(one: frozenset[str], other: frozenset[str]) -> float:
    return 2 * len(one & other) / (len(one) + len(other))


def open_baseline(name: str, which: str, options: ModelOptions) -> Chance | CharNgram:
    """Return the baseline called `which`."""
    if which == "chance":
        return Chance(name, options.seed)
    if which == "char-ngram":
        return CharNgram(name)
    message = "no such baseline; baseline:chance and baseline:char-ngram are allowed"
    raise InputError(Problem(name, None, message))
