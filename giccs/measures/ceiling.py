"""The noise ceiling: the maximum expected agreement of a model with scores that are uncertain.

Other annotators, and other tuples if not all were judged, would have produced somewhat different scores. In
classical test theory (Spearman 1904, Am. J. Psychol. 15; Lord and Novick 1968), the expected score of an item
is its true score, and observed scores correlate with true ones by the square root of the observed scores'
reliability. A model that predicts every true score reaches this correlation, and no model is expected to
exceed it. The reliability of counting scores is that of `bws.components`, whose error includes annotators,
the choice of tuples and single answers. `giccs.measures.judged_items` supports both kinds of scores.

A ceiling is computed once and stored with the results on its benchmark.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.base.commands import json_ready
from bws.base.notes import note
from bws.base.text import read_text, write_atomic
from bws.files import read_judgments
from bws.records import CanonicalJudgments, Judgments
from bws.scoring.choice import MAX_STDERR_ITEMS
from bws.stats.clusters import (
    t_quantile,
    too_few_clusters_note,
    uneven_clusters_note,
)
from bws.stats.constancy import is_constant
from bws.stats.estimates import Estimate
from giccs.benchmark import SAMPLES, Benchmark, sample_file
from giccs.measures.judged_items import (
    ACROSS_DIALOGUES_REMARK,
    ROUNDING,
    CountedItems,
    Items,
    JudgedItems,
    ModelledItems,
    canonical_index,
    judged_items,
)
from giccs.measures.results import digest, read_estimates

log = logging.getLogger(__name__)

Ceiling = Mapping[str, Estimate]
Note = Callable[[str], None]
Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

SEED = 0
"""Seed of stored ceilings."""

METHOD = "components 1"
"""Name and version of the method, changed whenever its numbers change."""
CEILING_NOTE = (
    "The noise ceiling is the correlation of a model that predicts the true scores: the scores contain "
    "errors of annotators and single answers, and of the choice of tuples if not all were judged."
)
EQUAL_MEANS_NOTE = (
    "The {values} of every dialogue have the same mean, because its items are only compared with each "
    "other. A model that predicts absolute similarity would therefore stay below the ceiling over all "
    "items, even without noise; use the within-dialogue ρ for such a model."
)
TOO_MANY_CONNECTED = note(
    "judgments connect more than {most:d} items, too many for the errors of a choice model",
    most=MAX_STDERR_ITEMS,
)
CHOICE_MODEL_NOTE = (
    "The scores are those of {method}, whose ceiling assumes that its model is correct "
    "for other tuples."
)
MIN_JUDGMENTS_PER_ITEM = 8
"""Mean number of judgments per item below which the ceiling of a choice model has a warning."""
MAX_UNEVENNESS = 0.1
"""Standard deviation of the items' numbers of judgments, relative to the mean, without a warning."""
MIN_ITEMS = 3
MAX_DIALOGUE_BLOCKS = 50
MAX_ANNOTATOR_BLOCKS = 20
CONSTANT_TOLERANCE = 1e-9


def load_judgments(
    benchmark: Benchmark,
    path: str | os.PathLike[str] | None = None,
    *,
    merge_variants: bool = False,
    control: Iterable[str] = (),
    allow_copies: bool = False,
) -> Judgments | None:
    """Return the judgments in a file of any format; without a file those of a sample, or None.

    merge_variants, control, allow_copies: as in `bws.read_judgments`; merge_variants and control with the
        same values as for the scores.

    `noise_ceiling` verifies that the benchmark's scores were computed from them.

    >>> from giccs.benchmark import read_benchmark
    >>> len(load_judgments(read_benchmark("giccs-sample")))
    3000
    """
    if path is not None:
        return read_judgments(
            path, merge_variants=merge_variants, control=control, allow_copies=allow_copies
        )
    if benchmark.name not in SAMPLES:
        return None
    with sample_file(benchmark.name, "judgments.csv") as sample_path:
        return read_judgments(sample_path)


