"""A training as a result: each seed once, their mean ± SD, found again where it is known already."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bws.problems import InputError, Problem
from giccs.environment import environment
from giccs.metrics import Estimate
from giccs.models.folder import revision
from giccs.progress import Progress, silent
from giccs.results import Group, Result, Store, digest
from giccs.tasks.csts.encoders.base import base_folder
from giccs.tasks.csts.encoders.launched import is_first, processes
from giccs.tasks.csts.encoders.measures import RESAMPLES, mean_metrics
from giccs.tasks.csts.encoders.settings import TEMPLATES, Settings, why_impossible
from giccs.tasks.csts.encoders.splits import Splits

if TYPE_CHECKING:
    import polars

    from giccs.tasks.csts.encoders.training import Fitted, Machine

__all__ = ["TASK", "Outcome", "train", "train_seeds", "validated"]

log = logging.getLogger(__name__)

TASK = "csts-train"
SEEDS = "seeds"
"""Below the folder of results: the result of each seed."""
RUNNING = "running"
"""Below it: checkpoints of trainings that are not done."""
MODELS = "models"
"""Below it: trained models."""


@dataclass(frozen=True)
class Outcome:
    """What a training came to."""

    result: Result
    """Its numbers are means over the seeds where there are several, with their ``sd``."""
    seeds: tuple[Result, ...]
    """One for each seed, in their order; its environment tells of each epoch."""
    known: bool
    """Whether nothing had to be computed."""
    models: tuple[Path, ...] = ()
    """Folders of the trained models, one a seed, where they were kept."""


def train(
    settings: Settings,
    splits: Splits,
    folder: str | os.PathLike[str],
    machine: Machine | None = None,
    progress: Progress = silent,
    *,
    keep: bool = True,
    force: bool = False,
) -> Outcome:
    """Train an encoder with each seed and measure it on test, or on validation where test has no labels.

    `folder` keeps results as `giccs.results.Store` does. What is known there is not computed again, unless
    `force`; a training that was killed goes on from its last epoch. keep: leave the trained models there.
    Groups of the result are the splits that were measured. On several devices (``accelerate launch``) every
    process calls this, and only the first writes. Raises InputError where settings do not go together, and
    where model or data cannot be used.
    """
    task = _task(settings, splits, Path(folder), machine, keep)
    store, signature = Store(folder), task.signature(task.settings)
    known = None if force else store.find(settings.model, TASK, signature)
    if known is not None:
        return Outcome(known, task.known(), True, task.models())
    singles = task.singles(force, progress)
    result = task.combined(singles)
    if is_first():
        store.add(result)
    return Outcome(result, singles, False, task.models())


def train_seeds(
    settings: Settings,
    splits: Splits,
    folder: str | os.PathLike[str],
    machine: Machine | None = None,
    progress: Progress = silent,
    *,
    force: bool = False,
) -> Result:
    """Do what `train` does for one of many settings that are compared: only the seeds' results are kept."""
    task = _task(settings, splits, Path(folder), machine, keep=False)
    return task.combined(task.singles(force, progress))


def validated(result: Result) -> Mapping[str, Estimate]:
    """Return the numbers of a training on its validation split."""
    return next(group.metrics for group in result.groups if group.by["split"] == "validation")


def _task(
    settings: Settings, splits: Splits, place: Path, machine: Machine | None, keep: bool
) -> _Task:
    settings = settings.canonical()
    if fault := why_impossible(settings):
        raise InputError(Problem(settings.model, None, fault))
    if settings.texts != splits.texts:
        raise ValueError(f"texts is {settings.texts!r}; the data was read with {splits.texts!r}")
    content = revision(base_folder(settings.model, settings.revision))
    return _Task(settings, splits, place, machine, keep, content)


