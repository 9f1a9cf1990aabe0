"""Table with one row per tuple, for any other tool: ids, texts, and empty columns for the answers."""

from __future__ import annotations

from bws.base.rows import csv_text
from mturk.export import ExportedStudy, ExportedTuple, dialogue_text

ANSWERS = ("best", "worst", "annotator")
"""To be completed: ids of the best and the worst item, and who chose them."""


def files(study: ExportedStudy) -> dict[str, str]:
    """Return tuples.csv and instructions.txt."""
    rows = [_row(exported) for exported in study.tuples]
    return {
        "tuples.csv": csv_text(rows, list(rows[0])),
        "instructions.txt": study.instructions_text(),
    }


def _row(exported: ExportedTuple) -> dict[str, str]:
    dialogue = {"dialogue": dialogue_text(exported.turns)} if exported.turns else {}
    shown = {"shown": ";".join(exported.item_ids)}
    return exported.ids() | dialogue | exported.texts() | dict.fromkeys(ANSWERS, "") | shown