def noise_ceiling(
    judgments: Judgments, benchmark: Benchmark, *, seed: int = 0
) -> dict[str, Estimate]:
    """Return ``pearson`` and ``spearman`` of a model that predicts the true scores, in [0, 1].

    A true score is the limit of the scores for very many annotators, judgments and, in an incomplete design,
    random tuples of a group.

    Counting: the ceiling of Pearson's r is the square root of the scores' reliability, 1 - mean error
    variance / variance of the scores. That of Spearman's rho is its mean over samples (from `seed`) of true
    scores given the scores: normal, with the mean and variance of the regression of true on observed scores.

    Best-worst logit and MaxDiff, as ``unit`` scores or on counting's scale: the mean correlation of the
    scores with samples of the true scores given the judgments, under the model and with the preferences of
    other annotators (`bws.scoring.true_utilities`). Effects of other tuples that the model does not include,
    such as context effects of the other items, are not included.

    In simulations, both are within 0.005 of the correlation of true scores (docs/background/coverage.md),
    except for few judgments, of which ``reason`` warns. ``extra`` contains the ``reliability`` (the squared
    ceiling), the fingerprint of the ``data``, the number of ``annotators`` (0 if unknown), whether the scores
    (for a model, its utilities) of every dialogue have the same mean (``equal_dialogue_means``; see
    `explain_ceiling`), and ``method`` and ``scale`` of the scores: the first of `SCORES`
    that reproduces all of them.

    The interval is symmetric in log(1 - ceiling^2), with a t quantile and a jackknife over dialogues. The
    variance between annotators is added: that of the mean error when an annotator is omitted, as far as it is
    the same in all dialogues (Cameron, Gelbach and Miller 2011, J. Bus. Econ. Stat. 29, for two-way
    clusters). With more than 50 dialogues or 20 annotators, blocks of them are omitted. ``reason`` warns of
    fewer than 20 annotators or uneven loads; of items with unequal numbers of judgments; of judgments without
    annotator, because persistent differences between annotators are then not part of the error; of tuples
    with items of several dialogues, which are then not independent; and of choice model scores from fewer
    than eight judgments per item on average, whose ceiling may be too low by more than 0.005.

    NaN with a reason: no tuple (for a choice model, no item) was judged by two annotators; constant scores;
    errors as large as the scores' variance; for a choice model, more than 2000 items connected by judgments.
    Raises InputError if an item of the benchmark was not judged, if no method with its default options
    reproduces all scores within 0.005, or for copies of judgments (`bws.copies`).
    Judgments of other dialogues are ignored, except in the estimation of a choice model's prior, as for the
    scores.

    >>> from giccs.benchmark import read_benchmark
    >>> sample = read_benchmark("giccs-sample")
    >>> ceiling = noise_ceiling(load_judgments(sample), sample)
    >>> 0.9 < ceiling["pearson"].low < ceiling["pearson"].value < 1
    True
    """
    judged_data = judged_items(judgments, benchmark)
    canonical, index, dialogue, method = (
        judged_data.canonical,
        judged_data.index,
        judged_data.dialogue,
        judged_data.method,
    )
    extra = {
        "data": benchmark.fingerprint,
        "annotators": len(canonical.annotators),
        "equal_dialogue_means": _has_equal_means(judged_data, benchmark),
        "method": method,
        "scale": judged_data.scale,
    }
    log.debug(
        "noise ceiling: %s, %d annotators, %d items", method, len(canonical.annotators), len(index)
    )
    items: Items | None = None
    reason = _undefined_reason(canonical, benchmark, method)
    if not reason and method == "counting":
        used_judgments, items = canonical, CountedItems.of(canonical, index, dialogue, seed)
    elif not reason:
        used_judgments = judgments.canonical  # The prior is estimated from all of them.
        used_index = canonical_index(used_judgments, judgments, judged_data.original_index)
        blocks = _annotator_blocks(used_judgments)
        items = ModelledItems.of(
            used_judgments, used_index, dialogue, method, judged_data.scale, blocks, seed
        )
        reason = "" if items else TOO_MANY_CONNECTED
    if items is None or (reason := items.no_ceiling):
        undefined = Estimate(math.nan, math.nan, math.nan, len(index), reason)
        return {
            name: replace(undefined, extra={"reliability": math.nan, **extra})
            for name in COEFFICIENTS
        }
    between = _variance_between_annotators(items, _annotator_blocks(used_judgments))
    remark = "; ".join(_remarks(judged_data))
    return {
        name: replace(estimate, extra={"reliability": estimate.value**2, **extra})
        for name, estimate in _with_intervals(items, between, remark).items()
    }


