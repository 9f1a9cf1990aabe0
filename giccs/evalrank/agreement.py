"""Correlation of model similarities with human ratings (EvalRank, sections 3 and 5).

Word similarity (5.1): the paper reports Spearman's rho per set and no mean. Here each set is a group, and the
overall metric is the unweighted mean over sets. "The word similarity datasets with less than 200 pairs are
not selected to avoid evaluation occasionality" (5.1): sets with fewer than 200 pairs of known words are
excluded from the mean and listed. Word vectors are looked up in the original spelling, then in lower case
("Jerusalem"; see `giccs.models.static`). Pairs with an unknown word are excluded and counted.

Sentence similarity, also by level (Figure 2): the paper draws 3,000 pairs per level; here all pairs of a
level are used, and their number is reported. Levels require scores from 0 to 5, so other scales are mapped to
it (3.4 on SICK's scale from 1 to 5 becomes 3); correlations are not affected. A file without a known scale is
assumed to use 0 to 5 if its scores are between 0 and 5 and some are above 4, with a warning; other such files
have no levels. With several sets, such as STS12 to STS16, the overall metric is the unweighted mean over
sets. If all sets have the same scale, the group ``pairs=all`` is the correlation over all their pairs. Papers
report either for STS12 to STS16.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bws.base.frames import Source
from bws.base.notes import note
from bws.base.problems import InputError, Problem
from bws.stats.estimates import Estimate
from giccs.evalrank.correlation_intervals import (
    PairCorrelation,
    estimate_correlation,
    estimate_mean_correlation,
    pearson,
    spearman,
)
from giccs.evalrank.similarity_data import SimilarityData, SimilaritySet, read_similarity
from giccs.evalrank.vector_cache import cached_vectors
from giccs.measures.results import Group, TaskOutput
from giccs.models.abilities import PairModel, VectorModel
from giccs.progress import Progress, silent
from giccs.tasks import DEFAULT_SIMILARITY, ResultKind, TaskKind, TaskOptions
from giccs.tasks.refusals import missing_ability_reason

if TYPE_CHECKING:
    import polars

Floats = NDArray[np.float64]
LEVELS = ((5.0, 3.0), (4.0, 2.0), (3.0, 1.0), (2.0, 0.0))
"""Similarity levels of Figure 2: upper and lower score, both inclusive, on a scale from 0 to 5."""
MAX_SCORE = 5.0
MAX_CLASSES = 3
"""Maximum number of distinct scores that look like labels of classes, as of natural language inference."""
MIN_KNOWN_PAIRS = 200
"""Minimum number of pairs of known words for a set to be included in means and correlations (5.1)."""
MEASURES: dict[str, Callable[[Floats, Floats], PairCorrelation]] = {
    "spearman": spearman,
    "pearson": pearson,
}


@dataclass(frozen=True, slots=True)
class Agreement:
    """Correlation of a model's similarities with ratings, per set, averaged over sets, and by level.

    Pairs are excluded and counted if a text has no vector (NaN) or, with the cosine, a zero vector. Intervals
    account for texts shared between pairs; see `giccs.evalrank.correlation_intervals`.
    """

    name: str
    similarity: str = "cos"
    levels: bool = False
    """Whether to correlate by similarity level as well, for sets with a known scale."""
    pooled: bool = False
    """Whether to correlate over the pairs of all sets as well, if these have the same scale."""
    min_known_pairs: int = 0
    """Minimum number of pairs of known texts for a set to be included in the mean."""
    read: Callable[[Source], SimilarityData] = read_similarity
    default_data: str = ""

    def __post_init__(self) -> None:
        if self.similarity not in SIMILARITY_FUNCTIONS:
            expected = " or ".join(SIMILARITY_FUNCTIONS)
            message = f"unsupported by {self.name}; expected {expected}"
            raise InputError(Problem(f"similarity {self.similarity}", None, message))

    def refuses(self, model: Any) -> str:
        """Return why the model is unsuitable, with a remedy, or an empty string."""
        if isinstance(model, VectorModel):
            return ""
        reason = missing_ability_reason(model, PairModel, self.name)
        if reason or self.similarity == "cos":
            return reason
        return f"has no vectors; {self.name} requires them for l2; use --similarity cos"

    def parameters(self, model: Any, data: SimilarityData) -> dict[str, Any]:
        """Return the settings that the metrics depend on, besides model, data and version."""
        own_scores = not isinstance(model, VectorModel)
        return {
            "compared": "the model's own pair_scores" if own_scores else self.similarity,
            "setting": "own" if own_scores else self.similarity,
            "asked": {"similarity": self.similarity},
            "unknown": "left out",
            "interval": "dyadic-robust, Fisher's z",
            **({"levels": f"{LEVELS}, of scores on 0 to 5"} if self.levels else {}),
            **self._set_parameters(data),
        }

    def _set_parameters(self, data: SimilarityData) -> dict[str, Any]:
        """Return the settings of the aggregation over sets; empty for a single set."""
        if len(data.sets) == 1:
            return {}
        mean = {"mean": f"sets of at least {self.min_known_pairs} known pairs"}
        pooled = {"pooled": "all pairs"}
        return {
            **(mean if self.min_known_pairs else {}),
            **(pooled if self.pooled and _have_same_scale(data.sets) else {}),
        }

    def measure(self, model: Any, data: SimilarityData, progress: Progress = silent) -> TaskOutput:
        """Compute the model's similarity of each pair and correlate the similarities with the ratings."""
        import polars

        tables = [_SetTable(similarity_set) for similarity_set in data.sets]
        predictions = self._similarities(model, tables, progress)
        groups: list[Group] = []
        for table, prediction in zip(tables, predictions, strict=True):
            groups += self._groups(table, prediction, several=len(tables) > 1)
        if self.pooled and len(tables) > 1 and _have_same_scale(data.sets):
            groups.append(Group({"pairs": "all"}, _correlate(tables, predictions)))
        return TaskOutput(
            metrics=_correlate_all(tables, predictions, self.min_known_pairs),
            groups=tuple(groups),
            predictions=polars.concat(
                table.predictions(prediction)
                for table, prediction in zip(tables, predictions, strict=True)
            ),
        )

    def _similarities(
        self, model: Any, tables: Sequence[_SetTable], progress: Progress
    ) -> list[Floats]:
        """Return the similarities of the pairs of each set; each distinct text is encoded once."""
        left = [text for table in tables for text in table.left]
        right = [text for table in tables for text in table.right]
        if isinstance(model, VectorModel):
            texts = list(dict.fromkeys([*left, *right]))
            vectors = cached_vectors(model, texts, progress).astype(np.float64)
            row = {text: index for index, text in enumerate(texts)}
            a, b = (vectors[[row[text] for text in side]] for side in (left, right))
            similarities = SIMILARITY_FUNCTIONS[self.similarity](a, b)
        else:
            similarities = np.asarray(model.pair_scores(left, right, progress), dtype=np.float64)
        return np.split(similarities, np.cumsum([len(table.score) for table in tables])[:-1])

    def _groups(self, table: _SetTable, prediction: Floats, *, several: bool) -> Iterator[Group]:
        by = {"set": table.similarity_set.name} if several else {}
        if several:
            yield Group(by, _correlate([table], [prediction]))
        if self.levels and table.similarity_set.scale is not None:
            for name, rows in _rows_by_level(table.score, table.similarity_set.scale):
                yield Group({**by, "level": name}, _correlate([table], [prediction], [rows]))


