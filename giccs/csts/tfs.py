"""Similarity of two sentences under a condition that is a typed feature structure.

L-CSTS section 6.1: the condition is an entity type. Each sentence assigns values to the features of that
type. Annotators label the similarity of the two values of a feature. The score is the weighted sum of the
labels of the applicable features. Figure 6, under the condition *Animal*:

    feature    sentence 1   sentence 2   label  weight
    type       dog          dog          5      0.6
    color      N/A          N/A          N/A
    count      1            1            5      0.2
    position   sitting      in the air   1      0.2

    similarity = (5 × 0.6) + (5 × 0.2) + (1 × 0.2) = 3.0 + 1.0 + 0.2 = 4.2

The paper leaves the comparison of two values to annotators, and so does this module: the similarity of a
feature is part of the data, also if the values are nested structures.

A file contains one JSON object, or one per line (JSON Lines):

    uid, condition, sentence1, sentence2   text; uids are unique
    label      optional: the similarity of the whole sentences, a number from 1 to 5; -1 is invalid
    features   a list of one or more objects, each with
      feature          its name, unique in the list
      value1, value2   the value in either sentence: text, a number, true or false, or an object of features
                       and values (a sub-structure); null, "N/A" or absent if the sentence does not state it
      similarity       from 1 to 5; null, "N/A" or absent if the feature does not apply
      weight           0 or more, in any unit, because only shares of the sum count; optional for a feature
                       that does not apply
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from statistics import fmean
from typing import TYPE_CHECKING, Any, NoReturn

from bws.base.ids import normal_id
from bws.base.problems import Location, Problem
from bws.base.text import display_name, read_text
from bws.files.schema import OBJECTS, TEXT, Row, Unique, message_text, records
from giccs.csts.data import INVALID, LABELS

if TYPE_CHECKING:
    from bws.stats.estimates import Estimate

Value = str | int | float | bool | Mapping[str, "Value | None"]
"""Value of a feature; a mapping is a sub-structure."""

LOWEST, HIGHEST = LABELS[0], LABELS[-1]

DEEPEST = 20
"""Maximum nesting depth of structures."""
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
"""Kind of number -> description and test of the expected values."""


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature of the condition in both sentences."""

    name: str
    value1: Value | None
    """None: N/A, not stated by the sentence."""
    value2: Value | None
    similarity: float | None
    """Label from 1 to 5; None if the feature does not apply."""
    weight: float | None
    """0 or more; None only if the feature does not apply."""

    @property
    def applies(self) -> bool:
        """Return whether the feature counts: Figure 6 sums over the features that are not N/A."""
        return self.similarity is not None

    @property
    def one_sided(self) -> bool:
        """Return whether only one of the sentences states a value."""
        return (self.value1 is None) != (self.value2 is None)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The feature structures of two sentences under one condition."""

    uid: str
    condition: str
    """The entity type to which the features belong."""
    sentence1: str
    sentence2: str
    features: tuple[Feature, ...]
    label: float | None = None
    """Similarity of the whole sentences, from 1 to 5; -1 for invalid, None for unlabelled."""

    @property
    def labelled(self) -> bool:
        """Return whether there is a valid label to compare a score with."""
        return self.label is not None and self.label != INVALID


def value_text(value: Value | None) -> str:
    """Return a value as text for a table; sub-structures are in brackets.

    >>> print(value_text({"type": "sandwich", "on": {"type": "plate", "color": None}}), value_text(None))
    [type=sandwich, on=[type=plate, color=N/A]] N/A
    """
    if value is None:
        return "N/A"
    if isinstance(value, Mapping):
        inner = ", ".join(f"{name}={value_text(inner)}" for name, inner in value.items())
        return f"[{inner}]"
    return " ".join(value.split()) if isinstance(value, str) else json.dumps(value)


UID = Unique[Comparison]("uid", lambda comparison: comparison.uid)


def read_tfs(path: str | os.PathLike[str]) -> tuple[list[Comparison], list[Problem]]:
    """Return the comparisons of a file, and warnings about ignored keys.

    The module docstring describes the file; ``-`` is standard input. Raises InputError with every problem of
    every
    object: invalid JSON; missing, repeated or out-of-range members and members of a wrong type; a similarity
    although neither sentence has a value, and no similarity although both have one.
    """
    file = display_name(path)
    comparisons = records(file, _objects(file, read_text(path)), _comparison, [UID])
    return list(comparisons.checked("JSON object; expected one or more")), comparisons.warnings


def _objects(file: str, text: str) -> list[Row]:
    """Return the object in the text, or one object per non-blank line.

    Invalid text is treated as lines if its first line is an object, or any line has keys that only a complete
    comparison has. (A line may also contain one feature of an object that spans many lines.)
    """
    document = _object(file, 1, text)
    if document.values:
        return [document]
    lines = enumerate(text.split("\n"), start=1)
    documents = [_object(file, line, line_text) for line, line_text in lines if line_text.strip()]
    as_lines = (
        not documents
        or documents[0].values
        or any(KEYS & objects.values.keys() for objects in documents)
    )
    return documents if as_lines else [document]


def _object(file: str, line: int, text: str) -> Row:
    """Return the JSON object in a text, or an empty one with the reason why it is invalid."""
    values, reason = None, ""
    try:
        values = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
        json.dumps(values, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        reason = "it contains an unpaired surrogate escape"
    except json.JSONDecodeError as error:
        line += error.lineno - 1
        reason = f"{error.msg} at character {error.colno}"
    except (ValueError, RecursionError) as error:
        reason = str(error)
    if not reason and isinstance(values, dict) and values:
        return Row(Location(file, line), values)
    row = Row(Location(file, line), {})
    reason = reason or f"it is {message_text(values)}"
    row.wrong(f"not a JSON object ({reason}); expected one per file or one per line")
    return row


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of an object; raise ValueError for a repeated key, whose value would be lost."""
    repeated = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
    if repeated:
        raise ValueError(f"repeated key {repeated[0]!r} in one object")
    return dict(pairs)


