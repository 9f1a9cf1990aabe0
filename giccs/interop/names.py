"""What a benchmark and its tasks are called in other tools."""

from __future__ import annotations

import re
from pathlib import PurePath

__all__ = ["in_a_path", "slug", "task_name"]

LONGEST = 200
"""Characters of a name; file systems allow 255 bytes."""


def in_a_path(text: str) -> str:
    """Return a text as one name in a path, never a way out: strangers name what they like.

    >>> in_a_path("results_2026-01-31.json"), in_a_path("../../.ssh"), in_a_path("..")
    ('results_2026-01-31.json', '_.._.ssh', '_')
    """
    return re.sub(r"[/\\\x00]", "_", text).lstrip(".")[-LONGEST:] or "_"


def slug(data: str) -> str:
    """Return the name of a benchmark (a file, a hub id) in lower case, with underscores.

    >>> slug("giccs-sample"), slug("sasaadi/GiCCS@main"), slug("my/benchmark.jsonl")
    ('giccs_sample', 'giccs', 'giccs_benchmark')
    """
    name = PurePath(data.partition("@")[0]).name.removesuffix(".gz").removesuffix(".jsonl")
    plain = re.sub(r"\W+", "_", name).strip("_").lower()
    return plain if plain.startswith("giccs") else f"giccs_{plain}".rstrip("_")


def task_name(data: str, task: str, history: str) -> str:
    """Return the name of a task under one history.

    >>> task_name("giccs-sample", "multiple_choice", "without")
    'giccs_sample_multiple_choice_without_history'
    """
    return f"{slug(data)}_{task}_{history}_history"