class _SetTable:
    """Columns of a similarity set."""

    def __init__(self, similarity_set: SimilaritySet) -> None:
        self.similarity_set = similarity_set
        self.left = [pair.text1 for pair in similarity_set.pairs]
        self.right = [pair.text2 for pair in similarity_set.pairs]
        self.score = np.array([pair.score for pair in similarity_set.pairs], dtype=np.float64)

    def predictions(self, prediction: Floats) -> polars.DataFrame:
        import polars

        return polars.DataFrame(
            {
                "set": [self.similarity_set.name] * len(self.score),
                "text1": self.left,
                "text2": self.right,
                "prediction": prediction,
                "score": self.score,
            }
        )


def _cosine(a: Floats, b: Floats) -> Floats:
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    usable = np.isfinite(norms) & (norms > 0)
    dot = np.einsum("nd,nd->n", a, b)
    return np.where(usable, dot / np.where(usable, norms, 1.0), np.nan)


def _inverse_distance(a: Floats, b: Floats) -> Floats:
    """Return 1 / (1 + Euclidean distance) (section 4.2)."""
    near: Floats = 1 / (1 + np.linalg.norm(a - b, axis=1))
    return near


SIMILARITY_FUNCTIONS = {"cos": _cosine, "l2": _inverse_distance}


