"""Sentence-transformers models, and plain encoders with mean pooling.

The paper (section 5.1.1) uses "the mean aggregation of its token embeddings" for every model.
Sentence-transformers folders specify their pooling, which is the mean for the models of Table 5. Plain
encoders get mean pooling. Padding is excluded from the mean in both cases. Another pooling can be requested.
Prompts are those of the model itself (``prompts`` and ``default_prompt_name`` of
``config_sentence_transformers.json``), or texts of the user, see `giccs.models.encoder_prompts`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bws.problems import InputError, Problem
from giccs.models.abilities import (
    LimitedModel,
    PairModel,
    PromptedModel,
    SidedModel,
    TextPairModel,
)
from giccs.models.checkpoint import WEIGHTS, first_line, located, read_json, revision, weights_dtype
from giccs.models.devices import check_device, device_map, devices, must_cover
from giccs.models.encoder_prompts import (
    EncoderPrompt,
    after_prompt,
    check_symmetric,
    resolve_prompt,
)
from giccs.models.encoding import (
    Batches,
    BatchSize,
    EncoderInput,
    encode_in_batches,
    encoded,
    encoded_sides,
    row_cosines,
)
from giccs.models.input_limits import NO_LIMIT, count_cut, limit_to_positions, reads_completely
from giccs.models.loading import uninterrupted
from giccs.models.pooling import MODES, check_pooling, described_pooling, pad_right, pool_with
from giccs.models.quantisation import (
    check_quantised,
    quantisation,
    quantised_as,
    quantised_with,
    settle,
)
from giccs.models.trained import TrainedModel, trained_settings
from giccs.models.vocabulary import TokenCounter, check_tokenizer, separates_pairs
from giccs.models.weights import POOLER, check_weights, recorded_loading, unused_weights
from giccs.progress import Progress

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from giccs.models import ModelOptions

__all__ = ["SentenceModel", "encoder_folder", "open_encoder"]


def open_encoder(name: str, location: str, options: ModelOptions) -> SentenceModel | TrainedModel:
    """Return the encoder in the folder `location` or of that hub id, or a model trained by giccs-csts
    train."""
    path = located(location, options.revision, offline=options.offline)
    if (settings := trained_settings(path)) is not None:
        return TrainedModel(name, path, settings, options)
    return SentenceModel(name, encoder_folder(name, path, options), options)


def encoder_folder(
    name: str,
    folder: Path,
    options: ModelOptions,
    known_modules: tuple[str, ...] = ("sentence_transformers.",),
) -> Path:
    """Return the folder of an encoder; raise InputError if it contains none.

    known_modules: beginnings of the names of classes in modules.json that are not the model's own code.
    """

    def refused(message: str) -> InputError:
        return InputError(Problem(name, None, message))

    if not folder.is_dir():
        raise refused("is a file; expected a folder or a hub id")
    parts = read_json(folder / "modules.json")
    config = read_json(folder / "config.json")
    if parts is None and config is None:
        raise refused("contains no model: neither modules.json nor config.json")
    if not any(any(folder.rglob(pattern)) for pattern in WEIGHTS):
        raise refused(f"contains no weights; expected a file {' or '.join(WEIGHTS)}")
    has_own_code = isinstance(config, dict) and "auto_map" in config
    if (has_own_code or _foreign_parts(parts, known_modules)) and not options.trust_remote_code:
        raise refused("requires its own code; review it, then allow it with --trust-remote-code")
    check_quantised(name, config, options)
    device_map(name, options)
    check_pooling(name, parts, options)
    return folder


def _foreign_parts(parts: Any, known_modules: tuple[str, ...]) -> bool:
    """Return whether modules.json names third-party classes, which older versions import without consent."""
    types = [part.get("type") for part in parts or () if isinstance(part, dict)]
    return any(not str(module_type).startswith(known_modules) for module_type in types)


@dataclass(frozen=True, eq=False)
class _LoadedEncoder:
    """A loaded model, shared by copies with other prompts."""

    model: SentenceTransformer
    unused_weights: str
    counter: TokenCounter
    vocabulary: int
    """Number of token vectors if the tokenizer may produce other ids; else 0."""


class SentenceModel(PairModel, TextPairModel, SidedModel, PromptedModel, LimitedModel):
    """An encoder with the cosine of two vectors as similarity."""

    name: str

    def __init__(self, name: str, folder: Path, options: ModelOptions) -> None:
        self.name = name
        self._folder = folder
        self._options = options
        self._batch = BatchSize(options.batch_size)
        self._load = cache(self._load_weights)
        self._prompt = self._resolve("default")

    @cached_property
    def _revision(self) -> str:
        return revision(self._folder)

    @property
    def identity(self) -> Mapping[str, Any]:
        """Return the settings that determine the vectors: weights, data type, pooling and prompt."""
        return {
            "kind": "encoder",
            "revision": self._revision,
            "dtype": self._dtype,
            **quantised_as(self._options),
            "pooling": described_pooling(self._parts, self._options),
            **self._prompt.identity(),
            "similarity": "cosine",
        }

    def with_prompt(self, prompt: str) -> SentenceModel:
        """Return this model with another prompt; both share the loaded weights."""
        model = copy(self)
        model._prompt = self._resolve(prompt)
        return model

    def is_symmetric(self) -> bool:
        """Return whether targets and candidates have the same prompt."""
        return self._prompt.is_symmetric

    def separates_pairs(self) -> bool:
        """Return whether the tokenizer puts a separator between two texts, as those of BERT and RoBERTa do.

        False if the tokenizer cannot be loaded; the error is reported when the model is loaded.
        """
        return self._separates_pairs

    @cached_property
    def _separates_pairs(self) -> bool:
        parts = read_json(self._folder / "modules.json") or [{"path": "", "type": "Transformer"}]
        if not str(parts[0].get("type")).endswith("Transformer"):
            return False
        from transformers import AutoTokenizer

        try:
            tokenizer: Any = AutoTokenizer.from_pretrained(
                str(self._folder / parts[0].get("path", "")),
                trust_remote_code=self._options.trust_remote_code,
                local_files_only=True,
            )
            return separates_pairs(tokenizer)
        except Exception:
            return False

    def pair_scores(
        self, left: Sequence[EncoderInput], right: Sequence[EncoderInput], progress: Progress
    ) -> NDArray[np.float64]:
        """Return the cosine of each pair.

        An input that is itself a pair of texts is encoded as a pair by the tokenizer.
        """
        return row_cosines(*self.side_vectors(left, right, progress))

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
        prompts = self._prompt.target, self._prompt.candidate
        target_fits, candidate_fits = (
            reads_completely(self._model, texts, prompt)
            for texts, prompt in zip((targets, candidates), prompts, strict=True)
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
            [after_prompt(self._prompt.target, text) for text in texts], batches, progress
        )

    def environment(self) -> Mapping[str, Any]:
        """Return versions, device, and the final batch size."""
        from importlib.metadata import version

        packages = ("torch", "transformers", "sentence-transformers")
        return {
            **{package: version(package) for package in packages},
            **quantised_with(self._options),
            "device": self._devices,
            "batch_size": self._batch.size,
            **unused_weights(self._load().unused_weights),
        }

    @property
    def _devices(self) -> str:
        transformer = _transformer(self._model)
        return devices(transformer) if transformer is not self._model else str(transformer.device)

    def _batches_of(self, prompt: str) -> Batches:
        """Return an encoder of texts after a prompt."""
        return partial(encode_in_batches, partial(self._encode, prompt), size=self._batch)

    def _encode(self, prompt: str, texts: Sequence[EncoderInput]) -> NDArray[np.float32]:
        count_cut(reads_completely(self._model, texts, prompt))
        vectors = self._model.encode(
            list(texts), prompt=prompt, batch_size=len(texts), show_progress_bar=False
        )
        return np.asarray(vectors, dtype=np.float32)

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
        self._check_tokens(tokens, self._load())
        with torch.inference_mode():
            states = transformer.auto_model(**tokens, output_hidden_states=True).hidden_states
        average = (states[1].float() + states[-1].float()) / 2
        mask = tokens["attention_mask"].unsqueeze(-1)
        means = (average * mask).sum(dim=1) / mask.sum(dim=1)
        return np.asarray(means.cpu().numpy(), dtype=np.float32)

    @cached_property
    def _parts(self) -> Any:
        """Content of modules.json; None for a plain encoder."""
        return read_json(self._folder / "modules.json")

    def _resolve(self, prompt: str) -> EncoderPrompt:
        """Return the texts of a prompt; raise InputError for an unknown name."""
        path = self._folder / "config_sentence_transformers.json"
        config = (read_json(path) if self._parts is not None else None) or {}
        return resolve_prompt(
            self.name, prompt, config.get("prompts") or {}, config.get("default_prompt_name")
        )

    @cached_property
    def _dtype(self) -> str:
        return weights_dtype(self._folder, self._options.dtype)

    @property
    def _model(self) -> SentenceTransformer:
        return self._load().model

    def _load_weights(self) -> _LoadedEncoder:
        _need_frameworks(self.name)
        with uninterrupted():
            import torch
            from sentence_transformers import SentenceTransformer
            from transformers.utils import logging

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        logging.set_verbosity_error()  # type: ignore[no-untyped-call]
        arguments = {
            "dtype": getattr(torch, self._dtype),
            **quantisation(self._options, self._dtype),
        }
        check_device(self.name, self._options.device)
        device = None if self._options.device == "auto" else self._options.device
        spread = device_map(self.name, self._options)
        if spread is None and self._options.quantise:
            spread = {"": device or ("cuda" if torch.cuda.is_available() else "cpu")}
        if spread is not None:
            arguments["device_map"] = spread
        try:
            with recorded_loading() as reports:
                model = SentenceTransformer(
                    str(self._folder),
                    device=device,
                    trust_remote_code=self._options.trust_remote_code,
                    local_files_only=self._options.offline,
                    model_kwargs=arguments,
                )
            # A single module computes vectors itself, with its pooler if it has one.
            unused = check_weights(reports, POOLER if len(model) > 1 else ())
            check_tokenizer(getattr(model, "tokenizer", None))
            if isinstance(spread, dict):
                must_cover(_transformer(model), spread)
        except (
            Exception
        ) as error:  # Frameworks raise many kinds of exceptions, also for damaged files.
            message = f"cannot be loaded: {first_line(error)}"
            raise InputError(Problem(self.name, None, message)) from error
        settle(self.name, model, self._options)
        limit_to_positions(model)
        pad_right(model)
        if self._options.pooling in MODES:
            pool_with(self.name, model, self._options.pooling)
        elif self._parts is None:
            _take_mean(model)
        counter = TokenCounter(getattr(model, "tokenizer", None))
        encoder = _LoadedEncoder(model, unused, counter, _vocabulary(model))
        model[0].register_forward_pre_hook(
            lambda module, args: self._check_tokens(args[0], encoder)
        )
        return encoder

    def _check_tokens(self, features: Mapping[str, Any], encoder: _LoadedEncoder) -> None:
        """Count the tokens of a batch; raise InputError for ids without a vector in the model."""
        encoder.counter.batch(features)
        ids = features.get("input_ids")
        if ids is not None and encoder.vocabulary and int(ids.max()) >= encoder.vocabulary:
            message = (
                f"its tokenizer produces token {int(ids.max())}, but the vocabulary has "
                f"{encoder.vocabulary} entries; the tokenizer may be that of another model"
            )
            raise InputError(Problem(self.name, None, message))


def _vocabulary(model: Any) -> int:
    """Return the number of token vectors of a model, if its tokenizer may produce other ids; else 0."""
    transformer: Any = _transformer(model)
    if transformer is model or not hasattr(model.tokenizer, "get_vocab"):
        return 0
    rows = int(transformer.get_input_embeddings().weight.shape[0])
    return rows if max(model.tokenizer.get_vocab().values(), default=0) >= rows else 0


def _transformer(model: Any) -> Any:
    """Return the transformers model inside a sentence-transformers model, or the model itself."""
    return getattr(model[0], "auto_model", model)


def _take_mean(model: Any) -> None:
    """Use mean pooling; for causal models the framework would use the last token."""
    old_name = "get_sentence_embedding_dimension"  # Before version 6.
    size = getattr(model, "get_embedding_dimension", None) or getattr(model, old_name)
    if len(model) > 1:
        model[1] = type(model[1])(size(), "mean")


def _need_frameworks(name: str) -> None:
    from importlib.util import find_spec

    missing = [part for part in ("torch", "sentence_transformers") if find_spec(part) is None]
    if missing:
        message = f"needs {' and '.join(missing)}; install them with: pip install 'giccs[models]'"
        raise InputError(Problem(name, None, message))
