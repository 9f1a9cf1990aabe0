"""The trained model: texts through an encoder, vectors to one number per row (C-STS, 4.1).

A trained model is saved as a folder: weights as safetensors, everything else as JSON.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.utils.data import Subset

from bws.base.problems import InputError, Problem
from bws.base.text import write_atomic
from giccs.csts.data import Instance
from giccs.csts.encoders.base import Tokens, load_tokens
from giccs.csts.encoders.inputs import Batches, Units, in_order, model_inputs
from giccs.csts.encoders.settings import Settings, settings_of, trained_document
from giccs.models.checkpoint import first_line
from giccs.models.trained import SETTINGS
from giccs.models.vocabulary import count_tokens
from giccs.models.weights import LoadingReport, check_weights
from giccs.progress import Progress, silent

PARTS = {"cross": 1, "bi": 2, "tri": 3}
"""Encoding -> number of texts of a row, each a pass through the same encoder."""

WEIGHTS = "model.safetensors"
BATCH_ROWS = 64


class Scorer(nn.Module):
    """Maps rows to similarities: a number for a cross-encoder, cosines for bi- and tri-encoders.

    Layers beyond the encoder are randomly initialised, so set the seed before construction. They follow the
    authors'
    program: dropout with the encoder's rate before every linear layer, and the encoder's activation after an
    MLP. Only layers required by the settings are created.
    """

    def __init__(self, encoder: nn.Module, settings: Settings) -> None:
        super().__init__()
        config: Any = encoder.config
        width = int(config.hidden_size)
        self.encoder = encoder
        self.has_types = _has_types(encoder)
        self.pooling = settings.pooling
        self.encoding = settings.encoding
        self.transform = _mlp(config, width) if settings.transform else None
        self.condition = self.joined = self.head = None
        if settings.encoding == "tri":
            self.condition = _linear(config, width, width)
            if settings.operation == "concatenation":
                self.joined = _mlp(config, 2 * width)
        elif settings.encoding == "cross":
            self.head = _linear(config, width, 1)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> Tensor:
        """Return (B,) similarities of B rows.

        All arguments are (parts · B, tokens): B first texts, then B second texts, then B conditions,
        according to `PARTS`. Token type ids are ignored by encoders without them.
        """
        types = {"token_type_ids": token_type_ids} if self.has_types else {}
        hidden = self.encoder(
            input_ids=input_ids, attention_mask=attention_mask, **types
        ).last_hidden_state
        vectors = self._pooled(_widened(hidden), attention_mask)
        if self.head is not None:
            numbers: Tensor = self.head(self._transformed(vectors))
            return _widened(numbers.squeeze(-1))
        first, second, *condition = vectors.chunk(PARTS[self.encoding])
        first, second = self._transformed(first), self._transformed(second)
        if self.condition is not None:
            about = self.condition(condition[0])
            first, second = self._joined(first, about), self._joined(second, about)
        return nn.functional.cosine_similarity(_widened(first), _widened(second), dim=-1)

    def _pooled(self, hidden: Tensor, mask: Tensor) -> Tensor:
        if self.pooling == "cls":
            return hidden[:, 0]
        weights = mask.unsqueeze(-1).to(hidden.dtype)
        return (hidden * weights).sum(dim=1) / weights.sum(dim=1)

    def _transformed(self, vectors: Tensor) -> Tensor:
        return vectors if self.transform is None else self.transform(vectors)

    def _joined(self, sentence: Tensor, condition: Tensor) -> Tensor:
        """Return h(c; s): the Hadamard product, or an MLP over both."""
        if self.joined is None:
            return sentence * condition
        combined: Tensor = self.joined(torch.cat([sentence, condition], dim=-1))
        return combined


def _widened(values: Tensor) -> Tensor:
    """Return values of mixed precision in float32: half precision is too coarse for sums and cosines."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def _has_types(encoder: nn.Module) -> bool:
    """Return whether an encoder uses token types, as BERT does and RoBERTa does not."""
    config: Any = encoder.config
    takes_types = "token_type_ids" in signature(encoder.forward).parameters
    return takes_types and getattr(config, "type_vocab_size", 1) > 1


def _linear(config: Any, width_in: int, width_out: int) -> nn.Sequential:
    return nn.Sequential(nn.Dropout(_dropout(config)), nn.Linear(width_in, width_out))


def _mlp(config: Any, width_in: int) -> nn.Sequential:
    from transformers.activations import ACT2FN

    activation = getattr(config, "hidden_act", None) or getattr(config, "activation", "gelu")
    linear = _linear(config, width_in, int(config.hidden_size))
    return nn.Sequential(*linear, ACT2FN[activation])


def _dropout(config: Any) -> float:
    names = ("classifier_dropout", "hidden_dropout_prob", "dropout")
    values = (getattr(config, name, None) for name in names)
    return float(next((share for share in values if share is not None), 0.1))


