"""A kind of HIT from another distribution: how acceptable a sentence is, from 1 to 5."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bws.files.table import read_table
from bws.textio import display_name, write_atomic
from mturk import answers
from mturk.kinds import (
    Behaviour,
    ExpectedTuple,
    Fields,
    HitKind,
    StatedSettings,
    Truth,
    ValidAnswer,
)
from mturk.kinds.pages import build_question, render_page
from mturk.study.plan import PlannedStudy, plan_hits, shuffle_parts, study_digest
from mturk.study.settings import Settings

LEVELS = ("1", "2", "3", "4", "5")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One question of a HIT."""

    tuple_id: str
    item_ids: tuple[str, ...]
    group: str = ""


class Acceptability(HitKind):
    """How acceptable a sentence is."""

    part = "sentence"
    answer = "rating"
    file = "ratings.csv"
    defaults: Mapping[str, Any] = {"language_check": False, "assignments": 2, "countries": ()}
    unused_settings = ("language_check",)

    def plan(
        self, file: str, dialogues: str | None, settings: StatedSettings, language: str | None
    ) -> PlannedStudy:
        """Return the study of a table with the columns id and sentence."""
        table = read_table(file)
        table.need(["id", "sentence"])
        rows = table.frame.select("id", "sentence").iter_rows()
        chosen = settings.settings(language)
        parts = shuffle_parts([Sentence(name, (text,)) for name, text in rows], chosen.seed)
        size = chosen.dialogues_per_hit
        pages = [parts[start : start + size] for start in range(0, len(parts), size)]
        asked = [[[one.tuple_id, *one.item_ids] for one in page] for page in pages]
        digest = study_digest(asked, chosen, [chosen.kind, chosen.language, chosen.consent])
        hits = plan_hits(pages, chosen, digest, self.question, display_name(file))
        return PlannedStudy(chosen, tuple(hits), ())

    def question(self, page: Sequence[Sentence], settings: Settings) -> str:
        """Return the XML of a page."""
        asked = [
            ExpectedTuple(one.tuple_id, one.group, one.item_ids, settings.kind) for one in page
        ]
        fields = [self.columns(one.tuple_id) for one in page]
        parts = list(zip(page, fields, strict=True))
        return build_question(
            render_page(self.package, settings, asked, parts=parts, levels=LEVELS)
        )

    def columns(self, part_id: str) -> Mapping[str, str]:
        """Return the columns of the answer in a batch file -> the names of the form's fields."""
        return {"rating": f"rating-{part_id}", "seconds": answers.seconds_field(part_id)}

    def problems(self, one: ExpectedTuple, fields: Fields) -> list[str]:
        """Return all that keeps the fields from being a rating."""
        rating = dict(fields).get(f"rating-{one.tuple_id}", "")
        allowed = ", ".join(LEVELS)
        wrong = f"{one.tuple_id}: the rating is {rating!r}; expected one of {allowed}"
        return [] if rating in LEVELS else [wrong]

    def simulate(
        self, one: ExpectedTuple, truth: Truth, behaviour: Behaviour, worker: str
    ) -> list[tuple[str, str]]:
        """Return the true score, -1 to 1, as a level."""
        return [(f"rating-{one.tuple_id}", str(round(3 + 2 * truth["", one.tuple_id])))]

    def write(
        self, answers: Sequence[ValidAnswer], path: str | os.PathLike[str], n_items: int
    ) -> None:
        """Write one row per rating."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["id", "rating", "annotator"])
        for row in answers:
            name = row.expected.tuple_id
            writer.writerow([name, dict(row.fields)[f"rating-{name}"], row.annotator])
        write_atomic(path, out.getvalue())


KIND: HitKind = Acceptability()
