"""HITs of a study of plain items: tuples joined with the items' contents, pages, and notes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bws.base.problems import InputError, Problem
from bws.base.text import display_name
from bws.records import Tuples
from mturk import answers
from mturk.kinds import ExpectedTuple
from mturk.kinds.items.content import ItemContent, is_loopback, read_contents
from mturk.kinds.pages import build_question, count_forbidden_characters, render_page
from mturk.kinds.texts import page_texts
from mturk.kinds.tuples import form
from mturk.kinds.tuples.plan import id_problems
from mturk.study.plan import HitPlan, plan_hits, shuffle_parts, study_digest
from mturk.study.settings import Settings


@dataclass(frozen=True, slots=True)
class Part:
    """A tuple of a HIT with the contents of its items."""

    tuple_id: str
    group: str
    item_ids: tuple[str, ...]
    contents: tuple[ItemContent, ...]
    """In the order of the tuple; the page shuffles them per assignment."""


def plan(
    tuples: Tuples,
    items: str | None,
    settings: Settings,
    file: str | os.PathLike[str] = "tuples",
) -> list[HitPlan]:
    """Return the HITs of a study, rendered and checked; InputError with all problems.

    items: file of the items' contents; None: the items are their own texts. Tuples are distributed over the
    pages at random, seeded by the settings; the last page may be shorter.
    """
    parts = shuffle_parts(_parts(tuples, items, display_name(file)), settings.seed)
    size = settings.dialogues_per_hit
    pages = [parts[start : start + size] for start in range(0, len(parts), size)]
    contents = [
        [
            [part.tuple_id, part.group, part.item_ids, [[c.texts, c.image] for c in part.contents]]
            for part in page
        ]
        for page in pages
    ]
    terms = (
        settings.kind, settings.language, settings.dialogue_language, settings.consent,
        settings.comment_box,
    )  # fmt: skip
    digest = study_digest(contents, settings, terms)
    return plan_hits(pages, settings, digest, question_xml, display_name(file))


def plan_notes(plans: Sequence[HitPlan], settings: Settings) -> list[str]:
    """Return notes on a plan: a shorter HIT, images on this machine, dropped characters."""
    parts = [part for hit in plans for part in hit.parts if isinstance(part, Part)]
    contents = {
        f"item {item!r}": content
        for part in parts
        for item, content in zip(part.item_ids, part.contents, strict=True)
    }
    notes = []
    if plans and len(plans[-1].parts) < settings.dialogues_per_hit:
        size = len(plans[-1].parts)
        notes.append(f"HIT {len(plans)} has {size} of {settings.dialogues_per_hit} tuples")
    if n_local := sum(is_loopback(content.image) for content in contents.values()):
        notes.append(f"{n_local} images are on this machine; other machines cannot load them")
    dropped = count_forbidden_characters(
        {name: "".join(content.texts) for name, content in contents.items()}
    )
    return [
        *notes,
        *(
            f"{name}: {count} characters cannot be displayed and are omitted"
            for name, count in dropped.items()
        ),
    ]


def question_xml(parts: Sequence[Part], settings: Settings) -> str:
    """Return the HTMLQuestion XML of a HIT; ValueError if it exceeds 65,535 bytes."""
    return build_question(render(parts, settings))


def render(parts: Sequence[Part], settings: Settings) -> str:
    """Render the page as HTML, with every text escaped once."""
    package = "mturk.kinds.items"
    example = page_texts(package, settings.language, settings.texts)["example"]
    return render_page(
        package,
        settings,
        [ExpectedTuple(part.tuple_id, part.group, part.item_ids, "items") for part in parts],
        example_options=[ItemContent.of_option(option) for option in example["options"]],
        item_language=settings.dialogue_language,
        parts=[
            {
                "options": list(zip(part.item_ids, part.contents, strict=True)),
                "best_field": form.best_field(part.tuple_id),
                "worst_field": form.worst_field(part.tuple_id),
                "shown_field": form.shown_field(part.tuple_id),
                "seconds_field": answers.seconds_field(part.tuple_id),
                "shown": form.join_shown(part.item_ids),
            }
            for part in parts
        ],
    )


def _parts(tuples: Tuples, items: str | None, name: str) -> list[Part]:
    """Join the tuples with the contents of their items by group and id, or by id alone."""
    contents = None if items is None else read_contents(items)
    problems, parts = [], []
    for tuple_id, group, members in tuples.rows():
        messages = [text for name in (tuple_id, group, *members) for text in id_problems(name)]
        item_contents = [_content(contents, group, item) for item in members]
        for item, content in zip(members, item_contents, strict=True):
            if content is None:
                messages.append(f"item {item!r} is missing from {display_name(items or '')}")
        problems += [f"tuple {tuple_id!r}: {message}" for message in messages]
        known_contents = tuple(content for content in item_contents if content is not None)
        parts.append(Part(tuple_id, group, tuple(members), known_contents))
    if not parts:
        problems.append("contains no tuples")
    if problems:
        raise InputError(Problem(name, None, message) for message in problems)
    return parts


def _content(
    contents: Mapping[tuple[str, str], ItemContent] | None, group: str, item: str
) -> ItemContent | None:
    if contents is None:
        return ItemContent((item,))
    return contents.get((group, item)) or contents.get(("", item))
