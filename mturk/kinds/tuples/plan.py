"""Planning of studies of tuples: assignment of tuples to HITs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from bws.base.problems import InputError, Problem
from bws.base.text import display_name
from bws.records import Tuples
from giccs.benchmark.dialogue_tuples import dialogue_tuples
from giccs.benchmark.items import Dialogue
from giccs.benchmark.languages import data_language, matches
from mturk.kinds.tuples.page import Part, count_dropped_characters, question_xml
from mturk.study.plan import (
    HitPlan,
    describe_hit,
    has_repeated_group,
    plan_hits,
    random_key,
    separate_groups,
    shuffle_parts,
    study_digest,
)
from mturk.study.settings import Settings

Page = list[Part]


def plan(
    tuples: Tuples,
    dialogues: Sequence[Dialogue],
    settings: Settings,
    *,
    round_number: int = 0,
    file: str | os.PathLike[str] = "tuples",
) -> list[HitPlan]:
    """Return the HITs of a study, rendered and checked; InputError with all problems.

    If the dialogues state a language, it must be that of the settings. Each tuple is in one HIT. Tuples of
    short dialogues are combined with tuples of long ones (paper section 3.2: a three-turn and a five-turn
    dialogue), from different dialogues if possible. Remaining tuples form a last, shorter HIT. The result
    depends on the tuples, their dialogues and the settings only, so repeating the call after a crash gives
    the same annotations and tokens.

    round_number: 0 for the original study, 1, 2, ... for later HITs with the same tuples.
    file: name of the tuples file in messages.
    """
    name = display_name(file)
    _check_language(dialogues, settings, name)
    pages = pages_by_length(_parts(tuples, dialogues, name), settings)
    digest = _digest(pages, settings)
    return plan_hits(pages, settings, digest, question_xml, name, round_number)


def _check_language(dialogues: Sequence[Dialogue], settings: Settings, name: str) -> None:
    """Raise InputError if the dialogues have several languages or not that of the settings."""
    language, stated = data_language(dialogues, name), settings.dialogue_language
    if language and not (matches(language, stated) or matches(stated, language)):
        message = f"the dialogues are in {language}, but the study's settings are for {stated}"
        raise InputError(Problem(name, None, f"{message}; expected the same language"))


def plan_notes(plans: Sequence[HitPlan], settings: Settings) -> list[str]:
    """Return notes on a plan: short HITs, HITs with a repeated dialogue, dropped characters."""
    messages = []
    short = [hit for hit in plans if len(hit.parts) < settings.dialogues_per_hit]
    for hit in short:
        messages.append(
            f"{describe_hit(hit.number, hit.parts)} has {len(hit.parts)} of {settings.dialogues_per_hit} "
            "dialogues, because the tuples do not divide evenly"
        )
    n_repeating = sum(has_repeated_group(hit.parts) for hit in plans)
    if n_repeating:
        messages.append(f"{n_repeating} of {len(plans)} HITs contain a dialogue more than once")
    dropped: dict[str, int] = {}
    for hit in plans:
        dropped |= count_dropped_characters(
            [part for part in hit.parts if isinstance(part, Part)], settings
        )
    messages += [
        f"{text}: {count} characters cannot be displayed and are omitted"
        for text, count in dropped.items()
    ]
    return messages


def _digest(pages: Sequence[Sequence[Part]], settings: Settings) -> str:
    """Return the digest of a study of tuples; see `mturk.study.plan.study_digest`."""
    page_contents = [[page_identity(part) for part in page] for page in pages]
    page = (
        settings.language, settings.dialogue_language, settings.consent, settings.comment_box,
        settings.language_check,
    )  # fmt: skip
    return study_digest(page_contents, settings, page)


def page_identity(part: Part) -> list[Any]:
    """Return what identifies a part in the digest of a study."""
    turns = [asdict(turn) for turn in part.dialogue.turns]
    items = [[item.utterance_id, item.text] for item in part.items]
    return [part.tuple_id, part.dialogue.dialogue_id, turns, items]


def _parts(tuples: Tuples, dialogues: Sequence[Dialogue], name: str) -> list[Part]:
    """Join the tuples with their dialogues by id."""
    joined, problems = dialogue_tuples(tuples, dialogues)
    for tuple_id, group, items in tuples.rows():
        identities = dict.fromkeys([group, *items, tuple_id])
        problems += [
            f"tuple {tuple_id!r}: {message}"
            for identity in identities
            for message in id_problems(identity)
        ]
    if problems:
        raise InputError(Problem(name, None, message) for message in problems)
    return [Part(part.tuple_id, part.dialogue, part.items) for part in joined]


def id_problems(identity: str) -> Iterator[str]:
    """Yield a problem if a form or XML would change an id."""
    if any(
        ord(c) < 32 or 127 <= ord(c) < 160 or 0xD800 <= ord(c) < 0xE000 or c in "\ufffe\uffff"
        for c in identity
    ):
        yield f"the id {identity!r} contains a control character; expected plain text in one line"


def pages_by_length(parts: Sequence[Part], settings: Settings) -> list[Page]:
    """Return pages with one part per stratum of dialogue length; remaining parts form the last page."""
    size = settings.dialogues_per_hit
    count, remainder = divmod(len(parts), size)
    by_length = sorted(
        shuffle_parts(parts, settings.seed), key=lambda part: len(part.dialogue.turns)
    )
    # the remainder is taken from the middle, so that short dialogues are still combined with long ones
    middle = slice(count, count + remainder)
    last_page = by_length[middle]
    del by_length[middle]
    strata = [by_length[start * count : (start + 1) * count] for start in range(size)]
    for index, stratum in enumerate(strata):
        stratum.sort(key=lambda part: random_key(settings.seed, part, index))
    pages = [list(page) for page in zip(*strata, strict=True)]
    separate_groups(pages)
    return [*pages, last_page] if last_page else pages
