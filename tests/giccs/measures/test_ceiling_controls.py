"""The noise ceiling of scores from judgments with control items."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import bws
from bws.base.problems import InputError
from bws.components import components
from bws.files import read_judgments
from giccs.benchmark import Benchmark
from giccs.benchmark.items import Item, Turn
from giccs.measures.ceiling import noise_ceiling


def rows() -> Iterator[str]:
    """Yield judgments of 20 dialogues: all triples of five utterances, with one of two control items."""
    random = np.random.Generator(np.random.PCG64(0))
    for dialogue, triple, annotator in itertools.product(
        range(20), itertools.combinations(range(5), 3), range(3)
    ):
        names, merit = ["abcde"[n] for n in triple], np.array(triple) + random.gumbel(size=3)
        if sum(triple) % 4 == 0:
            names, merit = [*names, "gold"], np.append(merit, 1.0 + random.gumbel())
        else:
            names, merit = [*names, "gold2"], np.append(merit, -9.0)
        best, worst = names[int(np.argmax(merit))], names[int(np.argmin(merit))]
        yield ",".join([f"d{dialogue}", *names, best, worst, f"w{annotator}"])


def benchmark_of(scores: bws.Scores) -> Benchmark:
    items = [
        Item(f"{group}-{item}", group, "", "", (Turn("", "x"),), item, item, float(score))
        for group, item, score in zip(scores.groups, scores.items, scores.score, strict=True)
    ]
    return Benchmark("made", tuple(items))


def test_the_ceiling_is_that_of_the_scores_from_all_rows(tmp_path: Path) -> None:
    path = tmp_path / "judgments.csv"
    path.write_text(
        "\n".join(["group,item1,item2,item3,item4,best,worst,annotator", *rows()]) + "\n"
    )
    judgments = read_judgments(path, control=["gold", "gold2"])
    scores = bws.score(judgments, scale="unit")
    assert len(scores) == 100
    ceiling = noise_ceiling(judgments, benchmark_of(scores))["pearson"]
    signed = 2 * scores.score - 1
    error = components(judgments.canonical).error.mean()
    assert ceiling.value == pytest.approx(np.sqrt(1 - error / np.var(signed, ddof=1)), abs=1e-9)
    assert ceiling.low < ceiling.value < ceiling.high
    with pytest.raises(InputError, match="items are not judged"):
        noise_ceiling(judgments, benchmark_of(bws.score(path, scale="unit")))
