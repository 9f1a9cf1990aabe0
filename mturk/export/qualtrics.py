"""Survey of Qualtrics in its Advanced Format TXT: one block per tuple, with the dialogue and both questions.

Source: Qualtrics, "Import & Export Surveys", section "Preparing an Advanced Format TXT File"
(www.qualtrics.com/support/survey-platform/survey-module/survey-tools/import-and-export-surveys). Choices have
their position as recode value. Embedded data, the same for all participants, carry the ids into the results.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import replace

from bws.files.qualtrics import MAX_TUPLES, column_name, encode_tuple
from mturk.export import ExportedStudy, ExportedTuple, dialogue_text


def files(study: ExportedStudy) -> dict[str, str]:
    """Return survey.txt, or survey-1.txt, survey-2.txt, ... for more tuples than the results can have."""
    starts = range(0, len(study.tuples), MAX_TUPLES)
    parts = [study.tuples[start : start + MAX_TUPLES] for start in starts]
    names = [f"survey-{number}.txt" for number in range(1, len(parts) + 1)]
    surveys = ["\n".join(_lines(replace(study, tuples=part))) + "\n" for part in parts]
    return dict(zip(names if len(parts) > 1 else ["survey.txt"], surveys, strict=True))


def _lines(study: ExportedStudy) -> Iterator[str]:
    yield "[[AdvancedFormat]]"
    for number, exported in enumerate(study.tuples, start=1):
        ids = encode_tuple(exported.tuple_id, exported.group, exported.item_ids, exported.rounds)
        yield f"[[ED:{column_name(number, 'tuple')}:{ids}]]"
    yield "\n[[Block:giccs instructions]]"
    yield "\n[[Question:DB]]\n[[ID:giccs_instructions]]"
    yield escape(study.instructions_text().strip())
    for number, exported in enumerate(study.tuples, start=1):
        yield f"\n[[Block:giccs tuple {number}]]"
        yield from _tuple_lines(study, exported, number)


def _tuple_lines(study: ExportedStudy, exported: ExportedTuple, number: int) -> Iterator[str]:
    if exported.turns:
        yield f"\n[[Question:DB]]\n[[ID:giccs_{number}_dialogue]]"
        yield escape(dialogue_text(exported.turns))
    for role, question in study.questions():
        yield f"\n[[Question:MC:SingleAnswer:Vertical]]\n[[ID:{column_name(number, role)}]]"
        yield f"{escape(question)}\n\n[[AdvancedChoices]]"
        for position, (_, text) in enumerate(exported.items, start=1):
            yield f"[[Choice:{position}]]\n{escape(text)}"


def escape(text: str) -> str:
    """Return a text as one line of HTML without tags ``[[...]]`` and piped text ``${...}``.

    >>> escape("a <b>\\n[[PageBreak]] ${e://Field/x}")
    'a &lt;b&gt;<br>&#91;&#91;PageBreak]] &#36;{e://Field/x}'
    """
    line = "<br>".join(html.escape(text, quote=False).splitlines())
    return line.replace("[[", "&#91;&#91;").replace("${", "&#36;{")
