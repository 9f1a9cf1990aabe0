"""Training runs as results: one per seed, their mean ± SD, existing results reused."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from bws.base.problems import InputError, Problem
from bws.stats.estimates import Estimate
from giccs.csts.data import text_columns
from giccs.csts.encoders.base import base_folder
from giccs.csts.encoders.settings import TEMPLATES, Settings, is_first, processes, why_impossible
from giccs.csts.encoders.splits import Splits
from giccs.csts.measures import RESAMPLES, mean_metrics, selected_on
from giccs.evaluation.recipe import ANSWERS_KEY
from giccs.evaluation.task_results import environment
from giccs.measures.metrics import interval_signature
from giccs.measures.results import Group, Result, Signature, Store, digest
from giccs.measures.submission import INDEX, write_submission
from giccs.models.checkpoint import revision
from giccs.progress import Progress, silent

if TYPE_CHECKING:
    import polars

    from giccs.csts.encoders.settings import Machine
    from giccs.csts.encoders.training import Fitted
    from giccs.models.vocabulary import TokenCounts

log = logging.getLogger(__name__)

TASK = "csts-train"
EPOCH = "epoch"
SEEDS = "seeds"
"""Subfolder of the results folder for the result of each seed."""
RUNNING = "running"
"""Subfolder for checkpoints of unfinished trainings."""
MODELS = "models"
"""Subfolder for trained models."""


@dataclass(frozen=True)
class Outcome:
    """Results of a training with one or more seeds."""

    result: Result
    """Metrics are means over the seeds, if there are several, with their ``sd``."""
    seeds: tuple[Result, ...]
    """One per seed, in their order; the environment lists the metrics of each epoch."""
    is_reused: bool
    """Whether all results existed already."""
    models: tuple[Path, ...] = ()
    """Folders of the saved models, one per seed."""
    submissions: tuple[Path, ...] = ()
    """Files with the predictions of rows with hidden labels, one per seed."""
    problems: tuple[Problem, ...] = ()
    """Reasons why such files could not be written."""


def train(
    settings: Settings,
    splits: Splits,
    folder: str | os.PathLike[str],
    machine: Machine | None = None,
    progress: Progress = silent,
    *,
    keep: bool = True,
    force: bool = False,
    selected: Sequence[str] = (),
) -> Outcome:
    """Train an encoder with each seed and evaluate it on test, or on validation if test has no labels.

    `folder` stores results like `giccs.measures.results.Store`. Existing results are reused, unless `force`;
    an interrupted training resumes after its last complete epoch. keep: save the trained models. Groups of
    the result are the evaluated splits. With several devices (``accelerate launch``), every process calls
    this function, and only the first one writes. Raises InputError for contradictory settings and unusable
    models or data.

    selected: choices that the caller made by scores on validation, such as ``settings``. They are part of the
    signature, together with the epoch (`Settings.select`), and the scores on validation are marked by
    `selected_on`.
    """
    task = _task(settings, splits, Path(folder), machine, keep, selected)
    store = Store(folder)
    existing = None if force else store.find(settings.model, TASK, task.signature)
    if existing is not None:
        singles = task.existing_results()
        return Outcome(existing, singles, True, task.models(), *task.submissions(singles))
    singles = task.singles(force, progress)
    result = task.combined(singles)
    if is_first():
        store.add(result)
    return Outcome(result, singles, False, task.models(), *task.submissions(singles))


def train_seeds(
    settings: Settings,
    splits: Splits,
    folder: str | os.PathLike[str],
    machine: Machine | None = None,
    progress: Progress = silent,
    *,
    force: bool = False,
) -> Result:
    """Train like `train` for one of several compared settings, without combined results and saved models."""
    task = _task(settings, splits, Path(folder), machine, keep=False)
    return task.combined(task.singles(force, progress))


def validated(result: Result) -> Mapping[str, Estimate]:
    """Return the metrics of a training on its validation split."""
    return next(group.metrics for group in result.groups if group.by["split"] == "validation")


def _task(
    settings: Settings, splits: Splits, folder: Path, machine: Machine | None, keep: bool,
    selected: Sequence[str] = (),
) -> _Task:  # fmt: skip
    settings = settings.canonical()
    if fault := why_impossible(settings):
        raise InputError(Problem(settings.model, None, fault))
    if settings.condition and not splits.has_conditions:
        message = "has no conditions; use --no-condition (condition = false)"
        raise InputError(Problem(splits.name, None, message))
    if settings.texts != splits.texts:
        raise ValueError(
            f"texts is {settings.texts!r}, but the data was read with {splits.texts!r}"
        )
    content = revision(base_folder(settings.model, settings.revision))
    epoch = (EPOCH,) if settings.select == "best" else ()
    return _Task(settings, splits, folder, machine, keep, content, (*selected, *epoch))


@dataclass(frozen=True)
class _Task:
    """A training setting with its data and results folder."""

    settings: Settings
    splits: Splits
    folder: Path
    machine: Machine | None
    keep: bool
    revision: str
    """Revision of the base encoder: the hub's commit, or a digest of its files."""
    selected: tuple[str, ...]
    """Choices made by scores on validation: ``settings``, `EPOCH`."""

    @property
    def signature(self) -> Signature:
        """Return everything that determines the metrics."""
        settings = self.settings
        fields = {
            "task": TASK,
            "setting": settings.described(),
            "model": settings.model,
            "revision": self.revision,
            "data": self.splits.fingerprint,
            "split": self.splits.reported,
            "settings": settings.document(),
            "selected_on_validation": list(self.selected),
            "template": TEMPLATES[settings.encoding],
            "targets": "(label - 1) / 4",
            "interval": interval_signature("sentence pair", RESAMPLES, 0),
            **({"hidden_labels": True} if self.splits.hidden else {}),
            "processes": processes(),
            "rows_at_once": self.machine.rows_at_once if self.machine else None,
            "giccs": version("giccs"),
        }
        return cast(Signature, fields)

    def existing_results(self) -> tuple[Result, ...]:
        """Return the existing results of seeds."""
        existing = (task._existing() for task in self._of_seeds())
        return tuple(result for result in existing if result is not None)

    def singles(self, force: bool, progress: Progress) -> tuple[Result, ...]:
        """Return the result of each seed, existing or newly trained."""
        return tuple(
            (None if force else task._existing()) or task._trained(progress)
            for task in self._of_seeds()
        )

    def _of_seeds(self) -> list[_Task]:
        """Return the task of each seed; its scores do not depend on how the settings were selected."""
        epoch = tuple(name for name in self.selected if name == EPOCH)
        return [
            replace(self, settings=self.settings.with_seed(seed), selected=epoch)
            for seed in self.settings.seeds
        ]

    def _existing(self) -> Result | None:
        return Store(self.folder / SEEDS).find(self.settings.model, TASK, self.signature)

    def _trained(self, progress: Progress) -> Result:
        from giccs.csts.encoders.scorer import save_trained
        from giccs.csts.encoders.settings import Machine
        from giccs.csts.encoders.training import fit
        from giccs.models.model_errors import reported_errors
        from giccs.models.vocabulary import counted_tokens

        running = self.folder / RUNNING / digest(self.signature)[:12]
        log.debug("training with seed %d, checkpoints in %s", self.settings.seeds[0], running)
        with counted_tokens() as counts, reported_errors(self.settings.model):
            fitted = fit(self.settings, self.splits, running, self.machine or Machine(), progress)
        result = self._result(fitted, counts)
        if is_first():
            if self.keep:
                save_trained(fitted.scorer, fitted.tokens, self.settings, self._model)
            Store(self.folder / SEEDS).add(result)
            shutil.rmtree(running)
        return result

    def _result(self, fitted: Fitted, counts: TokenCounts) -> Result:
        groups = tuple(
            Group({"split": split}, self._measured(split, [fitted.predictions[split]]))
            for split in self.splits.measured
        )
        return Result(
            model=self.settings.model,
            task=TASK,
            metrics=groups[-1].metrics,
            groups=groups,
            signature=self.signature,
            environment={
                **self._environment(),
                "device": _device(fitted),
                "epochs": list(fitted.epochs),
                "best_epoch": fitted.best_epoch,
                "selected_epoch": fitted.selected_epoch,
                "rows": dict(fitted.rows),
                "truncated": fitted.truncated,
                **counts.document(),
            },
            seconds=fitted.seconds,
            predictions=self._table(fitted.predictions),
        )

    def combined(self, singles: tuple[Result, ...]) -> Result:
        """Return the result over all seeds, with the predictions of each seed and their means."""
        import polars

        store = Store(self.folder / SEEDS)
        tables = [
            single.predictions if single.predictions is not None else store.predictions(single)
            for single in singles
        ]
        groups = tuple(
            Group({"split": split}, self._measured(split, [_of(table, split) for table in tables]))
            for split in self.splits.measured
        )
        reported = self.splits.reported
        columns = [_of(table, reported) for table in tables]
        rows = self.splits.rows(reported)
        return Result(
            model=self.settings.model,
            task=TASK,
            metrics=groups[-1].metrics,
            groups=groups,
            signature=self.signature,
            environment={
                **self._environment(),
                "device": singles[0].environment["device"],
                "best_epochs": [single.environment["best_epoch"] for single in singles],
                "selected_epochs": [single.environment["selected_epoch"] for single in singles],
                **_tokens(singles),
            },
            seconds=round(sum(single.seconds for single in singles), 3),
            predictions=polars.DataFrame(
                {
                    "uid": [row.uid for row in rows],
                    "prediction": np.mean(columns, axis=0),
                    "label": [row.label for row in rows],
                    **text_columns(rows),
                    **{
                        f"seed_{seed}": column
                        for seed, column in zip(self.settings.seeds, columns, strict=True)
                    },
                }
            ),
        )

    def models(self) -> tuple[Path, ...]:
        """Return the existing folders of trained models."""
        paths = (task._model for task in self._of_seeds())
        return tuple(path for path in paths if path.is_dir())

    def submissions(
        self, singles: Sequence[Result]
    ) -> tuple[tuple[Path, ...], tuple[Problem, ...]]:
        """Write the submission file of each seed for the server of C-STS, if the labels of test are
        hidden."""
        paths: list[Path] = []
        problems: list[Problem] = []
        store = Store(self.folder / SEEDS)
        for single in singles if is_first() else ():
            try:
                path = write_submission(store, single, self.folder)
            except InputError as error:
                problems += error.problems
            else:
                paths += [path] if path else []
        return tuple(paths), tuple(problems)

    @property
    def _model(self) -> Path:
        return self.folder / MODELS / digest(self.signature)[:12]

    def _measured(
        self, split: str, predictions: Sequence[NDArray[np.float64]]
    ) -> Mapping[str, Estimate]:
        metrics = mean_metrics(predictions, self.splits.rows(split))
        return selected_on(metrics, self.selected) if split == "validation" else metrics

    def _environment(self) -> dict[str, Any]:
        packages = ("torch", "transformers", "accelerate")
        return {
            "data": self.splits.name,
            **({ANSWERS_KEY: self.splits.answers} if self.splits.answers else {}),
            **environment(),
            **{package: version(package) for package in packages},
        }

    def _table(self, predictions: Mapping[str, NDArray[np.float64]]) -> polars.DataFrame:
        import polars

        def columns(split: str, scores: NDArray[np.float64]) -> dict[str, Any]:
            rows = self.splits.rows(split)
            index = range(len(rows)) if split == "hidden" else [None] * len(rows)
            return {
                "split": [split] * len(rows),
                "uid": [row.uid for row in rows],
                "prediction": scores,
                "label": [row.label for row in rows],
                **({INDEX: index} if self.splits.hidden else {}),
            }

        is_float = any(isinstance(row.label, float) for row in self.splits.train)
        schema = {"label": polars.Float64 if is_float else polars.Int64, INDEX: polars.Int64}
        return polars.concat(
            polars.DataFrame(columns(split, scores), schema_overrides=schema)
            for split, scores in predictions.items()
        )


def _of(table: polars.DataFrame, split: str) -> NDArray[np.float64]:
    """Return (N,) predictions of a split, in the order of its rows."""
    predictions: NDArray[np.float64] = table.filter(table["split"] == split)[
        "prediction"
    ].to_numpy()
    return predictions


def _tokens(singles: Sequence[Result]) -> dict[str, Any]:
    """Return the token counts of the first seed that has them; older results have none."""
    return next(
        (
            {"tokens": result.environment["tokens"]}
            for result in singles
            if "tokens" in result.environment
        ),
        {},
    )


def _device(fitted: Fitted) -> str:
    return str(next(fitted.scorer.parameters()).device)
