"""What the pages of all kinds of HIT share: templates, embedded JSON, characters that XML cannot carry."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from mturk import answers
from mturk.kinds import ExpectedTuple
from mturk.kinds.registry import DEFAULT_KIND
from mturk.kinds.texts import page_texts
from mturk.limits import QUESTION
from mturk.question_xml import HTMLQuestion, forbidden_in_xml, read_question, write_html_question
from mturk.study.plan import HitPlan
from mturk.study.settings import Settings

__all__ = ["build_question", "count_forbidden_characters", "preview_page", "render_page"]


@cache
def environment(package: str) -> Any:
    """Return the templates of a kind's folder and those that all kinds share, with autoescaping on."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    shared = PackageLoader("mturk.kinds", "templates")
    return Environment(
        loader=ChoiceLoader([PackageLoader(package, ""), shared]),
        autoescape=True,
        undefined=StrictUndefined,
    )


def render_page(
    package: str, settings: Settings, expected_tuples: Sequence[ExpectedTuple], **values: Any
) -> str:
    """Return ``page.html`` of a kind's folder as HTML, with every text escaped once.

    asked: what `mturk.answers.expected_tuples_in_page` finds in the page. values: what the template takes
    besides texts, consent, comment_field, tuples_script and tuples_json.
    """
    html: str = (
        environment(package)
        .get_template("page.html")
        .render(
            texts=page_texts(package, settings.language, settings.texts),
            consent=settings.consent,
            comment_field=answers.COMMENT if settings.comment_box else "",
            tuples_script=answers.TUPLES_SCRIPT,
            tuples_json=script_json([_row(expected) for expected in expected_tuples]),
            **values,
        )
    )
    return html


def _row(expected: ExpectedTuple) -> dict[str, Any]:
    kind = {} if expected.kind == DEFAULT_KIND else {"kind": expected.kind}
    return {"tuple_id": expected.tuple_id, "group": expected.group, "items": expected.items, **kind}


def build_question(html: str) -> str:
    """Return the HTMLQuestion XML of a page; ValueError where it has more than 65,535 bytes."""
    xml = write_html_question(html)
    QUESTION.check(xml)
    return xml


def script_json(value: Any) -> Any:
    """Return JSON that cannot end its script element and stays within ASCII, as markup.

    >>> print(script_json(["</script>"]))
    ["\\u003c/script\\u003e"]
    """
    from markupsafe import Markup

    text = json.dumps(value)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 - no character is left that HTML knows


def count_forbidden_characters(texts: Mapping[str, str]) -> dict[str, int]:
    """Return how many characters of each text XML cannot carry; texts without any are left out."""
    counts = {name: len(forbidden_in_xml(text)) for name, text in texts.items()}
    return {name: count for name, count in counts.items() if count}


def preview_page(plan: HitPlan) -> str:
    """Return the page of a HIT as a file to open: what workers see before they accept it."""
    question = read_question(plan.question)
    if not isinstance(question, HTMLQuestion):
        raise ValueError(f"HIT {plan.number} is no HTMLQuestion; only those can be previewed")
    return question.html
