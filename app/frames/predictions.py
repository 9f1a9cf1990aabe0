"""Predictions as they were kept: what can be read of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from bws.problems import InputError, Problem
from giccs.parquet import faults_in_words, read_table

__all__ = ["ANSWERS", "PAIRS", "read_predictions", "read_prompts"]

Columns = Mapping[str, type[pl.DataType]]

PAIRS: Columns = {"item_id": pl.String, "prediction": pl.Float64}
"""Columns of pairwise predictions that are shown."""
ANSWERS: Columns = {
    "dialogue_id": pl.String,
    "utterance_id": pl.String,
    "history": pl.String,
    "order": pl.Int64,
    "letter": pl.String,
    "answer": pl.String,
    "logprob": pl.Float64,
    "tokens": pl.Int64,
    "bytes": pl.Int64,
    "chosen": pl.Boolean,
    "gold": pl.Boolean,
    "score": pl.Float64,
    "logprob_alone": pl.Float64,
}
"""Columns of multiple-choice predictions that are shown of all questions: without the prompts."""


def read_predictions(path: str | os.PathLike[str], columns: Columns) -> pl.DataFrame:
    """Return columns of a table that giccs-eval kept; InputError where it is missing, broken or another."""
    try:
        table = read_table(Path(path), list(columns))
        with faults_in_words():
            return table.select(pl.col(name).cast(kind) for name, kind in columns.items())
    except FileNotFoundError:
        message = (
            "is missing; the result beside it says how to make it again with giccs-eval --force"
        )
    except (ValueError, OSError) as error:
        message = f"holds no predictions that can be read ({error})"
    raise InputError(Problem(os.fspath(path), None, message))


def read_prompts(path: str | os.PathLike[str], dialogue_id: str) -> pl.DataFrame:
    """Return what was asked about a dialogue: history, order, prompt, prompt_alone; InputError as above."""
    wanted = ["history", "order", "prompt", "prompt_alone"]
    try:
        with faults_in_words():
            rows = pl.scan_parquet(Path(path)).filter(pl.col("dialogue_id") == dialogue_id)
            return rows.select(wanted).unique(maintain_order=True).collect()
    except (ValueError, OSError) as error:
        message = f"holds no prompts that can be read ({error})"
    raise InputError(Problem(os.fspath(path), None, message))
