"""The page of a HIT: its parts as HTML, and that as the XML which the service takes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from mturk import answers
from mturk.language_check import Cloze, cloze_for, clozes_of
from mturk.limits import QUESTION
from mturk.question_xml import HTMLQuestion, forbidden_in_xml, read, write_html_question
from mturk.records import HitPlan, Part
from mturk.settings import Settings
from mturk.texts import page_texts

__all__ = [
    "dropped_characters", "environment", "lost_in_xml", "preview_page", "question_xml", "render",
    "script_json",
]  # fmt: skip


def question_xml(parts: Sequence[Part], settings: Settings) -> str:
    """Return the HTMLQuestion XML of a HIT; ValueError where it has more than 65,535 bytes."""
    xml = write_html_question(render(parts, settings))
    QUESTION.check(xml)
    return xml


def preview_page(plan: HitPlan) -> str:
    """Return the page of a HIT as a file to open: what workers see before they accept it."""
    question = read(plan.question)
    if not isinstance(question, HTMLQuestion):
        raise ValueError(f"HIT {plan.number} is no HTMLQuestion; only those can be previewed")
    return question.html


def dropped_characters(parts: Sequence[Part], settings: Settings) -> dict[str, int]:
    """Return how many characters of each text cannot stand in a question; texts without any are left out.

    The keys name the text: a dialogue's turn, a candidate, the consent.
    """
    texts = {"consent": settings.consent}
    for part in parts:
        name = part.dialogue.dialogue_id
        for place, turn in enumerate(part.dialogue.turns, start=1):
            texts[f"dialogue {name!r}, turn {place}"] = turn.speaker + turn.text
        for item in part.items:
            texts[f"dialogue {name!r}, candidate {item.utterance_id!r}"] = item.text
    return lost_in_xml(texts)


def lost_in_xml(texts: Mapping[str, str]) -> dict[str, int]:
    """Return how many characters of each text XML cannot carry; texts without any are left out."""
    counts = {name: len(forbidden_in_xml(text)) for name, text in texts.items()}
    return {name: count for name, count in counts.items() if count}


def render(parts: Sequence[Part], settings: Settings) -> str:
    """Return the page as HTML, with every text escaped once.

    >>> from giccs.records import Candidate, Dialogue, Turn
    >>> items = Candidate("a", "<b>"), Candidate("b", "${B}")
    >>> dialogue = Dialogue("d", "", "", (Turn("user", "Wann?"), Turn("system", "Um 9.")), items)
    >>> page = render([Part("t1", dialogue, items)], Settings())
    >>> "&lt;b&gt;" in page, "${B}" in page, "<b>" in page
    (True, True, False)
    """
    texts = page_texts("tuples", settings.language, settings.texts)
    example = [
        _turn(speaker, text, texts, settings.language)
        for speaker, text in texts["example"]["turns"]
    ]
    page: str = (
        environment()
        .get_template("question.html")
        .render(
            texts=texts,
            example_turns=_with_sides(example),
            consent=settings.consent,
            dialogue_language=settings.dialogue_language,
            parts=[_part(part, texts, settings.dialogue_language) for part in parts],
            cloze=_cloze(parts, settings),
            comment_field=answers.COMMENT if settings.comment_box else "",
            tuples_script=answers.TUPLES_SCRIPT,
            tuples_json=_tuples_json(parts),
        )
    )
    return page


@cache
def environment() -> Any:
    """Return where the templates of questions are, with autoescaping on."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("mturk", "templates"), autoescape=True, undefined=StrictUndefined
    )


def _part(part: Part, texts: dict[str, Any], language: str) -> dict[str, Any]:
    turns = [_turn(turn.speaker, turn.text, texts, language) for turn in part.dialogue.turns]
    return {
        "turns": _with_sides(turns),
        "options": part.items,
        "best_field": answers.best_field(part.tuple_id),
        "worst_field": answers.worst_field(part.tuple_id),
        "shown_field": answers.shown_field(part.tuple_id),
        "seconds_field": answers.seconds_field(part.tuple_id),
        "shown": answers.join_shown([item.utterance_id for item in part.items]),
    }


def _cloze(parts: Sequence[Part], settings: Settings) -> Cloze | None:
    """Return the language check of a page; None where there is none in the language of its dialogues."""
    clozes = clozes_of(settings) if settings.language_check else ()
    return cloze_for(" ".join(part.tuple_id for part in parts), clozes) if clozes else None


def _turn(speaker: str, text: str, texts: dict[str, Any], language: str) -> dict[str, str]:
    return {"speaker": texts["speakers"].get(speaker, speaker), "text": text, "lang": language}


def _with_sides(turns: Sequence[dict[str, str]]) -> list[dict[str, Any]]:
    """Put the first speaker's turns to the left, all others' to the right; unnamed ones in turn."""
    first = turns[0]["speaker"]
    return [
        turn | {"side": int(turn["speaker"] != first) if turn["speaker"] else place % 2}
        for place, turn in enumerate(turns)
    ]


def _tuples_json(parts: Sequence[Part]) -> Any:
    rows = [
        {
            "tuple_id": part.tuple_id,
            "group": part.dialogue.dialogue_id,
            "items": [item.utterance_id for item in part.items],
        }
        for part in parts
    ]
    return script_json(rows)


def script_json(value: Any) -> Any:
    """Return JSON that cannot end its script element and stays within ASCII, as markup.

    >>> print(script_json(["</script>"]))
    ["\\u003c/script\\u003e"]
    """
    from markupsafe import Markup

    text = json.dumps(value)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 - no character is left that HTML knows
