"""Everything that a training depends on, but its data; and which of it does not go together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from bws.option_types import MAX_SEED

__all__ = [
    "CHOICES",
    "RANGES",
    "SHORTEST",
    "TEMPLATES",
    "Settings",
    "settings_of",
    "trained_document",
    "why_impossible",
]

CHOICES = {
    "encoding": ("cross", "bi", "tri"),
    "objective": ("mse", "quad", "quad+mse"),
    "pooling": ("cls", "mean"),
    "operation": ("hadamard", "concatenation"),
    "texts": ("sentences", "answers"),
    "select": ("last", "best"),
}
"""Name of a setting -> what is allowed."""
TEMPLATES = {
    "cross": "{sentence1} [SEP] {sentence2} [SEP] {condition}",
    "bi": "pair({sentence}, {condition})",
    "tri": "{text}",
}
"""Encoding -> text of one pass of the encoder, between the special tokens that its tokenizer adds.

``pair`` is the tokenizer's own encoding of two texts, ``[SEP]`` its separator token with a space on both
sides. A part that is not shown is removed together with its separator.
"""
TEMPLATE = "template"
"""Key of the template in the settings of a trained model."""
POSITIVE = ("learning_rate", "epochs", "batch")
SHORTEST = 8
"""Tokens: one of each part between the separators of a cross-encoder, and one more."""
RANGES: Mapping[str, tuple[int, int]] = {
    "learning_rate": (0, 1),
    "weight_decay": (0, 10),
    "epochs": (1, 10_000),
    "batch": (1, 1_000_000),
    "warmup": (0, 1),
    "margin": (0, 1000),
    "max_length": (SHORTEST, 1_000_000),
    "train_rows": (2, 10**9),
}
"""Name of a setting -> the smallest and the largest value."""


@dataclass(frozen=True, slots=True)
class Settings:
    """One way to train, with the values of C-STS, A.3; ValueError where a value is not allowed.

    >>> Settings("package:minilm", objective="quad+mse").described()
    'bi, quad+mse, lr 3e-5'
    """

    model: str
    """The base encoder: a folder, a hub id, ``package:minilm``."""
    revision: str | None = None
    """Of a hub id."""
    encoding: str = "bi"
    """``cross``: f(s1; s2; c). ``bi``: cos(f(s1; c), f(s2; c)). ``tri``: cos(h(c; s1), h(c; s2))."""
    objective: str = "mse"
    """``mse`` on labels rescaled to 0 … 1; ``quad``, the quadruplet loss; ``quad+mse``, their sum."""
    pooling: str = "cls"
    """What of the last layer is the vector of a text: that of the first token, or the mean over tokens."""
    transform: bool = False
    """An MLP (dropout, linear, the encoder's own activation) on that vector: "[CLS] w/ MLP" of Table 7."""
    operation: str = "hadamard"
    """h of the tri-encoder: the product of both vectors, or an MLP over their ``concatenation``."""
    condition: bool = True
    """Whether the condition is shown."""
    sentences: bool = True
    """Whether the sentences are shown; without them the condition alone must tell (C-STS, Table 10)."""
    texts: str = "sentences"
    """``answers``: the answers to the condition's question stand in place of the sentences (L-CSTS, 5.1)."""
    learning_rate: float = 3e-5
    weight_decay: float = 0.1
    epochs: int = 3
    batch: int = 32
    """Rows for one step, over all devices; with a quadruplet loss half as many units, each a pair."""
    select: str = "last"
    """Epoch whose model is kept: ``last``, as in the authors' program, or ``best`` on validation."""
    warmup: float = 0.1
    """Share of the steps in which the learning rate rises, before it falls linearly to 0."""
    margin: float = 1.0
    """λ of the quadruplet loss."""
    max_length: int = 512
    """Tokens; the model's own limit where that is smaller."""
    train_rows: int | None = None
    """Train on about so many rows: whole sentence pairs, drawn by the seed. None is all."""
    seeds: tuple[int, ...] = (42,)
    """One training each."""

    def __post_init__(self) -> None:
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                found = getattr(self, name)
                raise ValueError(f"{name} is {found!r}; it must be one of {', '.join(allowed)}")
        for name in POSITIVE:
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be above 0")
        if not 0 <= self.warmup < 1 or self.weight_decay < 0 or self.margin < 0:
            raise ValueError(
                f"warmup is {self.warmup}, weight_decay {self.weight_decay}, margin {self.margin};"
                " warmup must be from 0 to below 1, the others 0 or more"
            )
        if self.max_length < SHORTEST:
            raise ValueError(f"max_length is {self.max_length}; it must be {SHORTEST} or more")
        if self.train_rows is not None and self.train_rows < 2:
            raise ValueError(f"train_rows is {self.train_rows}; it must be 2 or more")
        for name, (low, high) in RANGES.items():
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise ValueError(f"{name} is {value}; it must be from {low} to {high}")
        within = all(0 <= seed <= MAX_SEED for seed in self.seeds)
        if not self.seeds or len(set(self.seeds)) < len(self.seeds) or not within:
            raise ValueError(
                f"seeds are {list(self.seeds)}; they must be from 0 to {MAX_SEED}, each once"
            )

    @property
    def has_quad(self) -> bool:
        """Whether a quadruplet loss takes part."""
        return self.objective != "mse"

    def with_seed(self, seed: int) -> Settings:
        """Return the settings of one of the trainings."""
        return replace(self, seeds=(seed,))

    def canonical(self) -> Settings:
        """Return the settings with what has no effect at its default, so that equal trainings are equal."""
        defaults = {field.name: field.default for field in fields(self)}
        idle = []
        if self.encoding != "tri":
            idle.append("operation")
        if not self.has_quad:
            idle.append("margin")
        changes: dict[str, Any] = {name: defaults[name] for name in idle}
        return replace(self, **changes)

    def described(self) -> str:
        """Return in a few words how it is trained; only what is not the default but for the first three."""
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
        """Return the settings as a signature has them."""
        values = asdict(self)
        return values | {"seeds": list(self.seeds)}


def trained_document(settings: Settings) -> Mapping[str, Any]:
    """Return what is saved beside the weights of a trained model: its settings and the form of its inputs."""
    return {**settings.document(), TEMPLATE: TEMPLATES[settings.encoding]}


def settings_of(document: Mapping[str, Any]) -> Settings:
    """Return the settings of what `trained_document` returned; unknown names are ignored.

    Raises ValueError if it is no such document, or if inputs have another form now than in the training.
    """
    known = {field.name for field in fields(Settings)}
    values = {name: value for name, value in document.items() if name in known}
    try:
        settings = Settings(**values | {"seeds": tuple(values["seeds"])})
    except (TypeError, KeyError) as error:
        raise ValueError(f"{error} is missing or of another type") from None
    if document.get(TEMPLATE) != TEMPLATES[settings.encoding]:
        raise ValueError(
            "inputs had another form in the training; train it again with this version"
        )
    return settings


def _short(value: float) -> str:
    return f"{value:g}".replace("e-0", "e-")


def why_impossible(settings: Settings) -> str:
    """Return why settings do not go together and what could be done; empty where they do.

    >>> why_impossible(Settings("m", encoding="cross", objective="quad"))
    'quad compares vectors of single sentences, and a cross-encoder has none; take mse, or bi or tri'
    """
    if settings.encoding == "cross" and settings.has_quad:
        return (
            f"{settings.objective} compares vectors of single sentences, and a cross-encoder has none;"
            " take mse, or bi or tri"
        )
    if not settings.condition and not settings.sentences:
        return "neither the sentences nor the condition is shown; show one of them"
    if not settings.sentences and settings.texts == "answers":
        return "answers stand in the place of the sentences, which are not shown; leave one out"
    if not settings.sentences and settings.encoding != "cross":
        return (
            f"of the condition alone both sides of a {settings.encoding}-encoder are the same text,"
            " so that every cosine is 1; take cross"
        )
    if not settings.condition and settings.encoding == "tri":
        return "a tri-encoder has a condition by definition; without it, take bi"
    if not settings.condition and settings.has_quad and settings.texts == "sentences":
        return (
            "without the condition the two rows of a sentence pair read the same, so that the quadruplet"
            " loss has nothing to tell apart; take mse, or answers"
        )
    if settings.has_quad and settings.batch % 2:
        return (
            f"batch is {settings.batch}; with {settings.objective} it holds pairs and must be even"
        )
    return ""
