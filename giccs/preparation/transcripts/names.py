"""Known names of formats, columns and speakers of transcripts, and their assignment to parts of a turn."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

FORMATS = ("auto", "jsonl", "table", "crowdss", "smartkom")

PART_NAMES: Mapping[str, tuple[str, ...]] = {
    "dialogue": (
        "dialogue_id", "dialog_id", "dialogue", "dialog", "dialogueid", "dialogid",
        "conversation_id", "conversation_hash", "conversation", "session_id", "session", "custom_id",
        "message_tree_id", "thread_id",
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
"""Known column names by part; the first match is used."""
DIALOGUE_NAMES = ("id", "uuid", "prompt_id")
"""Names of the dialogue id if a row or object is a dialogue."""
ACT_COLUMN = re.compile(r"acts?$|akte?$|^(da|intents?|slots?|labels?)$")
"""Names of columns with dialogue acts or labels, which benchmarks do not use."""


def assign_columns(
    columns: Iterable[str], named_columns: Mapping[str, str], *, row_is_dialogue: bool = False
) -> dict[str, str]:
    """Return the column of each existing part; `named_columns` are columns with non-standard names, by part.

    row_is_dialogue: whether a row is a dialogue, so that a column ``id`` or similar contains the dialogue id.

    >>> assign_columns(["Dialog-ID", "Rolle", "Text", "Dialogakt"], {})
    {'dialogue': 'Dialog-ID', 'speaker': 'Rolle', 'text': 'Text'}
    >>> assign_columns(["nr", "wer", "was"], {"dialogue": "nr", "text": "was"})
    {'dialogue': 'nr', 'text': 'was'}

    Raises ValueError if a named column is missing.
    """
    column_by_plain_name = _columns_by_plain_name(columns)
    missing = [
        f"{part}={name}"
        for part, name in named_columns.items()
        if _plain_name(name) not in column_by_plain_name
    ]
    if missing:
        available = ", ".join(reversed(column_by_plain_name.values()))
        raise ValueError(f"no column for {', '.join(missing)}; existing columns are {available}")
    column_by_part = {
        part: column_by_plain_name[_plain_name(name)] for part, name in named_columns.items()
    }
    for part, names in PART_NAMES.items():
        part_names = (*names, *DIALOGUE_NAMES) if row_is_dialogue and part == "dialogue" else names
        available_columns = (
            column_by_plain_name[name] for name in part_names if name in column_by_plain_name
        )
        column = next(
            (name for name in available_columns if name not in column_by_part.values()), None
        )
        if part not in column_by_part and column is not None:
            column_by_part[part] = column
    return {part: column_by_part[part] for part in PART_NAMES if part in column_by_part}


def find_columns(columns: Iterable[str], requested: Sequence[str]) -> tuple[str, ...]:
    """Return the columns with the requested names, ignoring case and punctuation.

    >>> find_columns(["Turn 1", "Turn 2", "note"], ["turn_2", "turn_1"])
    ('Turn 2', 'Turn 1')

    Raises ValueError if a column is missing or requested twice.
    """
    column_by_plain_name = _columns_by_plain_name(columns)
    if missing := [name for name in requested if _plain_name(name) not in column_by_plain_name]:
        available = ", ".join(reversed(column_by_plain_name.values()))
        raise ValueError(f"no column {', '.join(missing)}; existing columns are {available}")
    matches = tuple(column_by_plain_name[_plain_name(name)] for name in requested)
    if repeated := sorted({name for name in matches if matches.count(name) > 1}):
        raise ValueError(
            f"column {', '.join(repeated)} is requested twice; expected different columns"
        )
    return matches


def _columns_by_plain_name(columns: Iterable[str]) -> dict[str, str]:
    return {_plain_name(column): column for column in reversed(list(columns))}


def _plain_name(name: str) -> str:
    return re.sub(r"\W+", "_", name.strip().casefold()).strip("_")


USER_NAMES = (
    "user", "usr", "u", "nutzer", "nutzerin", "benutzer", "benutzerin", "kunde", "kundin", "anrufer",
    "anruferin", "mensch", "human", "customer", "caller", "proband", "probandin", "vp", "prompter",
)  # fmt: skip
SYSTEM_NAMES = (
    "system", "sys", "s", "sma", "smartkom", "smartakus", "wizard", "assistant", "assistent", "agent",
    "bot", "machine", "maschine", "computer", "gpt", "chatgpt", "model", "ai",
)  # fmt: skip


def speaker_roles(
    speakers: Iterable[str], user: Sequence[str] = (), system: Sequence[str] = ()
) -> Mapping[str, str]:
    """Return ``user`` or ``system`` for each known speaker name; other names are omitted.

    Names in `user` and `system` have priority over the usual ones. Case is ignored.

    >>> speaker_roles(["Nutzerin", "SMA", "Herr Hoff"])
    {'Nutzerin': 'user', 'SMA': 'system'}
    >>> speaker_roles(["AAA", "BBB"], user=["aaa"], system=["bbb"])
    {'AAA': 'user', 'BBB': 'system'}

    Raises ValueError if a name is given for both.
    """
    ambiguous = {name.casefold() for name in user} & {name.casefold() for name in system}
    if ambiguous:
        raise ValueError(f"{', '.join(sorted(ambiguous))}: a speaker must be either user or system")
    role_by_name = dict.fromkeys(USER_NAMES, "user") | dict.fromkeys(SYSTEM_NAMES, "system")
    role_by_name |= {name.casefold(): "user" for name in user}
    role_by_name |= {name.casefold(): "system" for name in system}
    return {
        name: role_by_name[name.casefold()] for name in speakers if name.casefold() in role_by_name
    }
