"""Planning of the anchors of a study of tuples: the plan's file, and HITs of their own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bws.absolute.files import PlannedAnchor, anchors_of_group, read_plan
from bws.base.ids import normal_id
from bws.base.problems import InputError, Problem
from bws.base.text import display_name, parse_toml
from giccs.benchmark.items import Candidate, Dialogue
from mturk import answers
from mturk.kinds import ExpectedTuple
from mturk.kinds.pages import build_question, render_page
from mturk.kinds.registry import DEFAULT_KIND
from mturk.kinds.texts import built_in_languages, is_built_in, page_texts, read_built_in_file
from mturk.kinds.tuples import anchors
from mturk.kinds.tuples.page import Part, chat_turns
from mturk.kinds.tuples.plan import page_identity, pages_by_length
from mturk.study.plan import PlannedAnchors, PlannedStudy, plan_hits, study_digest
from mturk.study.settings import Settings

PART_PREFIX = "anchor:"
"""Beginning of the id of a dialogue's anchor, which its group follows."""


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
    settings, name = study.settings, display_name(path)
    if settings.kind != DEFAULT_KIND:
        message = (
            f"kind is {settings.kind!r}; expected kind tuples for anchors, which need dialogues"
        )
        raise InputError(Problem(name, None, message))
    plan, groups = read_plan(path), _groups(study)
    slots = anchors_of_group(plan)
    if problems := list(_plan_problems(slots, groups)):
        raise InputError(Problem(name, None, text) for text in problems)
    kind = plan[0].kind
    parts = [_part(groups[group], rows) for group, rows in slots.items()]
    _check_ids(parts, study, name)
    words = _texts(settings, kind, folders, name)
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

    plans = plan_hits(pages, settings, digest, question, name)
    numbered = (replace(hit, number=len(study.hits) + hit.number) for hit in plans)
    notes = [
        f"{len(plans)} of {len(study.hits) + len(plans)} HITs have anchors of {len(slots)} dialogues"
    ]
    notes += _notes(len(slots), len(groups), settings)
    return PlannedAnchors(kind, tuple(numbered), digest, tuple(notes))


def _groups(study: PlannedStudy) -> dict[str, Group]:
    """Return group -> dialogue and candidates of the tuples of a study."""
    groups: dict[str, Group] = {}
    for part in (part for hit in study.hits for part in hit.parts if isinstance(part, Part)):
        name = normal_id(part.group)
        group = groups.setdefault(name, Group(part.dialogue, {}))
        items = {normal_id(item.utterance_id): item for item in part.items}
        groups[name] = replace(group, candidates={**group.candidates, **items})
    return groups


def _plan_problems(
    slots: Mapping[str, Sequence[PlannedAnchor]], groups: Mapping[str, Group]
) -> Iterator[str]:
    """Yield the problems of a plan that its page cannot have."""
    for name, rows in slots.items():
        numbers = [row.anchor for row in rows]
        if numbers != list(range(1, len(rows) + 1)):
            yield f"group {name!r} has the anchors {numbers}; expected 1, 2, ... without gaps"
        if name not in groups:
            yield f"group {name!r} has no tuples; expected a group of the tuples file"
            continue
        candidates = groups[name].candidates
        for row in rows:
            where = f"anchor {row.anchor} of group {name!r}"
            if unknown := [item for item in row.items if item not in candidates]:
                listed = ", ".join(map(repr, candidates))
                yield f"{where}: item {unknown[0]!r} is in no tuple of the group; expected one of {listed}"
            elif row.kind == "rating" and len(row.items) != anchors.N_RATED:
                yield f"{where} has {len(row.items)} items; expected {anchors.N_RATED} to be rated"
            elif row.kind == "mark" and {*row.items} != {*rows[0].items}:
                yield f"{where} has other items than anchor {rows[0].anchor}; expected the same items"


def _part(group: Group, rows: Sequence[PlannedAnchor]) -> Part:
    """Return the part of a dialogue: the candidates of all slots, one after the other."""
    items = tuple(group.candidates[item] for row in rows for item in row.items)
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


def _notes(n_anchored: int, n_groups: int, settings: Settings) -> Iterator[str]:
    if n_anchored < n_groups:
        yield f"{n_groups - n_anchored} of {n_groups} dialogues have no anchor"
    if settings.texts:
        yield (
            "the page of tuples has texts of its own, but anchors ask whether a candidate could replace the "
            "last turn; scores and anchors must mean the same"
        )


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
        parts=[_part_values(part, texts, settings) for part in parts],
    )


def _part_values(part: Part, texts: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    part_id = part.tuple_id
    options = {item.utterance_id: item.text for item in part.items}
    return {
        "turns": chat_turns(part.spoken, texts, settings.dialogue_language),
        "slot_field": anchors.slot_field(part_id),
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
