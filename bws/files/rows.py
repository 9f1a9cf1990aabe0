"""Judgments as a file writes them: columns of text, not yet checked. Every format ends here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from bws.problems import Problem

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Answers", "Rows"]

Answers = Literal["item", "position", "letter"]


@dataclass(frozen=True, eq=False)
class Rows:
    """J rows, each a judgment of K items; empty text where the source says nothing."""

    file: str
    form: str
    """The format the file was taken for."""
    lines: NDArray[np.int64]
    """(J,) the line on which a row begins."""
    items: Sequence[pl.Series]
    """K columns of J item ids."""
    best: pl.Series
    worst: pl.Series
    answers: Answers = "item"
    """What `best` and `worst` hold: an item's id, its place from 1, or a letter from A."""
    tuple_id: pl.Series | None = None
    group: pl.Series | None = None
    annotator: pl.Series | None = None
    shown: pl.Series | None = None
    """The order on the screen, item ids with ``;`` between them."""
    as_shown: bool = False
    """Whether the order of `items` is the order on the screen."""
    columns: Mapping[str, pl.Series] = field(default_factory=dict)
    """What else the file tells of each row."""
    problems: tuple[Problem, ...] = ()
    """Rows that could not be read at all."""
