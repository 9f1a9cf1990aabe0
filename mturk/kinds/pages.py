"""Page rendering for all kinds of HIT: templates, embedded JSON, forbidden characters."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from giccs.benchmark.languages import text_direction
from mturk import answers
from mturk.kinds import ExpectedTuple
from mturk.kinds.registry import DEFAULT_KIND
from mturk.kinds.texts import page_texts
from mturk.limits import QUESTION
from mturk.question_xml import HTMLQuestion, forbidden_in_xml, read_question, write_html_question
from mturk.study.plan import HitPlan
from mturk.study.settings import Settings


@cache
def environment(package: str) -> Any:
    """Return the Jinja environment with a kind's templates and the shared ones, with autoescaping."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    shared = PackageLoader("mturk.kinds", "templates")
    return Environment(
        loader=ChoiceLoader([PackageLoader(package, ""), shared]),
        autoescape=True,
        undefined=StrictUndefined,
    )


def render_page(
    package: str,
    settings: Settings,
    expected_tuples: Sequence[ExpectedTuple],
    own_texts: Mapping[str, Any] | None = None,
    **values: Any,
) -> str:
    """Render ``page.html`` of a kind as HTML, with every text escaped once.

    expected_tuples: tuples embedded in the page, see `mturk.answers.expected_tuples_in_page`. own_texts:
    texts of the page instead of those of the kind. values: further template variables besides texts,
    direction, consent, comment_field, expected_seconds, tuples_script and tuples_json.
    """
    texts = own_texts or page_texts(package, settings.language, settings.texts)
    html: str = (
        environment(package)
        .get_template("page.html")
        .render(
            texts=texts,
            direction=text_direction(texts["language"]),
            consent=settings.consent,
            expected_seconds=settings.expected_seconds,
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
    """Return the HTMLQuestion XML of a page; ValueError if it exceeds 65,535 bytes."""
    xml = write_html_question(html)
    QUESTION.check(xml)
    return xml


def script_json(value: Any) -> Any:
    """Return ASCII JSON that cannot end its script element, as markup.

    >>> print(script_json(["</script>"]))
    ["\\u003c/script\\u003e"]
    """
    from markupsafe import Markup

    text = json.dumps(value)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 - all HTML special characters are escaped


def count_forbidden_characters(texts: Mapping[str, str]) -> dict[str, int]:
    """Return name -> number of characters that XML forbids, for texts with any."""
    counts = {name: len(forbidden_in_xml(text)) for name, text in texts.items()}
    return {name: count for name, count in counts.items() if count}


def preview_page(plan: HitPlan) -> str:
    """Return the page of a HIT as HTML, as shown to workers before they accept it."""
    question = read_question(plan.question)
    if not isinstance(question, HTMLQuestion):
        raise ValueError(f"HIT {plan.number} cannot be previewed; expected an HTMLQuestion")
    return question.html
