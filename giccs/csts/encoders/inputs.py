"""Inputs of a scorer: token ids, batches, and pairs of rows within a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset as TorchDataset

from giccs.csts.data import INVALID, Instance
from giccs.csts.encoders.base import TokenIds, Tokens
from giccs.csts.encoders.settings import Settings
from giccs.csts.measures import paired
from giccs.models.vocabulary import TokenCounter

Unit = tuple[Instance, ...]
"""Rows that must be in the same batch: (high, low) of a sentence pair, or a single row."""


def row_texts(instance: Instance, settings: Settings) -> list[list[str]]:
    """Return the texts of a row's passes, each as the parts for `Tokens.encode`.

    >>> kite = Instance("0", "A kite.", "A bus.", "The color.", 5, 0)
    >>> row_texts(kite, Settings("m", encoding="bi"))
    [['A kite.', 'The color.'], ['A bus.', 'The color.']]
    >>> row_texts(kite, Settings("m", encoding="cross", sentences=False))
    [['The color.']]
    """
    condition = [instance.condition] if settings.condition else []
    sides = [[instance.sentence1], [instance.sentence2]] if settings.sentences else []
    if settings.encoding == "tri":
        return [*sides, condition]
    if settings.encoding == "bi":
        return [[*side, *condition] for side in sides]
    return [[*(text for side in sides for text in side), *condition]]


def units(instances: Sequence[Instance], objective: str) -> list[Unit]:
    """Return the units that form batches, in the order of the rows.

    mse: every row separately. quad: pairs of exactly two rows with different labels; other rows are ignored.
    quad+mse: these pairs, and all other rows separately for the squared error.
    """
    if objective == "mse":
        return [(instance,) for instance in instances]
    paired_units: list[Unit] = [*paired(instances)]
    if objective == "quad":
        return paired_units
    inside = {id(instance) for unit in paired_units for instance in unit}
    return [*paired_units, *((instance,) for instance in instances if id(instance) not in inside)]


@dataclass(frozen=True)
class Encoded:
    """Token ids of a row."""

    passes: tuple[TokenIds, ...]
    """One per pass through the encoder."""
    label: float


class Units(TorchDataset[tuple[Encoded, ...]]):
    """Units with their token ids; `truncated` counts the texts that were too long."""

    def __init__(self, rows: Sequence[Unit], tokens: Tokens, settings: Settings) -> None:
        self.truncated = 0
        self._counter = TokenCounter(tokens.tokenizer)
        cache: dict[tuple[str, ...], TokenIds] = {}
        self._units = [
            tuple(self._encoded(instance, tokens, settings, cache) for instance in unit)
            for unit in rows
        ]

    def __len__(self) -> int:
        return len(self._units)

    def __getitem__(self, index: int) -> tuple[Encoded, ...]:
        return self._units[index]

    def by_length(self) -> list[int]:
        """Return the indices of the units, the longest first, so that batches have little padding."""
        lengths = [
            max(len(text.ids) for row in unit for text in row.passes) for unit in self._units
        ]
        return sorted(range(len(lengths)), key=lambda unit: -lengths[unit])

    def _encoded(
        self, instance: Instance, tokens: Tokens, settings: Settings,
        cache: dict[tuple[str, ...], TokenIds],
    ) -> Encoded:  # fmt: skip
        passes = []
        for parts in row_texts(instance, settings):
            if tuple(parts) not in cache:
                encoded = tokens.encode(parts, joined=settings.encoding == "cross")
                self.truncated += encoded.truncated
                self._counter.ids(encoded.ids)
                cache[tuple(parts)] = encoded
            passes.append(cache[tuple(parts)])
        label = 0 if instance.label in (None, INVALID) else instance.label
        return Encoded(tuple(passes), label or 0)


def in_order(scores: Any, order: Sequence[int]) -> NDArray[np.float64]:
    """Return (N,) scores of the units that `order` sorted, in the order before.

    >>> in_order([0.5, 0.1, 0.3], [2, 0, 1]).tolist()
    [0.1, 0.3, 0.5]
    """
    restored = np.empty(len(order))
    restored[np.asarray(order, dtype=np.intp)] = scores
    return restored


@dataclass(frozen=True)
class Batches:
    """Collator of units into batches, for training and evaluation."""

    pad: int
    """Id of the padding token."""

    def __call__(self, batch: Sequence[tuple[Encoded, ...]]) -> dict[str, Tensor]:
        """Return the inputs of `model_inputs`, each (parts · B, tokens); ``labels`` (B,); ``pairs`` (P, 2).

        Padding is on the right, with attention mask and token type 0. ``pairs`` contains the indices of
        (high, low) in the batch, for units of two rows.
        """
        rows = [row for unit in batch for row in unit]
        texts = [row.passes[part] for part in range(len(rows[0].passes)) for row in rows]
        padding = [max(len(text.ids) for text in texts) - len(text.ids) for text in texts]
        padded = [*zip(texts, padding, strict=True)]
        return {
            "input_ids": torch.tensor([[*text.ids, *[self.pad] * n] for text, n in padded]),
            "attention_mask": torch.tensor([[1] * len(text.ids) + [0] * n for text, n in padded]),
            "token_type_ids": torch.tensor([[*text.types, *[0] * n] for text, n in padded]),
            "labels": torch.tensor([row.label for row in rows]),
            "pairs": torch.tensor(_unit_spans(batch), dtype=torch.long).reshape(-1, 2),
        }


def model_inputs(batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors of a batch that are inputs of the scorer."""
    return {name: batch[name] for name in ("input_ids", "attention_mask", "token_type_ids")}


def _unit_spans(batch: Sequence[tuple[Encoded, ...]]) -> list[tuple[int, int]]:
    spans, first = [], 0
    for unit in batch:
        if len(unit) == 2:
            spans.append((first, first + 1))
        first += len(unit)
    return spans