def _rows_by_level(
    score: Floats, scale: tuple[float, float]
) -> Iterator[tuple[str, NDArray[np.intp]]]:
    low, high = scale
    scaled_scores = np.round(
        (score - low) / (high - low) * MAX_SCORE, 9
    )  # 3.4 of 1 … 5 is 3, not 2.9999999999999996
    for upper, lower in LEVELS:
        rows = np.flatnonzero((lower <= scaled_scores) & (scaled_scores <= upper))
        yield level_name(upper, lower), rows


def level_name(upper: float, lower: float) -> str:
    """Return the name of a level as in Figure 2.

    >>> level_name(*LEVELS[0])
    '[5, 3]'
    """
    return f"[{upper:g}, {lower:g}]"


def _have_same_scale(sets: Sequence[SimilaritySet]) -> bool:
    scales = {similarity_set.scale for similarity_set in sets}
    return len(scales) == 1 and None not in scales


def _correlate(
    tables: Sequence[_SetTable],
    predictions: Sequence[Floats],
    rows: Sequence[NDArray[np.intp]] | None = None,
) -> dict[str, Estimate]:
    """Return all correlations over the rows of all sets together, excluding rows without a prediction."""
    rows = rows or [np.arange(len(prediction)) for prediction in predictions]
    row_sets = [
        of_set[~np.isnan(prediction[of_set])]
        for of_set, prediction in zip(rows, predictions, strict=True)
    ]
    left, right = (np.concatenate(side) for side in _number_texts(tables, row_sets))
    x = np.concatenate(
        [values[kept_rows] for values, kept_rows in zip(predictions, row_sets, strict=True)]
    )
    y = np.concatenate(
        [table.score[kept_rows] for table, kept_rows in zip(tables, row_sets, strict=True)]
    )
    n_left_out = sum(map(len, rows)) - len(x)
    return {
        name: _with_note(
            estimate_correlation(measure(x, y), left, right), _left_out_note(n_left_out), n_left_out
        )
        for name, measure in MEASURES.items()
    }


def _correlate_all(
    tables: Sequence[_SetTable], predictions: Sequence[Floats], min_known_pairs: int
) -> dict[str, Estimate]:
    """Return all correlations, averaged over sets if there are several.

    Sets with fewer than `min_known_pairs` known pairs are excluded from the mean.
    """
    if len(tables) == 1:
        return _correlate(tables, predictions)
    known_by_set = [np.flatnonzero(~np.isnan(prediction)) for prediction in predictions]
    all_subsets = list(zip(tables, predictions, known_by_set, strict=True))
    subsets = [subset for subset in all_subsets if len(subset[2]) >= min_known_pairs]
    small_sets = [
        table.similarity_set.name
        for table, _, known_rows in all_subsets
        if len(known_rows) < min_known_pairs
    ]
    left, right = _number_texts(
        [table for table, *_ in subsets], [known_rows for *_, known_rows in subsets]
    )
    n_left_out = sum(len(prediction) - len(known_rows) for _, prediction, known_rows in subsets)
    remark = "; ".join(
        filter(
            None,
            [
                _small_sets_note(small_sets, len(tables), min_known_pairs),
                _left_out_note(n_left_out),
            ],
        )
    )
    estimates = {}
    for name, measure in MEASURES.items():
        set_correlations = [
            measure(prediction[rows], table.score[rows]) for table, prediction, rows in subsets
        ]
        estimates[name] = _with_note(
            estimate_mean_correlation(set_correlations, left, right), remark, n_left_out
        )
    return estimates