@dataclass(frozen=True)
class TrainedScorer:
    """A trained model that scores rows."""

    settings: Settings
    scorer: Scorer
    tokens: Tokens

    def predict(
        self, rows: Sequence[Instance], progress: Progress = silent, batch_size: int = BATCH_ROWS
    ) -> NDArray[np.float64]:
        """Return (N,) similarities: cosines, or for a cross-encoder numbers of about 0 to 1.

        Texts that are too long are shortened as in the training, and counted as cut.
        """
        self.scorer.eval()
        encoded = Units([(row,) for row in rows], self.tokens, self.settings)
        count_tokens(cut=encoded.truncated)
        order = encoded.by_length()
        batches = self._batches(Subset(encoded, order), batch_size)
        batch_scores = [*progress(batches, "scoring", -(-len(rows) // batch_size))]
        return in_order(np.concatenate([np.empty(0), *batch_scores]), order)

    def _batches(self, rows: Subset[Any], size: int) -> Iterator[NDArray[np.float64]]:
        collate = Batches(self.tokens.tokenizer.pad_token_id)
        device = next(self.scorer.parameters()).device
        for start in range(0, len(rows), size):
            batch = collate([rows[n] for n in range(start, min(start + size, len(rows)))])
            inputs = {name: tensor.to(device) for name, tensor in model_inputs(batch).items()}
            with torch.no_grad():
                yield self.scorer(**inputs).double().cpu().numpy()


def save_trained(
    scorer: Scorer, tokens: Tokens, settings: Settings, folder: str | os.PathLike[str]
) -> None:
    """Save a trained model atomically, replacing an existing folder."""
    target = Path(folder)
    part = target.with_name(f".{target.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    weights = {
        name: tensor.detach().cpu().contiguous() for name, tensor in scorer.state_dict().items()
    }
    save_file(weights, part / WEIGHTS, metadata={"format": "pt"})
    config: Any = scorer.encoder.config
    config.save_pretrained(part)
    tokens.tokenizer.save_pretrained(part)
    write_atomic(part / SETTINGS, json.dumps(dict(trained_document(settings)), indent=2) + "\n")
    shutil.rmtree(target, ignore_errors=True)
    part.rename(target)


def load_trained(folder: str | os.PathLike[str], device: str = "cpu") -> TrainedScorer:
    """Load a model saved by `save_trained`.

    Raises InputError if the folder has no such model, or if its weights do not match its settings.
    """
    path = Path(folder)
    if not all((path / name).is_file() for name in (SETTINGS, WEIGHTS)):
        message = f"contains no trained model; expected {SETTINGS} and {WEIGHTS}"
        raise InputError(Problem(str(folder), None, message))
    settings = _settings(path / SETTINGS)
    tokens = load_tokens(str(folder), path, settings.max_length)
    try:
        scorer = Scorer(_empty_encoder(path), settings)
        _fill(scorer, load_file(path / WEIGHTS))
        return TrainedScorer(settings, scorer.to(device).eval(), tokens)
    except Exception as error:  # Frameworks raise many kinds of exceptions.
        message = f"cannot be loaded: {first_line(error)}"
        raise InputError(Problem(str(folder), None, message)) from error


def _empty_encoder(path: Path) -> nn.Module:
    """Return the encoder of a configuration, with random weights."""
    from transformers import AutoConfig, AutoModel

    # With None, transformers would ask in the terminal whether to run remote code.
    config = AutoConfig.from_pretrained(path, local_files_only=True, trust_remote_code=False)
    build: Any = AutoModel.from_config
    try:
        encoder: nn.Module = build(config, add_pooling_layer=False, trust_remote_code=False)
    except TypeError:  # Architectures without such a layer.
        encoder = build(config, trust_remote_code=False)
    return encoder


def _fill(scorer: Scorer, weights: Mapping[str, Tensor]) -> None:
    """Load weights into a scorer; raise ValueError unless the names and shapes match exactly."""
    state = scorer.state_dict()
    report = LoadingReport(
        f"the {scorer.encoding}-encoder of {SETTINGS}",
        prefix="",
        missing=tuple(sorted(state.keys() - weights.keys())),
        unexpected=tuple(sorted(weights.keys() - state.keys())),
        mismatched=tuple(
            name
            for name in sorted(state.keys() & weights.keys())
            if state[name].shape != weights[name].shape
        ),
    )
    if unused := check_weights([report]):  # An ignored head, which no trained model has.
        raise ValueError(f"its weights do not match {report.architecture}: {unused}")
    scorer.load_state_dict(weights)


def _settings(path: Path) -> Settings:
    try:
        return settings_of(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, AttributeError, RecursionError) as error:
        message = f"invalid settings of a trained model: {error}"
        raise InputError(Problem(str(path), None, message)) from None
