"""The alternative annotator test on the authors' nine data sets."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.reproduced.values import Numbers, Recipe
from bws.alternative_annotator import Wins, alternative_annotator_test

FOLDER = "alternative-annotator-test"
PUBLISHED = f"{FOLDER}/published.csv"
DATA_SETS = {
    "wax": "WAX",
    "lgbteen": "LGBTeen",
    "mtbench": "MT-Bench",
    "framing": "Framing",
    "cebab_aspects": "CEBaB-A",
    "summeval": "SummEval",
    "10k_prompts": "10K Prompts",
    "cebab_stars": "CEBaB-S",
    "lesion": "Lesion",
}
Labels = Mapping[str, Any]
"""Label by item."""


def wins_of_labels(people: Mapping[str, Labels], model: Labels, agreement: str) -> Wins:
    """Return the comparisons of a model with every annotator, on items that others labelled too.

    The score of a label is its mean agreement with the labels of the other annotators of the item:
    ``accuracy``, the share of equal labels, or ``negative RMSE``, minus the root of the mean squared
    difference (Calderon, Reichart and Dror 2025, section 3).
    """
    items = {item: n for n, item in enumerate(sorted({i for own in people.values() for i in own}))}
    rows = []
    for number, (name, own) in enumerate(people.items()):
        for item in own.keys() & model.keys():
            others = [labels[item] for n, labels in people.items() if n != name and item in labels]
            if others:
                of_model, of_annotator = (
                    _score(labels[item], others, agreement) for labels in (model, own)
                )
                as_good = (of_model >= of_annotator, of_annotator >= of_model)
                rows.append((number, items[item], *as_good))
    annotator, item_of, wins, losses = np.array(rows).T
    return Wins(tuple(people), annotator, item_of, wins.astype(float), losses.astype(float))


def _score(label: Any, others: list[Any], agreement: str) -> float:
    if agreement == "accuracy":
        return float(np.mean([label == other for other in others]))
    return -float(np.sqrt(np.mean([(float(label) - float(other)) ** 2 for other in others])))


def _published_rows(name: str, folder: Path) -> list[dict[str, str]]:
    with (folder / PUBLISHED).open(encoding="utf-8", newline="") as lines:
        return [row for row in csv.DictReader(lines) if row["set"] == name]


def _published(name: str, folder: Path) -> dict[str, str]:
    return {
        f"{title}, {row['model']}": row[column]
        for column, title in STATISTICS.items()
        for row in _published_rows(name, folder)
    }


STATISTICS = {
    "winning_rate": "winning rate",
    "advantage_probability": "advantage probability",
}


def _computed(name: str, folder: Path) -> Numbers:
    people, models = (
        json.loads((folder / FOLDER / f"{name}.{kind}.json").read_text(encoding="utf-8"))
        for kind in ("people", "models")
    )
    values: dict[str, Any] = {}
    for row in _published_rows(name, folder):
        compared = wins_of_labels(people, models[row["model"]], row["agreement"])
        test = alternative_annotator_test(compared, epsilon=float(row["epsilon"]))
        values[f"winning rate, {row['model']}"] = test.winning_rate
        values[f"advantage probability, {row['model']}"] = test.advantage
    return values


RECIPES = tuple(
    Recipe(
        f"Alternative annotator test: {title}",
        "Calderon, Reichart and Dror ([2025](https://arxiv.org/abs/2501.10970))",
        "[AltTest](https://github.com/nitaytech/AltTest), labels of people and models",
        "compared = wins_of_labels(people, model, agreement)  # benchmarks/reproduced/annotators.py\n"
        "bws.alternative_annotator.alternative_annotator_test(compared, epsilon=epsilon)",
        partial(_published, name),
        partial(_computed, name),
        (PUBLISHED, f"{FOLDER}/{name}.people.json", f"{FOLDER}/{name}.models.json"),
    )
    for name, title in DATA_SETS.items()
)
