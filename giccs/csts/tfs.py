"""How similar are two sentences under a condition that is a typed feature structure?

L-CSTS section 6.1: the condition is an entity type; each sentence gives that type's features values, people
label how similar the two values of a feature are, and the score is the weighted sum of the labels of the
features that are not empty. Figure 6, under the condition *Animal*:

    feature    sentence 1   sentence 2   label  weight
    type       dog          dog          5      0.6
    color      N/A          N/A          N/A
    count      1            1            5      0.2
    position   sitting      in the air   1      0.2

    similarity = (5 × 0.6) + (5 × 0.2) + (1 × 0.2) = 3.0 + 1.0 + 0.2 = 4.2

How two values compare the paper leaves to the people who label them, and so does this module: the similarity
of a feature is data, also where the values are structures of their own.

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from statistics import fmean
from typing import TYPE_CHECKING, Any, NoReturn

from bws.files.schema import OBJECTS, TEXT, Row, Unique, message_text, records
from bws.problems import Location, Problem
from bws.records import normal_id
from bws.textio import display_name, read_text
from giccs.csts.data import INVALID, LABELS

if TYPE_CHECKING:
    from giccs.measures.metrics import Estimate

__all__ = [
    "RULES",
    "Comparison",
    "Contribution",
    "Feature",
    "FeatureUse",
    "Score",
    "Summary",
    "Value",
    "read_tfs",
    "score",
    "summary",
    "value_text",
]

Value = str | int | float | bool | Mapping[str, "Value | None"]
"""What a feature is set to; a mapping is a sub-structure."""

LOWEST, HIGHEST = LABELS[0], LABELS[-1]

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

RULES: Mapping[str, str] = {
    "renormalise": "their weight is shared out among the features that apply: 1 to 5",
    "zero": "they keep their weight and add 0 to the score: 0 to 5",
}
"""What becomes of features that do not apply. Figure 6 cannot tell: its N/A feature has no weight."""


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature of the condition in both sentences."""

    name: str
    value1: Value | None
    """None: N/A, the sentence does not say."""
    value2: Value | None
    similarity: float | None
    """From 1 to 5, as people labelled it; None: the feature does not apply."""
    weight: float | None
    """0 or more; None only where the feature does not apply."""

    @property
    def applies(self) -> bool:
        """Tell whether the feature counts: Figure 6 sums over the features that are not N/A."""
        return self.similarity is not None

    @property
    def one_sided(self) -> bool:
        """Tell whether only one of the sentences says a value."""
        return (self.value1 is None) != (self.value2 is None)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sentences' feature structures under one condition."""

    uid: str
    condition: str
    """The entity type whose features these are."""
    sentence1: str
    sentence2: str
    features: tuple[Feature, ...]
    label: float | None = None
    """Similarity as a whole, from 1 to 5; -1: invalid; None: not labelled."""

    @property
    def labelled(self) -> bool:
        """Tell whether there is a label to compare a score with."""
        return self.label is not None and self.label != INVALID


def value_text(value: Value | None) -> str:
    """Return a value as a table has it; a sub-structure in brackets.

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
    """Return the comparisons of a file, and warnings of keys that nothing reads.

    The file is as the module describes it; ``-`` is standard input. InputError with every problem of every
    object: what is not JSON, missing or of a wrong kind, out of range, named twice; a similarity where
    neither sentence has a value, and none where both have one.
    """
    file = display_name(path)
    comparisons = records(file, _objects(file, read_text(path)), _comparison, [UID])
    return list(comparisons.checked("JSON object; one or more are needed")), comparisons.warnings


def _objects(file: str, text: str) -> list[Row]:
    """Return the object that the text is, or else one a line that is not blank.

    A text with faults may be meant either way: it is lines where the first is an object, or any with keys
    that only a whole one has (a line may also hold one feature of an object written over many).
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
    reason = reason or f"it is {message_text(values)}"
    row.wrong(f"not a JSON object ({reason}); the file must be one, or one a line")
    return row


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of an object; ValueError where a key is there twice and a value would be lost."""
    repeated = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
    if repeated:
        raise ValueError(f"the key {repeated[0]!r} is there twice in one object")
    return dict(pairs)


def _no_number(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")


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
    for index, values in enumerate(row.get("features", OBJECTS), start=1):
        location = f"feature {index}"
        name = values.get("feature")
        if not isinstance(name, str) or not name.strip():
            row.wrong(f"{location} has no name; its key feature must hold text")
        else:
            location, name = f"{location} ({name})", normal_id(name)
            if name in names:
                row.wrong(f"{location} is there already; each feature is named once")
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
    """Return how values, similarity and weight contradict each other; empty where they do not."""
    empty = [feature.value1, feature.value2].count(None)
    if feature.applies and empty == 2:
        return "similarity is given, but neither sentence has a value; it must be null"
    if not feature.applies and empty == 0:
        return f"similarity is missing, but both sentences have a value; it must be {LOWEST} to {HIGHEST}"
    if feature.applies and feature.weight is None:
        return "weight is missing; a feature with a similarity needs one, 0 or more"
    return ""


def _number(row: Row, location: str, raw_value: Any, kind: str) -> float | None:
    """Return a number of a kind; None where there is none, or, noted, a wrong one."""
    if _not_applicable(raw_value):
        return None
    number = math.nan
    if isinstance(raw_value, (int, float)) and not isinstance(raw_value, bool):
        with suppress(OverflowError):  # a whole number of more than 308 digits
            number = float(raw_value)
    allowed, is_allowed = NUMBERS[kind]
    if math.isfinite(number) and is_allowed(number):
        return number
    row.wrong(f"{location} is {message_text(raw_value)}; it must be {allowed}")
    return None


def _value(row: Row, location: str, raw_value: Any) -> Value | None:
    """Return a feature's value; None where it is N/A, or, noted, none that a feature can have."""
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
        return f"structures may lie {DEEPEST} deep in one another"
    if isinstance(raw_value, dict) and raw_value and all(key.strip() for key in raw_value):
        inner = (_value_fault(item, depth + 1) for item in raw_value.values() if item is not None)
        return next(filter(None, inner), "")
    if isinstance(raw_value, str) and raw_value.strip():
        return ""
    if isinstance(raw_value, int) or (isinstance(raw_value, float) and math.isfinite(raw_value)):
        return ""
    return "a value is text, a number, true, false, or an object of features and values; or null"


