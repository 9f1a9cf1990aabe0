"""Example of a kind of HIT in another distribution: acceptability of a sentence, from 1 to 5."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bws.base.text import display_name, write_atomic
from bws.files.table import read_table
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
    """A sentence of a HIT."""

    tuple_id: str
    item_ids: tuple[str, ...]
    group: str = ""


class Acceptability(HitKind):
    """HITs with the acceptability of sentences."""

    part = "sentence"
    answer = "rating"
    file = "ratings.csv"
    defaults: Mapping[str, Any] = {"language_check": False, "assignments": 2, "countries": ()}
    unused_settings = ("language_check",)

    def plan(
        self, file: str, dialogues: str | None, settings: StatedSettings, language: str | None
    ) -> PlannedStudy:
        """Plan the study of a table with the columns id and sentence."""
        table = read_table(file)
        table.need(["id", "sentence"])
        rows = table.frame.select("id", "sentence").iter_rows()
        study_settings = settings.settings(language)
        parts = shuffle_parts([Sentence(name, (text,)) for name, text in rows], study_settings.seed)
        size = study_settings.dialogues_per_hit
        pages = [parts[start : start + size] for start in range(0, len(parts), size)]
        page_contents = [[[part.tuple_id, *part.item_ids] for part in page] for page in pages]
        digest = study_digest(
            page_contents,
            study_settings,
            [study_settings.kind, study_settings.language, study_settings.consent],
        )
        hits = plan_hits(pages, study_settings, digest, self.question, display_name(file))
        return PlannedStudy(study_settings, tuple(hits), ())

    def question(self, page: Sequence[Sentence], settings: Settings) -> str:
        """Return the XML of a page."""
        expected_tuples = [
            ExpectedTuple(part.tuple_id, part.group, part.item_ids, settings.kind) for part in page
        ]
        fields = [self.columns(part.tuple_id) for part in page]
        parts = list(zip(page, fields, strict=True))
        return build_question(
            render_page(self.package, settings, expected_tuples, parts=parts, levels=LEVELS)
        )

    def columns(self, part_id: str) -> Mapping[str, str]:
        """Return column of the answer in a batch file -> name of the form field."""
        return {"rating": f"rating-{part_id}", "seconds": answers.seconds_field(part_id)}

    def problems(self, expected: ExpectedTuple, fields: Fields) -> list[str]:
        """Return the problems of the fields as a rating."""
        rating = dict(fields).get(f"rating-{expected.tuple_id}", "")
        levels = ", ".join(LEVELS)
        problem = f"{expected.tuple_id}: the rating is {rating!r}; expected one of {levels}"
        return [] if rating in LEVELS else [problem]

    def simulate(
        self, expected: ExpectedTuple, truth: Truth, behaviour: Behaviour, worker: str
    ) -> list[tuple[str, str]]:
        """Return the true score, from -1 to 1, as a level."""
        return [(f"rating-{expected.tuple_id}", str(round(3 + 2 * truth["", expected.tuple_id])))]

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
