"""Output of Potato: tuples with ``_bws_items`` and, per annotator, the selected positions."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bws.file_kinds import remark
from bws.files.columns import series
from bws.files.rows import Rows
from bws.problems import InputError, Problem
from bws.textio import display_name, read_text

__all__ = ["NAME", "rows"]

NAME = "potato"
EXPECTED = "a folder with user_state.json files and the tuples' _bws_items, or one such file"
LABELS = ("instance_id_to_label_to_value", "instance_id_to_labels")


@dataclass(frozen=True, slots=True)
class _Answer:
    file: str
    line: int | None
    tuple_id: str
    annotator: str
    best: str
    worst: str


def rows(path: str | os.PathLike[str]) -> Rows:
    """Return the judgments in the output of a Potato project.

    path: a folder (all its .json and .jsonl files are searched) or one file. The items of a tuple are in
    `_bws_items`, with their positions. The answers of an annotator are in a user_state.json, or with the
    items under ``annotation`` in a file named after the annotator.
    """
    name = display_name(path)
    tuples: dict[str, dict[str, str]] = {}
    answers: list[_Answer] = []
    keys: list[str] = []
    for file in _files(path):
        for line, value in _objects(file):
            keys = keys or list(value)
            _take_tuple(value, tuples)
            answers += _answers(value, display_name(file), line)
    if not answers:
        kind = remark(keys, "judgments")
        other_file = f"no judgments; expected a file of judgments{kind}"
        message = other_file if kind else f"no answers of Potato; expected {EXPECTED}"
        raise InputError(Problem(name, None, message))
    if not tuples:
        message = "has no _bws_items; specify the folder that also contains Potato's tuples"
        raise InputError(Problem(name, None, message))
    return _rows(name, tuples, answers)


def _files(path: str | os.PathLike[str]) -> list[str]:
    if os.fspath(path) == "-" or not Path(path).is_dir():
        return [os.fspath(path)]
    return sorted(str(p) for p in Path(path).rglob("*") if p.suffix in (".json", ".jsonl"))


def _objects(file: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a JSON document, of a list in it, or of JSON Lines, with their lines."""
    text = read_text(file)
    try:
        documents = [(1, json.loads(text))]
    except (ValueError, RecursionError):
        lines = enumerate(text.split("\n"), start=1)
        documents = [(n, _loaded(line)) for n, line in lines if line.strip()]
    for line, document in documents:
        for value in document if isinstance(document, list) else [document]:
            if isinstance(value, dict):
                yield line, value


def _loaded(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _take_tuple(value: Mapping[str, Any], tuples: dict[str, dict[str, str]]) -> None:
    items = value.get("_bws_items")
    if isinstance(items, list) and all(isinstance(item, dict) for item in items):
        tuples[str(value.get("id"))] = {
            str(item.get("position")): str(item.get("source_id")) for item in items
        }


def _answers(value: Mapping[str, Any], file: str, line: int) -> Iterator[_Answer]:
    labels = next((value[key] for key in LABELS if isinstance(value.get(key), dict)), None)
    if labels is not None:  # The state of a user.
        user = str(value.get("user_id") or Path(file).parent.name)
        for tuple_id, answers in labels.items():
            best_worst = _best_and_worst(answers)
            if best_worst:
                yield _Answer(file, None, tuple_id, user, *best_worst)
    elif isinstance(value.get("annotation"), dict) or isinstance(value.get("annotations"), dict):
        best_worst = _best_and_worst(value.get("annotation") or value.get("annotations"))
        user = str(value.get("annotator") or value.get("user_id") or Path(file).stem)
        if best_worst:
            yield _Answer(file, line, str(value.get("id")), user, *best_worst)


def _best_and_worst(annotation: Any) -> tuple[str, str] | None:
    """Return (best, worst) of {schema: {best, worst}} or [[{schema, name}, value], ...]."""
    if isinstance(annotation, list):
        values_by_schema = {
            label.get("name"): value
            for label, value in (
                pair for pair in annotation if isinstance(pair, list) and len(pair) == 2
            )
            if isinstance(label, dict)
        }
        annotation = {"": values_by_schema}
    if not isinstance(annotation, dict):
        return None
    for schema in annotation.values():
        if isinstance(schema, dict) and {"best", "worst"} & schema.keys():
            return str(schema.get("best") or ""), str(schema.get("worst") or "")
    return None


def _rows(name: str, tuples: Mapping[str, Mapping[str, str]], answers: list[_Answer]) -> Rows:
    k = len(next(iter(tuples.values())))
    problems, right = [], []
    for answer in answers:
        items = tuples.get(answer.tuple_id)
        if items is None:
            message = f"tuple {answer.tuple_id!r} has no _bws_items"
        elif len(items) != k:
            message = f"tuple {answer.tuple_id!r} has {len(items)} items; the first one has {k}"
        else:
            right.append(answer)
            continue
        problems.append(Problem(answer.file, answer.line, message))

    items_of = [tuples[answer.tuple_id] for answer in right]
    return Rows(
        file=name,
        form=NAME,
        lines=np.array([answer.line or 0 for answer in right], np.int64),
        items=[series([list(items.values())[index] for items in items_of]) for index in range(k)],
        best=series([i.get(a.best, a.best) for i, a in zip(items_of, right, strict=True)]),
        worst=series([i.get(a.worst, a.worst) for i, a in zip(items_of, right, strict=True)]),
        tuple_id=series([answer.tuple_id for answer in right]),
        annotator=series([answer.annotator for answer in right]),
        problems=tuple(problems),
    )
