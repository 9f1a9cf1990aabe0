"""Project of Potato: its configuration and one instance per tuple.

Potato's own scheme ``bws`` draws its tuples itself, so both questions are of type ``radio``, with the letter
of the position as label. Each instance lists its items in ``_bws_items``, as the instances of that scheme do.
Source: Potato documentation, "Instance Display Configuration" and "Best-Worst Scaling"
(potatoannotator.readthedocs.io); `potato start config.yaml` of potato-annotation 2.12 runs the project.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bws.base.rows import json_lines_text
from bws.files.judgments import LETTERS
from mturk.export import ExportedStudy, ExportedTuple

TASK_TEXT = "heading"
"""Field of an instance with the text that Potato requires."""


def files(study: ExportedStudy) -> dict[str, str]:
    """Return config.yaml, tuples.jsonl and instructions.txt."""
    return {
        "config.yaml": _yaml(_config(study)),
        "tuples.jsonl": json_lines_text(_instance(study, exported) for exported in study.tuples),
        "instructions.txt": study.instructions_text(),
    }


def _instance(study: ExportedStudy, exported: ExportedTuple) -> dict[str, Any]:
    letters = LETTERS[: study.k]
    items = [
        {"source_id": item, "text": text, "position": letter}
        for letter, (item, text) in zip(letters, exported.items, strict=True)
    ]
    turns = [{"speaker": speaker, "text": text} for speaker, text in exported.turns]
    return {
        "id": exported.tuple_id,
        "group": exported.group,
        **exported.rounds,
        TASK_TEXT: study.heading,
        **({"dialogue": turns} if study.has_dialogues else {}),
        **dict(zip(letters, (text for _, text in exported.items), strict=True)),
        "_bws_items": items,
    }


def _config(study: ExportedStudy) -> dict[str, Any]:
    letters = list(LETTERS[: study.k])
    dialogue = [{"key": "dialogue", "type": "dialogue"}] if study.has_dialogues else []
    options = [{"key": letter, "type": "text", "label": letter} for letter in letters]
    return {
        "annotation_task_name": study.title,
        "annotation_instructions": study.instructions_text(),
        "task_dir": ".",
        "data_files": ["tuples.jsonl"],
        "item_properties": {"id_key": "id", "text_key": TASK_TEXT},
        "output_annotation_dir": "annotation_output",
        "instance_display": {"fields": [*dialogue, *options]},
        "annotation_schemes": [
            {
                "annotation_type": "radio",
                "name": role,
                "description": question,
                "labels": letters,
                "horizontal": True,
                "label_requirement": {"required": True},
            }
            for role, question in study.questions()
        ],
        "assignment_strategy": "random",
        "max_annotations_per_item": study.annotations,
        "user_config": {"allow_all_users": True},
    }


def _yaml(config: Mapping[str, Any]) -> str:
    """Return a configuration as YAML, one key per line, with values in its flow style, which is JSON."""
    return "".join(
        f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in config.items()
    )