COEFFICIENTS = ("pearson", "spearman")


def _with_intervals(items: Items, between: tuple[Floats, int], remark: str) -> dict[str, Estimate]:
    """Return the ceilings with their intervals. between: the result of `_variance_between_annotators`."""
    ceilings = items.ceilings()
    n, n_dialogues = len(items.score), int(items.dialogue.max()) + 1
    changes = np.empty((0, 2))
    df = 0
    if few := too_few_clusters_note(n_dialogues, "dialogues"):
        remark = "; ".join(filter(None, [remark, few]))
    else:
        changes, df = _changes_without_dialogues(items)
        if not np.isfinite(changes).all():
            undefined_reason = note(
                "without some dialogues, the scores have no errors or only errors: no interval"
            )
            remark, changes = "; ".join(filter(None, [remark, undefined_reason])), changes[:0]
    return {
        name: Estimate(
            value, *_interval(value, change, df, (added_variance, between[1])), n, remark
        )
        for name, value, change, added_variance in zip(
            COEFFICIENTS, ceilings.tolist(), changes.T, between[0].tolist(), strict=True
        )
    }


def _changes_without_dialogues(items: Items) -> tuple[Floats, int]:
    """Return changes (B, 2) of log(1 - ceiling^2) without each block of dialogues, and degrees of freedom.

    Over all items some means are constant by design. The effects of blocks on these means are removed by
    least squares.
    """
    block = items.dialogue % MAX_DIALOGUE_BLOCKS
    resamples = [items.select(block != b) for b in range(int(block.max()) + 1)]
    with np.errstate(divide="ignore"):
        values = np.log(1 - np.array([resample.ceilings() for resample in resamples]) ** 2)
    values -= values.mean(axis=0)
    if not np.isfinite(values).all():
        return values, 0
    means = np.array([part.constants for part in resamples])
    means -= means.mean(axis=0)
    means[np.abs(means) < CONSTANT_TOLERANCE] = 0.0
    weights, _, rank, _ = np.linalg.lstsq(means, values, rcond=None)
    return (values - means @ weights) * items.feedback, len(resamples) - 1 - int(rank)


def _interval(
    value: float, changes: Floats, df: int, between: tuple[float, int]
) -> tuple[float, float]:
    """Return the 95 % interval of a ceiling.

    changes, df: the result of `_changes_without_dialogues`; between: that of `_variance_between_annotators`.
    """
    if not len(changes):
        return math.nan, math.nan
    n, (annotator_variance, annotator_df) = len(changes), between
    dialogue_variance = float((n - 1) ** 2 / (n * df) * np.sum(changes**2))
    variance = dialogue_variance + annotator_variance
    if not variance:
        return value, value
    total_df = variance**2 / (
        dialogue_variance**2 / df + annotator_variance**2 / max(annotator_df, 1)
    )
    half = float(t_quantile(np.array(total_df))) * math.sqrt(variance)
    middle = math.log(1 - value**2)
    low, high = (math.sqrt(max(0.0, 1 - math.exp(middle + shift))) for shift in (half, -half))
    return low, high


def _variance_between_annotators(items: Items, block_of: Ints) -> tuple[Floats, int]:
    """Return the variance (2,) of log(1 - ceiling^2) between annotators, and its degrees of freedom.

    A jackknife: the squared change of the mean error without an annotator, less that of its parts in
    each dialogue, which the jackknife over dialogues has. 0 where it is below.
    """
    item_changes = items.without_annotators(block_of)
    blocks, n = len(item_changes), len(items.score)
    if blocks < 2:
        return np.zeros(2), 0
    dialogue_changes = np.zeros((blocks, int(items.dialogue.max()) + 1, 2))
    for item in range(n):
        dialogue_changes[:, items.dialogue[item]] += item_changes[:, item]
    centred = dialogue_changes - dialogue_changes.mean(axis=0)
    squares = np.sum(centred.sum(axis=1) ** 2, axis=0) - np.sum(centred**2, axis=(0, 1))
    return np.maximum((blocks - 1) / blocks * squares, 0.0), blocks - 1


