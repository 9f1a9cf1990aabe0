"""Cost of designs, judgments files, scores and reliability for N items."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from bws.files import read_judgments, write_judgments, write_scores, write_tuples
from bws.scoring import score
from bws.simulation import simulate
from bws.split_half import reliability
from robustness.scale.sample import design
from robustness.scale.stopwatch import Stopwatch

__all__ = ["expected_reliability", "score_annotations", "write_annotations"]

ANNOTATIONS = 5
NOISE = 0.25
TRIALS = 10


def write_annotations(items: int, directory: str) -> dict[str, float]:
    """Create a design, and write it and a file of five simulated judgments per tuple into the folder."""
    folder, watch = Path(directory), Stopwatch()
    with watch.step("design"):
        tuples = design(items)
    with watch.step("write tuples"):
        write_tuples(tuples, folder / "tuples.csv")
    judgments = replace(simulate(tuples, _truth(items), ANNOTATIONS, noise=NOISE), shown=None)
    with watch.step("write judgments"):
        write_judgments(judgments, folder / "judgments.csv")
    sizes = {
        f"{name} B": (folder / f"{name}.csv").stat().st_size for name in ("tuples", "judgments")
    }
    return watch.figures | sizes


def _truth(items: int) -> np.ndarray:
    """Draw true scores from -1 to 1; a few fixed levels would be ties, whose ranks are not reproducible."""
    return np.random.Generator(np.random.PCG64(0)).uniform(-1, 1, items)


def score_annotations(items: int, directory: str) -> dict[str, float]:
    """Read the judgments file of the folder, count, write the scores, and compute the reliability."""
    folder, watch = Path(directory), Stopwatch()
    with watch.step("read judgments"):
        judgments = read_judgments(folder / "judgments.csv")
    with watch.step("count"):
        scores = score(judgments)
        write_scores(scores, folder / "scores.csv")
    with watch.step("reliability"):
        result = reliability(judgments, split="annotation", trials=TRIALS).groups[0]
    return watch.figures | {"spearman": result.spearman.mean}


def expected_reliability(tuples_an_item: float, annotations: int, items: int = 1_000) -> float:
    """Return the split-half reliability (Spearman's ρ) of a simulated study with the paper's design.

    As `bws.power`, but within dialogues of five candidates.
    """
    tuples = design(items, tuples_an_item)
    judgments = simulate(tuples, _truth(items), annotations, noise=NOISE)
    return reliability(judgments, split="annotation", trials=TRIALS).groups[0].spearman.mean
