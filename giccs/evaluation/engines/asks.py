"""What is asked of which model on what data: what an engine works off."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from giccs.measures.results import Result, Store, digest
from giccs.models import ModelOptions
from giccs.models.vocabulary import counted_tokens
from giccs.progress import Progress
from giccs.tasks import Data, Task

__all__ = ["Ask", "distinct", "evaluate"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ask:
    """One model, one task that it can do, one data set."""

    model: Any
    """Opened, its weights not loaded."""
    task: Task
    data: Data
    options: ModelOptions = field(default_factory=ModelOptions)
    """How the model was opened; another process opens it so again."""

    def __str__(self) -> str:
        return f"{self.model.name}: {self.task.name}"

    def known(self, store: Store) -> Result | None:
        """Return what the store knows of it."""
        signature = self.task.signature(self.model, self.data)
        log.debug(
            "%s on %s: %s, data %s, signature %s", self, self.data.name, self.data.described(),
            str(signature.get("data"))[:12], digest(signature)[:12],
        )  # fmt: skip
        return store.find(self.model.name, self.task.name, signature)


def evaluate(task: Task, model: Any, data: Data, progress: Progress) -> Result:
    """Return what the task measures; the result's environment has the counts of the tokens read."""
    with counted_tokens() as counts:
        result = task.evaluate(model, data, progress)
    return replace(result, environment={**result.environment, **counts.document()})


def distinct(asks: Iterable[Ask]) -> list[Ask]:
    """Return the asks that come to different results, all of a model together, models as they first come."""
    models: dict[int, dict[tuple[str, str], Ask]] = {}
    for ask in asks:
        of_model = models.setdefault(id(ask.model), {})
        of_model[ask.task.name, digest(ask.task.signature(ask.model, ask.data))] = ask
    return [ask for of_model in models.values() for ask in of_model.values()]
