"""Counts of L-CSTS and C-STS, the worked example of L-CSTS, and numbers of GiCCS."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from benchmarks.reproduced.values import Numbers, Recipe
from giccs.benchmark import read_benchmark
from giccs.csts import tfs
from giccs.csts.data import read_csts, read_relabelled
from giccs.measures.comparison import share

L_CSTS = "l-csts/csts-val-reannotated.tsv"
C_STS = "c-sts/csts_validation.csv"
PAPER = "Tu et al. ([2024](https://aclanthology.org/2024.acl-long.64/))"
INVALID = -1


def _counts(folder: Path) -> Numbers:
    labels = [*read_relabelled(folder / L_CSTS).values()]
    invalid = labels.count(INVALID)
    return {"invalid conditions": float(invalid), "relabelled rows": float(len(labels) - invalid)}


def _label_changes(folder: Path) -> Numbers:
    labels = read_relabelled(folder / L_CSTS)
    original = {row.uid: row.label for row in read_csts(folder / C_STS).instances}
    pairs = np.array([(original[uid], new) for uid, new in labels.items() if new != INVALID], float)
    old, new = pairs.T
    return {
        "changed labels, percent": 100 * float(np.mean(old != new)),
        "Spearman of original and new labels, percent": 100 * float(spearmanr(old, new)[0]),
    }


def _figure_6(_: Path) -> Numbers:
    features = (
        tfs.Feature("type", "dog", "dog", 5, 0.6),
        tfs.Feature("color", None, None, None, None),
        tfs.Feature("count", 1, 1, 5, 0.2),
        tfs.Feature("position", "sitting", "in the air", 1, 0.2),
    )
    return {"similarity": tfs.score(tfs.Comparison("6", "Animal", "…", "…", features)).value}


QUESTIONS = 30
CORRECT = {
    "3 turns, with context": (4, "0.133", "0.063"),
    "3 turns, without context": (5, "0.166", "0.069"),
    "5 turns, with context": (3, "0.100", "0.055"),
    "5 turns, without context": (2, "0.067", "0.046"),
}


def _multiple_choice(_: Path) -> Numbers:
    values = {}
    for name, (n, *_others) in CORRECT.items():
        estimate = share(np.arange(QUESTIONS) < n)
        values[f"{name}, accuracy"] = estimate.value
        values[f"{name}, standard error"] = float(estimate.extra["stderr"])
    return values


GICCS = tuple(f"giccs/{n}_turn_dialogues/GiCCS_dataset_{n}_turn_dialogues.tsv" for n in (3, 5))


def _giccs(folder: Path) -> Numbers:
    benchmark = read_benchmark(str(folder / "giccs"))
    return {"items": float(len(benchmark.items))}


RECIPES = (
    Recipe(
        "L-CSTS, counts",
        f"{PAPER}, section 3.3",
        "[L-CSTS](https://github.com/brandeis-llc/L-CSTS)",
        f'giccs.csts.data.read_relabelled("{L_CSTS}")',
        {"invalid conditions": "214", "relabelled rows": "2,620"},
        _counts,
        (L_CSTS,),
    ),
    Recipe(
        "L-CSTS, worked example",
        f"{PAPER}, Figure 6",
        "in the paper",
        "giccs csts tfs --example",
        {"similarity": "4.2"},
        _figure_6,
    ),
    Recipe(
        "C-STS and L-CSTS, label changes",
        f"{PAPER}, sections 1 and 4.1",
        "[C-STS](https://github.com/princeton-nlp/c-sts), on request, decrypted; "
        "[L-CSTS](https://github.com/brandeis-llc/L-CSTS)",
        f"giccs csts check {C_STS} --relabelled {L_CSTS}",
        {
            "changed labels, percent": "55",
            "Spearman of original and new labels, percent": "49.22",
        },
        _label_changes,
        (C_STS, L_CSTS),
    ),
    Recipe(
        "GiCCS, multiple choice",
        "Asaadi et al. (2022), Table 6",
        "numbers of right answers to 30 questions, from the accuracies",
        "giccs.measures.comparison.share(correct)",
        {
            f"{name}, {statistic}": value
            for name, (_, *values) in CORRECT.items()
            for statistic, value in zip(("accuracy", "standard error"), values, strict=True)
        },
        _multiple_choice,
        reasons={"": "the paper cuts the digits of 0.1667 and 0.0557 instead of rounding"},
    ),
    Recipe(
        "GiCCS, release",
        "Asaadi et al. (2022), section 3.4",
        "[GiCCS](https://huggingface.co/datasets/sasaadi/GiCCS)",
        'len(giccs.load_benchmark("giccs").items)',
        {"items": "300"},
        _giccs,
        GICCS,
    ),
)
