"""Worked examples and test cases in the documentation of other programs, restated as judgments."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

import bws
from benchmarks.reproduced.values import Numbers, Recipe
from bws.records import Judgments

Units = Sequence[Sequence[int | None]]
"""Label from 1 of each coder, one row per coder; None: not labelled."""


def labelled(coders: Units, k: int) -> Judgments:
    """Return labels 1 to k as judgments: each unit is a tuple of k items, and the label is the best item.

    The worst item is the next one, so that best and worst have the same agreement.
    """
    return bws.judgments_from_records(
        bws.Judgment(
            tuple(f"{unit}:{label}" for label in range(k)),
            f"{unit}:{label - 1}",
            f"{unit}:{label % k}",
            annotator=f"coder {coder}",
            tuple_id=f"unit {unit}",
        )
        for coder, labels in enumerate(coders)
        for unit, label in enumerate(labels)
        if label is not None
    )


def alpha(coders: Units, k: int) -> float:
    """Return Krippendorff's alpha for nominal labels 1 to k, as alpha over positions."""
    return bws.agreement(labelled(coders, k)).groups[0].alpha_positions["best"]


_: None = None
THREE_CODERS = [
    [_, _, _, _, _, 3, 4, 1, 2, 1, 1, 3, 3, _, 3],
    [1, _, 2, 1, 3, 3, 4, 3, _, _, _, _, _, _, _],
    [_, _, 2, 1, 3, 4, 4, _, 2, 1, 1, 3, 3, _, 4],
]
FOUR_CODERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
    [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
]
THREE_WORDS: Units = [[1, 2, 3, _], [1, 2, 3, 1], [1, 2, 1, 1]]
"""pos, neg, neu."""
ARTSTEIN_POESIO = [(1, 1)] * 46 + [(2, 1)] * 6 + [(2, 2)] * 32 + [(2, 3)] * 6 + [(3, 3)] * 10
"""Labels of two coders: stat, ireq, chck."""


def _krippendorff(folder: Path) -> Numbers:
    return {
        "alpha, three coders, 15 units": alpha(THREE_CODERS, 4),
        "alpha, labels that are words": alpha(THREE_WORDS, 3),
    }


def _nltk(folder: Path) -> Numbers:
    groups = bws.agreement(labelled([*zip(*ARTSTEIN_POESIO, strict=True)], 3)).groups
    return {
        "alpha, four coders, 12 units": alpha(FOUR_CODERS, 5),
        "observed agreement, Artstein and Poesio": groups[0].observed["best"],
        "S, Artstein and Poesio": groups[0].alpha["best"],
    }


# choix

PAIRS = {
    "cycle": [(0, 1), (1, 2), (2, 0)],
    "cycle with one more win": [(0, 1), (0, 1), (1, 2), (2, 0)],
}
RANKINGS = [(0, 1, 2), (1, 2, 0), (2, 0, 1)]
FLAT_PRIOR = 1e4
"""Standard deviation of a prior that does not matter: maximum likelihood."""


def logits(rankings: Sequence[Sequence[int]], method: str) -> np.ndarray:
    """Return maximum-likelihood utilities of items 0, 1, ... from rankings of two or three of them."""
    judged = bws.judgments_from_records(
        bws.Judgment(tuple(map(str, sorted(ranking))), str(ranking[0]), str(ranking[-1]))
        for ranking in rankings
    )
    utility = bws.utilities(judged, method, prior=FLAT_PRIOR).utility
    return np.array(utility[np.argsort(judged.tuples.items)])


def _choix(folder: Path) -> Numbers:
    values = {}
    for name, pairs in PAIRS.items():
        strength = np.exp(logits(pairs, "bradley-terry"))
        for item, value in enumerate(strength / strength.mean()):
            values[f"Bradley–Terry, {name}, item {item}"] = float(value)
    for item, value in enumerate(logits(RANKINGS, "plackett-luce")):
        values[f"Plackett–Luce, cyclic rankings, item {item}"] = float(value)
    return values


CHOIX = "https://github.com/lucasmaystre/choix/blob/master/tests/data"
HERE = "in the test"
RECIPES = (
    Recipe(
        "krippendorff, worked examples",
        "krippendorff, [tests](https://github.com/pln-fing-udelar/fast-krippendorff/blob/main/tests/"
        "test_krippendorff.py)",
        HERE,
        "alpha(THREE_CODERS, 4)  # benchmarks/reproduced/examples.py",
        {"alpha, three coders, 15 units": "0.691358", "alpha, labels that are words": "0.722222"},
        _krippendorff,
    ),
    Recipe(
        "NLTK, worked examples",
        "NLTK, [tests of agreement](https://github.com/nltk/nltk/blob/develop/nltk/test/unit/"
        "test_disagreement.py) and [documentation](https://www.nltk.org/api/nltk.metrics.agreement.html), of "
        "Artstein and Poesio's example",
        HERE,
        "alpha(FOUR_CODERS, 5)  # benchmarks/reproduced/examples.py",
        {
            "alpha, four coders, 12 units": "0.743421052632",
            "observed agreement, Artstein and Poesio": "0.88",
            "S, Artstein and Poesio": "0.82",
        },
        _nltk,
        remarks=(
            "S corrects for a chance of one in three labels, as alpha of `giccs agreement` does for "
            "positions that are random.",
        ),
    ),
    Recipe(
        "choix, test cases",
        f"choix, test cases of [pairs]({CHOIX}/testcase-pairwise-2.json) and "
        f"[rankings]({CHOIX}/testcase-rankings-1.json)",
        HERE,
        'logits(RANKINGS, "plackett-luce")  # benchmarks/reproduced/examples.py',
        {
            **{f"Bradley–Terry, cycle, item {item}": "1.0" for item in range(3)},
            "Bradley–Terry, cycle with one more win, item 0": "1.43586088",
            "Bradley–Terry, cycle with one more win, item 1": "0.62035049",
            "Bradley–Terry, cycle with one more win, item 2": "0.94378863",
            **{f"Plackett–Luce, cyclic rankings, item {item}": "0.0" for item in range(3)},
        },
        _choix,
        reasons={"": "the exact value is 0.943788637: the last published digit is off by one"},
        remarks=("Strengths of Bradley–Terry have a mean of 1.",),
    ),
)
