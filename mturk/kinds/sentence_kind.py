"""What the kinds of HIT about sentence pairs share: settings, pages, truth, columns of their files."""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bws.problems import InputError, Problem
from bws.textio import display_name, write_atomic
from mturk import answers
from mturk.kinds import ExpectedTuple, HitKind, StatedSettings, Truth, ValidAnswer

if TYPE_CHECKING:
    from mturk.kinds.sentence_pairs import SentencePart
    from mturk.study.plan import PlannedStudy
    from mturk.study.settings import Settings

__all__ = ["SentenceKind", "answer_context", "write_rows"]

CONTEXT = ("annotator", "assignment_id", "seconds", "comment")


class SentenceKind(HitKind):
    """A kind of HIT about sentence pairs; its page extends ``sentences.html``."""

    defaults: Mapping[str, Any] = {"language_check": False, "countries": ()}
    setting_names: Mapping[str, str] = {
        "dialogues_per_hit": "pairs_per_hit",
        "dialogue_language": "sentence_language",
    }
    setting_comments: Mapping[str, str] = {
        "dialogue_language": 'Language of the sentences, a BCP 47 tag: "en", "de", "en-GB".\n'
        "By default that of --language.",
        "language": "Language of the page's own texts. By default that of the sentences.",
        "dialogues_per_hit": "Sentence pairs on a page, drawn at random.",
        "countries": "Where workers are, as they say themselves. It is no test of their language;\n"
        "`mturk-hits qualify` makes one. [] for anywhere.",
    }
    unused_settings: Sequence[str] = ("language_check",)
    no_judgments_note = (
        "is for judgments of tuples; giccs-csts verified tells the agreement of labels"
    )

    def read_truth(self, path: str | os.PathLike[str]) -> Truth | None:
        """Return the similarities of a table of sentence pairs with conditions; None for another table."""
        from mturk.kinds.sentence_pairs import sentence_truth

        return sentence_truth(path)

    def check_no_dialogues(
        self, file: str, dialogues: str | None, settings: StatedSettings
    ) -> None:
        """Raise InputError where dialogues are given."""
        if dialogues is not None:
            message = f"kind is {settings.kind!r}, which has no dialogues; leave --dialogues out"
            raise InputError(Problem(file, None, message))

    def part_values(self, part: SentencePart) -> Mapping[str, str]:
        """Return what the page needs of a part besides its sentences: the names of its fields."""
        return {f"{name}_field": field for name, field in self.columns(part.tuple_id).items()}

    def plan_pages(
        self, parts: Sequence[SentencePart], settings: Settings, file: str, **texts: Any
    ) -> PlannedStudy:
        """Return a study of sentence pairs.

        The parts are dealt at random, from the settings' seed; two conditions of a sentence pair do not
        meet on a page where that can be avoided. The same call after a crash gives the same HITs.

        texts: what the page's template takes besides.
        """
        from mturk.kinds.pages import question_of
        from mturk.study.plan import PlannedStudy, hits_of

        pages = _pages(parts, settings)

        def question(page: Sequence[SentencePart], its: Settings) -> str:
            return question_of(self.render(page, its, **texts))

        plans = hits_of(pages, settings, _digest(pages, settings), question, display_name(file))
        return PlannedStudy(settings, tuple(plans), tuple(_notes(parts, pages, settings)))

    def render(self, page: Sequence[SentencePart], settings: Settings, **texts: Any) -> str:
        """Return the page of a HIT as HTML, with every text escaped once."""
        from mturk.kinds.pages import render_page

        parts = [{"sentences": one.item_ids[:2], **self.part_values(one)} for one in page]
        rows = [ExpectedTuple(one.tuple_id, one.group, one.item_ids, settings.kind) for one in page]
        return render_page(
            self.package, settings, rows, lang=settings.dialogue_language, parts=parts, **texts
        )


def answer_context(row: ValidAnswer) -> list[str]:
    """Return who gave an answer, where, in how many seconds, and the comment of the whole form."""
    seconds = dict(row.fields).get(answers.seconds_field(row.asked.tuple_id), "")
    said = row.assignment.assignment_id, seconds, answers.comment(row.fields)
    return [row.annotator, *said]


def write_rows(
    header: Sequence[str], rows: Iterable[Sequence[str]], path: str | os.PathLike[str]
) -> None:
    """Write the columns of a kind of study and those of `answer_context`, whole or not at all."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*header, *CONTEXT])
    writer.writerows(rows)
    write_atomic(path, out.getvalue())


def _pages(parts: Sequence[SentencePart], settings: Settings) -> list[list[SentencePart]]:
    from mturk.study.plan import keep_apart, shuffled

    order, size = _pairs_apart(shuffled(parts, settings.seed)), settings.dialogues_per_hit
    pages = [order[start : start + size] for start in range(0, len(order), size)]
    rest = [pages.pop()] if pages and len(pages[-1]) < size else []
    keep_apart(pages)
    return pages + rest


def _pairs_apart(parts: Sequence[SentencePart]) -> list[SentencePart]:
    """Put the first part of every sentence pair first, then the second of each, and so on."""
    turn: Counter[str] = Counter()
    turns = []
    for one in parts:
        turns.append(turn[one.group])
        turn[one.group] += 1
    return [one for _, one in sorted(zip(turns, parts, strict=True), key=lambda both: both[0])]


def _digest(pages: Sequence[Sequence[SentencePart]], settings: Settings) -> str:
    from mturk.study.plan import digest_of

    asked = [[[one.tuple_id, *one.item_ids] for one in page] for page in pages]
    page = (
        settings.kind, settings.language, settings.dialogue_language, settings.consent,
        settings.comment_box,
    )  # fmt: skip
    return digest_of(asked, settings, page)


def _notes(
    parts: Sequence[SentencePart], pages: Sequence[Sequence[SentencePart]], settings: Settings
) -> Iterator[str]:
    from mturk.kinds.pages import lost_in_xml
    from mturk.study.plan import repeats

    if pages and len(pages[-1]) < settings.dialogues_per_hit:
        yield f"HIT {len(pages)} has {len(pages[-1])} of {settings.dialogues_per_hit} sentence pairs"
    if twice := sum(map(repeats, pages)):
        yield f"{twice} of {len(pages)} HITs ask about the same sentence pair more than once"
    if again := sum(n - 1 for n in Counter(one.item_ids for one in parts).values()):
        yield f"{again} of {len(parts)} rows repeat the sentences and the condition of another"
    lost = lost_in_xml({one.tuple_id: "".join(one.item_ids) for one in parts})
    for name, count in lost.items():
        yield f"{name}: {count} characters cannot be shown and are left out"