def _small_sets_note(names: Sequence[str], n_sets: int, min_known_pairs: int) -> str:
    if not names:
        return ""
    return note(
        "{n:d} of {total:d} sets excluded from the mean (fewer than {least:d} known pairs): {names}",
        n=len(names),
        total=n_sets,
        least=min_known_pairs,
        names=", ".join(names),
    )


def _number_texts(
    tables: Sequence[_SetTable], rows: Sequence[NDArray[np.intp]]
) -> tuple[list[NDArray[np.intp]], list[NDArray[np.intp]]]:
    """Return the numbers of the left and of the right texts of the given rows of each set."""
    number_by_text: dict[str, int] = {}

    def number_side(side: Sequence[str], rows: NDArray[np.intp]) -> NDArray[np.intp]:
        texts = (side[row] for row in rows.tolist())
        return np.array(
            [number_by_text.setdefault(text, len(number_by_text)) for text in texts], dtype=np.intp
        )

    tables_and_rows = list(zip(tables, rows, strict=True))
    return [number_side(table.left, table_rows) for table, table_rows in tables_and_rows], [
        number_side(table.right, table_rows) for table, table_rows in tables_and_rows
    ]


def _left_out_note(count: int) -> str:
    if not count:
        return ""
    return note("{n:d} pairs excluded: the model has no vector for a text", n=count)


def _with_note(estimate: Estimate, remark: str, count: int) -> Estimate:
    reason = "; ".join(filter(None, [estimate.reason, remark]))
    return Estimate(
        estimate.value, estimate.low, estimate.high, estimate.n, reason,
        {**estimate.extra, "left_out": count},
    )  # fmt: skip


def _read_sentences(data: Source) -> SimilarityData:
    """Read rated pairs with `read_similarity`, assuming the scale 0 to 5 for sets whose scores fit it."""
    similarity_data = read_similarity(data)
    sets, warnings = [], list(similarity_data.warnings)
    for similarity_set in similarity_data.sets:
        scores = {pair.score for pair in similarity_set.pairs}
        if len(scores) <= MAX_CLASSES < len(similarity_set.pairs):
            values = ", ".join(f"{score:g}" for score in sorted(scores))
            message = f"the only scores are {values}; labels of classes are no similarities"
            warnings.append(_set_problem(similarity_data, similarity_set, message))
        if similarity_set.scale is None:
            is_zero_to_five = min(scores) >= 0 and MAX_SCORE - 1 < max(scores) <= MAX_SCORE
            span = f"scores from {min(scores):g} to {max(scores):g} are used as they are"
            message = (
                "the scale is assumed to be 0 to 5"
                if is_zero_to_five
                else f"{span}; the scale is unknown; levels are omitted"
            )
            warnings.append(_set_problem(similarity_data, similarity_set, message))
            similarity_set = replace(
                similarity_set, scale=(0.0, MAX_SCORE) if is_zero_to_five else None
            )
        sets.append(similarity_set)
    return replace(similarity_data, sets=tuple(sets), warnings=tuple(warnings))


def _set_problem(data: SimilarityData, similarity_set: SimilaritySet, message: str) -> Problem:
    return Problem(data.name, None, f"{similarity_set.name}: {message}")


def _word_similarity(options: TaskOptions) -> list[Agreement]:
    return [
        Agreement(
            "word-similarity",
            options.similarity or DEFAULT_SIMILARITY,
            min_known_pairs=MIN_KNOWN_PAIRS,
        )
    ]


def _sentence_similarity(options: TaskOptions) -> list[Agreement]:
    return [
        Agreement(
            "sentence-similarity",
            options.similarity or DEFAULT_SIMILARITY,
            levels=True,
            pooled=True,
            read=_read_sentences,
        )
    ]


RESULTS = ResultKind("metrics", item_columns=("prediction", "score"))
WORD_SIMILARITY = TaskKind(_word_similarity, ("similarity",), RESULTS)
SENTENCE_SIMILARITY = TaskKind(_sentence_similarity, ("similarity",), RESULTS)
