"""Evaluator for trainings with sentence-transformers: pairwise STS after each epoch or number of steps."""

from __future__ import annotations

import csv
import io
import logging
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sentence_transformers.base.evaluation import SentenceEvaluator

from bws.base.frames import Source
from bws.base.text import read_text, write_atomic
from bws.files import as_judgments
from bws.records import Judgments
from bws.stats.estimates import Estimate
from giccs.benchmark import SAMPLE, Benchmark, read_benchmark
from giccs.measures.ceiling import load_judgments, noise_ceiling
from giccs.models import ModelOptions
from giccs.models.objects import model_of_object
from giccs.models.vocabulary import counted_tokens
from giccs.tasks.pairwise import HISTORIES, PairwiseSTS

log = logging.getLogger(__name__)

METRICS = ("pearson", "spearman", "rank_spearman")
SHARE = "spearman_share_of_ceiling"


class PairwiseSTSEvaluator(SentenceEvaluator):
    """Pairwise STS of a model in training, as an ``evaluator`` of the trainers of sentence-transformers.

    The metrics are those of `giccs.evaluate` for the loaded model: ``pearson``, ``spearman`` (the primary
    metric), ``rank_spearman`` (mean within-dialogue ρ) and, with the judgments behind the scores,
    ``spearman_share_of_ceiling``, Spearman's ρ divided by its noise ceiling. An undefined metric is NaN, and
    the reason is logged as a warning. Intervals are not computed during training.

    data: a benchmark of `giccs.load_benchmark`, or what it reads. judgments: those behind its scores, for the
    noise ceiling; only those of giccs-sample and giccs-sample-en are known. history: ``without`` or ``with``
    the turns before the last. name: prefix of the metrics and part of the name of the CSV file. write_csv:
    append a row to ``pairwise_sts_evaluation_NAME_results.csv`` in the output folder of the training. Raises
    InputError for invalid data, and for judgments of other scores; ValueError for an unknown history.

    >>> from sentence_transformers import SentenceTransformer
    >>> from sentence_transformers.sentence_transformer.modules import BoW
    >>> evaluator = PairwiseSTSEvaluator("giccs-sample", name="giccs")
    >>> metrics = evaluator(SentenceTransformer(modules=[BoW(vocab=["ja", "nein", "hotel", "kino"])]))
    >>> evaluator.primary_metric, len(metrics)
    ('giccs_spearman', 4)
    """

    def __init__(
        self,
        data: Benchmark | Source = SAMPLE,
        judgments: Judgments | Source | None = None,
        *,
        history: str = "without",
        name: str = "",
        batch_size: int = 32,
        write_csv: bool = True,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        if history not in HISTORIES:
            raise ValueError(f"history is {history!r}; expected {' or '.join(HISTORIES)}")
        self.benchmark = data if isinstance(data, Benchmark) else read_benchmark(data)
        self.task = PairwiseSTS(history, resamples=0)
        self.ceiling = _ceiling(self.benchmark, judgments)
        self.name = name
        self.primary_metric = "spearman"
        self.write_csv = write_csv
        self.csv_file = f"pairwise_sts_evaluation{f'_{name}' if name else ''}_results.csv"
        self.csv_headers = ["epoch", "steps", *METRICS, *([SHARE] if self.ceiling else [])]
        self._options = ModelOptions(batch_size=batch_size)

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: int = -1, steps: int = -1
    ) -> dict[str, float]:
        """Return the metrics of a SentenceTransformer, CrossEncoder or MultiVectorEncoder."""
        opened: Any = model_of_object(model, options=self._options)
        with counted_tokens() as counts:
            estimates = self.task.measure(opened, self.benchmark).metrics
        if warning := counts.length_warning():
            log.warning("%s: %s", self.benchmark.name, warning)
        for metric in METRICS:
            if math.isnan(estimates[metric].value):
                log.warning("%s is undefined: %s", metric, estimates[metric].reason)
        metrics = {metric: estimates[metric].value for metric in METRICS}
        if self.ceiling:
            metrics[SHARE] = metrics["spearman"] / self.ceiling.value
        if output_path is not None and self.write_csv:
            self._append_row(Path(output_path), [epoch, steps, *metrics.values()])
        metrics = self.prefix_name_to_metrics(metrics, self.name)
        self.store_metrics_in_model_card_data(model, metrics, epoch, steps)
        return metrics

    @property
    def description(self) -> str:
        """Title of the metrics in the model card."""
        return "Conversational Semantic Similarity"

    def get_config_dict(self) -> dict[str, Any]:
        """Return the settings for the model card."""
        return {"data": self.benchmark.name, "history": self.task.history}

    def _append_row(self, folder: Path, row: Sequence[float]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / self.csv_file
        text = io.StringIO()
        csv.writer(text).writerows([row] if path.exists() else [self.csv_headers, row])
        earlier_rows = read_text(path) if path.exists() else ""
        write_atomic(path, earlier_rows + text.getvalue())


def _ceiling(benchmark: Benchmark, judgments: Judgments | Source | None) -> Estimate | None:
    """Return the noise ceiling of Spearman's rho; None without judgments."""
    known = load_judgments(benchmark) if judgments is None else as_judgments(judgments)
    if known is None:
        return None
    ceiling = noise_ceiling(known, benchmark)["spearman"]
    if math.isnan(ceiling.value):
        log.warning("the noise ceiling of %s is undefined: %s", benchmark.name, ceiling.reason)
    return ceiling
