"""Pairwise STS (paper section 5.1.1, Table 5): similarity of each candidate to the last turn."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bws.base.problems import InputError, Problem
from bws.stats.estimates import Estimate
from giccs.benchmark import SAMPLE, Benchmark, read_benchmark
from giccs.benchmark.items import Item
from giccs.benchmark.languages import base_language
from giccs.measures.clusters import CLUSTER_COLUMNS
from giccs.measures.metrics import correlations, interval_signature, order_metrics, with_excluded
from giccs.measures.results import INPUTS_KEY, Group, TaskOutput
from giccs.models.abilities import (
    LimitedModel,
    OrderedPairModel,
    PairModel,
    ServedModel,
    VectorModel,
)
from giccs.models.encoding import SIMILARITIES, fitting_pairs, side_vectors, vector_similarity
from giccs.models.shortening import first_fitting
from giccs.models.vocabulary import count_tokens
from giccs.progress import Progress, silent
from giccs.tasks import PAIR_SCORES, TaskKind, TaskOptions
from giccs.tasks.history_encoding import (
    TEMPLATES,
    check_speakers,
    mean_of_turns,
    texts_of_pair,
)
from giccs.tasks.refusals import missing_ability_reason

if TYPE_CHECKING:
    import polars

log = logging.getLogger(__name__)

HISTORIES = {"without": "{utterance}", "with": TEMPLATES["joined"]}
"""Name of a history condition -> texts on either side of a pair, by default."""
VECTOR_SIMILARITIES = {"cos": "cosine", "dot": "dot", "l2": "euclidean"}
"""Value of --similarity -> similarity of vectors; that of l2 is the negative distance."""
ORDERS = ("prediction_target_first", "prediction_candidate_first")
"""Columns of predictions per order of the texts, for models whose similarity depends on it."""
EQUAL_TOLERANCE = 1e-6
"""Maximum difference of a cosine from 1 of equal vectors in single precision."""
SUBSET_FIELDS = ("n_turns", "source", "domain", "language")


@dataclass(frozen=True, slots=True)
class PairwiseSTS:
    """Predictions compared with scores, over all items and by length, source, domain and language.

    ``without`` history is the setting of the paper: the two utterances alone. ``with`` adds the preceding
    turns to both, see `giccs.tasks.history_encoding`. If a text exceeds the maximum number of tokens of the
    model, the first turns are omitted from both texts of the pair until both fit; a pair whose utterances do
    not fit has no prediction. The similarity is that of the model (for encoders the one saved with it, or the
    cosine), or another one of its vectors. The prediction of a model whose similarity depends on the order of
    the texts (`OrderedPairModel`) is the mean of both orders; `order_metrics` compares them. `language` is
    that of items that state none.
    """

    history: str = "without"
    seed: int = 0
    resamples: int = 1000
    similarity: str | None = None
    history_encoding: str = "joined"
    language: str | None = None
    name: str = field(default="pairwise-sts", init=False)
    default_data: ClassVar[str] = SAMPLE
    read: ClassVar = staticmethod(read_benchmark)

    @property
    def setting(self) -> str:
        """Short description of the history, if there is one: ``with history (mean)``."""
        return {"": "", "joined": "with history"}.get(
            self._encoding, f"with history ({self._encoding})"
        )

    def refuses(self, model: Any) -> str:
        """Return why the model is unsuitable, with a remedy, or an empty string."""
        if not self._needs_vectors(model) or isinstance(model, VectorModel):
            return missing_ability_reason(model, PairModel, self.name)
        option = (
            "--history-encoding mean"
            if self._encoding == "mean"
            else f"--similarity {self.similarity}"
        )
        return missing_ability_reason(model, VectorModel, f"{self.name} {option}")

    def parameters(self, model: PairModel, benchmark: Benchmark) -> dict[str, Any]:
        """Return the settings that determine the metrics besides model, data and version.

        Raises InputError if `language` contradicts the items.
        """
        languages = benchmark.language_parameters(self.language)
        parameters: dict[str, Any] = {
            "history": self.history,
            "template": HISTORIES[self.history],
            "interval": interval_signature("dialogue", self.resamples, self.seed),
        }
        if self._encoding not in ("", "joined"):
            parameters["history_encoding"] = self._encoding
            parameters["template"] = TEMPLATES[self._encoding]
        if self._has_other_similarity(model):
            parameters["similarity"] = self.similarity
        return parameters | languages

    def measure(
        self, model: PairModel, benchmark: Benchmark, progress: Progress = silent
    ) -> TaskOutput:
        """Score every pair and compare the predictions with the scores."""
        benchmark = benchmark.in_language(self.language)
        items = benchmark.items
        if self._encoding == "speakers":
            check_speakers(benchmark.name, items)
        shown = self._fitting_items(model, items, progress)
        fits = np.array([item is not None for item in shown])
        similarities = self._similarities(model, [item for item in shown if item], progress)
        by_order = np.full((len(items), similarities.shape[1]), np.nan)
        by_order[fits] = similarities
        is_own = not self._has_other_similarity(model)
        if self._encoding and is_own and _may_cut_unnoticed(model):
            count_tokens(equal=_equal_pairs(items, by_order.mean(axis=1)))
        return self._compared(benchmark, by_order, fits)

    def compare_again(
        self, predictions: polars.DataFrame, benchmark: Benchmark
    ) -> TaskOutput | None:
        """Compare predictions of the same inputs with other scores; None if one is missing."""
        benchmark = benchmark.in_language(self.language)
        row_of = {item_id: row for row, item_id in enumerate(predictions["item_id"])}
        names = ORDERS if ORDERS[0] in predictions.columns else ("prediction",)
        rows = [row_of[item.item_id] for item in benchmark.items]
        by_order = predictions.select(names).to_numpy()[rows]
        if np.isnan(by_order).any():  # of a pair that does not fit, or of a vector of zeros
            return None
        return self._compared(benchmark, by_order, np.ones(len(rows), dtype=bool))

    def _compared(self, benchmark: Benchmark, by_order: np.ndarray, fits: np.ndarray) -> TaskOutput:
        """Compare (N, orders) predictions with the scores; fits: (N,) whether the texts of an item fit."""
        import polars

        items, prediction = benchmark.items, by_order.mean(axis=1)
        orders = by_order if by_order.shape[1] > 1 else None
        log.debug("%d pairs scored; measuring, %d resamples", len(items), self.resamples)
        groups = tuple(
            Group({attribute: value}, self._metrics(items, prediction, rows, fits))
            for attribute in SUBSET_FIELDS
            for value, rows in subset_rows(items, attribute)
        )
        return TaskOutput(
            metrics=self._metrics(items, prediction, range(len(items)), fits)
            | ({} if orders is None else self._order_metrics(items, orders, fits)),
            groups=groups,
            environment={**benchmark.provenance(), INPUTS_KEY: benchmark.inputs_fingerprint},
            predictions=polars.DataFrame(
                {
                    "item_id": [item.item_id for item in items],
                    "dialogue_id": [item.dialogue_id for item in items],
                    "prediction": prediction,
                    "score": [item.score for item in items],
                    **({} if orders is None else dict(zip(ORDERS, orders.T, strict=True))),
                    **{
                        name: [getattr(item, name) or "" for item in items]
                        for name in CLUSTER_COLUMNS
                    },
                }
            ),
        )

    def pair_texts(self, item: Item) -> tuple[str, str]:
        """Return the compared texts: the last turn and the candidate, both after the shown history."""
        target, candidate = texts_of_pair(item, self._encoding)
        return "\n".join(target), "\n".join(candidate)

    @property
    def _encoding(self) -> str:
        """Encoding of the history; empty without history."""
        return self.history_encoding if self.history == "with" else ""

    def _has_other_similarity(self, model: Any) -> bool:
        """Return whether another similarity than that of the model is requested.

        The cosine is also that of models of pairs, whose similarity is not one of vectors.
        """
        return self._similarity_of(model) != vector_similarity(model)

    def _similarity_of(self, model: Any) -> str:
        """Return the requested similarity of vectors, or else that of the model."""
        if self.similarity is None:
            return vector_similarity(model)
        return VECTOR_SIMILARITIES[self.similarity]

    def _needs_vectors(self, model: Any) -> bool:
        return self._has_other_similarity(model) or self._encoding == "mean"

    def _sides(self, item: Item) -> tuple[list[str], list[str]]:
        """Return the inputs of the model for the target and for the candidate, the same number each."""
        if self._encoding == "mean":
            return texts_of_pair(item, self._encoding)
        target, candidate = self.pair_texts(item)
        return [target], [candidate]

    def _fitting_items(
        self, model: Any, items: Sequence[Item], progress: Progress
    ) -> list[Item | None]:
        """Return each item with the longest history with which the model reads both texts completely.

        The history is shortened from its beginning, by whole turns; None if the utterances alone do not fit.
        """

        def fits(forms: Sequence[tuple[int, int]]) -> list[bool]:
            sides = [self._sides(_without_turns(items[row], n_omitted)) for row, n_omitted in forms]
            targets, candidates = (
                list(chain.from_iterable(side)) for side in zip(*sides, strict=True)
            )
            complete = fitting_pairs(model, targets, candidates, progress)
            starts = np.cumsum([0, *(len(target) for target, _ in sides[:-1])])
            return [*map(bool, np.logical_and.reduceat(complete, starts))]

        counts = [item.n_turns if self._encoding else 1 for item in items]
        omitted = first_fitting(counts, fits)
        count_tokens(
            too_long=omitted.count(None), shortened=sum(n not in (0, None) for n in omitted)
        )
        return [
            None if n_omitted is None else _without_turns(item, n_omitted)
            for item, n_omitted in zip(items, omitted, strict=True)
        ]

    def _similarities(self, model: Any, items: Sequence[Item], progress: Progress) -> np.ndarray:
        """Return (N, 1) similarities of items, or (N, 2) in both orders for an `OrderedPairModel`."""
        n_orders = 2 if isinstance(model, OrderedPairModel) else 1
        if not items:
            return np.empty((0, n_orders))
        if self._needs_vectors(model):
            return self._vector_similarities(model, items, progress)[:, np.newaxis]
        targets, candidates = zip(*(self.pair_texts(item) for item in items), strict=True)
        score = model.order_scores if n_orders == 2 else model.pair_scores
        similarities = np.asarray(score([*targets], [*candidates], progress), dtype=np.float64)
        return similarities.reshape(len(items), n_orders)

    def _vector_similarities(
        self, model: Any, items: Sequence[Item], progress: Progress
    ) -> np.ndarray:
        """Return (N,) similarities of the vectors of both texts."""
        sides = zip(*map(self._sides, items), strict=True)
        targets, candidates = (list(side) for side in sides)
        vectors = side_vectors(
            model, [*chain.from_iterable(targets)], [*chain.from_iterable(candidates)], progress
        )
        left, right = (
            mean_of_turns(of_side, [*map(len, side)])
            for of_side, side in zip(vectors, (targets, candidates), strict=True)
        )
        return SIMILARITIES[self._similarity_of(model)](left, right)

    def _metrics(
        self, items: Sequence[Item], prediction: np.ndarray, rows: Sequence[int], fits: np.ndarray
    ) -> dict[str, Estimate]:
        fitting = [row for row in rows if fits[row]]
        estimates = correlations(
            prediction[fitting],
            np.array([items[row].score for row in fitting]),
            _dialogue_indices([items[row] for row in fitting]),
            resamples=self.resamples,
            seed=self.seed,
            items=[items[row].item_id for row in fitting],
        )
        return with_excluded(estimates, len(rows) - len(fitting), "pairs", "an utterance")

    def _order_metrics(
        self, items: Sequence[Item], orders: np.ndarray, fits: np.ndarray
    ) -> dict[str, Estimate]:
        fitting = [row for row in range(len(items)) if fits[row]]
        estimates = order_metrics(
            orders[fitting],
            np.array([items[row].score for row in fitting]),
            _dialogue_indices([items[row] for row in fitting]),
            resamples=self.resamples,
            seed=self.seed,
        )
        return with_excluded(estimates, len(items) - len(fitting), "pairs", "an utterance")


def _without_turns(item: Item, n_omitted: int) -> Item:
    """Return an item without the first turns of its dialogue."""
    return replace(item, turns=item.turns[n_omitted:]) if n_omitted else item


def _may_cut_unnoticed(model: Any) -> bool:
    """Return whether a model with cosines may remove the end of long texts without this being known."""
    knows_limit = isinstance(model, LimitedModel) and not isinstance(model, ServedModel)
    is_opaque = model.identity.get("kind") in ("embeddings", "python") and not knows_limit
    return is_opaque and model.identity.get("similarity") == "cosine"


def _equal_pairs(items: Sequence[Item], cosines: np.ndarray) -> int:
    """Return the number of pairs of different utterances with the cosine 1."""
    differs = np.array([item.last_turn != item.utterance for item in items])
    return int(np.count_nonzero(differs & (cosines >= 1 - EQUAL_TOLERANCE)))


def _dialogue_indices(items: Sequence[Item]) -> np.ndarray:
    """Return (N,) indices 0 … D-1 of the items' dialogues, in order of first appearance."""
    dialogues = dict.fromkeys(item.dialogue_id for item in items)
    index = {dialogue_id: position for position, dialogue_id in enumerate(dialogues)}
    return np.array([index[item.dialogue_id] for item in items], dtype=np.int64)