def _not_applicable(raw_value: Any) -> bool:
    return raw_value is None or (isinstance(raw_value, str) and raw_value.strip() == "N/A")


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one feature adds to the score."""

    feature: Feature
    share: float
    """Its weight as a share of the weights that count; NaN where it does not count."""
    value: float
    """Similarity times share; NaN where the feature does not count."""


@dataclass(frozen=True, slots=True)
class Score:
    """The similarity of a comparison, and how it comes about."""

    comparison: Comparison
    value: float
    """From 1 to 5, with ``zero`` from 0 to 5; NaN with a reason."""
    reason: str
    """Why there is no score; empty where there is one."""
    contributions: tuple[Contribution, ...]
    """One a feature, in the order of the comparison; their sum is the score."""

    def document(self) -> dict[str, Any]:
        """Return the score as JSON has it."""
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


def score(comparison: Comparison, na: str = "renormalise") -> Score:
    """Return the weighted mean of the features' similarities; the weights need not sum to 1.

    `na` is one of `RULES`, and says what features that do not apply do. ``renormalise``: sum of weight times
    similarity, by the sum of the weights, both over the features that apply. ``zero``: the same sum, by the
    weights of all features. Where the weights of all features sum to 1, ``zero`` is the plain weighted sum.

    NaN with a reason: no feature applies; the weights that count sum to 0; with ``zero``, a feature that
    does not apply has no weight. ValueError where `na` is another word. The arithmetic is exact in the
    decimal numbers as they are written, and rounded once.

    >>> figure6 = Comparison("figure-6", "Animal", "…", "…", (
    ...     Feature("type", "dog", "dog", 5, 0.6), Feature("color", None, None, None, None),
    ...     Feature("count", 1, 1, 5, 0.2), Feature("position", "sitting", "in the air", 1, 0.2)))
    >>> found = score(figure6)
    >>> [part.value for part in found.contributions], found.value
    ([3.0, nan, 1.0, 0.2], 4.2)
    """
    if na not in RULES:
        raise ValueError(f"na is {na!r}; allowed are {', '.join(RULES)}")
    counted_features = [
        feature for feature in comparison.features if feature.applies or na == "zero"
    ]
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
    """Return the number that is written: 0.6 is 3/5, not the nearest binary fraction; nothing is 0."""
    return Fraction(0) if number is None else Fraction(repr(number))


def _why_undefined(counted_features: Sequence[Feature], total: Fraction | int) -> str:
    if not any(feature.applies for feature in counted_features):
        return "no feature applies"
    without = [feature.name for feature in counted_features if feature.weight is None]
    if without:
        return f"{', '.join(without)} without a weight; zero needs that of every feature"
    return "" if total else "the weights that count sum to 0"


@dataclass(frozen=True, slots=True)
class FeatureUse:
    """How often a feature of a condition applies, and how similar its values then are."""

    condition: str
    name: str
    applies: int
    not_applicable: int
    similarity: float
    """Mean label; NaN where the feature never applies."""
    share: float
    """Mean share of the weights in the scores that it counts in; NaN where there is none."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What many scores are like."""

    comparisons: int
    scored: int
    undefined: Mapping[str, int]
    """Reason -> comparisons that have no score for it."""
    mean: float
    lowest: float
    highest: float
    below_scale: int
    """Scores below 1, which only ``zero`` gives."""
    one_sided: int
    """Features that only one of two sentences gives a value."""
    features: tuple[FeatureUse, ...]
    """In the order of their first occurrence."""
    labelled: int
    """Comparisons with a label from 1 to 5."""
    invalid: int
    """Comparisons labelled -1."""
    agreement: Mapping[str, Estimate]
    """``pearson`` and ``spearman`` of scores and labels; empty where there is no label."""

    def document(self) -> dict[str, Any]:
        """Return the summary as JSON has it."""
        names = [name for name in self.__slots__ if name not in ("features", "agreement")]
        return {
            **{name: getattr(self, name) for name in names},
            "features": [
                {key: getattr(use, key) for key in use.__slots__} for use in self.features
            ],
            "agreement": {name: estimate.document() for name, estimate in self.agreement.items()},
        }


def summary(scores: Sequence[Score]) -> Summary:
    """Sum up scores, and correlate them with the labels where there are any.

    Mean, lowest and highest are NaN where nothing is scored. The correlations are over comparisons with a
    score and a label from 1 to 5; their intervals resample sentence pairs, since the conditions of one pair
    are not independent (`giccs.measures.metrics.correlations`).
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
        below_scale=sum(value < LOWEST for value in values),
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
