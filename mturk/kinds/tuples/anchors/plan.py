"""Planning of the anchors of a study of tuples: the plan's file, and HITs of their own."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bws.base.problems import InputError, Problem
from bws.base.text import parse_toml
from bws.files.table import Table, read_table
from giccs.benchmark.items import Candidate, Dialogue
from mturk import answers
from mturk.kinds import ExpectedTuple
from mturk.kinds.pages import build_question, render_page
from mturk.kinds.registry import DEFAULT_KIND
from mturk.kinds.texts import built_in_languages, is_built_in, page_texts, read_built_in_file
from mturk.kinds.tuples import anchors, form
from mturk.kinds.tuples.page import Part, chat_turns
from mturk.kinds.tuples.plan import page_identity, pages_by_length
from mturk.study.plan import PlannedAnchors, PlannedStudy, plan_hits, study_digest
from mturk.study.settings import Settings

PLAN_COLUMNS = ("group", "anchor", "item1", "item2")
PART_PREFIX = "anchor:"
"""Beginning of the id of a dialogue's anchor, which its group follows."""
Slots = Mapping[str, list[tuple[str, ...]]]
"""Group -> candidates of each slot: two, or none for marks of all candidates."""


@dataclass(frozen=True, slots=True)
class Group:
    """A dialogue of the study, and those of its candidates that are in tuples."""

    dialogue: Dialogue
    candidates: Mapping[str, Candidate]


def plan_anchors(
    path: str | os.PathLike[str], study: PlannedStudy, folders: tuple[Path, ...] = ()
) -> PlannedAnchors:
    """Plan the HITs of a plan of anchors; InputError with all problems.

    Each dialogue of the plan is a part of one HIT, whose assignments get its slots in turn. folders: folders
    with catalogues of the study.
    """
    settings, groups = study.settings, _groups(study)
    table = read_table(path, PLAN_COLUMNS)
    table.need(PLAN_COLUMNS)
    if settings.kind != DEFAULT_KIND:
        message = (
            f"the kind is {settings.kind!r}, whose groups are no dialogues; expected kind tuples"
        )
        raise InputError(Problem(table.file, None, f"{message} for anchors"))
    slots = _read_slots(table, groups, settings.assignments)
    kind = "rating" if any(map(any, slots.values())) else "mark"
    parts = [_part(groups[group], pairs) for group, pairs in slots.items()]
    _check_ids(parts, study, table.file)
    words = _texts(settings, kind, folders, table.file)
    pages = pages_by_length(parts, settings)
    contents = [[page_identity(part) for part in page] for page in pages]
    page = (
        kind,
        settings.language,
        settings.dialogue_language,
        settings.consent,
        settings.comment_box,
    )
    digest = study_digest(contents, settings, page)

    def question(page_parts: Sequence[Part], page_settings: Settings) -> str:
        return build_question(render(page_parts, page_settings, kind, words))

    plans = plan_hits(pages, settings, digest, question, table.file)
    numbered = (replace(hit, number=len(study.hits) + hit.number) for hit in plans)
    notes = tuple(_notes(slots, groups, settings))
    return PlannedAnchors(kind, tuple(numbered), digest, notes)


def _groups(study: PlannedStudy) -> dict[str, Group]:
    """Return group -> dialogue and candidates of the tuples of a study."""
    groups: dict[str, Group] = {}
    for part in (part for hit in study.hits for part in hit.parts if isinstance(part, Part)):
        group = groups.setdefault(part.group, Group(part.dialogue, {}))
        items = {item.utterance_id: item for item in part.items}
        groups[part.group] = replace(group, candidates={**group.candidates, **items})
    return groups


def _read_slots(table: Table, groups: Mapping[str, Group], n_assignments: int) -> Slots:
    """Return the slots of each group in order, checked against the tuples."""
    problems = list(table.problems)
    slots: dict[str, dict[int, tuple[str, ...]]] = {}
    kinds: set[bool] = set()
    columns = (table.frame[name].to_list() for name in PLAN_COLUMNS)
    for line, group, anchor, *cells in zip(table.lines.tolist(), *columns, strict=True):
        items = tuple(cell for cell in cells if cell)
        row_problems = list(_row_problems(group, anchor, items, groups))
        if (
            not row_problems
            and slots.setdefault(group, {}).setdefault(int(anchor), items) is not items
        ):
            row_problems.append(
                f"anchor {anchor} of group {group!r} occurs before; expected each once"
            )
        problems += [Problem(table.file, line, text) for text in row_problems]
        kinds.add(bool(items))
    if not slots and not problems:
        problems.append(Problem(table.file, None, "has no rows; expected anchors of dialogues"))
    if len(kinds) > 1:
        message = "only some rows have items; expected two in each row (rating:2), or none (mark)"
        problems.append(Problem(table.file, None, message))
    for group, numbers in slots.items():
        if sorted(numbers) != list(range(1, len(numbers) + 1)):
            message = f"group {group!r} has the anchors {sorted(numbers)}; expected 1, 2, ... without gaps"
            problems.append(Problem(table.file, None, message))
        if True in kinds and len(numbers) > n_assignments:
            message = (
                f"group {group!r} has {len(numbers)} anchors, but a HIT has {n_assignments} assignments; "
                "expected at most as many anchors, or some would never be asked"
            )
            problems.append(Problem(table.file, None, message))
    if problems:
        raise InputError(problems)
    return {group: [numbers[n] for n in sorted(numbers)] for group, numbers in slots.items()}