def _annotator_blocks(judgments: CanonicalJudgments) -> Ints:
    """Return (A,) the block of each annotator, independent of their names."""
    return np.argsort(np.argsort(_annotator_digests(judgments))) % MAX_ANNOTATOR_BLOCKS


def _remarks(judged_data: JudgedItems) -> Iterator[str]:
    """Yield remarks on the annotators and the design for readers of the ceiling."""
    if judged_data.n_anonymous:
        yield note(
            "{n:d} of {total:d} judgments have no annotator: the error excludes persistent differences "
            "between annotators, and the ceiling may be too high",
            n=judged_data.n_anonymous,
            total=len(judged_data.canonical),
        )
    elif few := uneven_clusters_note(judged_data.canonical.annotator_of, "annotators"):
        yield few
    if not judged_data.has_tuples_within_dialogues:
        yield ACROSS_DIALOGUES_REMARK
    appearances = judged_data.canonical.counts.appearances[judged_data.index]
    per_item = float(appearances.mean())
    if appearances.std() > MAX_UNEVENNESS * per_item:
        yield note(
            "items were judged between {fewest:d} and {most:d} times: the interval is approximate, and the "
            "ceiling may be too high by more than 0.005",
            fewest=appearances.min(),
            most=appearances.max(),
        )
    if judged_data.method != "counting" and per_item < MIN_JUDGMENTS_PER_ITEM:
        yield note(
            "{mean:.1f} judgments per item: below {enough:d}, the ceiling of a choice model may be too low "
            "by more than 0.005",
            mean=per_item,
            enough=MIN_JUDGMENTS_PER_ITEM,
        )


def _undefined_reason(judgments: CanonicalJudgments, benchmark: Benchmark, method: str) -> str:
    annotators = np.where(
        judgments.annotator_of < 0, -1 - np.arange(len(judgments)), judgments.annotator_of
    )
    pairs = np.unique(np.stack([judgments.tuple_of, annotators]), axis=1)
    if method == "counting" and np.bincount(pairs[0]).max() < 2:
        return note(
            "no tuple was judged by two annotators, so the errors of the scores are unknown"
        )
    if method != "counting" and judgments.n_controls:
        return note("scores of a choice model with control items have none; use counting")
    if len(benchmark.items) < MIN_ITEMS or is_constant([item.score for item in benchmark.items]):
        return note("the scores are constant, or there are fewer than three")
    return ""


def _has_equal_means(judged_data: JudgedItems, benchmark: Benchmark) -> bool:
    """Return whether the scores of all dialogues with two or more items have the same mean.

    For a choice model, the utilities are compared; they do if all tuples have items of one dialogue.
    """
    sizes = np.bincount(judged_data.dialogue)
    if len(sizes) < 2 or sizes.min() < 2:
        return False
    if judged_data.method != "counting":
        return judged_data.has_tuples_within_dialogues
    scores = np.array([item.score for item in benchmark.items])
    return bool(np.ptp(np.bincount(judged_data.dialogue, scores) / sizes) <= ROUNDING)


def explain_ceiling(ceiling: Mapping[str, Estimate]) -> list[str]:
    """Return sentences that explain a ceiling; empty if no coefficient has one.

    >>> estimate = Estimate(0.9, 0.8, 0.95, 30, extra={"reliability": 0.81, "equal_dialogue_means": True})
    >>> len(explain_ceiling({"pearson": estimate}))
    2
    """
    extras = [estimate.extra for estimate in ceiling.values() if not math.isnan(estimate.value)]
    if not extras:
        return []
    method = extras[0].get("method", "counting")
    is_choice_model = method != "counting"
    sentences = [
        note(CEILING_NOTE),
        *([note(CHOICE_MODEL_NOTE, method=method)] if is_choice_model else []),
    ]
    if any(extra.get("equal_dialogue_means") for extra in extras):
        sentences.append(
            note(EQUAL_MEANS_NOTE, values="utilities" if is_choice_model else "scores")
        )
    return sentences


