"""The plan of a demo run: dialogues, workers and models."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import resources
from importlib.metadata import version
from typing import Any

__all__ = ["OVERLAP", "Plan", "sample_dialogues"]

OVERLAP = "baseline:char-ngram"
PROMPTED = "package:smollm2"
SETTINGS = """\
# The study of giccs-demo; `mturk-hits estimate --default-config` explains every setting.
assignments = {workers}
dialogues_per_hit = 2
pseudonyms = false        # the workers are simulated: their ids hide nobody
"""


def sample_dialogues(first: int | None = None) -> str:
    """Return the dialogues of giccs-sample as JSON Lines, all or so many of them.

    >>> sample_dialogues(2).count('"dialogue_id"')
    2
    """
    text = (resources.files("giccs.data") / "dialogues.jsonl").read_text("utf-8")
    return "".join(text.splitlines(keepends=True)[:first])


@dataclass(frozen=True)
class Plan:
    """All that decides what is in the folder; two plans that are equal make the same benchmark."""

    dialogues: str
    """JSON Lines, with the levels that simulated workers take for true."""
    workers: int = 5
    """Each does every HIT."""
    noise: float = 0.2
    disagreement: float = 0.2
    careless: float = 0.02
    """With noise and disagreement as of giccs-sample: agreement and reliability as in the paper."""
    seed: int = 0
    pairs: tuple[str, ...] = (
        "baseline:chance",
        OVERLAP,
        "package:minilm",
        "package:use-multilingual",
    )
    """Models that compare pairs."""
    causal: tuple[str, ...] = (PROMPTED,)
    """Models that answer multiple choice."""
    every: int = 5
    """Causal models, on a processor, are asked about one dialogue of so many."""

    @property
    def settings(self) -> str:
        """Return the study's settings as TOML."""
        return SETTINGS.format(workers=self.workers)

    def document(self) -> dict[str, Any]:
        """Return what a folder remembers of the plan that it was made by."""
        return {
            "made_by": "giccs-demo",
            "version": version("giccs"),
            "dialogues": hashlib.sha256(self.dialogues.encode("utf-8")).hexdigest(),
            "workers": self.workers,
            "noise": self.noise,
            "disagreement": self.disagreement,
            "careless": self.careless,
            "seed": self.seed,
        }
