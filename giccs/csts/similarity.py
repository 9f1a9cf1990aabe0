"""Conditional similarity of untrained encoders (C-STS, Table 2; L-CSTS, Table 5) and of trained models.

``bi``: cos(f(s1; c), f(s2; c)). A sentence and its condition are encoded as a text pair of the model's
tokenizer, as in the authors' program, or joined by a space if the tokenizer has no separator. ``tri``:
sentences and condition are encoded separately, and the score is cos(f(s1) ⊙ f(c), f(s2) ⊙ f(c)), with the
Hadamard product of C-STS 4.1. A model trained by `giccs csts train` scores rows as in its training.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.base.problems import InputError, Problem
from bws.stats.estimates import Estimate
from giccs.csts.data import Instance, text_columns
from giccs.csts.encoders.settings import TEMPLATES as TRAINED_TEMPLATES
from giccs.csts.encoders.settings import settings_of
from giccs.csts.measures import csts_metrics, hidden_metrics
from giccs.csts.task_data import Reading, TaskData
from giccs.measures.metrics import interval_signature, with_excluded
from giccs.measures.results import TaskOutput
from giccs.models.abilities import PairModel, TextPairModel, VectorModel
from giccs.models.encoding import EncoderInput, fitting_pairs
from giccs.models.model_errors import reported_errors
from giccs.models.trained import SETTINGS, TrainedModel
from giccs.models.vocabulary import count_tokens
from giccs.progress import Progress, silent
from giccs.tasks import TaskKind, TaskOptions
from giccs.tasks.refusals import missing_ability_reason

log = logging.getLogger(__name__)

TEMPLATES = {
    ("bi", True): "{sentence} {condition}",
    ("bi", False): "{sentence}",
    ("tri", True): "cos({sentence1} ⊙ {condition}, {sentence2} ⊙ {condition})",
}
"""(encoding, with the condition) -> input of the model, or operation on its output."""
PAIR_TEMPLATE = "pair({sentence}, {condition})"
"""Template of bi with the condition for models whose tokenizer separates the texts of a pair."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ConditionalSimilarity:
    """Similarities of an embedding model, compared with the labels."""

    encoding: str = "bi"
    condition: bool = True
    split: str = "validation"
    answers: str | None = None
    """A file of answers that replace the sentences (``uid, answer1, answer2``)."""
    seed: int = 0
    resamples: int = 1000
    name: str = field(default="csts", init=False)
    default_data: str = field(default="csts-sample", init=False)

    def __post_init__(self) -> None:
        if (self.encoding, self.condition) not in TEMPLATES:
            message = "encodes the condition separately and requires it; use bi"
            raise InputError(Problem(f"encoding {self.encoding}", None, message))

    @property
    def read(self) -> Reading:
        """Return the reader of labelled rows, restricted to the split for a folder."""
        return Reading(self.split, self.answers)

    def refuses(self, model: Any) -> str:
        """Return why the model is unsuitable, with a remedy, or an empty string."""
        if isinstance(model, TrainedModel):
            return self._contradicts(model)
        if self.encoding == "tri":
            return missing_ability_reason(model, VectorModel, f"{self.name} --encoding tri")
        reason = missing_ability_reason(model, PairModel, self.name)
        return reason and f"{reason}; csts-prompt is for text generation models"

    def _contradicts(self, model: TrainedModel) -> str:
        """Return the option that contradicts the settings of a trained model."""
        try:
            settings = settings_of(model.settings)
        except ValueError as error:
            return f"cannot be used with its {SETTINGS}: {error}"
        if self.encoding == "tri" and settings.encoding != "tri":
            return f"was trained as a {settings.encoding}-encoder; omit --encoding"
        if not self.condition and settings.condition:
            return "was trained with the condition; omit --no-condition"
        if settings.texts == "answers" and self.answers is None:
            return "was trained on answers instead of sentences; add --answers FILE"
        if settings.texts != "answers" and self.answers is not None:
            return "was trained on sentences; omit --answers"
        return ""

    def parameters(self, model: Any, data: TaskData) -> dict[str, Any]:
        """Return the settings that determine the metrics besides model, data and version."""
        return {
            "setting": self._setting(model),
            "asked": {
                "encoding": self.encoding,
                "condition": self.condition,
                "answers": self.answers is not None,
                "split": self.split,
            },
            "template": self._template(model),
            "interval": interval_signature("sentence pair", self.resamples, self.seed),
            **data.hidden_labels(),
        }

    def measure(self, model: Any, data: TaskData, progress: Progress = silent) -> TaskOutput:
        """Compute the model's similarity of every row and compare it with the labels.

        >>> from giccs.models import open_model
        >>> task = ConditionalSimilarity(resamples=10)
        >>> output = task.measure(open_model("baseline:char-ngram"), task.read("csts-sample").first(5))
        >>> output.metrics["spearman"].n, output.metrics["pair_accuracy"].n
        (10, 5)
        """
        import polars

        is_trained = isinstance(model, TrainedModel)
        has_condition = model.settings["condition"] if is_trained else self.condition
        if has_condition and not data.dataset.has_conditions:
            raise InputError(Problem(data.name, None, "has no conditions; use --no-condition"))
        rows = data.instances
        fits = self._fits(model, data.compared, progress)
        prediction = np.full(len(rows), np.nan)
        if fits.any():
            fitting = [
                row for row, is_fitting in zip(data.compared, fits, strict=True) if is_fitting
            ]
            prediction[fits] = self._predictions(model, fitting, progress)
        count_tokens(too_long=int(np.count_nonzero(~fits)))
        log.debug("%d rows answered; measuring, %d resamples", len(rows), self.resamples)
        return TaskOutput(
            metrics=hidden_metrics() if data.hidden else self._metrics(prediction, rows, fits),
            predictions=polars.DataFrame(
                {
                    "uid": [row.uid for row in rows],
                    "prediction": prediction,
                    **data.label_columns(),
                    **text_columns(rows),
                }
            ),
        )

    def _metrics(
        self, prediction: Floats, rows: Sequence[Instance], fits: NDArray[np.bool_]
    ) -> dict[str, Estimate]:
        fitting = np.flatnonzero(fits).tolist()
        estimates = csts_metrics(
            prediction[fitting],
            [rows[row] for row in fitting],
            resamples=self.resamples,
            seed=self.seed,
        )
        n_excluded = len(rows) - len(fitting)
        return with_excluded(estimates, n_excluded, "rows", "a sentence or the condition")

    def _fits(self, model: Any, rows: Sequence[Instance], progress: Progress) -> NDArray[np.bool_]:
        """Return (N,) whether the model reads the sentences and the condition of each row completely.

        Trained models read their inputs as in their training, which shortens the longest text and counts it.
        """
        if isinstance(model, TrainedModel):
            return np.ones(len(rows), dtype=np.bool_)
        left, right = self._side_inputs(model, rows)
        fits = fitting_pairs(model, left, right, progress)
        if self.encoding == "tri":
            conditions = [row.condition for row in rows]
            fits = fits & fitting_pairs(model, conditions, conditions, progress)
        return fits

    def _predictions(self, model: Any, rows: Sequence[Instance], progress: Progress) -> Floats:
        if isinstance(model, TrainedModel):
            return _trained_scores(model, rows, progress)
        left, right = self._side_inputs(model, rows)
        if self.encoding == "tri":
            vectors = model.vectors([*left, *right, *(row.condition for row in rows)], progress)
            return hadamard_cosines(*np.split(np.asarray(vectors, dtype=np.float64), 3))
        scores: Floats = model.pair_scores(left, right, progress)
        return scores

    def _side_inputs(
        self, model: Any, rows: Sequence[Instance]
    ) -> tuple[Sequence[EncoderInput], Sequence[EncoderInput]]:
        """Return the inputs with the first and with the second sentences."""
        left, right = [row.sentence1 for row in rows], [row.sentence2 for row in rows]
        if self.encoding == "tri":
            return left, right
        template, conditions = self._template(model), [row.condition for row in rows]
        return _inputs(template, left, conditions), _inputs(template, right, conditions)

    def _template(self, model: Any) -> str:
        if isinstance(model, TrainedModel):
            return TRAINED_TEMPLATES[str(model.settings["encoding"])]
        as_pairs = (self.encoding, self.condition) == ("bi", True)
        if as_pairs and isinstance(model, TextPairModel) and model.separates_pairs():
            return PAIR_TEMPLATE
        return TEMPLATES[self.encoding, self.condition]

    def _setting(self, model: Any) -> str:
        if isinstance(model, TrainedModel):
            return f"trained: {settings_of(model.settings).described()}"
        parts = [
            self.encoding,
            "" if self.condition else "no condition",
            "QA answers" if self.answers else "",
        ]
        return ", ".join(filter(None, parts))


