"""Models with transformed vectors: ``NAME+STEP[:K]``, also several steps.

package:minilm+whitening:256     static:glove.6B.300d.txt+abtt:2     bert-base-uncased+first-last+flow

A step is fitted on the distinct texts of one call, so all texts to be compared must be in one call of
`vectors` or `pair_scores`. All-but-the-top of word vectors is fitted on the whole vocabulary, as in its
paper; it commutes with the mean of a sentence's words. Texts without a vector (rows of NaN) are unchanged and
excluded from the fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.base.problems import InputError, Problem
from giccs.models.abilities import (
    LimitedModel,
    Model,
    PairModel,
    SidedModel,
    TextPairModel,
    VectorModel,
)
from giccs.models.encoder_prompts import check_symmetric
from giccs.models.encoding import EncoderInput, cosines, encoded, fitting_pairs, in_one_batch
from giccs.models.postprocess.steps import Step, parse_step
from giccs.models.postprocess.transforms import LINEAR, fit_flow, moments
from giccs.models.sentence import SentenceModel
from giccs.models.static import StaticModel
from giccs.progress import Progress, silent

__all__ = ["Processed", "wrapped"]

Vectors = NDArray[np.float32]


class FirstLast(PairModel, TextPairModel, VectorModel, LimitedModel):
    """Mean of all token vectors in the first and the last layer of an encoder; similarity is the cosine.

    BERT-flow (Li et al. 2020) and BERT-whitening (Su et al. 2021) start from these vectors.
    """

    name: str

    def __init__(self, name: str, model: SentenceModel) -> None:
        self.name = name
        self._model = model

    @property
    def identity(self) -> Mapping[str, Any]:
        """Return the settings that determine the vectors."""
        pooling = "first and last layer"
        return {**self._model.identity, "pooling": pooling, "similarity": "cosine"}

    def separates_pairs(self) -> bool:
        """Return whether the tokenizer of the model puts a separator between two texts."""
        return self._model.separates_pairs()

    def pair_scores(
        self, left: Sequence[EncoderInput], right: Sequence[EncoderInput], progress: Progress
    ) -> NDArray[np.float64]:
        """Return the cosine of each pair."""
        return cosines(left, right, in_one_batch(partial(self.vectors, progress=progress)), silent)

    def vectors(self, texts: Sequence[EncoderInput], progress: Progress) -> NDArray[np.float32]:
        """Return (N, D) vectors of N texts."""
        return self._model.first_last(texts, progress)

    def fits(
        self,
        targets: Sequence[EncoderInput],
        candidates: Sequence[EncoderInput],
        progress: Progress,
    ) -> NDArray[np.bool_]:
        """Return (N,) whether the model reads both texts of each pair completely."""
        return self._model.fits(targets, candidates, progress)

    def environment(self) -> Mapping[str, Any]:
        """Return the environment of the model."""
        return self._model.environment()


def wrapped(model: Model, step: str, seed: int = 0) -> VectorModel:
    """Return `model` followed by a step: ``wrapped(model, "whitening:256")``.

    `seed` is used by ``flow`` only. Raises InputError for an unknown step, or one that the model does not
    support.
    """
    parsed = parse_step(step)
    name = f"{model.name}+{parsed}"
    if isinstance(model, SidedModel):
        check_symmetric(model)
    if not isinstance(model, VectorModel):
        message = "returns no vectors; steps require an encoder or word vectors"
        raise InputError(Problem(name, None, message))
    if parsed.name == "words":
        return _in_words(model, name)
    if parsed.name == "first-last":
        return _first_last(model, name)
    if parsed.name == "flow" and find_spec("zuko") is None:
        raise InputError(Problem(name, None, "needs zuko; install it with: pip install zuko"))
    return Processed(name, model, parsed, seed)


def _in_words(model: Model, name: str) -> VectorModel:
    if isinstance(model, StaticModel):
        return model.in_words(name)
    message = "words must follow word vectors (static:FILE) directly; other models have their own tokenizers"
    raise InputError(Problem(name, None, message))


def _first_last(model: Model, name: str) -> VectorModel:
    if isinstance(model, SentenceModel):
        return FirstLast(name, model)
    message = "first-last must follow a transformer encoder directly; this model has no layers"
    raise InputError(Problem(name, None, message))


class Processed(PairModel, TextPairModel, VectorModel, LimitedModel):
    """A model followed by a step; similarity is the cosine."""

    name: str

    def __init__(self, name: str, model: VectorModel, step: Step, seed: int) -> None:
        self.name = name
        self.before = model
        self._step = step
        self._seed = seed
        self._facts: dict[str, Any] = {}

    @property
    def identity(self) -> Mapping[str, Any]:
        """Return the settings that determine the vectors: the identity of the model, and the steps in
        order."""
        before = self.before.identity
        step = f"{self._step} seed={self._seed}" if self._step.name == "flow" else str(self._step)
        steps = [*before.get("postprocess", []), step]
        return {**before, "similarity": "cosine", "postprocess": steps}

    def separates_pairs(self) -> bool:
        """Return whether the tokenizer of the model puts a separator between two texts."""
        return isinstance(self.before, TextPairModel) and self.before.separates_pairs()

    def pair_scores(
        self, left: Sequence[EncoderInput], right: Sequence[EncoderInput], progress: Progress
    ) -> NDArray[np.float64]:
        """Return the cosine of each pair, with the step fitted on all texts; NaN if undefined."""
        return cosines(left, right, in_one_batch(partial(self._changed, progress=progress)), silent)

    def vectors(self, texts: Sequence[EncoderInput], progress: Progress) -> Vectors:
        """Return (N, K) vectors of N texts, with the step fitted on these texts."""
        return encoded(texts, in_one_batch(partial(self._changed, progress=progress)), silent)

    def fits(
        self,
        targets: Sequence[EncoderInput],
        candidates: Sequence[EncoderInput],
        progress: Progress,
    ) -> NDArray[np.bool_]:
        """Return (N,) whether the model reads both texts of each pair completely."""
        return fitting_pairs(self.before, targets, candidates, progress)

    def environment(self) -> Mapping[str, Any]:
        """Return the environment of the model, and information on the last fit of the step."""
        before = self.before.environment()
        return {**before, "postprocess": [*before.get("postprocess", []), dict(self._facts)]}

    def changed(self, vectors: Vectors) -> Vectors:
        """Return the (N, K) transformed vectors of distinct texts, with the step fitted on them."""
        finite_rows = np.isfinite(vectors).all(axis=1)
        if not finite_rows.any():
            return vectors
        try:
            image = (
                self._flowed(vectors[finite_rows])
                if self._step.name == "flow"
                else self._mapped(vectors[finite_rows])
            )
        except ValueError as error:
            raise InputError(Problem(self.name, None, f"{self._step}: {error}")) from None
        changed = np.full((len(vectors), image.shape[1]), np.nan, dtype=np.float32)
        changed[finite_rows] = image
        return changed

    def _changed(self, texts: Sequence[Any], progress: Progress) -> Vectors:
        return self.changed(self.before.vectors(texts, progress))

    def _flowed(self, vectors: Vectors) -> NDArray[np.float64]:
        flow = fit_flow(vectors, self._seed)
        before, after = flow.likelihoods
        self._tell(len(vectors), "texts", flow.warning)
        self._facts["log_likelihood"] = {"before": before, "after": after}
        return flow(vectors)

    def _mapped(self, vectors: Vectors) -> NDArray[np.float64]:
        base, kind = vectors, "texts"
        if self._step.name == "abtt" and isinstance(self.before, StaticModel):
            base, kind = self.before.everything(), "vocabulary"
        fit = LINEAR[self._step.name](moments(base), self._step.k)
        self._tell(len(base), kind, fit.warning)
        return fit(vectors)

    def _tell(self, n: int, kind: str, warning: str) -> None:
        self._facts = {"step": str(self._step), "fitted_on": kind, "n": n}
        if warning:
            self._facts["warning"] = warning
