"""Settings that determine a training besides its data, and the devices and processes that run it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from bws.base.options import MAX_COUNT, MAX_SEED, check_options, option

TEMPLATES = {
    "cross": "{sentence1} [SEP] {sentence2} [SEP] {condition}",
    "bi": "pair({sentence}, {condition})",
    "tri": "{text}",
}
"""Encoding -> text of one pass of the encoder, between the special tokens added by its tokenizer.

``pair`` is the tokenizer's encoding of two texts, ``[SEP]`` its separator token with a space on both sides. A
part that is not shown is removed together with its separator.
"""
TEMPLATE = "template"
"""Key of the template in the settings of a trained model."""
SHORTEST = 8
"""Minimum number of tokens: one for each part between the separators of a cross-encoder, and one more."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a training, with the defaults of C-STS, A.3; raises ValueError for invalid values.

    >>> Settings("package:minilm", objective="quad+mse").described()
    'bi, quad+mse, lr 3e-5'
    """

    model: str
    """The base encoder: a folder, a hub id, ``package:minilm``."""
    revision: str | None = None
    """Revision of a hub id."""
    encoding: str = option(
        "bi",
        "Encode sentences and condition jointly (cross), each sentence with it (bi), or all "
        "separately (tri). Can be repeated.",
        choices=TEMPLATES,
    )
    """``cross``: f(s1; s2; c). ``bi``: cos(f(s1; c), f(s2; c)). ``tri``: cos(h(c; s1), h(c; s2))."""
    objective: str = option(
        "mse",
        "Squared error, the quadruplet loss over the two rows of a sentence pair, or both.",
        choices=("mse", "quad", "quad+mse"),
    )
    pooling: str = option(
        "cls",
        "Vector of a text: the first token, or the mean of all tokens.",
        choices=("cls", "mean"),
    )
    transform: bool = option(False, "Add an MLP to the vector ([CLS] w/ MLP).")
    """MLP (dropout, linear, the encoder's own activation) on that vector: "[CLS] w/ MLP" of Table 7."""
    operation: str = option(
        "hadamard",
        "For tri, the combination of sentence and condition.",
        choices=("hadamard", "concatenation"),
    )
    """h of the tri-encoder: the product of both vectors, or an MLP over their ``concatenation``."""
    condition: bool = option(True, "Omit the condition.", flag="--no-condition")
    """Whether the condition is shown."""
    sentences: bool = option(True, "Omit the sentences (cross).", flag="--condition-only")
    """Whether the sentences are shown; without them only the condition is known (C-STS, Table 10)."""
    texts: str = option(
        "sentences",
        "Replace the sentences by answers from giccs csts answers.",
        choices=("sentences", "answers"),
    )
    """``answers``: answers to the question of the condition replace the sentences (L-CSTS, 5.1)."""
    learning_rate: float = option(3e-5, None, bounds=(0, 1), min_open=True, metavar="X")
    weight_decay: float = option(0.1, None, bounds=(0, 10), metavar="X")
    epochs: int = option(3, None, bounds=(1, 10_000), metavar="N")
    batch: int = option(
        32,
        "Rows per training step, over all devices.",
        bounds=(1, 1_000_000),
        metavar="N",
        flag="--batch-size",
        former_names=("--batch",),
    )
    """With a quadruplet loss, half as many units, each a pair."""
    select: str = option(
        "last",
        "Epoch of the saved model: the last, as in the paper, or the best on validation.",
        choices=("last", "best"),
    )
    warmup: float = option(
        0.1,
        "Share of the steps in which the learning rate rises; afterwards it decreases linearly.",
        bounds=(0, 1),
        max_open=True,
        metavar="SHARE",
    )
    margin: float = option(1.0, "λ of the quadruplet loss.", bounds=(0, 1000))
    max_length: int = option(
        512,
        "Maximum number of tokens; the model's own maximum if that is smaller.",
        bounds=(SHORTEST, 1_000_000),
    )
    frozen_layers: int = option(
        0,
        "Do not train the first N layers of the encoder and, if N > 0, its embeddings.",
        bounds=(0, 10_000),
        metavar="N",
    )
    mixed_precision: str = option(
        "no",
        "Compute the passes of the encoder in this format while training, with weights in float32; fp16 "
        "scales the gradients and requires a GPU. Evaluation is in float32.",
        choices=("no", "bf16", "fp16"),
    )
    """Format of autocast, as for ``accelerate launch``, whose own option of this name has no effect here."""
    train_rows: int | None = option(
        None,
        "Train on about N rows, in complete sentence pairs sampled by the seed.",
        bounds=(2, MAX_COUNT),
        flag="--rows",
        metavar="N",
    )
    seeds: tuple[int, ...] = (42,)
    """One training per seed."""

    def __post_init__(self) -> None:
        check_options(self)
        if problem := seeds_problem(self.seeds):
            raise ValueError(problem)

    @property
    def has_quad(self) -> bool:
        """Whether the objective includes a quadruplet loss."""
        return self.objective != "mse"

    def with_seed(self, seed: int) -> Settings:
        """Return the settings for one of the seeds."""
        return replace(self, seeds=(seed,))

    def canonical(self) -> Settings:
        """Return the settings with ineffective options at their defaults, so that equivalent trainings
        compare equal."""
        defaults = {field.name: field.default for field in fields(self)}
        idle = []
        if self.encoding != "tri":
            idle.append("operation")
        if not self.has_quad:
            idle.append("margin")
        changes: dict[str, Any] = {name: defaults[name] for name in idle}
        return replace(self, **changes)

    def described(self) -> str:
        """Return a short description of the settings; beyond the first three, only values that differ from
        the defaults."""
        return ", ".join(filter(None, self._parts()))

    def _parts(self) -> list[str]:
        tri = f" ({self.operation})" if self.encoding == "tri" else ""
        pooled = self.pooling if self.pooling != "cls" or self.transform else ""
        return [
            self.encoding + tri,
            self.objective,
            f"lr {_short(self.learning_rate)}",
            f"{pooled} with MLP" if self.transform else pooled,
            "QA answers" if self.texts == "answers" else "",
            "" if self.condition else "no condition",
            "" if self.sentences else "condition only",
            *self._changed("weight_decay", "epochs", "batch", "warmup"),
            "best epoch" if self.select == "best" else "",
            *(self._changed("margin") if self.has_quad else []),
            *self._changed("max_length", "frozen_layers"),
            self.mixed_precision if self.mixed_precision != "no" else "",
            f"{self.train_rows} rows" if self.train_rows else "",
        ]

    def _changed(self, *names: str) -> list[str]:
        defaults = {field.name: field.default for field in fields(self)}
        return [
            f"{name.replace('_', ' ')} {_short(getattr(self, name))}"
            for name in names
            if getattr(self, name) != defaults[name]
        ]

    def document(self) -> Mapping[str, Any]:
        """Return the settings for a signature."""
        values = asdict(self)
        return values | {"seeds": list(self.seeds)}


def seeds_problem(seeds: Any) -> str:
    """Return the problem with a list of seeds, or an empty string."""
    each_once = isinstance(seeds, list | tuple) and len({*map(repr, seeds)}) == len(seeds) > 0
    if each_once and all(type(seed) is int and 0 <= seed <= MAX_SEED for seed in seeds):
        return ""
    return f"seeds are {seeds!r}; expected distinct integers from 0 to {MAX_SEED}"


def trained_document(settings: Settings) -> Mapping[str, Any]:
    """Return the document saved with the weights of a trained model: its settings and the form of its
    inputs."""
    return {**settings.document(), TEMPLATE: TEMPLATES[settings.encoding]}


def settings_of(document: Mapping[str, Any]) -> Settings:
    """Return the settings of a document from `trained_document`; unknown names are ignored.

    Raises ValueError for an invalid document, or if the form of the inputs changed since the training.
    """
    names = {field.name for field in fields(Settings)}
    values = {name: value for name, value in document.items() if name in names}
    try:
        settings = Settings(**values | {"seeds": tuple(values["seeds"])})
    except (TypeError, KeyError) as error:
        raise ValueError(f"{error} is missing or has a wrong type") from None
    if document.get(TEMPLATE) != TEMPLATES[settings.encoding]:
        raise ValueError(
            "the form of the inputs changed since the training; train the model again with this version"
        )
    return settings


def _short(value: float) -> str:
    return f"{value:g}".replace("e-0", "e-")


def why_impossible(settings: Settings) -> str:
    """Return why settings contradict each other, with a remedy, or an empty string.

    >>> why_impossible(Settings("m", encoding="cross", objective="quad"))
    'quad compares vectors of single sentences, and a cross-encoder has none; use mse, or bi or tri'
    """
    if settings.encoding == "cross" and settings.has_quad:
        return (
            f"{settings.objective} compares vectors of single sentences, and a cross-encoder "
            "has none; use mse, or bi or tri"
        )
    if not settings.condition and not settings.sentences:
        return "neither the sentences nor the condition is shown; show one of them"
    if not settings.sentences and settings.texts == "answers":
        return "answers replace the sentences, which are not shown; omit one of the options"
    if not settings.sentences and settings.encoding != "cross":
        return (
            f"with the condition alone, both sides of a {settings.encoding}-encoder are the "
            "same text and every cosine is 1; use cross"
        )
    if not settings.condition and settings.encoding == "tri":
        return "a tri-encoder requires a condition; without it, use bi"
    if not settings.condition and settings.has_quad and settings.texts == "sentences":
        return (
            "without the condition, the two rows of a sentence pair have equal inputs and "
            "the quadruplet loss is constant; use mse, or answers"
        )
    if settings.has_quad and settings.batch % 2:
        return f"batch is {settings.batch}; expected an even number, because {settings.objective} uses pairs"
    return ""


def processes() -> int:
    """Return the number of distributed processes; 1 if none were launched."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_first() -> bool:
    """Return whether this is the process that writes files and output."""
    return int(os.environ.get("RANK", "0")) == 0


@dataclass(frozen=True, slots=True)
class Machine:
    """Devices of a training, which affect its result only by rounding and dropout masks."""

    device: str = "auto"
    """``auto`` uses a GPU if available; ``cpu``."""
    rows_at_once: int | None = None
    """Rows of a batch that a device processes at a time, to limit memory; None for its whole share."""
