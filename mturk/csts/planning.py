"""Which sentence pairs share a HIT, and its page."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from bws.textio import display_name
from mturk import answers
from mturk.csts.sentences import SentencePart
from mturk.limits import QUESTION
from mturk.plan import drawn, hits_of, keep_apart, repeats
from mturk.question import environment, lost_in_xml, script_json
from mturk.question_xml import write_html_question
from mturk.records import PlannedStudy
from mturk.settings import Settings
from mturk.texts import page_texts

__all__ = ["plan", "render"]

Page = list[SentencePart]
Fields = Callable[[SentencePart], Mapping[str, Any]]
"""What a template needs of a part besides its sentences, such as the names of its fields."""


def plan(
    parts: Sequence[SentencePart], settings: Settings, fields: Fields, file: str, **texts: Any
) -> PlannedStudy:
    """Return a study of sentence pairs.

    The parts are dealt at random, from the settings' seed; two conditions of a sentence pair do not meet on
    a page where that can be avoided. The same call after a crash gives the same HITs.
    """
    pages = _pages(parts, settings)

    def question(page: Sequence[SentencePart], its: Settings) -> str:
        xml = write_html_question(render(page, its, fields, **texts))
        QUESTION.check(xml)
        return xml

    plans = hits_of(pages, settings, _digest(pages, settings), question, display_name(file))
    return PlannedStudy(settings, tuple(plans), tuple(_notes(parts, pages, settings)))


def render(page: Sequence[SentencePart], settings: Settings, fields: Fields, **texts: Any) -> str:
    """Return the page of a HIT as HTML, with every text escaped once."""
    rows = [
        {"tuple_id": one.tuple_id, "group": one.group, "items": one.item_ids, "kind": settings.kind}
        for one in page
    ]
    html: str = (
        environment()
        .get_template(f"{settings.kind}.html")
        .render(
            texts=page_texts(settings.kind, settings.language, settings.texts),
            consent=settings.consent,
            lang=settings.dialogue_language,
            parts=[_part(one, fields) for one in page],
            comment_field=answers.COMMENT if settings.comment_box else "",
            tuples_script=answers.TUPLES_SCRIPT,
            tuples_json=script_json(rows),
            **texts,
        )
    )
    return html


def _part(one: SentencePart, fields: Fields) -> dict[str, Any]:
    names = {"seconds_field": answers.seconds_field(one.tuple_id)}
    return {"sentences": one.item_ids[:2], **names, **fields(one)}


def _pages(parts: Sequence[SentencePart], settings: Settings) -> list[Page]:
    order, size = _pairs_apart(drawn(parts, settings.seed)), settings.dialogues_per_hit
    pages = [order[start : start + size] for start in range(0, len(order), size)]
    rest = [pages.pop()] if pages and len(pages[-1]) < size else []
    keep_apart(pages)
    return pages + rest


def _pairs_apart(parts: Sequence[SentencePart]) -> Page:
    """Put the first part of every sentence pair first, then the second of each, and so on."""
    turn: Counter[str] = Counter()
    turns = []
    for one in parts:
        turns.append(turn[one.group])
        turn[one.group] += 1
    return [one for _, one in sorted(zip(turns, parts, strict=True), key=lambda both: both[0])]


def _digest(pages: Sequence[Page], settings: Settings) -> str:
    """Return SHA-256 over what workers are asked and on which terms, as `plan.study_digest`."""
    asked = [[[one.tuple_id, *one.item_ids] for one in page] for page in pages]
    terms = settings.hit_type() | {
        "MaxAssignments": settings.assignments,
        "page": [
            settings.kind, settings.language, settings.dialogue_language, settings.consent,
            settings.comment_box, *([settings.texts] if settings.texts else []),
        ],
        "seed": settings.seed,
    }  # fmt: skip
    text = json.dumps([asked, terms], sort_keys=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _notes(
    parts: Sequence[SentencePart], pages: Sequence[Page], settings: Settings
) -> Iterator[str]:
    if pages and len(pages[-1]) < settings.dialogues_per_hit:
        yield f"HIT {len(pages)} has {len(pages[-1])} of {settings.dialogues_per_hit} sentence pairs"
    if twice := sum(map(repeats, pages)):
        yield f"{twice} of {len(pages)} HITs ask about the same sentence pair more than once"
    if again := sum(n - 1 for n in Counter(one.item_ids for one in parts).values()):
        yield f"{again} of {len(parts)} rows repeat the sentences and the condition of another"
    lost = lost_in_xml({one.tuple_id: "".join(one.item_ids) for one in parts})
    for name, count in lost.items():
        yield f"{name}: {count} characters cannot be shown and are left out"