def _trained_scores(model: TrainedModel, rows: Sequence[Instance], progress: Progress) -> Floats:
    """Return the scores of a model trained by giccs csts train, with the inputs of its training."""
    from giccs.csts.encoders.scorer import BATCH_ROWS, load_trained

    trained = load_trained(model.folder, model.device)
    with reported_errors(model.name):
        return trained.predict(rows, progress, model.options.batch_size or BATCH_ROWS)


def _inputs(
    template: str, sentences: Sequence[str], conditions: Sequence[str]
) -> Sequence[EncoderInput]:
    """Return the inputs of a bi-encoder: texts, or pairs of texts."""
    if template == PAIR_TEMPLATE:
        return [*zip(sentences, conditions, strict=True)]
    return [
        template.format(sentence=sentence, condition=condition)
        for sentence, condition in zip(sentences, conditions, strict=True)
    ]


def hadamard_cosines(first: Floats, second: Floats, condition: Floats) -> Floats:
    """Return (N,) cosines of first ⊙ condition and second ⊙ condition, all (N, D).

    NaN where a product is zero or not finite.

    >>> ones = np.ones((1, 2))
    >>> hadamard_cosines(np.array([[3.0, 4.0]]), np.array([[4.0, 3.0]]), ones).round(2)
    array([0.96])
    """
    a, b = first * condition, second * condition
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    usable = np.isfinite(norms) & (norms > 0)
    dot = np.einsum("nd,nd->n", a, b)
    return np.where(usable, dot / np.where(usable, norms, 1.0), np.nan)


def open_tasks(options: TaskOptions) -> list[ConditionalSimilarity]:
    """Return the task; raise InputError for contradictory options."""
    return [
        ConditionalSimilarity(
            options.encoding, options.condition, options.split, options.answers, options.seed
        )
    ]


TASK = TaskKind(open_tasks, option_names=("split", "encoding", "condition", "answers"))
