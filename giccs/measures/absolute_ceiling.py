"""What limits correlations of models with the scores of a benchmark with anchors, published and absolute.

Three rows of numbers follow from the draws of `bws.absolute`, each with the fingerprint of its ``data``.
``absolute_ceiling``: the noise ceiling of absolute scores. ``ipsative_limit``: correlations over all items of
published scores with a model that knows the absolute ones. ``within_ceiling``: the ceiling of the published
scores within dialogues. They are computed once and stored with the results.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bws.base.problems import InputError, Problem
from bws.records import Judgments, Scores
from giccs.benchmark import SAMPLES, Benchmark, sample_file
from giccs.benchmark.items import ABSOLUTE_TARGET
from giccs.measures.ceiling import (
    Ceiling,
    Note,
    judgments_digest,
    log,
    read_stored,
    write_stored,
)
from giccs.measures.judged_items import item_keys
from giccs.measures.results import Limits, read_estimates

if TYPE_CHECKING:
    from bws.absolute.files import Anchors
    from bws.absolute.scores import AbsoluteScale

METHOD = "draws 1"
"""Name and version of the method, changed whenever its numbers change."""
ROWS = ("absolute_ceiling", "ipsative_limit", "within_ceiling")
TOLERANCE = 4.5
"""Largest root mean square of the differences of absolute scores of a benchmark from those of its anchors, in
Monte-Carlo errors: with another seed, or other names of people, it is 1.4."""
OVER_ALL_ITEMS = ("pearson", "spearman")


def load_anchors(
    benchmark: Benchmark, path: str | os.PathLike[str] | None = None
) -> Anchors | None:
    """Return the anchors in a file; without a file those of a sample, or None."""
    from bws.absolute.files import read_anchors

    if path is not None:
        return read_anchors(path)
    if benchmark.name not in SAMPLES:
        return None
    with sample_file(benchmark.name, "anchors.csv") as sample_path:
        return read_anchors(sample_path)


def absolute_limits(
    judgments: Judgments,
    anchors: Anchors,
    benchmark: Benchmark,
    scale: AbsoluteScale | None = None,
) -> Limits:
    """Return what limits correlations with the two kinds of scores of a benchmark.

    scale: that of the judgments, anchors and published scores, if it has been computed.

    Raises InputError if the absolute scores of the benchmark are not those of the judgments and anchors, if
    it has some of their items only, and as `bws.absolute.scores.absolute_scale`.

    >>> from giccs.benchmark import read_benchmark
    >>> from giccs.measures.ceiling import load_judgments
    >>> sample = read_benchmark("giccs-sample")
    >>> limits = absolute_limits(load_judgments(sample), load_anchors(sample), sample)
    >>> {name: round(limit.get("spearman", limit.get("rank_spearman")).value, 2)
    ...  for name, limit in limits.items()}
    {'absolute_ceiling': 0.98, 'ipsative_limit': 0.79, 'within_ceiling': 0.99}
    """
    from bws.absolute.scores import absolute_scale

    absolute = benchmark.with_target(ABSOLUTE_TARGET)
    keys = item_keys(benchmark, grouped=any(judgments.tuples.groups))
    scores = published_scores(judgments, benchmark)
    scale = scale or absolute_scale(judgments, anchors, scores)
    score_of = dict(zip(scale.keys, scale.score.tolist(), strict=True))
    expected = np.array([score_of.get(key, np.nan) for key in keys])
    difference = float(np.sqrt(np.mean((expected - [item.score for item in absolute.items]) ** 2)))
    limit = TOLERANCE * scale.monte_carlo_error
    if not difference <= limit:
        message = (
            f"its absolute scores differ from those of {anchors.file} by {difference:.3f} (root mean "
            f"square); expected at most {limit:.3f}, as with another seed: the anchors behind them"
        )
        raise InputError(Problem(benchmark.name, None, message))
    published, n_dialogues = scale.limits, len(benchmark.dialogue_ids)
    over_all = {name: published[name] for name in OVER_ALL_ITEMS}
    within = {"rank_spearman": published["rank_spearman"]}
    rows = {
        "absolute_ceiling": (absolute, scale.ceilings),
        "ipsative_limit": (benchmark, over_all),
        "within_ceiling": (benchmark, within),
    }
    return {
        row: {
            name: replace(
                estimate,
                n=n_dialogues if name == "rank_spearman" else len(keys),
                extra={"data": data.fingerprint},
            )
            for name, estimate in estimates.items()
        }
        for row, (data, estimates) in rows.items()
    }


def published_scores(judgments: Judgments, benchmark: Benchmark) -> Scores:
    """Return the scores of a benchmark for the items of judgments; raise InputError if some are missing."""
    from bws.scoring import score

    keys = item_keys(benchmark, grouped=any(judgments.tuples.groups))
    score_of = dict(zip(keys, [item.score for item in benchmark.items], strict=True))
    scores = score(judgments)
    scores = replace(
        scores, score=np.array([score_of.get(key, np.nan) for key in scores.item_keys])
    )
    if n_missing := int(np.isnan(scores.score).sum()):
        message = (
            f"has no score of {n_missing} of {len(scores)} items of the judgments; expected all"
        )
        raise InputError(Problem(benchmark.name, None, message))
    return scores


def cached_limits(
    folder: str | os.PathLike[str],
    judgments: Judgments,
    anchors: Anchors,
    benchmark: Benchmark,
    notify: Note = log.debug,
    *,
    scale: AbsoluteScale | None = None,
) -> Limits:
    """Return the stored limits of these judgments and anchors, or compute and store them.

    scale: as in `absolute_limits`, which raises InputError. If the folder is not writable, a note is added.
    """
    absolute = benchmark.with_target(ABSOLUTE_TARGET).fingerprint
    signature = {
        "data": benchmark.fingerprint, "absolute": absolute, "judgments": judgments_digest(judgments),
        "anchors": _digest(anchors), "method": METHOD,
    }  # fmt: skip
    path = Path(folder) / "ceiling" / f"{absolute[:12]}-absolute.json"
    stored = read_stored(path, "limits", signature, notify)
    if stored is not None:
        return read_limits(stored)
    limits = absolute_limits(judgments, anchors, benchmark, scale)
    write_stored(path, "limits", signature, limits_document(limits), notify)
    return limits


def stored_limits(
    folder: str | os.PathLike[str], fingerprints: Iterable[str], notify: Note = log.debug
) -> Limits:
    """Return the limits stored in a results folder for data with one of the fingerprints; none if several."""
    known = set(fingerprints)
    found = []
    for path in sorted(Path(folder).glob("ceiling/*-absolute.json")):
        stored = read_stored(path, "limits", {"method": METHOD}, notify)
        limits = read_limits(stored or {})
        data = {estimate.extra.get("data") for row in limits.values() for estimate in row.values()}
        found += [limits] if data & known else []
    if len(found) > 1:
        notify(
            f"{len(found)} data sets have stored ceilings of absolute scores; select one with --judgments, "
            "--absolute and --data"
        )
    return found[0] if len(found) == 1 else {}


def with_within_ceiling(ceiling: Ceiling | None, limits: Limits) -> Ceiling | None:
    """Return a noise ceiling of published scores with that within dialogues, if they are of the same data."""
    within = limits.get("within_ceiling", {})
    data = {estimate.extra.get("data") for estimate in (ceiling or {}).values()}
    same = {name: estimate for name, estimate in within.items() if estimate.extra["data"] in data}
    return {**ceiling, **same} if ceiling else ceiling


def limits_document(limits: Limits) -> dict[str, dict[str, Any]]:
    """Return the limits in JSON form."""
    return {
        row: {name: estimate.document() for name, estimate in estimates.items()}
        for row, estimates in limits.items()
    }


def read_limits(document: Mapping[str, Any]) -> Limits:
    """Return the limits in a document of `limits_document`, perhaps with other keys."""
    return {row: read_estimates(document[row]) for row in ROWS if row in document}


def _digest(anchors: Anchors) -> str:
    """Return the SHA-256 of the anchors, independent of their order."""
    rows = sorted(
        [row.group, row.item, row.annotator, row.kind, row.answer] for row in anchors.rows
    )
    return hashlib.sha256(repr(rows).encode("utf-8")).hexdigest()
