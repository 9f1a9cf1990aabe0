"""Files of feature structures.

A file holds one JSON object, or one on each line (JSON Lines):

    uid, condition, sentence1, sentence2   text; no two objects have the same uid
    label      optional: the similarity of the sentences as a whole, a number from 1 to 5; -1 is invalid
    features   a list of one or more objects, each with
      feature          its name, once in the list
      value1, value2   the value in either sentence: text, a number, true or false, or an object of features
                       and values (a sub-structure); null, "N/A" or nothing where the sentence does not say
      similarity       from 1 to 5; null, "N/A" or nothing where the feature does not apply
      weight           0 or more, in any unit: only shares of the sum count; a feature that does not apply
                       may go without
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NoReturn

from bws.files.schema import OBJECTS, TEXT, Row, Unique, records, shown
from bws.problems import Location, Problem
from bws.records import normal_id
from bws.textio import display_name, read_text
from giccs.csts.records import INVALID
from giccs.csts.tfs.structures import HIGHEST, LOWEST, Comparison, Feature, Value

__all__ = ["read_tfs"]

DEEPEST = 20
"""Structures inside structures; no sentence needs as many."""
KEYS = frozenset({"uid", "condition", "sentence1", "sentence2", "label", "features"})
FEATURE_KEYS = frozenset({"feature", "value1", "value2", "similarity", "weight"})
NUMBERS: Mapping[str, tuple[str, Callable[[float], bool]]] = {
    "similarity": (
        f"a number from {LOWEST} to {HIGHEST}, or null",
        lambda number: LOWEST <= number <= HIGHEST,
    ),
    "weight": ("a number, 0 or more", lambda number: number >= 0),
    "label": (
        f"a number from {LOWEST} to {HIGHEST}, {INVALID} for invalid, or null",
        lambda number: LOWEST <= number <= HIGHEST or number == INVALID,
    ),
}
"""Kind of number -> what is allowed, in words and as a test."""


UID = Unique[Comparison]("uid", lambda comparison: comparison.uid)


def read_tfs(path: str | os.PathLike[str]) -> tuple[list[Comparison], list[Problem]]:
    """Return the comparisons of a file, and warnings of keys that nothing reads.

    The file is as the module describes it; ``-`` is standard input. InputError with every problem of every
    object: what is not JSON, missing or of a wrong kind, out of range, named twice; a similarity where
    neither sentence has a value, and none where both have one.
    """
    file = display_name(path)
    found = records(file, _objects(file, read_text(path)), _comparison, [UID])
    return list(found.checked("JSON object; one or more are needed")), found.warnings


def _objects(file: str, text: str) -> list[Row]:
    """Return the object that the text is, or else one a line that is not blank.

    A text with faults may be meant either way: it is lines where the first is an object, or any with keys
    that only a whole one has (a line may also hold one feature of an object written over many).
    """
    whole = _object(file, 1, text)
    if whole.values:
        return [whole]
    lines = enumerate(text.split("\n"), start=1)
    found = [_object(file, line, one) for line, one in lines if one.strip()]
    as_lines = not found or found[0].values or any(KEYS & one.values.keys() for one in found)
    return found if as_lines else [whole]


def _object(file: str, line: int, text: str) -> Row:
    """Return the JSON object that a text is; or an empty one, with why it is none."""
    values, reason = None, ""
    try:
        values = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
        json.dumps(values, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        reason = "it escapes half a character"
    except json.JSONDecodeError as error:
        line += error.lineno - 1
        reason = f"{error.msg} at character {error.colno}"
    except (ValueError, RecursionError) as error:
        reason = str(error)
    if not reason and isinstance(values, dict) and values:
        return Row(Location(file, line), values)
    row = Row(Location(file, line), {})
    reason = reason or f"it is {shown(values)}"
    row.wrong(f"not a JSON object ({reason}); the file must be one, or one a line")
    return row


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of an object; ValueError where a key is there twice and a value would be lost."""
    repeated = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
    if repeated:
        raise ValueError(f"the key {repeated[0]!r} is there twice in one object")
    return dict(pairs)


