"""Project of Label Studio: tasks to import, and the labelling configuration.

Source: Label Studio documentation, "Import data" and the tags Paragraphs, Text, Choices and Choice
(labelstud.io/tags). The texts of items are values of the tasks, to which the choices refer; their alias, the
letter of the position, is what the results contain.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from xml.sax.saxutils import quoteattr

from bws.base.problems import InputError, Problem
from bws.files.judgments import LETTERS
from mturk.export import ExportedStudy, ExportedTuple
from mturk.question_xml import forbidden_in_xml


def files(study: ExportedStudy) -> dict[str, str]:
    """Return tasks.json, config.xml and instructions.txt.

    Raises InputError if the texts of the page contain ``$``, which refers to a value of the task, or a
    character that XML forbids.
    """
    tasks = [{"data": _data(exported)} for exported in study.tuples]
    return {
        "tasks.json": json.dumps(tasks, ensure_ascii=False, indent=1) + "\n",
        "config.xml": "\n".join(_config(study)) + "\n",
        "instructions.txt": study.instructions_text(),
    }


def _data(exported: ExportedTuple) -> Mapping[str, Any]:
    turns = [{"speaker": speaker, "text": text} for speaker, text in exported.turns]
    return exported.ids() | ({"dialogue": turns} if turns else {}) | exported.texts()


def _config(study: ExportedStudy) -> Iterator[str]:
    yield "<View>"
    if study.has_dialogues:
        yield f"  <Header value={_attribute(study.heading)}/>"
        yield (
            '  <Paragraphs name="task" value="$dialogue" layout="dialogue" nameKey="speaker" '
            'textKey="text"/>'
        )
    else:
        yield f'  <Text name="task" value={_attribute(study.heading)}/>'
    for role, question in study.questions():
        yield f'  <Header value={_attribute(question)} size="4"/>'
        yield f'  <Choices name="{role}" toName="task" choice="single-radio" required="true">'
        for number, letter in enumerate(LETTERS[: study.k], start=1):
            yield f'    <Choice value="$text{number}" alias="{letter}"/>'
        yield "  </Choices>"
    yield "</View>"


def _attribute(text: str) -> str:
    """Return a text as a quoted XML attribute.

    >>> _attribute('the "best" <one>')
    '\\'the "best" &lt;one&gt;\\''
    """
    if "$" in text or forbidden_in_xml(text):
        message = f"{text!r} contains a $ or a control character; Label Studio cannot show it"
        raise InputError(Problem("texts", None, message))
    return quoteattr(text)