def open_tasks(options: TaskOptions) -> list[PairwiseSTS]:
    """Return one task per history condition and encoding of the history, by default that of the paper.

    Raises InputError for options that contradict each other or are those of other tasks.
    """
    if options.similarity not in (None, *VECTOR_SIMILARITIES):
        message = f"unsupported by pairwise-sts; expected {', '.join(VECTOR_SIMILARITIES)}"
        raise InputError(Problem(f"similarity {options.similarity}", None, message))
    encodings = options.history_encoding
    history = options.history or ("both" if encodings else "without")
    if encodings and history == "without":
        message = "requires a history; expected --history with or both"
        raise InputError(Problem("--history-encoding", None, message))
    common: dict[str, Any] = {"similarity": options.similarity, "language": options.language}
    without = [PairwiseSTS("without", options.seed, **common)]
    with_history = [
        PairwiseSTS("with", options.seed, history_encoding=encoding, **common)
        for encoding in encodings or ("joined",)
    ]
    return {"without": without, "with": with_history, "both": [*without, *with_history]}[history]


TASK = TaskKind(
    open_tasks,
    option_names=("history", "history_encoding", "similarity", "language"),
    results=PAIR_SCORES,
)


def subset_rows(
    items: Sequence[Any], attribute: str, *, keep_single: bool = False
) -> list[tuple[Any, list[int]]]:
    """Return (value, rows) for each value of an attribute that differs between items.

    Tags of a language differ in the language, not in script or region; there are none if an item states no
    language. `keep_single`: also if there is only one value.
    """
    rows: dict[Any, list[int]] = {}
    for row, item in enumerate(items):
        value = getattr(item, attribute)
        key = base_language(value) if attribute == "language" and value else value
        rows.setdefault(key, []).append(row)
    return sorted(rows.items()) if None not in rows and (keep_single or len(rows) > 1) else []