def _no_number(written: str) -> NoReturn:
    raise ValueError(f"{written} is no JSON number")


def _comparison(row: Row) -> Comparison:
    row.warn_of_unknown(KEYS)
    uid, condition, sentence1, sentence2 = (
        row.get(key, TEXT) for key in ("uid", "condition", "sentence1", "sentence2")
    )
    label = _number(row, "label", row.values.get("label"), "label")
    return Comparison(normal_id(uid), condition, sentence1, sentence2, tuple(_features(row)), label)


def _features(row: Row) -> Iterator[Feature]:
    """Yield the features of an object and note what is wrong with them, alone and together."""
    if row.values.get("features") == []:
        row.wrong("features is empty; it must be a list of one or more objects")
    names: set[str] = set()
    for place, values in enumerate(row.get("features", OBJECTS), start=1):
        where = f"feature {place}"
        name = values.get("feature")
        if not isinstance(name, str) or not name.strip():
            row.wrong(f"{where} has no name; its key feature must hold text")
        else:
            where, name = f"{where} ({name})", normal_id(name)
            if name in names:
                row.wrong(f"{where} is there already; each feature is named once")
            names.add(name)
        yield _feature(row, where, str(name), values)


def _feature(row: Row, where: str, name: str, values: dict[str, Any]) -> Feature:
    before = len(row.problems)
    inner = Row(row.location, values)
    inner.warn_of_unknown(FEATURE_KEYS)
    row.warnings += [
        Problem(one.file, one.line, f"{where}: {one.message}") for one in inner.warnings
    ]
    value1, value2 = (
        _value(row, f"{where}: {key}", values.get(key)) for key in ("value1", "value2")
    )
    similarity, weight = (
        _number(row, f"{where}: {key}", values.get(key), key) for key in ("similarity", "weight")
    )
    feature = Feature(name, value1, value2, similarity, weight)
    if len(row.problems) == before and (fault := _fault(feature)):
        row.wrong(f"{where}: {fault}")
    return feature


def _fault(feature: Feature) -> str:
    """Return how values, similarity and weight contradict each other; empty where they do not."""
    empty = [feature.value1, feature.value2].count(None)
    if feature.applies and empty == 2:
        return "similarity is given, but neither sentence has a value; it must be null"
    if not feature.applies and empty == 0:
        return f"similarity is missing, but both sentences have a value; it must be {LOWEST} to {HIGHEST}"
    if feature.applies and feature.weight is None:
        return "weight is missing; a feature with a similarity needs one, 0 or more"
    return ""


def _number(row: Row, where: str, written: Any, kind: str) -> float | None:
    """Return a number of a kind; None where there is none, or, noted, a wrong one."""
    if _not_applicable(written):
        return None
    number = math.nan
    if isinstance(written, (int, float)) and not isinstance(written, bool):
        with suppress(OverflowError):  # a whole number of more than 308 digits
            number = float(written)
    allowed, is_allowed = NUMBERS[kind]
    if math.isfinite(number) and is_allowed(number):
        return number
    row.wrong(f"{where} is {shown(written)}; it must be {allowed}")
    return None


def _value(row: Row, where: str, written: Any) -> Value | None:
    """Return a feature's value; None where it is N/A, or, noted, none that a feature can have."""
    if _not_applicable(written):
        return None
    fault = _value_fault(written)
    if fault:
        row.wrong(f"{where} is {shown(written)}; {fault}")
        return None
    value: Value = written
    return value


def _value_fault(written: Any, depth: int = 0) -> str:
    if depth > DEEPEST:
        return f"structures may lie {DEEPEST} deep in one another"
    if isinstance(written, dict) and written and all(key.strip() for key in written):
        inner = (_value_fault(one, depth + 1) for one in written.values() if one is not None)
        return next(filter(None, inner), "")
    if isinstance(written, str) and written.strip():
        return ""
    if isinstance(written, int) or (isinstance(written, float) and math.isfinite(written)):
        return ""
    return "a value is text, a number, true, false, or an object of features and values; or null"


def _not_applicable(written: Any) -> bool:
    return written is None or (isinstance(written, str) and written.strip() == "N/A")
