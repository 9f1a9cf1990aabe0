"""Aggregation of several annotators' labels per row, and their agreement.

C-STS (section 2.2.2) uses the label of one annotator, and reports Fleiss' kappa of three annotators on 100
instances, 0.61 (section 3). L-CSTS (section 3.3) has four annotators, and does not say how many of them label
a row or how their labels are merged. This module uses all answers.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bws.base.problems import Problem
from bws.files.schema import ANY_TEXT, TEXT, LocatedRecord, Schema, Unique, choice
from bws.files.table import read_table
from bws.stats.estimates import Estimate
from giccs.csts.data import INVALID, LABELS, Instance
from giccs.csts.measures import RESAMPLES
from giccs.measures.clusters import Clusters
from giccs.measures.metrics import CORRELATION_BOUNDS, Floats, Ints, Statistic, jackknife_estimate

PUBLISHED = 0.61
"""Fleiss' kappa of three annotators on 100 instances (C-STS, section 3)."""
BINARY_LABELS = (1, 3, 5)
"""Labels of a binary condition: unequal, possibly equal, equal (L-CSTS, 3.3)."""
BINARY = "binary"
"""Column of a relabelling: whether the annotator regards the condition as binary."""
LABEL_OF = {str(label): label for label in LABELS}


@dataclass(frozen=True, slots=True)
class Triplet:
    """A sentence pair with a condition, and the answers of its annotators."""

    uid: str
    sentence1: str
    sentence2: str
    condition: str
    answers: tuple[int | None, ...]
    """One answer per annotator: 1 to 5, or None if the condition does not apply."""
    binary: tuple[bool, ...] = ()
    """Of a relabelling: per label, whether its annotator regards the condition as binary."""

    @property
    def label(self) -> int | None:
        """The merged label, or None if the condition does not apply.

        If more than half of the annotators with a label regard the condition as binary, it is 1, 3 or 5.

        >>> texts = "0", "A red kite.", "Two red kites.", "the number of kites"
        >>> Triplet(*texts, (1, 3, 2), (True, True, False)).label
        1
        """
        is_binary = 2 * sum(self.binary) > len(self.binary)
        return merged_label(self.answers, BINARY_LABELS if is_binary else LABELS)


@dataclass(frozen=True)
class Verified:
    """Triplets with one label each, and excluded triplets."""

    instances: tuple[Instance, ...]
    """Rows of a sentence pair are adjacent, the most similar first."""
    dropped: tuple[Triplet, ...]
    """Triplets whose condition does not apply according to most annotators."""
    triplets: tuple[Triplet, ...]

    @cached_property
    def counts(self) -> Mapping[int, int]:
        """Number of rows with each label."""
        label_counts = Counter(instance.label for instance in self.instances)
        return {label: label_counts[label] for label in LABELS}

    @property
    def relabelled(self) -> Mapping[str, int]:
        """Labels by uid, -1 if the condition does not apply: numeric uids in ascending order, then others."""
        labels = {triplet.uid: triplet.label or INVALID for triplet in self.triplets}
        numeric = sorted(filter(str.isdecimal, labels), key=int)
        return {uid: labels[uid] for uid in dict.fromkeys([*numeric, *labels])}


