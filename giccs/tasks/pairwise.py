"""Pairwise STS (paper section 5.1.1, Table 5): similarity of each candidate to the last turn."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from bws.problems import InputError, Problem
from giccs.benchmark import SAMPLE, Benchmark, read_benchmark
from giccs.benchmark.items import Item
from giccs.benchmark.languages import base_language, check_language
from giccs.measures.metrics import Estimate, correlations, interval_signature, order_metrics
from giccs.measures.results import Group, TaskOutput
from giccs.models.abilities import OrderedPairModel, PairModel, VectorModel
from giccs.models.encoding import row_cosines, row_distances, row_dots, side_vectors
from giccs.progress import Progress, silent
from giccs.tasks import PAIR_SCORES, TaskKind, TaskOptions
from giccs.tasks.history_encoding import (
    TEMPLATES,
    check_speakers,
    mean_of_turns,
    texts_of_pair,
)
from giccs.tasks.refusals import missing_ability_reason

__all__ = ["HISTORIES", "TASK", "PairwiseSTS", "open_tasks", "subset_rows"]

log = logging.getLogger(__name__)

HISTORIES = {"without": "{utterance}", "with": TEMPLATES["joined"]}
"""Name of a history condition -> texts on either side of a pair, by default."""
SIMILARITY_FUNCTIONS: Mapping[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "cos": row_cosines,
    "dot": row_dots,
    "l2": row_distances,
}
"""Similarities of vectors; that of l2 is the negative distance, as in sentence-transformers."""
ORDERS = ("prediction_target_first", "prediction_candidate_first")
"""Columns of predictions per order of the texts, for models whose similarity depends on it."""
SUBSET_FIELDS = ("n_turns", "source", "domain", "language")


@dataclass(frozen=True, slots=True)
class PairwiseSTS:
    """Predictions compared with scores, over all items and by length, source, domain and language.

    ``without`` history is the setting of the paper: the two utterances alone. ``with`` adds the preceding
    turns to both, see `giccs.tasks.history_encoding`. The similarity is that of the model (for encoders the
    cosine), or another one of its vectors. The prediction of a model whose similarity depends on the order of
    the texts (`OrderedPairModel`) is the mean of both orders; `order_metrics` compares them. `language` is
    that of items that state none.
    """

    history: str = "without"
    seed: int = 0
    resamples: int = 1000
    similarity: str = "cos"
    history_encoding: str = "joined"
    language: str | None = None
    name: str = field(default="pairwise-sts", init=False)
    default_data: ClassVar[str] = SAMPLE
    read: ClassVar = staticmethod(read_benchmark)

    def refuses(self, model: Any) -> str:
        """Return why the model is unsuitable, with a remedy, or an empty string."""
        if not self._needs_vectors or isinstance(model, VectorModel):
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
        tags = check_language(benchmark.items, benchmark.name, self.language)
        parameters: dict[str, Any] = {
            "history": self.history,
            "template": HISTORIES[self.history],
            "interval": interval_signature("dialogue", self.resamples, self.seed),
        }
        if self._encoding not in ("", "joined"):
            parameters["history_encoding"] = self._encoding
            parameters["template"] = TEMPLATES[self._encoding]
        if self.similarity != "cos":
            parameters["similarity"] = self.similarity
        languages = {base_language(tag) for tag in tags if tag}
        if len(languages) > 1:
            parameters["languages"] = sorted(languages)
        return parameters

    def measure(
        self, model: PairModel, benchmark: Benchmark, progress: Progress = silent
    ) -> TaskOutput:
        """Score every pair and compare the predictions with the scores."""
        import polars

        benchmark = benchmark.in_language(self.language)
        items = benchmark.items
        if self._encoding == "speakers":
            check_speakers(benchmark.name, items)
        pairs = [self.pair_texts(item) for item in items]
        texts = [target for target, _ in pairs], [candidate for _, candidate in pairs]
        orders = None
        if self._needs_vectors:
            prediction = self._vector_similarities(model, items, progress)
        elif isinstance(model, OrderedPairModel):
            orders = np.asarray(model.order_scores(*texts, progress), dtype=np.float64)
            prediction = orders.mean(axis=1)
        else:
            prediction = np.asarray(model.pair_scores(*texts, progress), dtype=np.float64)
        log.debug("%d pairs scored; measuring, %d resamples", len(items), self.resamples)
        groups = tuple(
            Group({attribute: value}, self._metrics(items, prediction, rows))
            for attribute in SUBSET_FIELDS
            for value, rows in subset_rows(items, attribute)
        )
        return TaskOutput(
            metrics=self._metrics(items, prediction, range(len(items)))
            | ({} if orders is None else self._order_metrics(items, orders)),
            groups=groups,
            environment=benchmark.provenance(),
            predictions=polars.DataFrame(
                {
                    "item_id": [item.item_id for item in items],
                    "dialogue_id": [item.dialogue_id for item in items],
                    "prediction": prediction,
                    "score": [item.score for item in items],
                    **({} if orders is None else dict(zip(ORDERS, orders.T, strict=True))),
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

    @property
    def _needs_vectors(self) -> bool:
        return self.similarity != "cos" or self._encoding == "mean"

    def _vector_similarities(
        self, model: Any, items: Sequence[Item], progress: Progress
    ) -> np.ndarray:
        """Return (N,) similarities of the vectors of both texts."""
        sides = zip(*(texts_of_pair(item, self._encoding) for item in items), strict=True)
        targets, candidates = (list(side) for side in sides)
        vectors = side_vectors(
            model, [*chain.from_iterable(targets)], [*chain.from_iterable(candidates)], progress
        )
        means = [
            mean_of_turns(of_side, [*map(len, side)])
            for of_side, side in zip(vectors, (targets, candidates), strict=True)
        ]
        return SIMILARITY_FUNCTIONS[self.similarity](*means)

    def _metrics(
        self, items: Sequence[Item], prediction: np.ndarray, rows: Sequence[int]
    ) -> dict[str, Estimate]:
        subset = [items[row] for row in rows]
        return correlations(
            prediction[list(rows)],
            np.array([item.score for item in subset]),
            _dialogue_indices(subset),
            resamples=self.resamples,
            seed=self.seed,
        )

    def _order_metrics(self, items: Sequence[Item], orders: np.ndarray) -> dict[str, Estimate]:
        return order_metrics(
            orders,
            np.array([item.score for item in items]),
            _dialogue_indices(items),
            resamples=self.resamples,
            seed=self.seed,
        )


def _dialogue_indices(items: Sequence[Item]) -> np.ndarray:
    """Return (N,) indices 0 … D-1 of the items' dialogues, in order of first appearance."""
    dialogues = dict.fromkeys(item.dialogue_id for item in items)
    index = {dialogue_id: position for position, dialogue_id in enumerate(dialogues)}
    return np.array([index[item.dialogue_id] for item in items], dtype=np.int64)


def open_tasks(options: TaskOptions) -> list[PairwiseSTS]:
    """Return one task per history condition and encoding of the history, by default that of the paper.

    Raises InputError for options that contradict each other or are those of other tasks.
    """
    if options.similarity not in SIMILARITY_FUNCTIONS:
        message = f"unsupported by pairwise-sts; expected {', '.join(SIMILARITY_FUNCTIONS)}"
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
