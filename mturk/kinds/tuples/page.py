"""Page of a HIT of tuples as HTML and as question XML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from giccs.benchmark.items import Candidate, Dialogue
from mturk import answers
from mturk.kinds import ExpectedTuple
from mturk.kinds.pages import build_question, count_forbidden_characters, render_page
from mturk.kinds.texts import page_texts
from mturk.kinds.tuples import form
from mturk.kinds.tuples.language_check import Cloze, cloze_for, load_clozes
from mturk.study.settings import Settings


@dataclass(frozen=True, slots=True)
class Part:
    """A dialogue and a tuple of its candidates in a HIT."""

    tuple_id: str
    dialogue: Dialogue
    items: tuple[Candidate, ...]
    """Candidates in the order of the tuple; the page shuffles them per assignment."""

    @property
    def group(self) -> str:
        """Id of the dialogue."""
        return self.dialogue.dialogue_id

    @property
    def item_ids(self) -> tuple[str, ...]:
        """Ids of the utterances."""
        return tuple(item.utterance_id for item in self.items)

    @property
    def spoken(self) -> list[tuple[str, str]]:
        """Speaker and text of each turn."""
        return [(turn.speaker, turn.text) for turn in self.dialogue.turns]


def question_xml(parts: Sequence[Part], settings: Settings) -> str:
    """Return the HTMLQuestion XML of a HIT; ValueError if it exceeds 65,535 bytes."""
    return build_question(render(parts, settings))


def count_dropped_characters(parts: Sequence[Part], settings: Settings) -> dict[str, int]:
    """Return text -> number of characters that XML forbids, for texts with any.

    The keys describe the texts: a turn of a dialogue, a candidate, the consent.
    """
    texts = {"consent": settings.consent}
    for part in parts:
        name = part.dialogue.dialogue_id
        for position, turn in enumerate(part.dialogue.turns, start=1):
            texts[f"dialogue {name!r}, turn {position}"] = turn.speaker + turn.text
        for item in part.items:
            texts[f"dialogue {name!r}, candidate {item.utterance_id!r}"] = item.text
    return count_forbidden_characters(texts)


def render(parts: Sequence[Part], settings: Settings) -> str:
    """Render the page as HTML, with every text escaped once.

    >>> from giccs.benchmark.items import Candidate, Dialogue, Turn
    >>> items = Candidate("a", "<b>"), Candidate("b", "${B}")
    >>> dialogue = Dialogue("d", "", "", (Turn("user", "Wann?"), Turn("system", "Um 9.")), items)
    >>> page = render([Part("t1", dialogue, items)], Settings())
    >>> "&lt;b&gt;" in page, "${B}" in page, "<b>" in page
    (True, True, False)
    """
    texts = page_texts(__package__, settings.language, settings.texts)
    expected_tuples = [ExpectedTuple(part.tuple_id, part.group, part.item_ids) for part in parts]
    return render_page(
        str(__package__),
        settings,
        expected_tuples,
        example_turns=chat_turns(texts["example"]["turns"], texts, settings.language),
        example_options=texts["example"]["options"],
        dialogue_language=settings.dialogue_language,
        parts=[_part(part, texts, settings.dialogue_language) for part in parts],
        cloze=_cloze(parts, settings),
    )


def _part(part: Part, texts: dict[str, Any], language: str) -> dict[str, Any]:
    return {
        "turns": chat_turns(part.spoken, texts, language),
        "options": part.items,
        "best_field": form.best_field(part.tuple_id),
        "worst_field": form.worst_field(part.tuple_id),
        "shown_field": form.shown_field(part.tuple_id),
        "seconds_field": answers.seconds_field(part.tuple_id),
        "shown": form.join_shown([item.utterance_id for item in part.items]),
    }


def _cloze(parts: Sequence[Part], settings: Settings) -> Cloze | None:
    """Return the language check of a page; None without one in the language of its dialogues."""
    clozes = load_clozes(settings) if settings.language_check else ()
    return cloze_for(" ".join(part.tuple_id for part in parts), clozes) if clozes else None


def chat_turns(
    turns: Iterable[tuple[str, str]], texts: Mapping[str, Any], language: str
) -> list[dict[str, Any]]:
    """Return (speaker, text) pairs for the template, with the page's names of speakers."""
    names = texts["speakers"]
    return _assign_sides(
        [
            {"speaker": names.get(speaker, speaker), "text": text, "lang": language}
            for speaker, text in turns
        ]
    )


def _assign_sides(turns: Sequence[dict[str, str]]) -> list[dict[str, Any]]:
    """Assign sides: the first speaker left, others right; turns without speakers alternate."""
    first_speaker = turns[0]["speaker"]
    return [
        turn | {"side": int(turn["speaker"] != first_speaker) if turn["speaker"] else index % 2}
        for index, turn in enumerate(turns)
    ]
