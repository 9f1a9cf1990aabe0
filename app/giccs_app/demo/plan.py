"""The plan of a demo run: dialogues, workers and models."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import resources
from importlib.metadata import version
from typing import Any

OVERLAP = "baseline:char-ngram"
PROMPTED = "package:smollm2"
SETTINGS = """\
# The study of giccs demo; `giccs annotate estimate --default-config` explains every setting.
assignments = {workers}
dialogues_per_hit = 2
pseudonyms = false        # the workers are simulated: their ids hide nobody
"""


def sample_dialogues(first: int | None = None) -> str:
    """Return all or the first dialogues of giccs-sample as JSON Lines.

    >>> sample_dialogues(2).count('"dialogue_id"')
    2
    """
    text = (resources.files("giccs.data") / "dialogues.jsonl").read_text("utf-8")
    return "".join(text.splitlines(keepends=True)[:first])


@dataclass(frozen=True)
class Plan:
    """All settings of a run; equal plans produce equal benchmarks."""

    dialogues: str
    """JSON Lines with intended levels, the truth of the simulated workers."""
    workers: int = 5
    """Number of workers, each of whom completes all HITs."""
    noise: float = 0.2
    disagreement: float = 0.2
    careless: float = 0.02
    """With noise and disagreement as for giccs-sample, agreement and reliability are as in the paper."""
    offset_sd: float = 0.7
    """Standard deviation between dialogues in ratings, relative to that of the levels within them."""
    seed: int = 0
    pairs: tuple[str, ...] = (
        "baseline:chance",
        OVERLAP,
        "package:minilm",
        "package:use-multilingual",
    )
    """Models of pairwise STS."""
    causal: tuple[str, ...] = (PROMPTED,)
    """Models of multiple choice."""
    every: int = 5
    """Causal models are evaluated on every n-th dialogue, to save time on a CPU."""

    @property
    def settings(self) -> str:
        """Settings of the study as TOML."""
        return SETTINGS.format(workers=self.workers)

    def document(self) -> dict[str, Any]:
        """Return the JSON document that identifies the plan in a folder."""
        return {
            "made_by": "giccs-demo",
            "version": version("giccs"),
            "dialogues": hashlib.sha256(self.dialogues.encode("utf-8")).hexdigest(),
            "workers": self.workers,
            "noise": self.noise,
            "disagreement": self.disagreement,
            "careless": self.careless,
            "offset_sd": self.offset_sd,
            "seed": self.seed,
        }
