"""What forms and parts of transcripts are called, and which column or key holds which part of a turn."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

__all__ = ["ACTS", "FORMATS", "PARTS", "assign"]

FORMATS = ("auto", "jsonl", "table", "crowdss", "smartkom")

PARTS: Mapping[str, tuple[str, ...]] = {
    "dialogue": (
        "dialogue_id", "dialog_id", "dialogue", "dialog", "dialogueid", "dialogid",
        "conversation_id", "conversation", "session_id", "session",
    ),
    "turn": (
        "turn_id", "turn_number", "turn_no", "turn_index", "turnid", "turn", "utterance_id",
    ),
    "speaker": ("speaker", "role", "sprecher", "rolle", "participant", "from"),
    "text": ("text", "utterance", "turn_text", "transcript", "äußerung", "message", "content"),
    "domain": ("domain", "domäne"),
    "source": ("source", "corpus", "quelle"),
}  # fmt: skip
"""The names under which each part is looked for, the first found is taken."""
ACTS = re.compile(r"acts?$|akte?$|^(da|intents?|slots?|labels?)$")
"""Names of columns of dialogue acts and the like, which no benchmark needs."""


def assign(columns: Iterable[str], wanted: Mapping[str, str]) -> dict[str, str]:
    """Return the column of each part that there is; `wanted` names columns that are called otherwise.

    >>> assign(["Dialog-ID", "Rolle", "Text", "Dialogakt"], {})
    {'dialogue': 'Dialog-ID', 'speaker': 'Rolle', 'text': 'Text'}
    >>> assign(["nr", "wer", "was"], {"dialogue": "nr", "text": "was"})
    {'dialogue': 'nr', 'text': 'was'}

    Raises ValueError where a column that is wanted is not there.
    """
    plain = {_plain(column): column for column in reversed(list(columns))}
    missing = [f"{part}={name}" for part, name in wanted.items() if _plain(name) not in plain]
    if missing:
        there = ", ".join(reversed(plain.values()))
        raise ValueError(f"no column for {', '.join(missing)}; there are {there}")
    found = {part: plain[_plain(name)] for part, name in wanted.items()}
    for part, names in PARTS.items():
        free = (plain[name] for name in names if name in plain)
        column = next((name for name in free if name not in found.values()), None)
        if part not in found and column is not None:
            found[part] = column
    return {part: found[part] for part in PARTS if part in found}


def _plain(name: str) -> str:
    return re.sub(r"\W+", "_", name.strip().casefold()).strip("_")
