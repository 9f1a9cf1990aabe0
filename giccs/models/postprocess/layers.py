"""An encoder's first layer and its last: the mean of all tokens' vectors in both.

BERT-flow (Li et al. 2020) and BERT-whitening (Su et al. 2021) start from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giccs.models.batching import EncoderInput
from giccs.models.cosine import cosines
from giccs.models.postprocess.batches import in_one_batch
from giccs.models.sentence import SentenceModel
from giccs.progress import Progress, silent

__all__ = ["FirstLast"]


class FirstLast:
    """A sentence model with other pooling; similarity is the cosine."""

    def __init__(self, name: str, model: SentenceModel) -> None:
        self.name = name
        self._model = model

    @property
    def identity(self) -> Mapping[str, Any]:
        """Return what the vectors depend on."""
        return {**self._model.identity, "pooling": "first and last layer"}

    @property
    def separates_pairs(self) -> bool:
        """Whether the tokenizer of the model puts a separator between two texts."""
        return self._model.separates_pairs

    def pair_scores(
        self, left: Sequence[EncoderInput], right: Sequence[EncoderInput], progress: Progress
    ) -> NDArray[np.float64]:
        """Return the cosine of each pair."""
        return cosines(left, right, in_one_batch(partial(self.vectors, progress=progress)), silent)

    def vectors(self, texts: Sequence[EncoderInput], progress: Progress) -> NDArray[np.float32]:
        """Return (N, D) the vectors of N texts."""
        return self._model.first_last(texts, progress)

    def environment(self) -> Mapping[str, Any]:
        """Return the model's own."""
        return self._model.environment()
