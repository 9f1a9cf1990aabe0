"""The tasks evalrank-sentence and evalrank-word (EvalRank, section 4)."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from bws.base.problems import InputError, Problem
from giccs.evalrank.data import read_sentences, read_words
from giccs.evalrank.rank_metrics import estimate_metrics
from giccs.evalrank.ranking import Ranks, block_size, compute_ranks
from giccs.evalrank.records import Level, RankingData
from giccs.evalrank.reference import reference_ranks
from giccs.evalrank.spaces import SIMILARITIES, TIE, Similarity
from giccs.evalrank.vector_cache import cached_vectors
from giccs.measures.metrics import interval_signature
from giccs.measures.results import TaskOutput
from giccs.models.abilities import VectorModel
from giccs.progress import Progress, silent
from giccs.tasks import DEFAULT_SIMILARITY, ResultKind, TaskKind, TaskOptions
from giccs.tasks.refusals import missing_ability_reason

log = logging.getLogger(__name__)

READERS: dict[Level, Callable[[str], RankingData]] = {
    "sentence": read_sentences,
    "word": read_words,
}
DEFAULT_DATA: dict[Level, str] = {"sentence": "giccs-sample", "word": ""}


@dataclass(frozen=True, slots=True)
class EvalRank:
    """Ranking of each positive among the background, by cosine or distance."""

    level: Level
    similarity: Similarity = "cos"
    reference: bool = False
    """Whether to compute ranks like the published program (see `giccs.evalrank.reference`)."""
    seed: int = 0
    resamples: int = 1000
    """Maximum number of background samples for an exact search; an index is used for larger backgrounds."""

    @property
    def name(self) -> str:
        """Name of the task in options and results."""
        return f"evalrank-{self.level}"

    @property
    def default_data(self) -> str:
        """Default data set; empty if data must be given."""
        return DEFAULT_DATA[self.level]

    @property
    def read(self) -> Callable[[str], RankingData]:
        """Reader of data sets."""
        return READERS[self.level]

    def refuses(self, model: Any) -> str:
        """Return why the model is unsuitable, with a remedy, or an empty string."""
        return missing_ability_reason(model, VectorModel, self.name)

    def parameters(self, model: Any, data: RankingData) -> dict[str, Any]:
        """Return the settings that the metrics depend on, besides model, data and version."""
        return {
            "similarity": self.similarity,  # not the model's own pair similarity
            "asked": {"similarity": self.similarity, "reference": self.reference},
            "setting": f"{self.similarity}, published program"
            if self.reference
            else self.similarity,
            "ties": "none" if self.reference else f"within {TIE}, in favour of the positive",
            "search": "exact",
            "without_vector": "filled" if self.reference else "miss",
            "interval": interval_signature("unordered pair", self.resamples, self.seed),
        }

    def measure(self, model: Any, data: RankingData, progress: Progress = silent) -> TaskOutput:
        """Compute the vectors of all texts, rank the positives and compute the metrics.

        The environment contains the block size, the number of float64 comparisons and the number of texts
        without a vector.
        """
        vectors = cached_vectors(model, data.texts, progress)
        pairs = len(data.pairs)
        log.debug("ranking %d pairs among %d texts by %s", pairs, len(vectors), self.similarity)
        ranks, facts = self._ranks(vectors, data, progress, gpu_of(model))
        log.debug("ranked (%s); measuring, %d resamples", facts, self.resamples)
        n_without_vector = len(vectors) - ranks.candidates
        return TaskOutput(
            metrics=estimate_metrics(
                ranks,
                data.pairs,
                n_without_vector=n_without_vector,
                resamples=self.resamples,
                seed=self.seed,
            ),
            environment={
                "background_without_vector": n_without_vector,
                **facts,
            },
            predictions=_prediction_table(data, ranks),
        )

    def _ranks(
        self, vectors: NDArray[np.float32], data: RankingData, progress: Progress, device: str
    ) -> tuple[Ranks, dict[str, Any]]:
        """Return the ranks, and details of the search for the environment; device: as of `compute_ranks`."""
        if self.reference:
            ranks, n_copies_above = reference_ranks(
                vectors, data.pairs, self.similarity, self.level, progress
            )
            return ranks, {"own_copy_above": n_copies_above}
        ranks = compute_ranks(vectors, data.pairs, self.similarity, progress, device=device)
        return ranks, {
            "block": list(block_size(device)),
            "ranked_on": device or "cpu",
            "compared_in_float64": ranks.n_exact_comparisons,
        }


def gpu_of(model: Any) -> str:
    """Return the CUDA device of a model's weights; empty for other devices, and for several."""
    device = str(model.environment().get("device", ""))
    return device if re.fullmatch(r"cuda(:\d+)?", device) else ""


def _make_task_kind(level: Level) -> TaskKind:
    def open_tasks(options: TaskOptions) -> list[EvalRank]:
        similarity = cast(Similarity, options.similarity or DEFAULT_SIMILARITY)
        if similarity not in SIMILARITIES:
            message = f"unsupported by evalrank-{level}; expected {', '.join(SIMILARITIES)}"
            raise InputError(Problem(f"similarity {options.similarity}", None, message))
        return [EvalRank(level, similarity, options.reference, options.seed)]

    ranks = ResultKind("metrics", item_columns=("rank", ""))
    return TaskKind(open_tasks, option_names=("similarity", "reference"), results=ranks)


SENTENCES, WORDS = _make_task_kind("sentence"), _make_task_kind("word")


def _prediction_table(data: RankingData, ranks: Ranks) -> Any:
    import polars

    anchor, positive = data.pairs.T
    has_rank = ranks.rank > 0
    table = polars.DataFrame(
        {
            "anchor": [data.texts[index] for index in anchor],
            "positive": [data.texts[index] for index in positive],
            "rank": ranks.rank,
            "rank_pessimistic": ranks.pessimistic,
            "similarity": ranks.similarity,
        }
    )
    rank_columns = ["rank", "rank_pessimistic", "similarity"]
    return table.with_columns(polars.when(polars.Series(has_rank)).then(polars.col(rank_columns)))