def _row_problems(
    group: str, anchor: str, items: Sequence[str], groups: Mapping[str, Group]
) -> list[str]:
    problems = []
    if not (anchor.isascii() and anchor.isdigit() and int(anchor) > 0):
        problems.append(f"anchor is {anchor!r}; expected 1, 2, ...")
    if group not in groups:
        problems.append(f"group {group!r} has no tuples; expected a group of the tuples file")
        return problems
    candidates = groups[group].candidates
    problems += [
        f"item {item!r} is in no tuple of group {group!r}; expected one of {', '.join(map(repr, candidates))}"
        for item in items
        if item not in candidates
    ]
    if len(items) == 1 or (items and len({*items}) < len(items)):
        problems.append(
            f"the items are {', '.join(map(repr, items))}; expected two different ones, or none"
        )
    return problems


def _part(group: Group, pairs: Sequence[tuple[str, ...]]) -> Part:
    """Return the part of a dialogue: the candidates of all slots one after the other, or all candidates."""
    ids = [item for pair in pairs for item in pair] or list(group.candidates)
    items = tuple(group.candidates[item] for item in ids)
    return Part(PART_PREFIX + group.dialogue.dialogue_id, group.dialogue, items)


def _check_ids(parts: Sequence[Part], study: PlannedStudy, name: str) -> None:
    tuple_ids = {part.tuple_id for hit in study.hits for part in hit.parts}
    if common := [part.tuple_id for part in parts if part.tuple_id in tuple_ids]:
        message = (
            f"{common[0]!r} is the id of a tuple; expected ids without the prefix {PART_PREFIX!r}"
        )
        raise InputError(Problem(name, None, message))


def _texts(settings: Settings, kind: str, folders: tuple[Path, ...], name: str) -> dict[str, Any]:
    """Return the texts of the page: those of the tuples page, replaced by those of anchors."""
    package, language = anchors.__name__, settings.language
    if not is_built_in(package, language, folders=folders):
        available = ", ".join(built_in_languages(package, folders=folders))
        message = (
            f"anchors have no texts in {language!r}; expected one of {available}, or {language}.po"
        )
        raise InputError(Problem(name, None, f"{message} beside the settings file"))
    own = parse_toml(read_built_in_file(package, language, folders=folders), name)
    words = own[kind]
    heading = {"heading": words["heading"], "brief": [words["brief"]]}
    texts = page_texts("mturk.kinds.tuples", language, settings.texts)
    return {**texts, **own, **heading, "words": words}


def _notes(slots: Slots, groups: Mapping[str, Group], settings: Settings) -> list[str]:
    notes = []
    if missing := len(groups) - len(slots):
        notes.append(f"{missing} of {len(groups)} dialogues have no anchor")
    if any(pairs[0] and settings.assignments % len(pairs) for pairs in slots.values()):
        notes.append(
            f"{settings.assignments} assignments are no multiple of the anchors of each dialogue: "
            "some anchors are asked once more than others"
        )
    if settings.texts:
        notes.append(
            "the page of tuples has texts of its own, but anchors ask whether a candidate could replace the "
            "last turn; scores and anchors must mean the same"
        )
    return notes


def render(parts: Sequence[Part], settings: Settings, kind: str, texts: dict[str, Any]) -> str:
    """Render the page of anchors as HTML, with every text escaped once."""
    rows = [ExpectedTuple(part.tuple_id, part.group, part.item_ids, kind) for part in parts]
    return render_page(
        anchors.__name__,
        settings,
        rows,
        own_texts=texts,
        kind=kind,
        words=texts["words"],
        example_turns=chat_turns(texts["example"]["turns"], texts, settings.language),
        dialogue_language=settings.dialogue_language,
        parts=[_part_values(part, kind, texts, settings) for part in parts],
    )


def _part_values(
    part: Part, kind: str, texts: Mapping[str, Any], settings: Settings
) -> dict[str, Any]:
    part_id, is_rating = part.tuple_id, kind == "rating"
    options = {item.utterance_id: item.text for item in part.items}
    return {
        "turns": chat_turns(part.spoken, texts, settings.dialogue_language),
        "order_field": anchors.slot_field(part_id) if is_rating else form.shown_field(part_id),
        "seconds_field": answers.seconds_field(part_id),
        "mark_field": anchors.mark_field(part_id),
        "none_field": anchors.none_field(part_id),
        "skip_field": anchors.skip_field(part_id),
        "options": [
            {
                "utterance_id": item,
                "text": text,
                "rating_field": anchors.rating_field(part_id, number),
                "skip_field": anchors.skip_field(part_id, number),
            }
            for number, (item, text) in enumerate(options.items(), start=1)
        ],
    }
