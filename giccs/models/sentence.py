"""Sentence-transformers models, and plain encoders with mean pooling.

The paper (section 5.1.1) uses "the mean aggregation of its token embeddings" for every model.
Sentence-transformers folders specify their pooling, which is the mean for the models of Table 5. Plain
encoders get mean pooling. Padding is excluded from the mean in both cases. Another pooling can be requested.
Prompts are those of the model itself (``prompts`` and ``default_prompt_name`` of
``config_sentence_transformers.json``), or texts of the user, see `giccs.models.encoder_prompts`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cache, cached_property, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bws.base.problems import InputError, Problem
from giccs.models.abilities import (
    LimitedModel,
    PairModel,
    PromptedModel,
    SidedModel,
    TextPairModel,
)
from giccs.models.checkpoint import located
from giccs.models.encoder_prompts import (
    EncoderPrompt,
    Side,
    after_prompt,
    check_routes,
    check_symmetric,
    resolve_prompt,
)
from giccs.models.encoding import (
    SIMILARITIES,
    Batches,
    BatchSize,
    EncoderInput,
    encode_in_batches,
    encoded,
    encoded_sides,
)
from giccs.models.input_limits import NO_LIMIT, count_cut, input_modules, reads_completely
from giccs.models.modules import Module, SavedModel, saved_model
from giccs.models.pooling import MODES, described_pooling, pad_right, pool_with
from giccs.models.quantisation import quantised_as
from giccs.models.sentence_loading import (
    library_environment,
    load_sentence_transformers,
    token_check,
)
from giccs.models.trained import TrainedModel, trained_settings
from giccs.models.vocabulary import separates_pairs
from giccs.models.weights import POOLER
from giccs.progress import Progress

if TYPE_CHECKING:
    from giccs.models import ModelOptions


def open_encoder(name: str, location: str, options: ModelOptions) -> SentenceModel | TrainedModel:
    """Return the encoder in the folder `location` or of that hub id, or a model trained by giccs csts
    train."""
    path = located(location, options.revision, offline=options.offline)
    if (settings := trained_settings(path)) is not None:
        return TrainedModel(name, path, settings, options)
    return SentenceModel(name, saved_model(name, path, options), options)


class SentenceModel(PairModel, TextPairModel, SidedModel, PromptedModel, LimitedModel):
    """An encoder with the similarity of two vectors that it was saved with, by default the cosine.

    It is a SentenceTransformer or a SparseEncoder; the vectors of the latter have an entry per token of the
    vocabulary, and the dot product as default.
    """

    name: str

    def __init__(self, name: str, saved: SavedModel, options: ModelOptions) -> None:
        self.name = name
        self._saved = saved
        self._options = options
        # Convolutions read the padding of a batch, so that texts of other lengths would change a vector.
        has_convolutions = any(module.name == "CNN" for module in saved.modules or ())
        self._batch = BatchSize(1 if has_convolutions else options.batch_size)
        self._load = cache(self._load_weights)
        self._prompt = self._resolve("default")

    @property
    def identity(self) -> Mapping[str, Any]:
        """Return the settings that determine the vectors: weights, data type, pooling, prompt and routes."""
        return {
            "kind": "encoder",
            **self._saved.identity,
            **({"class": self._saved.class_name} if self._is_sparse else {}),
            "dtype": self._dtype,
            **quantised_as(self._options),
            "pooling": described_pooling(self._saved.modules, self._options),
            **self._prompt.identity(),
            "similarity": self._saved.similarity,
        }

    def with_prompt(self, prompt: str) -> SentenceModel:
        """Return this model with another prompt; both share the loaded weights."""
        model = copy(self)
        model._prompt = self._resolve(prompt)
        check_routes(self.name, model._prompt, self._saved.routes)
        return model

    def is_symmetric(self) -> bool:
        """Return whether targets and candidates have the same prompt and the same route."""
        return self._prompt.is_symmetric

    def separates_pairs(self) -> bool:
        """Return whether the tokenizer puts a separator between two texts, as those of BERT and RoBERTa do.

        False if the tokenizer cannot be loaded; the error is reported when the model is loaded.
        """
        return self._separates_pairs

    @cached_property
    def _separates_pairs(self) -> bool:
        first = (self._saved.modules or [Module("Transformer", self._saved.folder)])[0]
        if not first.name.endswith("Transformer"):
            return False
        from transformers import AutoTokenizer

        try:
            tokenizer: Any = AutoTokenizer.from_pretrained(
                str(first.folder),
                trust_remote_code=self._options.trust_remote_code,
                local_files_only=True,
            )
            return separates_pairs(tokenizer)
        except Exception:
            return False

    def pair_scores(
        self, left: Sequence[EncoderInput], right: Sequence[EncoderInput], progress: Progress
    ) -> NDArray[np.float64]:
        """Return the similarity of each pair.

        An input that is itself a pair of texts is encoded as a pair by the tokenizer.
        """
        similarity = SIMILARITIES[self._saved.similarity]
        return similarity(*self.side_vectors(left, right, progress))

    def vectors(self, texts: Sequence[EncoderInput], progress: Progress) -> NDArray[np.float32]:
        """Return (N, D) vectors of N texts; each distinct text is encoded once."""
        check_symmetric(self)
        return encoded(texts, self._batches_of(self._prompt.target), progress)

    def side_vectors(
        self,
        targets: Sequence[EncoderInput],
        candidates: Sequence[EncoderInput],
        progress: Progress,
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return (N, D) vectors of N targets and (M, D) vectors of M candidates, with their prompts."""
        return encoded_sides(targets, candidates, self._prompt, self._batches_of, progress)

    def fits(
        self,
        targets: Sequence[EncoderInput],
        candidates: Sequence[EncoderInput],
        progress: Progress,
    ) -> NDArray[np.bool_]:
        """Return (N,) whether both texts of each pair are read completely, with their prompts."""
        sides = self._prompt.target, self._prompt.candidate
        target_fits, candidate_fits = (
            reads_completely(self._model, texts, side.prompt, side.task)
            for texts, side in zip((targets, candidates), sides, strict=True)
        )
        return target_fits & candidate_fits

    def first_last(self, texts: Sequence[EncoderInput], progress: Progress) -> NDArray[np.float32]:
        """Return (N, D) means of all token vectors in the first and the last layer of a transformer.

        The first layer is represented by its output, not its input. Special tokens are included, padding is
        not. Raises InputError if the model has no layers.
        """
        check_symmetric(self)

        batches = partial(encode_in_batches, self._first_and_last, size=self._batch)
        return encoded(
            [after_prompt(self._prompt.target.prompt, text) for text in texts], batches, progress
        )

    def environment(self) -> Mapping[str, Any]:
        """Return versions, device, and the final batch size."""
        model, unused = self._load()
        return library_environment(
            model, self._saved.folder, self._options, self._batch.size, unused
        )

    def _batches_of(self, side: Side) -> Batches:
        """Return an encoder of the texts of a side."""
        return partial(encode_in_batches, partial(self._encode, side), size=self._batch)

    def _encode(self, side: Side, texts: Sequence[EncoderInput]) -> NDArray[np.float32]:
        count_cut(reads_completely(self._model, texts, side.prompt, side.task))
        return library_vectors(self._model, texts, side)

    def _first_and_last(self, texts: Sequence[EncoderInput]) -> NDArray[np.float32]:
        transformer: Any = self._model[0]
        if not hasattr(transformer, "auto_model"):
            message = "has no layers; first-last requires a transformer encoder"
            raise InputError(Problem(self.name, None, message))
        import torch

        count_cut(reads_completely(self._model, texts))
        tokens = transformer.tokenizer(
            list(texts),
            padding=True,
            truncation=True,
            max_length=min(transformer.max_seq_length or NO_LIMIT, NO_LIMIT),
            return_tensors="pt",
        ).to(self._model.device)
        self._check_tokens(tokens)
        with torch.inference_mode():
            states = transformer.auto_model(**tokens, output_hidden_states=True).hidden_states
        average = (states[1].float() + states[-1].float()) / 2
        mask = tokens["attention_mask"].unsqueeze(-1)
        means = (average * mask).sum(dim=1) / mask.sum(dim=1)
        return np.asarray(means.cpu().numpy(), dtype=np.float32)

    def _resolve(self, prompt: str) -> EncoderPrompt:
        """Return how each side is encoded; raise InputError for an unknown name."""
        settings = {} if self._saved.modules is None else self._saved.settings
        own, default = settings.get("prompts") or {}, settings.get("default_prompt_name")
        return resolve_prompt(self.name, prompt, own, default, self._saved.routes)

    @cached_property
    def _check_tokens(self) -> Callable[[Mapping[str, Any]], None]:
        return token_check(self.name, self._model[0])

    @property
    def _is_sparse(self) -> bool:
        return self._saved.class_name == "SparseEncoder"

    @cached_property
    def _dtype(self) -> str:
        return self._saved.dtype(self._options.dtype)

    @property
    def _model(self) -> Any:
        return self._load()[0]

    def _load_weights(self) -> tuple[Any, str]:
        """Return the model, and a description of the ignored heads of its checkpoint."""
        model, unused = load_sentence_transformers(
            self.name,
            self._options,
            self._dtype,
            lambda library, **arguments: getattr(library, self._saved.class_name)(
                str(self._saved.folder),
                trust_remote_code=self._options.trust_remote_code,
                **arguments,
            ),
            # A single module computes vectors itself, with its pooler if it has one.
            lambda model: POOLER if len(model) > 1 else (),
        )
        if model.transformers_model is None:
            model.to(getattr(import_module("torch"), self._dtype))
        for module in input_modules(model):
            pad_right(module)
        if self._options.pooling in MODES:
            pool_with(self.name, model, self._options.pooling)
        elif self._saved.modules is None:
            _take_mean(model)
        return model, unused


def library_vectors(model: Any, texts: Sequence[EncoderInput], side: Side) -> NDArray[np.float32]:
    """Return (N, D) vectors by a SentenceTransformer or a SparseEncoder, in one batch.

    With the task ``query``, this is `encode_query` of the library.
    """
    from sentence_transformers import SparseEncoder

    settings: dict[str, Any] = {"prompt": side.prompt, "task": side.task}
    if isinstance(model, SparseEncoder):
        settings["convert_to_sparse_tensor"] = False
    vectors = model.encode(list(texts), batch_size=len(texts), show_progress_bar=False, **settings)
    if hasattr(vectors, "cpu"):
        vectors = vectors.float().cpu().numpy()
    return np.asarray(vectors, dtype=np.float32)


def _take_mean(model: Any) -> None:
    """Use mean pooling; for causal models the framework would use the last token."""
    old_name = "get_sentence_embedding_dimension"  # Before version 6.
    size = getattr(model, "get_embedding_dimension", None) or getattr(model, old_name)
    if len(model) > 1:
        model[1] = type(model[1])(size(), "mean")
