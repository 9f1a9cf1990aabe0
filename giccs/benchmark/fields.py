"""Fields of benchmark and dialogues files besides text: turns, scores, levels, languages."""

from __future__ import annotations

import math
from collections.abc import Iterator
from sys import intern
from typing import Any

from bws.files.schema import OBJECTS, TEXT, Field, Row, message_text
from giccs.benchmark.items import Turn
from giccs.benchmark.languages import language_tag


def _parse_language(value: Any) -> str | None:
    try:
        return language_tag(value if isinstance(value, str) else "")
    except ValueError:
        raise ValueError("expected a BCP 47 language tag, such as de or pt-BR") from None


def _parse_score(value: Any) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= 1:
        raise ValueError("expected a number from 0 to 1")
    return float(value)


def _parse_level(value: Any) -> int | None:
    if value not in (1, 2, 3, 4, 5):
        raise ValueError("expected an integer from 1 to 5, or absent")
    level: int = value
    return level


def _parse_turns(value: Any) -> tuple[Turn, ...]:
    if isinstance(value, list) and value and all(isinstance(turn, str) for turn in value):
        value = [{"text": text} for text in value]
    objects = OBJECTS.parse(value)
    return tuple(
        Turn(intern(str(turn.get("speaker", ""))), turn["text"])
        for turn in objects
        if _is_turn(turn)
    )


def _is_turn(value: dict[str, Any]) -> bool:
    speaker, text = value.get("speaker", ""), value.get("text")
    return isinstance(text, str) and bool(text.strip()) and isinstance(speaker, str)


def _parse_id(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return TEXT.parse(value)


def turn_problems(row: Row) -> Iterator[str]:
    """Yield problems of the list ``turns``: invalid objects, and fewer than two turns."""
    turns = row.values.get("turns")
    if not isinstance(turns, list) or len({*map(type, turns)} | {str, dict}) > 2:
        return
    for position, turn in enumerate(turns, start=1):
        if not _is_turn({"text": turn} if isinstance(turn, str) else turn):
            yield f'turn {position} is {message_text(turn)}; expected {{"speaker", "text"}} with text'
    if len(turns) < 2:
        count_text = "is one turn" if turns else "are no turns"
        yield f"there {count_text}; expected two or more, the last one is the target"


LANGUAGE: Field[str | None] = Field(_parse_language, None, required=False)
ID = Field(_parse_id, "")
"""An id: text, or an integer, which is converted."""
SCORE = Field(_parse_score, math.nan)
ABSOLUTE_SCORE: Field[float | None] = Field(_parse_score, None, required=False)
LEVEL: Field[int | None] = Field(_parse_level, None, required=False)
TURNS: Field[tuple[Turn, ...]] = Field(_parse_turns, ())