@dataclass(frozen=True)
class _Task:
    """One way to train on some data, in a folder."""

    settings: Settings
    splits: Splits
    place: Path
    machine: Machine | None
    keep: bool
    revision: str
    """Of the base encoder: the hub's commit, or a digest of its files."""

    def signature(self, settings: Settings) -> dict[str, Any]:
        """Return all that the numbers depend on."""
        return {
            "task": TASK,
            "setting": settings.described(),
            "model": settings.model,
            "revision": self.revision,
            "data": self.splits.fingerprint,
            "split": self.splits.reported,
            "settings": settings.document(),
            "template": TEMPLATES[settings.encoding],
            "targets": "(label - 1) / 4",
            "bootstrap": {"unit": "sentence pair", "resamples": RESAMPLES, "seed": 0},
            "processes": processes(),
            "rows_at_once": self.machine.rows_at_once if self.machine else None,
            "giccs": version("giccs"),
        }

    def known(self) -> tuple[Result, ...]:
        """Return the results of seeds that are there from before."""
        found = (self._known(self.settings.with_seed(seed)) for seed in self.settings.seeds)
        return tuple(one for one in found if one is not None)

    def singles(self, force: bool, progress: Progress) -> tuple[Result, ...]:
        """Return the result of each seed, from before or from a training."""
        found = []
        for seed in self.settings.seeds:
            settings = self.settings.with_seed(seed)
            known = None if force else self._known(settings)
            found.append(known or self._trained(settings, self.signature(settings), progress))
        return tuple(found)

    def _known(self, settings: Settings) -> Result | None:
        return Store(self.place / SEEDS).find(settings.model, TASK, self.signature(settings))

    def _trained(
        self, settings: Settings, signature: Mapping[str, Any], progress: Progress
    ) -> Result:
        from giccs.tasks.csts.encoders.trained import save_trained
        from giccs.tasks.csts.encoders.training import Machine, fit

        running = self.place / RUNNING / digest(signature)[:12]
        log.debug("training with seed %d, checkpoints in %s", settings.seeds[0], running)
        fitted = fit(settings, self.splits, running, self.machine or Machine(), progress)
        result = self._result(settings, signature, fitted)
        if is_first():
            if self.keep:
                save_trained(fitted.scorer, fitted.tokens, settings, self._model(settings))
            Store(self.place / SEEDS).add(result)
            shutil.rmtree(running)
        return result

    def _result(self, settings: Settings, signature: Mapping[str, Any], fitted: Fitted) -> Result:
        groups = tuple(
            Group({"split": split}, mean_metrics([scores], self.splits.rows(split)))
            for split, scores in fitted.predictions.items()
        )
        return Result(
            model=settings.model,
            task=TASK,
            metrics=groups[-1].metrics,
            groups=groups,
            signature=signature,
            environment={
                **self._environment(),
                "device": _device(fitted),
                "epochs": list(fitted.epochs),
                "best_epoch": fitted.best_epoch,
                "rows": dict(fitted.rows),
                "truncated": fitted.truncated,
            },
            seconds=fitted.seconds,
            predictions=self._table(fitted.predictions),
        )

    def combined(self, singles: tuple[Result, ...]) -> Result:
        """Return the result over all seeds; its predictions are their means, and each seed's own."""
        import polars

        store = Store(self.place / SEEDS)
        tables = [
            single.predictions if single.predictions is not None else store.predictions(single)
            for single in singles
        ]
        groups = tuple(
            Group({"split": split}, self._measured(split, tables))
            for split in dict.fromkeys(("validation", self.splits.reported))
        )
        reported = self.splits.reported
        columns = [_of(table, reported) for table in tables]
        rows = self.splits.rows(reported)
        return Result(
            model=self.settings.model,
            task=TASK,
            metrics=groups[-1].metrics,
            groups=groups,
            signature=self.signature(self.settings),
            environment={
                **self._environment(),
                "device": singles[0].environment["device"],
                "best_epochs": [single.environment["best_epoch"] for single in singles],
            },
            seconds=round(sum(single.seconds for single in singles), 3),
            predictions=polars.DataFrame(
                {
                    "uid": [one.uid for one in rows],
                    "prediction": np.mean(columns, axis=0),
                    "label": [one.label for one in rows],
                    **{
                        f"seed_{seed}": column
                        for seed, column in zip(self.settings.seeds, columns, strict=True)
                    },
                }
            ),
        )

    def models(self) -> tuple[Path, ...]:
        """Return the folders of trained models that are there."""
        found = (self._model(self.settings.with_seed(seed)) for seed in self.settings.seeds)
        return tuple(path for path in found if path.is_dir())

    def _model(self, settings: Settings) -> Path:
        return self.place / MODELS / digest(self.signature(settings))[:12]

    def _measured(self, split: str, tables: list[polars.DataFrame]) -> Mapping[str, Estimate]:
        return mean_metrics([_of(table, split) for table in tables], self.splits.rows(split))

    def _environment(self) -> dict[str, Any]:
        packages = ("torch", "transformers", "accelerate")
        return {
            "data": self.splits.name,
            **environment(),
            **{package: version(package) for package in packages},
        }

    def _table(self, predictions: Mapping[str, NDArray[np.float64]]) -> polars.DataFrame:
        import polars

        return polars.concat(
            polars.DataFrame(
                {
                    "split": [split] * len(scores),
                    "uid": [one.uid for one in self.splits.rows(split)],
                    "prediction": scores,
                    "label": [one.label for one in self.splits.rows(split)],
                }
            )
            for split, scores in predictions.items()
        )


def _of(table: polars.DataFrame, split: str) -> NDArray[np.float64]:
    """Return (N,) predictions of a split, in the order of its rows."""
    found: NDArray[np.float64] = table.filter(table["split"] == split)["prediction"].to_numpy()
    return found


def _device(fitted: Fitted) -> str:
    return str(next(fitted.scorer.parameters()).device)
