"""Cross-encoders and rerankers: both texts of a pair are one input, and the output is a score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bws.base.problems import InputError, Problem
from giccs.models.abilities import LimitedModel, OrderedPairModel
from giccs.models.checkpoint import (
    architectures,
    is_causal,
    label_count,
    located,
    read_json,
    stated_kind,
)
from giccs.models.encoding import BatchSize, EncoderInput, encode_in_batches, encoded
from giccs.models.input_limits import count_cut, default_prompt, reads_completely
from giccs.models.modules import SavedModel, saved_model
from giccs.models.quantisation import quantised_as
from giccs.models.sentence_loading import library_environment, load_sentence_transformers
from giccs.progress import Progress

if TYPE_CHECKING:
    from giccs.models import ModelOptions

SCORE = "mean of both orders"
"""Entry ``similarity`` of a signature."""


def open_cross_encoder(name: str, location: str, options: ModelOptions) -> CrossEncoderModel:
    """Return the cross-encoder in the folder `location` or of that hub id.

    Raises InputError if it has several labels, an activation function outside torch, or is a causal language
    model without the prompt of a reranker.
    """
    path = located(location, options.revision, offline=options.offline)
    saved = saved_model(name, path, options, ("CrossEncoder",))
    folder = saved.folder
    if saved.modules is None and any(adapter.base != folder for adapter in saved.adapters):
        message = "is an adapter alone, which sentence-transformers does not read as a CrossEncoder"
        remedy = "merge it into its base (merge_and_unload of PEFT) and save that"
        raise InputError(Problem(name, None, f"{message}; {remedy}"))
    config = read_json(saved.transformer_folder / "config.json") or {}
    if any(name.endswith("ForSequenceClassification") for name in architectures(config)):
        check_label(name, label_count(config))
    if is_causal(config) and stated_kind(folder) != "cross-encoder":
        message = (
            "is a causal language model without a reranker's prompt and tokens; expected a folder that "
            "sentence-transformers saved as a CrossEncoder"
        )
        raise InputError(Problem(name, None, message))
    activation = stated_activation(folder, config)
    if activation and not activation.startswith("torch.") and not options.trust_remote_code:
        # The library would silently replace it by the default.
        message = (
            f"requires its own activation function {activation}; review it, then allow it with"
        )
        raise InputError(Problem(name, None, f"{message} --trust-remote-code"))
    return CrossEncoderModel(name, saved, options)


def check_label(name: str, labels: int) -> None:
    """Raise InputError for a classifier with several labels, none of which is a similarity."""
    if labels != 1:
        message = f"is a classifier with {labels} labels; expected a cross-encoder with one"
        raise InputError(Problem(name, None, message))


def stated_activation(folder: Path, config: Mapping[str, Any]) -> str:
    """Return the activation function that the configuration states, or an empty string.

    It is in ``config_sentence_transformers.json``, or in ``config.json`` in folders of earlier versions.
    """
    library_config = read_json(folder / "config_sentence_transformers.json") or {}
    own = config.get("sentence_transformers") or {}
    oldest = config.get("sbert_ce_default_activation_function")
    return str(library_config.get("activation_fn") or own.get("activation_fn") or oldest or "")


def pair_order_scores(
    model: Any,
    left: Sequence[str],
    right: Sequence[str],
    batch: BatchSize,
    progress: Progress,
) -> NDArray[np.float64]:
    """Return the (N, 2) scores of N pairs in the orders (left, right) and (right, left).

    model: a CrossEncoder of sentence-transformers. Each distinct ordered pair is scored once.
    """

    def scores(pairs: Sequence[EncoderInput]) -> NDArray[np.float32]:
        count_cut(reads_completely(model, pairs, default_prompt(model)))
        predictions = model.predict(list(pairs), batch_size=len(pairs), show_progress_bar=False)
        return np.asarray(predictions, dtype=np.float32)

    def batches(pairs: Sequence[EncoderInput]) -> Iterator[tuple[list[int], NDArray[np.float32]]]:
        yield from encode_in_batches(scores, pairs, batch)

    pairs = [*zip(left, right, strict=True), *zip(right, left, strict=True)]
    return encoded(pairs, batches, progress).astype(np.float64).reshape(2, len(left)).T


def pair_fits(model: Any, left: Sequence[str], right: Sequence[str]) -> NDArray[np.bool_]:
    """Return (N,) whether a CrossEncoder reads each pair completely in both orders."""
    prompt = default_prompt(model)
    first, second = (
        reads_completely(model, [*zip(*sides, strict=True)], prompt)
        for sides in ((left, right), (right, left))
    )
    return first & second


class CrossEncoderModel(OrderedPairModel, LimitedModel):
    """A CrossEncoder of sentence-transformers.

    The score of an order is the output of the library's `predict`: the logit of the only label, or the
    difference of the logits of two tokens of a causal reranker, after the saved activation function; without
    one, the sigmoid. The similarity of two texts is the mean of the scores of both orders.
    """

    name: str

    def __init__(self, name: str, saved: SavedModel, options: ModelOptions) -> None:
        self.name = name
        self._saved = saved
        self._options = options
        self._batch = BatchSize(options.batch_size)
        self._unused = ""

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        """Return the settings that determine the scores."""
        return {
            "kind": "cross-encoder",
            **self._saved.identity,
            "dtype": self._dtype,
            **quantised_as(self._options),
            "similarity": SCORE,
        }

    def environment(self) -> Mapping[str, Any]:
        """Return versions, device, final batch size and activation function."""
        activation = type(self._model.activation_fn).__name__
        return library_environment(
            self._model, self._saved.folder, self._options, self._batch.size, self._unused
        ) | {"activation": activation}

    def order_scores(
        self, left: Sequence[str], right: Sequence[str], progress: Progress
    ) -> NDArray[np.float64]:
        """Return the (N, 2) scores of N pairs, in the orders (left, right) and (right, left)."""
        return pair_order_scores(self._model, left, right, self._batch, progress)

    def fits(
        self, targets: Sequence[str], candidates: Sequence[str], progress: Progress
    ) -> NDArray[np.bool_]:
        """Return (N,) whether each pair, which is one input, is read completely in both orders."""
        return pair_fits(self._model, targets, candidates)

    @cached_property
    def _dtype(self) -> str:
        return self._saved.dtype(self._options.dtype)

    @cached_property
    def _model(self) -> Any:
        model, self._unused = load_sentence_transformers(
            self.name,
            self._options,
            self._dtype,
            lambda library, **arguments: library.CrossEncoder(
                str(self._saved.folder),
                trust_remote_code=self._options.trust_remote_code,
                **arguments,
            ),
        )
        check_label(self.name, model.num_labels)
        return model