def _no_number(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")


def _comparison(row: Row) -> Comparison:
    row.warn_of_unknown(KEYS)
    uid, condition, sentence1, sentence2 = (
        row.get(key, TEXT) for key in ("uid", "condition", "sentence1", "sentence2")
    )
    label = _number(row, "label", row.values.get("label"), "label")
    return Comparison(normal_id(uid), condition, sentence1, sentence2, tuple(_features(row)), label)


def _features(row: Row) -> Iterator[Feature]:
    """Yield the features of an object and note problems of single features and of their combination."""
    if row.values.get("features") == []:
        row.wrong("features is empty; expected a list of one or more objects")
    names: set[str] = set()
    for index, values in enumerate(row.get("features", OBJECTS), start=1):
        location = f"feature {index}"
        name = values.get("feature")
        if not isinstance(name, str) or not name.strip():
            row.wrong(f"{location} has no name; expected text in the key feature")
        else:
            location, name = f"{location} ({name})", normal_id(name)
            if name in names:
                row.wrong(f"{location} is repeated; each feature must be unique")
            names.add(name)
        yield _feature(row, location, str(name), values)


def _feature(row: Row, location: str, name: str, values: dict[str, Any]) -> Feature:
    before = len(row.problems)
    inner = Row(row.location, values)
    inner.warn_of_unknown(FEATURE_KEYS)
    row.warnings += [
        Problem(problem.file, problem.line, f"{location}: {problem.message}")
        for problem in inner.warnings
    ]
    value1, value2 = (
        _value(row, f"{location}: {key}", values.get(key)) for key in ("value1", "value2")
    )
    similarity, weight = (
        _number(row, f"{location}: {key}", values.get(key), key) for key in ("similarity", "weight")
    )
    feature = Feature(name, value1, value2, similarity, weight)
    if len(row.problems) == before and (fault := _fault(feature)):
        row.wrong(f"{location}: {fault}")
    return feature


def _fault(feature: Feature) -> str:
    """Return contradictions of values, similarity and weight, or an empty string."""
    empty = [feature.value1, feature.value2].count(None)
    if feature.applies and empty == 2:
        return "similarity is given, but neither sentence has a value; expected null"
    if not feature.applies and empty == 0:
        return f"similarity is missing, but both sentences have a value; expected {LOWEST} to {HIGHEST}"
    if feature.applies and feature.weight is None:
        return "weight is missing; expected 0 or more for a feature with a similarity"
    return ""


def _number(row: Row, location: str, raw_value: Any, kind: str) -> float | None:
    """Return a number of a kind, or None if it is missing or, with a noted problem, invalid."""
    if _not_applicable(raw_value):
        return None
    number = math.nan
    if isinstance(raw_value, (int, float)) and not isinstance(raw_value, bool):
        with suppress(OverflowError):  # An integer of more than 308 digits.
            number = float(raw_value)
    allowed, is_allowed = NUMBERS[kind]
    if math.isfinite(number) and is_allowed(number):
        return number
    row.wrong(f"{location} is {message_text(raw_value)}; expected {allowed}")
    return None


def _value(row: Row, location: str, raw_value: Any) -> Value | None:
    """Return the value of a feature, or None if it is N/A or, with a noted problem, invalid."""
    if _not_applicable(raw_value):
        return None
    fault = _value_fault(raw_value)
    if fault:
        row.wrong(f"{location} is {message_text(raw_value)}; {fault}")
        return None
    value: Value = raw_value
    return value


def _value_fault(raw_value: Any, depth: int = 0) -> str:
    if depth > DEEPEST:
        return f"structures are nested more than {DEEPEST} deep"
    if isinstance(raw_value, dict) and raw_value and all(key.strip() for key in raw_value):
        inner = (_value_fault(item, depth + 1) for item in raw_value.values() if item is not None)
        return next(filter(None, inner), "")
    if isinstance(raw_value, str) and raw_value.strip():
        return ""
    if isinstance(raw_value, int) or (isinstance(raw_value, float) and math.isfinite(raw_value)):
        return ""
    return "expected text, a number, true, false, null, or an object of features and values"


def _not_applicable(raw_value: Any) -> bool:
    return raw_value is None or (isinstance(raw_value, str) and raw_value.strip() == "N/A")


@dataclass(frozen=True, slots=True)
class Contribution:
    """Contribution of one feature to the score."""

    feature: Feature
    share: float
    """Share of the feature's weight in the weights that count; NaN if it does not count."""
    value: float
    """Similarity times share; NaN if the feature does not count."""


@dataclass(frozen=True, slots=True)
class Score:
    """The similarity of a comparison and its contributions."""

    comparison: Comparison
    value: float
    """From 1 to 5; NaN with a reason."""
    reason: str
    """Reason why there is no score; empty otherwise."""
    contributions: tuple[Contribution, ...]
    """One per feature, in the order of the comparison; their sum is the score."""

    def document(self) -> dict[str, Any]:
        """Return the score as a JSON-serialisable dict."""
        comparison = self.comparison
        return {
            "uid": comparison.uid,
            "condition": comparison.condition,
            "score": self.value,
            **({"reason": self.reason} if self.reason else {}),
            "label": comparison.label,
            "features": [_row(contribution) for contribution in self.contributions],
        }


def _row(contribution: Contribution) -> dict[str, Any]:
    feature = contribution.feature
    return {
        "feature": feature.name,
        "value1": feature.value1,
        "value2": feature.value2,
        "similarity": feature.similarity,
        "weight": feature.weight,
        "share": contribution.share,
        "contribution": contribution.value,
    }


def score(comparison: Comparison) -> Score:
    """Return the weighted mean of the features' similarities; the weights need not sum to 1.

    It is the sum of weight times similarity divided by the sum of the weights, both over the features that
    apply. The paper does not specify the weight of a feature that does not apply; in Figure 6 it has none.

    NaN with a reason: no feature applies; the weights that count sum to 0. The arithmetic is exact in the
    decimal numbers of the input and rounded once.

    >>> figure6 = Comparison("figure-6", "Animal", "…", "…", (
    ...     Feature("type", "dog", "dog", 5, 0.6), Feature("color", None, None, None, None),
    ...     Feature("count", 1, 1, 5, 0.2), Feature("position", "sitting", "in the air", 1, 0.2)))
    >>> figure6_score = score(figure6)
    >>> [part.value for part in figure6_score.contributions], figure6_score.value
    ([3.0, nan, 1.0, 0.2], 4.2)
    """
    counted_features = [feature for feature in comparison.features if feature.applies]
    total = sum(_exact(feature.weight) for feature in counted_features)
    reason = _why_undefined(counted_features, total)
    if reason:
        parts = tuple(Contribution(feature, math.nan, math.nan) for feature in comparison.features)
        return Score(comparison, math.nan, reason, parts)
    shares = [_exact(feature.weight) / total for feature in counted_features]
    similarity = sum(
        share * _exact(feature.similarity)
        for share, feature in zip(shares, counted_features, strict=True)
    )
    share_of = {
        feature.name: share for feature, share in zip(counted_features, shares, strict=True)
    }
    parts = tuple(
        _contribution(feature, share_of.get(feature.name)) for feature in comparison.features
    )
    return Score(comparison, float(similarity), "", parts)


def _contribution(feature: Feature, share: Fraction | None) -> Contribution:
    if share is None:
        return Contribution(feature, math.nan, math.nan)
    return Contribution(feature, float(share), float(share * _exact(feature.similarity)))


def _exact(number: float | None) -> Fraction:
    """Return the exact decimal number as written: 0.6 is 3/5, not the nearest binary fraction; None is 0."""
    return Fraction(0) if number is None else Fraction(repr(number))


def _why_undefined(counted_features: Sequence[Feature], total: Fraction | int) -> str:
    if not counted_features:
        return "no feature applies"
    return "" if total else "the weights that count sum to 0"


@dataclass(frozen=True, slots=True)
class FeatureUse:
    """Frequency of a feature of a condition, and the similarity of its values."""

    condition: str
    name: str
    applies: int
    not_applicable: int
    similarity: float
    """Mean label; NaN if the feature never applies."""
    share: float
    """Mean share of the weights in the scores to which it contributes; NaN without such scores."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Summary statistics of many scores."""

    comparisons: int
    scored: int
    undefined: Mapping[str, int]
    """Reason -> number of comparisons without a score."""
    mean: float
    lowest: float
    highest: float
    one_sided: int
    """Number of features with a value in only one of two sentences."""
    features: tuple[FeatureUse, ...]
    """In the order of their first occurrence."""
    labelled: int
    """Number of comparisons with a label from 1 to 5."""
    invalid: int
    """Number of comparisons labelled -1."""
    agreement: Mapping[str, Estimate]
    """``pearson`` and ``spearman`` of scores and labels; empty without labels."""

    def document(self) -> dict[str, Any]:
        """Return the summary as a JSON-serialisable dict."""
        names = [name for name in self.__slots__ if name not in ("features", "agreement")]
        return {
            **{name: getattr(self, name) for name in names},
            "features": [
                {key: getattr(use, key) for key in use.__slots__} for use in self.features
            ],
            "agreement": {name: estimate.document() for name, estimate in self.agreement.items()},
        }


def summary(scores: Sequence[Score]) -> Summary:
    """Summarise scores, and correlate them with the labels if there are any.

    Mean, lowest and highest are NaN without scores. The correlations are over comparisons with a score and a
    label from 1 to 5. Their intervals are over sentence pairs, since the conditions of one pair are not
    independent (`giccs.measures.metrics.correlations`).
    """
    values = [score.value for score in scores if not score.reason]
    features = [
        feature for feature_score in scores for feature in feature_score.comparison.features
    ]
    return Summary(
        comparisons=len(scores),
        scored=len(values),
        undefined=Counter(score.reason for score in scores if score.reason),
        mean=_mean(values),
        lowest=min(values, default=math.nan),
        highest=max(values, default=math.nan),
        one_sided=sum(feature.one_sided for feature in features),
        features=tuple(_uses(scores)),
        labelled=sum(score.comparison.labelled for score in scores),
        invalid=sum(score.comparison.label == INVALID for score in scores),
        agreement=_agreement(scores),
    )


def _uses(scores: Sequence[Score]) -> Iterator[FeatureUse]:
    contributions_by_feature: dict[tuple[str, str], list[Contribution]] = {}
    for score in scores:
        for part in score.contributions:
            contributions_by_feature.setdefault(
                (score.comparison.condition, part.feature.name), []
            ).append(part)
    for (condition, name), parts in contributions_by_feature.items():
        labels = [part.feature.similarity for part in parts if part.feature.similarity is not None]
        shares = [part.share for part in parts if not math.isnan(part.share)]
        yield FeatureUse(
            condition, name, len(labels), len(parts) - len(labels), _mean(labels), _mean(shares)
        )


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else math.nan


def _agreement(scores: Sequence[Score]) -> dict[str, Estimate]:
    import numpy as np

    from giccs.csts.measures import over_pairs
    from giccs.measures.metrics import correlations

    compared = [
        labelled_scores
        for labelled_scores in scores
        if labelled_scores.comparison.labelled and not labelled_scores.reason
    ]
    if not compared:
        return {}
    pairs: dict[tuple[str, str], int] = {}
    sides = [(score.comparison.sentence1, score.comparison.sentence2) for score in compared]
    estimates = correlations(
        np.array([score.value for score in compared]),
        np.array([score.comparison.label for score in compared], dtype=np.float64),
        np.array([pairs.setdefault(side, len(pairs)) for side in sides]),
    )
    return {name: over_pairs(estimates[name]) for name in ("pearson", "spearman")}
