"""Pairwise STS (paper section 5.1.1, Table 5): how similar is each candidate to the last turn?"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from giccs.benchmark import SAMPLE, Benchmark, read_benchmark
from giccs.benchmark.items import Item
from giccs.measures.metrics import Estimate, correlations, interval_signature
from giccs.measures.results import Group, TaskOutput
from giccs.models.abilities import PairModel
from giccs.progress import Progress, silent
from giccs.tasks import PAIR_SCORES, TaskKind, TaskOptions
from giccs.tasks.refusals import missing_ability_reason

__all__ = ["HISTORIES", "TASK", "PairwiseSTS", "open_tasks", "subset_rows"]

log = logging.getLogger(__name__)

HISTORIES = {
    "without": "{utterance}",
    "with": "{turns before the last, a line each}\n{utterance}",
}
"""Name of a history condition -> what the model reads on either side of a pair."""
SUBSET_FIELDS = ("n_turns", "source", "domain")


@dataclass(frozen=True, slots=True)
class PairwiseSTS:
    """Predictions against scores, over all items and by length, source and domain of the dialogue.

    ``without`` history is the paper's way: the two utterances alone. ``with`` sets the turns before the
    last one before both.
    """

    history: str = "without"
    seed: int = 0
    resamples: int = 1000
    name: str = field(default="pairwise-sts", init=False)
    default_data: ClassVar[str] = SAMPLE
    read: ClassVar = staticmethod(read_benchmark)

    def refuses(self, model: Any) -> str:
        """Return why the model cannot do it and what could be done; empty where it can."""
        return missing_ability_reason(model, PairModel, self.name)

    def parameters(self, model: PairModel, benchmark: Benchmark) -> dict[str, Any]:
        """Return what the metrics depend on besides model, data and version."""
        return {
            "history": self.history,
            "template": HISTORIES[self.history],
            "interval": interval_signature("dialogue", self.resamples, self.seed),
        }

    def measure(
        self, model: PairModel, benchmark: Benchmark, progress: Progress = silent
    ) -> TaskOutput:
        """Score every pair and compare the predictions with the scores."""
        import polars

        items = benchmark.items
        pairs = [self.pair_texts(item) for item in items]
        similarities = model.pair_scores(
            [target for target, _ in pairs], [candidate for _, candidate in pairs], progress
        )
        log.debug("%d pairs answered; measuring, %d resamples", len(items), self.resamples)
        prediction = np.asarray(similarities, dtype=np.float64)
        groups = tuple(
            Group({attribute: value}, self._metrics(items, prediction, rows))
            for attribute in SUBSET_FIELDS
            for value, rows in subset_rows(items, attribute)
        )
        return TaskOutput(
            metrics=self._metrics(items, prediction, range(len(items))),
            groups=groups,
            environment=benchmark.provenance(),
            predictions=polars.DataFrame(
                {
                    "item_id": [item.item_id for item in items],
                    "dialogue_id": [item.dialogue_id for item in items],
                    "prediction": prediction,
                    "score": [item.score for item in items],
                }
            ),
        )

    def pair_texts(self, item: Item) -> tuple[str, str]:
        """Return what is compared: the last turn and the candidate, both after the history shown."""
        context = [turn.text for turn in item.turns[:-1]] if self.history == "with" else []
        return "\n".join([*context, item.last_turn]), "\n".join([*context, item.utterance])

    def _metrics(
        self, items: Sequence[Item], prediction: np.ndarray, rows: Sequence[int]
    ) -> dict[str, Estimate]:
        subset = [items[row] for row in rows]
        dialogues = {item.dialogue_id: None for item in subset}
        index = {dialogue_id: position for position, dialogue_id in enumerate(dialogues)}
        return correlations(
            prediction[list(rows)],
            np.array([item.score for item in subset]),
            np.array([index[item.dialogue_id] for item in subset]),
            resamples=self.resamples,
            seed=self.seed,
        )


def open_tasks(options: TaskOptions) -> list[PairwiseSTS]:
    """Return a task a history condition; the paper's way alone where nothing is said."""
    conditions = {"both": ["without", "with"], None: ["without"]}
    histories = conditions.get(options.history, [str(options.history)])
    return [PairwiseSTS(history, options.seed) for history in histories]


TASK = TaskKind(open_tasks, option_names=("history",), results=PAIR_SCORES)


def subset_rows(
    items: Sequence[Any], attribute: str, *, keep_single: bool = False
) -> list[tuple[Any, list[int]]]:
    """Return (value, rows) for each value of a division that tells the items apart.

    `alone`: also where there is one value only.
    """
    rows: dict[Any, list[int]] = {}
    for row, item in enumerate(items):
        rows.setdefault(getattr(item, attribute), []).append(row)
    return sorted(rows.items()) if keep_single or len(rows) > 1 else []
