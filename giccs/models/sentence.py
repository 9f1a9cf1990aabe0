"""Sentence-transformers models, and plain encoders with the mean of their tokens' vectors.

The paper (section 5.1.1) takes "the mean aggregation of its token embeddings" for every model. A
sentence-transformers folder brings its own pooling, which for the models of Table 5 is that mean; a
plain encoder gets it here. Padding is left out of the mean in both cases.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bws.problems import InputError, Problem
from giccs.models.abilities import PairModel, TextPairModel, VectorModel
from giccs.models.checkpoint import WEIGHTS, first_line, located, read_json, revision, saved_dtype
from giccs.models.devices import check_device, device_map, devices, must_cover
from giccs.models.encoding import BatchSize, EncoderInput, cosines, encode_in_batches, encoded
from giccs.models.loading import uninterrupted
from giccs.models.quantisation import (
    check_quantised,
    quantisation,
    quantised_as,
    quantised_with,
    settle,
)
from giccs.models.trained import TrainedModel, trained_settings
from giccs.models.vocabulary import TokenCounter, check_tokenizer
from giccs.models.weights import POOLER, check_weights, recorded_loading, unused_weights
from giccs.progress import Progress

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from giccs.models import ModelOptions

__all__ = ["SentenceModel", "encoder_folder", "open_encoder"]


def open_encoder(name: str, place: str, options: ModelOptions) -> SentenceModel | TrainedModel:
    """Return the encoder in the folder `place` or of that hub id, or what giccs-csts train made of one."""
    path = located(place, options.revision, offline=options.offline)
    if (settings := trained_settings(path)) is not None:
        return TrainedModel(name, path, settings, options)
    return SentenceModel(name, encoder_folder(name, path, options), options)


def encoder_folder(name: str, folder: Path, options: ModelOptions) -> Path:
    """Return the folder of an encoder; InputError in a sentence where it holds none."""

    def refused(message: str) -> InputError:
        return InputError(Problem(name, None, message))

    if not folder.is_dir():
        raise refused("is a file; a model is a folder or a hub id")
    parts = read_json(folder / "modules.json")
    config = read_json(folder / "config.json")
    if parts is None and config is None:
        raise refused("holds no model: there is neither modules.json nor config.json in it")
    if not any(any(folder.rglob(pattern)) for pattern in WEIGHTS):
        raise refused(f"holds no weights; a file {' or '.join(WEIGHTS)} is expected")
    own = isinstance(config, dict) and "auto_map" in config
    if (own or _foreign_parts(parts)) and not options.trust_remote_code:
        raise refused("brings code of its own; read it, then allow it with --trust-remote-code")
    check_quantised(name, config, options)
    device_map(name, options)
    return folder


def _foreign_parts(parts: Any) -> bool:
    """Tell whether modules.json names classes of others; older versions import these unasked."""
    types = [part.get("type") for part in parts or () if isinstance(part, dict)]
    return any(not str(one).startswith("sentence_transformers.") for one in types)


class SentenceModel(PairModel, TextPairModel, VectorModel):
    """An encoder whose similarity is the cosine of two texts' vectors."""

    name: str

    def __init__(self, name: str, folder: Path, options: ModelOptions) -> None:
        self.name = name
        self._folder = folder
        self._options = options
        self._batch = BatchSize(options.batch_size)
        self._unused = ""

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        """Return what the vectors depend on: the weights, their type, and how tokens are pooled."""
        return {
            "kind": "encoder",
            "revision": revision(self._folder),
            "dtype": self._dtype,
            **quantised_as(self._options),
            "pooling": "the model's own" if self._own_pooling else "mean",
            "similarity": "cosine",
        }

    def separates_pairs(self) -> bool:
        """Tell whether the tokenizer puts a separator between two texts, as those of BERT and RoBERTa do.

        False if the tokenizer cannot be opened: the error is reported when the model is loaded.
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
            n_single, n_pair = (tokenizer.num_special_tokens_to_add(pair) for pair in (False, True))
        except Exception:
            return False
        return bool(n_pair > n_single)

    def pair_scores(
        self, left: Sequence[EncoderInput], right: Sequence[EncoderInput], progress: Progress
    ) -> NDArray[np.float64]:
        """Return the cosine of each pair.

        An input that is a pair of texts itself is encoded as the tokenizer encodes pairs.
        """
        return cosines(left, right, self._batches, progress)

    def vectors(self, texts: Sequence[EncoderInput], progress: Progress) -> NDArray[np.float32]:
        """Return (N, D) the vectors of N texts; each distinct text is encoded once."""
        return encoded(texts, self._batches, progress)

    def first_last(self, texts: Sequence[EncoderInput], progress: Progress) -> NDArray[np.float32]:
        """Return (N, D) the mean of all tokens' vectors in a transformer's first layer and its last.

        The first is the first layer's output, not its input. Special tokens count, padding does not.
        Raises InputError where the model has no layers.
        """

        def batches(
            some: Sequence[EncoderInput],
        ) -> Iterator[tuple[list[int], NDArray[np.float32]]]:
            yield from encode_in_batches(self._first_and_last, some, self._batch)

        return encoded(texts, batches, progress)

    def environment(self) -> Mapping[str, Any]:
        """Return versions, device, and the batch size that was reached."""
        from importlib.metadata import version

        packages = ("torch", "transformers", "sentence-transformers")
        return {
            **{package: version(package) for package in packages},
            **quantised_with(self._options),
            "device": self._devices,
            "batch_size": self._batch.size,
            **unused_weights(self._unused),
        }

    @property
    def _devices(self) -> str:
        own = _transformer(self._model)
        return devices(own) if own is not self._model else str(own.device)

    def _batches(
        self, texts: Sequence[EncoderInput]
    ) -> Iterator[tuple[list[int], NDArray[np.float32]]]:
        yield from encode_in_batches(self._encode, texts, self._batch)

    def _encode(self, texts: Sequence[EncoderInput]) -> NDArray[np.float32]:
        vectors = self._model.encode(list(texts), batch_size=len(texts), show_progress_bar=False)
        return np.asarray(vectors, dtype=np.float32)

    def _first_and_last(self, texts: Sequence[EncoderInput]) -> NDArray[np.float32]:
        transformer: Any = self._model[0]
        if not hasattr(transformer, "auto_model"):
            message = "has no layers; first-last is for transformers encoders"
            raise InputError(Problem(self.name, None, message))
        import torch

        tokens = transformer.tokenizer(
            list(texts),
            padding=True,
            truncation=True,
            max_length=transformer.max_seq_length,
            return_tensors="pt",
        ).to(self._model.device)
        self._check_tokens(tokens)
        with torch.inference_mode():
            states = transformer.auto_model(**tokens, output_hidden_states=True).hidden_states
        both = (states[1].float() + states[-1].float()) / 2
        mask = tokens["attention_mask"].unsqueeze(-1)
        means = (both * mask).sum(dim=1) / mask.sum(dim=1)
        return np.asarray(means.cpu().numpy(), dtype=np.float32)

    @property
    def _own_pooling(self) -> bool:
        return (self._folder / "modules.json").is_file()

    @cached_property
    def _dtype(self) -> str:
        """Return the type of the weights: what was asked for, or what they were saved in."""
        if self._options.dtype != "auto":
            return self._options.dtype
        return saved_dtype(read_json(self._folder / "config.json"))

    @cached_property
    def _model(self) -> SentenceTransformer:
        _need_frameworks(self.name)
        with uninterrupted():
            import torch
            from sentence_transformers import SentenceTransformer
            from transformers.utils import logging

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        logging.set_verbosity_error()  # type: ignore[no-untyped-call]
        how = {"dtype": getattr(torch, self._dtype), **quantisation(self._options, self._dtype)}
        check_device(self.name, self._options.device)
        device = None if self._options.device == "auto" else self._options.device
        spread = device_map(self.name, self._options)
        if spread is None and self._options.quantise:
            spread = {"": device or ("cuda" if torch.cuda.is_available() else "cpu")}
        if spread is not None:
            how["device_map"] = spread
        try:
            with recorded_loading() as reports:
                model = SentenceTransformer(
                    str(self._folder),
                    device=device,
                    trust_remote_code=self._options.trust_remote_code,
                    local_files_only=self._options.offline,
                    model_kwargs=how,
                )
            # a single module computes the vectors itself, by its pooler where it has one
            self._unused = check_weights(reports, POOLER if len(model) > 1 else ())
            check_tokenizer(getattr(model, "tokenizer", None))
            if isinstance(spread, dict):
                must_cover(_transformer(model), spread)
        except (
            Exception
        ) as error:  # the frameworks raise whatever they like, also for a broken file
            message = f"cannot be opened: {first_line(error)}"
            raise InputError(Problem(self.name, None, message)) from error
        settle(self.name, model, self._options)
        self._watch_tokens(model)
        _let_pad(model)
        if not self._own_pooling:
            _take_mean(model)
        return model

    def _watch_tokens(self, model: Any) -> None:
        """Check and count the tokens of each batch before the model reads them."""
        self._counter = TokenCounter(getattr(model, "tokenizer", None))
        self._vocabulary = _vocabulary(model)
        model[0].register_forward_pre_hook(lambda module, args: self._check_tokens(args[0]))

    def _check_tokens(self, features: Mapping[str, Any]) -> None:
        """Count the tokens of a batch; InputError where the model has no vector for one of them."""
        self._counter.batch(features)
        ids = features.get("input_ids")
        if ids is not None and self._vocabulary and int(ids.max()) >= self._vocabulary:
            message = (
                f"its tokenizer gives token {int(ids.max())}, and the model knows {self._vocabulary}; "
                "is it another model's?"
            )
            raise InputError(Problem(self.name, None, message))


def _vocabulary(model: Any) -> int:
    """Return the number of tokens that a model has vectors for, if its tokenizer may give others; else 0."""
    transformer: Any = _transformer(model)
    if transformer is model or not hasattr(model.tokenizer, "get_vocab"):
        return 0
    rows = int(transformer.get_input_embeddings().weight.shape[0])
    return rows if max(model.tokenizer.get_vocab().values(), default=0) >= rows else 0


def _transformer(model: Any) -> Any:
    """Return what transformers loaded, of a model of sentence-transformers; the model where it is none."""
    return getattr(model[0], "auto_model", model)


def _take_mean(model: Any) -> None:
    """Let a text's vector be the mean of its tokens'; of causal models the framework would take the last."""
    old_name = "get_sentence_embedding_dimension"  # before version 6
    size = getattr(model, "get_embedding_dimension", None) or getattr(model, old_name)
    if len(model) > 1:
        model[1] = type(model[1])(size(), "mean")


def _let_pad(model: Any) -> None:
    """Give a tokenizer a token to pad with where it has none, as those of GPT-2 and Llama; it is masked."""
    tokenizer: Any = getattr(model, "tokenizer", None)
    if getattr(tokenizer, "pad_token", "") is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.convert_ids_to_tokens(0)
        tokenizer.padding_side = "right"  # so that no position moves


def _need_frameworks(name: str) -> None:
    from importlib.util import find_spec

    missing = [part for part in ("torch", "sentence_transformers") if find_spec(part) is None]
    if missing:
        message = f"needs {' and '.join(missing)}; install them with: pip install 'giccs[models]'"
        raise InputError(Problem(name, None, message))
