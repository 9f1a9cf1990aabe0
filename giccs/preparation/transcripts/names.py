"""Names of forms, columns and speakers of transcripts, and which column or key holds which part of a turn."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

__all__ = ["ACTS", "FORMATS", "PARTS", "assign", "find_columns", "roles"]

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
    "language": ("language", "lang", "sprache"),
}  # fmt: skip
"""The names under which each part is looked for, the first found is taken."""
ACTS = re.compile(r"acts?$|akte?$|^(da|intents?|slots?|labels?)$")
"""Names of columns of dialogue acts and the like, which no benchmark needs."""


def assign(
    columns: Iterable[str], wanted: Mapping[str, str], *, row: bool = False
) -> dict[str, str]:
    """Return the column of each part that there is; `wanted` names columns that are called otherwise.

    row: whether a row is a whole dialogue, so that a column ``id`` is the dialogue's; else it is the row's.

    >>> assign(["Dialog-ID", "Rolle", "Text", "Dialogakt"], {})
    {'dialogue': 'Dialog-ID', 'speaker': 'Rolle', 'text': 'Text'}
    >>> assign(["nr", "wer", "was"], {"dialogue": "nr", "text": "was"})
    {'dialogue': 'nr', 'text': 'was'}

    Raises ValueError where a column that is wanted is not there.
    """
    plain = _by_plain_name(columns)
    missing = [f"{part}={name}" for part, name in wanted.items() if _plain(name) not in plain]
    if missing:
        there = ", ".join(reversed(plain.values()))
        raise ValueError(f"no column for {', '.join(missing)}; there are {there}")
    found = {part: plain[_plain(name)] for part, name in wanted.items()}
    for part, names in PARTS.items():
        usual = (*names, "id") if row and part == "dialogue" else names
        free = (plain[name] for name in usual if name in plain)
        column = next((name for name in free if name not in found.values()), None)
        if part not in found and column is not None:
            found[part] = column
    return {part: found[part] for part in PARTS if part in found}


def find_columns(columns: Iterable[str], wanted: Sequence[str]) -> tuple[str, ...]:
    """Return the columns with the names in `wanted`, whatever their case and punctuation.

    >>> find_columns(["Turn 1", "Turn 2", "note"], ["turn_2", "turn_1"])
    ('Turn 2', 'Turn 1')

    Raises ValueError where a column is missing or is named twice.
    """
    plain = _by_plain_name(columns)
    if missing := [name for name in wanted if _plain(name) not in plain]:
        there = ", ".join(reversed(plain.values()))
        raise ValueError(f"no column {', '.join(missing)}; there are {there}")
    found = tuple(plain[_plain(name)] for name in wanted)
    if repeated := sorted({name for name in found if found.count(name) > 1}):
        raise ValueError(f"column {', '.join(repeated)} is named twice; each has one part")
    return found


def _by_plain_name(columns: Iterable[str]) -> dict[str, str]:
    return {_plain(column): column for column in reversed(list(columns))}


def _plain(name: str) -> str:
    return re.sub(r"\W+", "_", name.strip().casefold()).strip("_")


USER = (
    "user", "usr", "u", "nutzer", "nutzerin", "benutzer", "benutzerin", "kunde", "kundin", "anrufer",
    "anruferin", "mensch", "human", "customer", "caller", "proband", "probandin", "vp",
)  # fmt: skip
SYSTEM = (
    "system", "sys", "s", "sma", "smartkom", "smartakus", "wizard", "assistant", "assistent", "agent",
    "bot", "machine", "maschine", "computer",
)  # fmt: skip


def roles(
    speakers: Iterable[str], user: Sequence[str] = (), system: Sequence[str] = ()
) -> Mapping[str, str]:
    """Return ``user`` or ``system`` for each speaker's name that is one of them; others are not in it.

    Names in `user` and `system` come first, then the usual ones, whatever their case.

    >>> roles(["Nutzerin", "SMA", "Herr Hoff"])
    {'Nutzerin': 'user', 'SMA': 'system'}
    >>> roles(["AAA", "BBB"], user=["aaa"], system=["bbb"])
    {'AAA': 'user', 'BBB': 'system'}

    Raises ValueError where a name is given for both.
    """
    both = {name.casefold() for name in user} & {name.casefold() for name in system}
    if both:
        raise ValueError(
            f"{', '.join(sorted(both))}: a speaker is the user or the system, not both"
        )
    known = dict.fromkeys(USER, "user") | dict.fromkeys(SYSTEM, "system")
    known |= {name.casefold(): "user" for name in user}
    known |= {name.casefold(): "system" for name in system}
    return {name: known[name.casefold()] for name in speakers if name.casefold() in known}
