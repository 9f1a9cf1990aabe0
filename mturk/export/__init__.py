"""Export of the tuples of a study to other annotation tools, whose results `bws.files.read_judgments` reads.

A tool is a module with a function ``files(study)`` that returns name -> content of the files of its project.
"""

from __future__ import annotations

import hashlib
import json
import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bws.base.text import write_atomic
from bws.files.answers_of_people import check_no_answers_of_people
from bws.files.tuples import ROUND_COLUMNS
from mturk.kinds import get_kind
from mturk.kinds.texts import page_texts
from mturk.study.plan import HitPart, PlannedStudy
from mturk.study.settings import Settings

__all__ = ["TOOLS", "ExportedStudy", "ExportedTuple", "export_study", "exported_study"]

TOOLS: Mapping[str, str] = {
    "label-studio": "mturk.export.label_studio:files",
    "potato": "mturk.export.potato:files",
    "qualtrics": "mturk.export.qualtrics:files",
    "csv": "mturk.export.spreadsheet:files",
}
"""Name of a tool -> the function that writes its files."""


@dataclass(frozen=True, slots=True)
class ExportedTuple:
    """A tuple with its texts."""

    tuple_id: str
    group: str
    rounds: Mapping[str, str]
    """The columns round, purpose and seed of a study in rounds; otherwise empty."""
    turns: tuple[tuple[str, str], ...]
    """(speaker, text) of each turn of the dialogue; empty for plain items."""
    items: tuple[tuple[str, str], ...]
    """(id, text) of each item, in random order: the order in which the tool shows them."""

    @property
    def item_ids(self) -> list[str]:
        """Ids of the items in display order."""
        return [item for item, _ in self.items]

    def ids(self) -> dict[str, str]:
        """Return the columns tuple_id, group, item1, item2, ..., and those of rounds."""
        items = {f"item{number}": item for number, item in enumerate(self.item_ids, start=1)}
        return {"tuple_id": self.tuple_id, "group": self.group, **items, **self.rounds}

    def texts(self) -> dict[str, str]:
        """Return the columns text1, text2, ... in display order."""
        return {f"text{number}": text for number, (_, text) in enumerate(self.items, start=1)}


@dataclass(frozen=True, slots=True)
class ExportedStudy:
    """The tuples of a study in random order, and the texts of its page."""

    tuples: tuple[ExportedTuple, ...]
    title: str
    heading: str
    best: str
    """The question for the best item."""
    worst: str
    instructions: tuple[str, ...]
    """Paragraphs of instructions, then the consent, if the settings have one."""
    annotations: int
    """Number of annotators per tuple."""

    @property
    def k(self) -> int:
        """Number of items per tuple."""
        return len(self.tuples[0].items)

    @property
    def has_dialogues(self) -> bool:
        """Whether tuples have a dialogue."""
        return any(exported.turns for exported in self.tuples)

    def questions(self) -> Iterator[tuple[str, str]]:
        """Yield the role and the text of both questions."""
        yield from (("best", self.best), ("worst", self.worst))

    def instructions_text(self) -> str:
        """Return heading and instructions as plain text."""
        return "\n\n".join((self.heading, *self.instructions)) + "\n"


def exported_study(study: PlannedStudy) -> ExportedStudy:
    """Return the content of a planned study; InputError if its kind has no tuples of texts.

    The order of the tuples is that of the study's pages. Items are shuffled per tuple by a hash of the
    setting ``seed`` and the ids, so the order is the same in every run.
    """
    settings = study.settings
    kind = get_kind(settings.kind)
    texts = page_texts(kind.package, settings.language, settings.texts)
    parts = [part for hit in study.hits for part in hit.parts]
    instructions = [*texts["brief"], *texts["instruction"], settings.consent]
    return ExportedStudy(
        tuples=tuple(_exported_tuple(part, study, texts) for part in parts),
        title=settings.title,
        heading=texts["heading"],
        best="".join(texts["best"]),
        worst="".join(texts["worst"]),
        instructions=tuple(text.strip() for text in instructions if text.strip()),
        annotations=settings.assignments,
    )


def _exported_tuple(part: HitPart, study: PlannedStudy, texts: Mapping[str, Any]) -> ExportedTuple:
    content = get_kind(study.settings.kind).content(part, texts)
    items = zip(part.item_ids, content.texts, strict=True)
    rounds = study.rounds.get(part.tuple_id, ())
    return ExportedTuple(
        tuple_id=part.tuple_id,
        group=part.group,
        rounds=dict(zip(ROUND_COLUMNS, rounds, strict=True)) if rounds else {},
        turns=content.turns,
        items=tuple(sorted(items, key=lambda item: _random_key(study.settings, part, item[0]))),
    )


def _random_key(settings: Settings, part: HitPart, item: str) -> bytes:
    """Return a random sort key: a hash, since random generators may change between versions."""
    key = json.dumps([settings.seed, "shown", part.tuple_id, item])
    return hashlib.sha256(key.encode("ascii")).digest()


def export_study(study: ExportedStudy, tool: str, folder: str | Path) -> list[Path]:
    """Write the project of a tool into a folder, each file atomically; return their paths.

    Raises InputError if a file of the folder contains answers.
    """
    files: Mapping[str, str] = pkgutil.resolve_name(TOOLS[tool])(study)
    paths = [Path(folder) / name for name in files]
    for path in paths:
        check_no_answers_of_people(path)
    Path(folder).mkdir(parents=True, exist_ok=True)
    for path, content in zip(paths, files.values(), strict=True):
        write_atomic(path, content)
    return paths


def dialogue_text(turns: Sequence[tuple[str, str]]) -> str:
    r"""Return a dialogue as text with one line per turn.

    >>> dialogue_text([("Person", "When?"), ("", "At nine.")])
    'Person: When?\nAt nine.'
    """
    return "\n".join(f"{speaker}: {text}" if speaker else text for speaker, text in turns)
