"""Output of Potato: tuples with ``_bws_items`` and, per annotator, the selected positions.

The positions are values of a scheme ``bws``, or labels of two schemes ``best`` and ``worst`` of type
``radio``, as in the projects of ``giccs annotate export``. Source: Potato documentation, "Best-Worst
Scaling", and output of potato-annotation 2.12.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bws.base.file_kinds import remark
from bws.base.problems import InputError, Problem
from bws.base.text import display_name, read_text
from bws.files.rows import Rows
from bws.files.tuples import ROUND_COLUMNS, round_columns
from bws.record_columns import series

NAME = "potato"
EXPECTED = "a folder with user_state.json files and the tuples' _bws_items, or one such file"
ROLES = {"best", "worst"}
LABELS = ("instance_id_to_label_to_value", "instance_id_to_labels")


@dataclass(frozen=True, slots=True)
class _Tuple:
    group: str
    rounds: tuple[str, ...]
    """Values of round, purpose and seed."""
    items: dict[str, str]
    """Position -> item, in display order."""


@dataclass(frozen=True, slots=True)
class _Answer:
    file: str
    line: int | None
    tuple_id: str
    annotator: str
    best: str
    worst: str


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON document, with its file and line."""

    file: str
    line: int
    content: Any


def rows(documents: Iterable[Document], name: str) -> Rows:
    """Return the judgments in the output of a Potato project.

    name: the file or folder in messages. The items of a tuple are in `_bws_items`, with their positions. The
    answers of an annotator are in a user_state.json, or with the items under ``annotation`` in a file named
    after the annotator.
    """
    tuples: dict[str, _Tuple] = {}
    answers: list[_Answer] = []
    keys: list[str] = []
    for document in documents:
        content = document.content
        for value in content if isinstance(content, list) else [content]:
            if isinstance(value, dict):
                keys = keys or list(value)
                _take_tuple(value, tuples)
                answers += _answers(value, display_name(document.file), document.line)
    if not answers:
        kind = remark(keys, "judgments")
        other_file = f"no judgments; expected a file of judgments{kind}"
        message = other_file if kind else f"no answers of Potato; expected {EXPECTED}"
        raise InputError(Problem(name, None, message))
    if not tuples:
        message = "has no _bws_items; specify the folder that also contains Potato's tuples"
        raise InputError(Problem(name, None, message))
    return _rows(name, tuples, answers)


def read_documents(path: str | os.PathLike[str]) -> list[Document]:
    """Return the JSON documents or JSON Lines in a file, or in the .json and .jsonl files of a folder."""
    return [document for file in _files(path) for document in _documents(file)]


def _files(path: str | os.PathLike[str]) -> list[str]:
    if os.fspath(path) == "-" or not Path(path).is_dir():
        return [os.fspath(path)]
    return sorted(str(p) for p in Path(path).rglob("*") if p.suffix in (".json", ".jsonl"))


def _documents(file: str) -> list[Document]:
    text = read_text(file)
    try:
        return [Document(file, 1, json.loads(text))]
    except (ValueError, RecursionError):
        lines = enumerate(text.split("\n"), start=1)
        return [Document(file, n, _loaded(line)) for n, line in lines if line.strip()]


def _loaded(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _take_tuple(value: Mapping[str, Any], tuples: dict[str, _Tuple]) -> None:
    items = value.get("_bws_items")
    if isinstance(items, list) and all(isinstance(item, dict) for item in items):
        tuples[str(value.get("id"))] = _Tuple(
            group=str(value.get("group") or ""),
            rounds=tuple(str(value.get(name) or "") for name in ROUND_COLUMNS),
            items={str(item.get("position")): str(item.get("source_id")) for item in items},
        )


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
    """Return (best, worst) of {schema: {name: value}} or [[{schema, name}, value], ...].

    Names of a scheme ``bws`` are best and worst; of radio schemes best and worst, they are positions.

    >>> _best_and_worst({"bws": {"best": "A", "worst": "C"}})
    ('A', 'C')
    >>> _best_and_worst([[{"schema": "best", "name": "B"}, "B"], [{"schema": "worst", "name": "A"}, "A"]])
    ('B', 'A')
    """
    schemas = _schemas(annotation)
    if ROLES & schemas.keys():
        best, worst = (", ".join(schemas.get(role, {})) for role in ("best", "worst"))
        return best, worst
    for values in schemas.values():
        if ROLES & values.keys():
            return str(values.get("best") or ""), str(values.get("worst") or "")
    return None


def _schemas(annotation: Any) -> dict[str, dict[str, Any]]:
    """Return schema -> name -> value of both notations."""
    if isinstance(annotation, dict):
        return {name: value for name, value in annotation.items() if isinstance(value, dict)}
    schemas: dict[str, dict[str, Any]] = {}
    for pair in annotation if isinstance(annotation, list) else []:
        if isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], dict):
            label, value = pair
            schemas.setdefault(str(label.get("schema")), {})[str(label.get("name"))] = value
    return schemas


def _rows(name: str, tuples: Mapping[str, _Tuple], answers: list[_Answer]) -> Rows:
    k = len(next(iter(tuples.values())).items)
    problems, right = [], []
    for answer in answers:
        answered = tuples.get(answer.tuple_id)
        if answered is None:
            message = f"tuple {answer.tuple_id!r} has no _bws_items"
        elif len(answered.items) != k:
            message = (
                f"tuple {answer.tuple_id!r} has {len(answered.items)} items; the first one has {k}"
            )
        else:
            right.append(answer)
            continue
        problems.append(Problem(answer.file, answer.line, message))

    answered_tuples = [tuples[answer.tuple_id] for answer in right]
    items_of = [answered.items for answered in answered_tuples]
    rounds = [
        series(answered.rounds[index] for answered in answered_tuples)
        for index in range(len(ROUND_COLUMNS))
    ]
    return Rows(
        file=name,
        form=NAME,
        lines=np.array([answer.line or 0 for answer in right], np.int64),
        items=[series([list(items.values())[index] for items in items_of]) for index in range(k)],
        best=series([i.get(a.best, a.best) for i, a in zip(items_of, right, strict=True)]),
        worst=series([i.get(a.worst, a.worst) for i, a in zip(items_of, right, strict=True)]),
        tuple_id=series([answer.tuple_id for answer in right]),
        group=series([answered.group for answered in answered_tuples]),
        annotator=series([answer.annotator for answer in right]),
        as_shown=True,
        columns=round_columns(dict(zip(ROUND_COLUMNS, rounds, strict=True))),
        problems=tuple(problems),
        names=[f"tuple {answer.tuple_id}, annotator {answer.annotator}" for answer in right],
    )
