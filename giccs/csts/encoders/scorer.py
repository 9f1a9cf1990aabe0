"""The model that is trained: texts through an encoder, vectors to one number a row (C-STS, 4.1)."""

from __future__ import annotations

from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn

from giccs.csts.encoders.settings import Settings

__all__ = ["PARTS", "Scorer"]

PARTS = {"cross": 1, "bi": 2, "tri": 3}
"""Encoding -> texts of a row, each a pass through the same encoder."""


class Scorer(nn.Module):
    """Rows to similarities: a number for a cross-encoder, cosines for bi- and tri-encoders.

    Layers beyond the encoder are new, so that the seed must be set before this is made. They are those of
    the authors' program: before every linear layer dropout as the encoder has it, and its activation behind
    an MLP. No layer is made that the settings leave unused.
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

        All arguments: (parts · B, tokens): first B first texts, then B second ones, then B conditions, as
        many as `PARTS` says. Token type ids are ignored by encoders without them.
        """
        types = {"token_type_ids": token_type_ids} if self.has_types else {}
        hidden = self.encoder(
            input_ids=input_ids, attention_mask=attention_mask, **types
        ).last_hidden_state
        vectors = self._pooled(hidden, attention_mask)
        if self.head is not None:
            numbers: Tensor = self.head(self._transformed(vectors))
            return numbers.squeeze(-1)
        first, second, *condition = vectors.chunk(PARTS[self.encoding])
        first, second = self._transformed(first), self._transformed(second)
        if self.condition is not None:
            about = self.condition(condition[0])
            first, second = self._joined(first, about), self._joined(second, about)
        return nn.functional.cosine_similarity(first, second, dim=-1)

    def _pooled(self, hidden: Tensor, mask: Tensor) -> Tensor:
        if self.pooling == "cls":
            return hidden[:, 0]
        weights = mask.unsqueeze(-1).to(hidden.dtype)
        return (hidden * weights).sum(dim=1) / weights.sum(dim=1)

    def _transformed(self, vectors: Tensor) -> Tensor:
        return vectors if self.transform is None else self.transform(vectors)

    def _joined(self, sentence: Tensor, condition: Tensor) -> Tensor:
        """h(c; s): the Hadamard product, or an MLP over both."""
        if self.joined is None:
            return sentence * condition
        both: Tensor = self.joined(torch.cat([sentence, condition], dim=-1))
        return both


def _has_types(encoder: nn.Module) -> bool:
    """Return whether an encoder distinguishes token types, as BERT does and RoBERTa does not."""
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
    found = (getattr(config, name, None) for name in names)
    return float(next((share for share in found if share is not None), 0.1))