def judgments_digest(judgments: Judgments) -> str:
    """Return the SHA-256 of the judgments, independent of the annotators' names."""
    canonical = judgments.canonical
    controls = [canonical.n_controls] if canonical.n_controls else []
    texts = repr(
        [canonical.k, canonical.groups, canonical.items, canonical.group_of.tolist(), *controls]
    )
    state = hashlib.sha256(texts.encode("utf-8"))
    state.update(canonical.members.astype("<i4").tobytes())
    anonymous = _rows_digest(canonical, canonical.annotator_of < 0)
    for rows_digest in [anonymous, *sorted(_annotator_digests(canonical))]:
        state.update(rows_digest.encode("ascii"))
    return state.hexdigest()


def _annotator_digests(judgments: CanonicalJudgments) -> list[str]:
    """Return SHA-256 of each annotator's judgments."""
    return [
        _rows_digest(judgments, judgments.annotator_of == a)
        for a in range(len(judgments.annotators))
    ]


def _rows_digest(judgments: CanonicalJudgments, rows: NDArray[np.bool_]) -> str:
    columns = np.stack([judgments.tuple_of[rows], judgments.best[rows], judgments.worst[rows]])
    return hashlib.sha256(columns.astype("<i4").tobytes()).hexdigest()


def ceiling_path(folder: str | os.PathLike[str], fingerprint: str) -> Path:
    """Return the file in a results folder that stores the ceiling of a benchmark."""
    return Path(folder) / "ceiling" / f"{fingerprint[:12]}.json"


def read_ceiling(
    folder: str | os.PathLike[str],
    fingerprint: str,
    judgments_sha256: str | None,
    notify: Note = log.debug,
) -> Ceiling | None:
    """Return the stored ceiling of a benchmark in a results folder, or None.

    judgments_sha256: `judgments_digest` of the judgments behind the scores; None if they are unavailable. A
    file that is damaged, or of another benchmark, other judgments or another version of the method, is
    ignored with a note.
    """
    expected: dict[str, Any] = {"data": fingerprint, "method": METHOD, "seed": SEED}
    if judgments_sha256 is not None:
        expected["judgments"] = judgments_sha256
    stored = read_stored(ceiling_path(folder, fingerprint), "ceiling", expected, notify)
    return stored and read_estimates(stored)


def read_stored(
    path: Path, name: str, expected: Mapping[str, Any], notify: Note
) -> dict[str, Any] | None:
    """Return a part of a file of `write_stored` with the expected signature, or None with a note."""
    if not path.exists():
        return None
    try:
        document = json.loads(read_text(path))
        signature, content = document["signature"], document[name]
        is_intact = document["sha256"] == digest({"signature": signature, name: content})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        is_intact = False
    if not is_intact:
        notify(f"{path} is damaged and ignored")
        return None
    differing = [key for key in expected if signature.get(key) != expected[key]]
    if differing:
        notify(f"{path} is ignored: different {', '.join(differing)}")
        return None
    return dict(content)


def write_stored(
    path: Path, name: str, signature: Mapping[str, Any], content: Mapping[str, Any], notify: Note
) -> None:
    """Write a signature and a part of this name; if the folder is not writable, a note is added."""
    document = {"signature": {**signature}, name: {**content}}
    text = json.dumps(json_ready({**document, "sha256": digest(document)}), indent=2)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, f"{text}\n")
    except OSError as error:
        notify(f"the noise ceiling is not stored: {error}")


def cached_ceiling(
    folder: str | os.PathLike[str], judgments: Judgments, benchmark: Benchmark, notify: Note
) -> Ceiling:
    """Return the stored noise ceiling of these judgments, or compute and store it.

    Raises InputError as in `noise_ceiling`. If the folder is not writable, a note is added.
    """
    judgments.check_no_copies()
    judgments_sha256 = judgments_digest(judgments)
    stored = read_ceiling(folder, benchmark.fingerprint, judgments_sha256, notify)
    if stored is not None:
        return stored
    ceiling = noise_ceiling(judgments, benchmark, seed=SEED)
    signature = {
        "data": benchmark.fingerprint, "judgments": judgments_sha256, "method": METHOD, "seed": SEED,
    }  # fmt: skip
    estimates = {name: estimate.document() for name, estimate in ceiling.items()}
    path = ceiling_path(folder, benchmark.fingerprint)
    write_stored(path, "ceiling", signature, estimates, notify)
    return ceiling