def read_verification(path: str | os.PathLike[str]) -> tuple[Triplet, ...]:
    """Read answers of a verification or a relabelling; other columns are ignored.

    giccs annotate collect writes the file.

    Raises InputError with every problem: a label although the condition does not apply, a label other than 1,
    3 and 5 for a binary condition, a uid with different texts, an annotator with two answers to one triplet.
    """
    result = ANSWERS.read(read_table(path))
    result.problems.extend(_other_texts(result.rows))
    rows = result.checked("answers")
    of_uid: dict[str, list[_Answer]] = {}
    for row in rows:
        of_uid.setdefault(row.uid, []).append(row)
    return tuple(
        Triplet(
            uid, *of[0].texts, tuple(LABEL_OF.get(row.label) for row in of),
            tuple(row.binary == "yes" for row in of if row.label and row.binary),
        )
        for uid, of in of_uid.items()
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Answer:
    uid: str
    sentence1: str
    sentence2: str
    condition: str
    label: str
    applies: str
    annotator: str
    binary: str | None
    """None without this column."""

    @property
    def texts(self) -> tuple[str, str, str]:
        return self.sentence1, self.sentence2, self.condition


def _other_texts(rows: Iterable[LocatedRecord[_Answer]]) -> Iterator[Problem]:
    first: dict[str, LocatedRecord[_Answer]] = {}
    for row in rows:
        uid = row.record.uid
        earlier = first.setdefault(uid, row)
        if earlier.record.texts != row.record.texts:
            location = earlier.location.as_seen_from(row.location)
            message = f"uid {uid!r} has other texts in {location}; expected one triplet per uid"
            yield row.location.problem(message)


def _wrong_label(row: _Answer) -> Iterable[str]:
    if row.applies == "yes" and row.label not in LABEL_OF:
        yield f"label is {row.label!r}; expected one of {', '.join(LABEL_OF)} if the condition applies"
    elif row.applies == "no" and row.label:
        yield f"label is {row.label!r}, but the condition does not apply; expected one of the two"
    if row.applies == "no" and row.binary:
        yield f"binary is {row.binary!r}, but the condition does not apply; expected an empty cell"
    elif row.applies == "yes" and row.binary == "":
        yield "binary is ''; expected yes or no if the condition applies"
    elif row.binary == "yes" and row.label in LABEL_OF and LABEL_OF[row.label] not in BINARY_LABELS:
        permitted = ", ".join(map(str, BINARY_LABELS))
        yield f"label is {row.label!r} for a binary condition; expected one of {permitted}"


ANSWERS = Schema(
    _Answer,
    {
        "uid": TEXT,
        "sentence1": ANY_TEXT,
        "sentence2": ANY_TEXT,
        "condition": ANY_TEXT,
        "label": ANY_TEXT,
        "applies": choice({"yes": "yes", "no": "no"}, "", "yes or no"),
        "annotator": TEXT,
        BINARY: replace(
            choice({"yes": "yes", "no": "no", "": ""}, None, "yes, no or empty"), required=False
        ),
    },
    unique=[Unique("uid and annotator", lambda row: (row.uid, row.annotator))],
    check=_wrong_label,
)


def merged_label(
    answers: Sequence[int | None], permitted: Sequence[int] = LABELS
) -> int | None:  # fmt: skip
    """Return the aggregated label of several answers, or None if more than half are "does not apply".

    The label is the median of the labels. If it falls between two permitted labels, it is the one nearer to
    their mean, or the lower one if both are equally near.

    >>> [merged_label(a) for a in ([5, 4, 4], [4, 5], [1, 4, 5, 5], [2, 5], [3, None], [3, None, None])]
    [4, 4, 4, 3, 3, None]
    >>> [merged_label(answers, BINARY_LABELS) for answers in ([1, 3], [1, 1, 3, 5], [1, 5], [5, 4, 2])]
    [1, 3, 3, 3]
    """
    labels = sorted(answer for answer in answers if answer is not None)
    if 2 * len(labels) < len(answers) or not labels:
        return None
    median = (labels[(len(labels) - 1) // 2] + labels[len(labels) // 2]) / 2
    mean = sum(labels) / len(labels)
    neighbours = (
        max(label for label in permitted if label <= median),
        min(label for label in permitted if label >= median),
    )
    return min(neighbours, key=lambda label: (abs(label - mean), label))


def verified(triplets: Sequence[Triplet]) -> Verified:
    """Return one row of C-STS for each triplet whose condition applies, and the excluded triplets.

    >>> kites = Triplet("0", "A red kite.", "A red bus.", "the colour", (5, 4, 5))
    >>> snow = Triplet("1", "A red kite.", "A red bus.", "the weather", (None, None, 2))
    >>> result = verified([kites, snow])
    >>> [row.label for row in result.instances], [triplet.uid for triplet in result.dropped]
    ([5], ['1'])
    """
    pair_of = _pairs(triplets)
    rows, dropped = [], []
    for triplet, pair in zip(triplets, pair_of.tolist(), strict=True):
        label = triplet.label
        if label is None:
            dropped.append(triplet)
        else:
            texts = triplet.sentence1, triplet.sentence2, triplet.condition
            rows.append(Instance(triplet.uid, *texts, label, pair))
    rows.sort(key=lambda row: (row.pair, -(row.label or 0)))
    return Verified(_numbered(rows), tuple(dropped), tuple(triplets))


def _numbered(rows: Sequence[Instance]) -> tuple[Instance, ...]:
    """Renumber the remaining pairs from 0."""
    indices = {pair: n for n, pair in enumerate(dict.fromkeys(row.pair for row in rows))}
    return tuple(replace(row, pair=indices[row.pair]) for row in rows)


def _pairs(triplets: Sequence[Triplet]) -> Ints:
    """Return (T,) indices of the sentence pair of each triplet, in the order of first appearance."""
    numbers: dict[tuple[str, str], int] = {}
    of = [
        numbers.setdefault((triplet.sentence1, triplet.sentence2), len(numbers))
        for triplet in triplets
    ]
    return np.array(of, dtype=np.intp)


def agreement(triplets: Sequence[Triplet], *, seed: int = 0) -> dict[str, Estimate]:
    """Return Fleiss' kappas of all answers, of whether conditions apply, and of the labels.

    ``answer`` has six categories, the labels and "does not apply"; ``applies`` has two. ``label`` has five
    and is over the triplets to which every annotator assigned a label; ``label 1`` to ``label 5`` compare one
    label with all others. A relabelling also has ``binary``: whether the condition is binary, over the same
    triplets. Fleiss' kappa requires the same number of answers for all triplets. The most frequent number of
    at least two answers is used (the highest, if several are equally frequent); the number of excluded
    triplets is in the reason.
    Intervals: `giccs.measures.metrics.jackknife_interval` over sentence pairs, because the conditions of a
    pair share sentences. `seed`: as in `giccs.measures.metrics.correlations`.

    NaN with a reason: no triplet has two answers, or all answers are equal.
    """
    raters = _raters(triplets)
    complete_triplets = [triplet for triplet in triplets if len(triplet.answers) == raters]
    labelled = [triplet for triplet in complete_triplets if None not in triplet.answers]
    every = _table(complete_triplets, (*LABELS, None))
    labels = _table(labelled, LABELS)
    applies = np.stack([every[:, :-1].sum(1), every[:, -1]], axis=1)
    left_out = _left_out(len(triplets) - len(complete_triplets), raters)
    without = f"{len(complete_triplets) - len(labelled)} triplets with answers other than labels are excluded"
    remark = "; ".join(
        filter(None, [left_out, without if len(labelled) < len(complete_triplets) else ""])
    )
    estimates = {
        "answer": fleiss_kappas(every, _pairs(complete_triplets), seed, left_out)[0],
        "applies": fleiss_kappas(applies, _pairs(complete_triplets), seed, left_out)[0],
    }
    if any(triplet.binary for triplet in triplets):
        is_binary = [[sum(triplet.binary), raters - sum(triplet.binary)] for triplet in labelled]
        counts = np.array(is_binary, dtype=np.float64).reshape(-1, 2)
        estimates[BINARY] = fleiss_kappas(counts, _pairs(labelled), seed, remark)[0]
    overall, each = fleiss_kappas(labels, _pairs(labelled), seed, remark)
    return {
        **estimates,
        "label": overall,
        **{f"label {n}": estimate for n, estimate in zip(LABELS, each, strict=True)},
    }


def _raters(triplets: Sequence[Triplet]) -> int:
    """Return the most frequent number of answers of at least two, or 0 without one."""
    counts = Counter(len(triplet.answers) for triplet in triplets if len(triplet.answers) > 1)
    return max(counts, key=lambda n: (counts[n], n), default=0)


def _left_out(count: int, raters: int) -> str:
    if not count or not raters:
        return ""
    return f"{count} triplets without exactly {raters} answers are excluded"


def _table(triplets: Sequence[Triplet], categories: Sequence[int | None]) -> NDArray[np.float64]:
    """Return (T, C) counts of annotators per category."""
    counts = [[triplet.answers.count(category) for category in categories] for triplet in triplets]
    return np.array(counts, dtype=np.float64).reshape(len(triplets), len(categories))


def fleiss_kappas(
    counts: Floats, pair: Ints, seed: int = 0, remark: str = ""
) -> tuple[Estimate, tuple[Estimate, ...]]:
    """Return Fleiss' kappa of (T, C) counts, with equal row sums of at least 2, and that of each category.

    Kappa (Fleiss 1971) is (observed − chance) / (1 − chance) for the agreement of two annotators of a
    triplet, where chance agreement follows from the shares of the categories. The kappa of a category
    compares it with all others.
    pair: (T,) sentence pair of each row, for the interval. remark: a note on excluded triplets.

    >>> counts = np.array([[3.0, 0.0], [0.0, 3.0], [2.0, 1.0]])
    >>> overall, _ = fleiss_kappas(counts, np.arange(3))
    >>> round(overall.value, 3)
    0.55
    """
    tables = [
        counts,
        *(
            np.stack([category_counts, counts.sum(1) - category_counts], axis=1)
            for category_counts in counts.T
        ),
    ]
    estimates = [_estimate(table, pair, seed, remark) for table in tables]
    return estimates[0], tuple(estimates[1:])


def _estimate(counts: Floats, pair: Ints, seed: int, remark: str) -> Estimate:
    n = len(counts)
    if not n:
        reason = "; ".join(filter(None, [remark, "no triplet has answers of two annotators"]))
        return Estimate(math.nan, math.nan, math.nan, 0, reason)
    kappa = _kappa(counts, pair)
    n_pairs = int(pair.max()) + 1
    value = float(kappa(np.ones((1, n_pairs)))[0])
    undefined_reason = (
        "every answer is in one category: kappa is undefined" if math.isnan(value) else ""
    )
    note = "; ".join(filter(None, [remark, undefined_reason]))
    return jackknife_estimate(
        kappa,
        n,
        Clusters.single(n_pairs, "sentence pairs"),
        note,
        bounds=CORRELATION_BOUNDS,
        resamples=RESAMPLES,
        seed=seed,
    )


def _kappa(counts: Floats, pair: Ints) -> Statistic:
    """Return kappa as a function of (b, P) weights of the sentence pairs."""
    raters = counts[0].sum()
    agreeing = (counts * (counts - 1)).sum(1) / (raters * (raters - 1))
    rows, agreed = np.bincount(pair), np.bincount(pair, agreeing)
    shares = (
        np.stack([np.bincount(pair, category_counts) for category_counts in counts.T], axis=1)
        / raters
    )

    def kappa(weights: Floats) -> Floats:
        total = weights @ rows
        chance = ((weights @ shares / total[:, None]) ** 2).sum(1)
        with np.errstate(invalid="ignore", divide="ignore"):
            value = (weights @ agreed / total - chance) / (1 - chance)
        return np.where(chance < 1 - 1e-12, value, np.nan)

    return kappa
