"""Everything that a training depends on, but its data: settings, device and processes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from bws.options import MAX_COUNT, MAX_SEED, check_options, option

__all__ = [
    "SHORTEST",
    "TEMPLATES",
    "Machine",
    "Settings",
    "is_first",
    "processes",
    "seeds_problem",
    "settings_of",
    "trained_document",
    "why_impossible",
]

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
SHORTEST = 8
"""Tokens: one of each part between the separators of a cross-encoder, and one more."""


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
    encoding: str = option(
        "bi",
        "Encode sentences and condition together, each sentence with it, or all apart. Can be repeated.",
        choices=TEMPLATES,
    )
    """``cross``: f(s1; s2; c). ``bi``: cos(f(s1; c), f(s2; c)). ``tri``: cos(h(c; s1), h(c; s2))."""
    objective: str = option(
        "mse",
        "Squared error, the quadruplet loss over the two rows of a sentence pair, or both.",
        choices=("mse", "quad", "quad+mse"),
    )
    pooling: str = option(
        "cls", "Vector of a text: that of its first token, or the mean.", choices=("cls", "mean")
    )
    transform: bool = option(False, "Put an MLP on the vector ([CLS] w/ MLP).")
    """An MLP (dropout, linear, the encoder's own activation) on that vector: "[CLS] w/ MLP" of Table 7."""
    operation: str = option(
        "hadamard",
        "tri: how sentence and condition come together.",
        choices=("hadamard", "concatenation"),
    )
    """h of the tri-encoder: the product of both vectors, or an MLP over their ``concatenation``."""
    condition: bool = option(True, "Leave the condition out.", flag="--no-condition")
    """Whether the condition is shown."""
    sentences: bool = option(True, "Leave the sentences out (cross).", flag="--condition-only")
    """Whether the sentences are shown; without them the condition alone must tell (C-STS, Table 10)."""
    texts: str = option(
        "sentences",
        "Put the answers of giccs-csts answers in the place of the sentences.",
        choices=("sentences", "answers"),
    )
    """``answers``: the answers to the condition's question stand in place of the sentences (L-CSTS, 5.1)."""
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
    """With a quadruplet loss half as many units, each a pair."""
    select: str = option(
        "last",
        "Epoch whose model is kept: the last, as in the paper, or the best on validation.",
        choices=("last", "best"),
    )
    warmup: float = option(
        0.1,
        "Share of the steps in which the learning rate rises; then it falls linearly.",
        bounds=(0, 1),
        max_open=True,
        metavar="SHARE",
    )
    margin: float = option(1.0, "λ of the quadruplet loss.", bounds=(0, 1000))
    max_length: int = option(
        512, "Tokens; the model's own limit where that is smaller.", bounds=(SHORTEST, 1_000_000)
    )
    train_rows: int | None = option(
        None,
        "Train on about N rows: whole sentence pairs, drawn by the seed.",
        bounds=(2, MAX_COUNT),
        flag="--rows",
        metavar="N",
    )
    seeds: tuple[int, ...] = (42,)
    """One training each."""

    def __post_init__(self) -> None:
        check_options(self)
        if problem := seeds_problem(self.seeds):
            raise ValueError(problem)

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


def seeds_problem(seeds: Any) -> str:
    """Return what is wrong with the seeds of trainings; empty where nothing is."""
    each_once = isinstance(seeds, list | tuple) and len({*map(repr, seeds)}) == len(seeds) > 0
    if each_once and all(type(seed) is int and 0 <= seed <= MAX_SEED for seed in seeds):
        return ""
    return f"seeds are {seeds!r}; expected a list of whole numbers from 0 to {MAX_SEED}, each once"


def trained_document(settings: Settings) -> Mapping[str, Any]:
    """Return what is saved beside the weights of a trained model: its settings and the form of its inputs."""
    return {**settings.document(), TEMPLATE: TEMPLATES[settings.encoding]}


def settings_of(document: Mapping[str, Any]) -> Settings:
    """Return the settings of what `trained_document` returned; unknown names are ignored.

    Raises ValueError if it is no such document, or if inputs have another form now than in the training.
    """
    names = {field.name for field in fields(Settings)}
    values = {name: value for name, value in document.items() if name in names}
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


def processes() -> int:
    """Return how many processes train together; 1 where none were launched."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_first() -> bool:
    """Tell whether this is the process that writes and speaks."""
    return int(os.environ.get("RANK", "0")) == 0


@dataclass(frozen=True, slots=True)
class Machine:
    """Where and how a training runs; not what it learns, but for rounding and the masks of dropout."""

    device: str = "auto"
    """``auto`` takes a GPU where there is one; ``cpu``."""
    rows_at_once: int | None = None
    """Rows of a batch that a device takes at a time, where memory ends; None is all of its share."""
