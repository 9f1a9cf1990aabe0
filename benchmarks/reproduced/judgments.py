"""Published scores and counts of public sets of best–worst judgments."""

from __future__ import annotations

import csv
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import bws
from benchmarks.reproduced.values import Numbers, Recipe
from bws.records import Judgments, Scores

HALF_DIGIT = 1e-9
"""Tolerance of the comparison of a score with a rounded one."""

# Ruddit

RUDDIT = ("ruddit/Ruddit_individual_annotations.csv", "ruddit/Ruddit.csv")


def equal_scores(scores: Scores, published: dict[str, str]) -> float:
    """Return how many published scores are those of the same items, to their last digit."""
    computed = dict(zip(scores.items, scores.score, strict=True))
    return float(
        sum(
            item in computed and abs(computed[item] - float(text)) <= _half_unit(text)
            for item, text in published.items()
        )
    )


def _half_unit(text: str) -> float:
    return 0.5 * 10.0 ** -len(text.partition(".")[2]) + HALF_DIGIT


def _columns(path: Path, key: str, value: str) -> dict[str, str]:
    with path.open(encoding="utf-8", newline="") as lines:
        return {row[key]: row[value] for row in csv.DictReader(lines)}


def _ruddit(folder: Path) -> Numbers:
    scores = bws.score(folder / RUDDIT[0], control=["gold_comment"])
    # three decimals, of which the file leaves out zeros at the end
    published = {
        item: f"{float(text):.3f}"
        for item, text in _columns(folder / RUDDIT[1], "comment_id", "offensiveness_score").items()
    }
    return {
        "comments": float(len(scores.items)),
        "scores equal to three decimals": equal_scores(scores, published),
    }


RUDDIT_SCORES = Recipe(
    "Ruddit",
    "Hada et al. ([2021](https://aclanthology.org/2021.acl-long.210/)), scores of `Ruddit.csv`",
    "[Ruddit](https://github.com/hadarishav/Ruddit)",
    f"giccs score {RUDDIT[0]} --control gold_comment",
    {"comments": "6,000", "scores equal to three decimals": "6,000"},
    _ruddit,
    RUDDIT,
)

# SemRel

SEMREL = "https://github.com/semantic-textual-relatedness/Semantic_Relatedness_SemEval2024"
HINDI = ("semrel2024/hi_dev.csv", "semrel2024/hin_dev_with_labels.csv")


def letters_of(text: str) -> str:
    """Return the letters, marks and digits of a text in their canonical form.

    >>> letters_of('"Two" words,\\nnow.')
    'Twowordsnow'
    """
    return "".join(
        c for c in unicodedata.normalize("NFC", text) if unicodedata.category(c)[0] in "LMN"
    )


def _hindi(folder: Path) -> Numbers:
    judgments = bws.read_judgments(folder / HINDI[0])
    result = bws.score(judgments, scale="unit")
    by_letters = {letters_of(item): n for n, item in enumerate(result.items)}
    texts = _columns(folder / HINDI[1], "Text", "Score")
    published = {
        result.items[by_letters[letters_of(text)]]: score
        for text, score in texts.items()
        if letters_of(text) in by_letters
    }
    splits = bws.reliability(judgments)
    return {
        "sentence pairs with scores": float(len(texts)),
        "scores equal to two decimals": equal_scores(result, published),
        "Spearman of the halves, 100 splits": splits.groups[0].spearman.mean,
    }


HINDI_SCORES = Recipe(
    "SemRel, Hindi",
    "Ousidhoum et al. ([2024](https://arxiv.org/abs/2402.08638)), scores of `hin_dev_with_labels.csv`; "
    "halves: the program of Kiritchenko and Mohammad ([2016](https://arxiv.org/abs/1712.01741)) on the "
    "judgments, several runs",
    f"[Semantic_Relatedness_SemEval2024]({SEMREL})",
    f"giccs score {HINDI[0]} --scale unit\ngiccs reliability {HINDI[0]}",
    {
        "sentence pairs with scores": "288",
        "scores equal to two decimals": "288",
        "Spearman of the halves, 100 splits": "0.953 to 0.954",
    },
    _hindi,
    HINDI,
    {
        "equal": "the two files word 12 pairs differently, so that their scores cannot be assigned by text; "
        "no pair with the same words has another score"
    },
)

# bwsTools

BWSTOOLS = "https://github.com/markhwhiteii/bwsTools"
VDATA, INDIV, AGG = (f"bwstools/{name}.csv" for name in ("vdata", "indiv", "agg"))
ISSUES = {
    "abortion": (302, 352), "biasmedia": (124, 808), "corruption": (318, 351), "crime": (286, 282),
    "drugs": (163, 463), "economy": (634, 119), "education": (467, 252), "foreignaffairs": (121, 545),
    "guns": (354, 290), "healthcare": (731, 125), "natsecurity": (364, 221), "race": (300, 392),
    "taxes": (386, 350),
}  # fmt: skip
APPEARANCES = 1400
PEOPLE = {("10", "crime"): "-2", ("1", "healthcare"): "-3"}


def _issues(folder: Path) -> Numbers:
    scores = bws.score(folder / VDATA)
    counts = zip(scores.items, scores.appearances, scores.best, scores.worst, strict=True)
    return {
        f"{item}, {name}": float(value)
        for item, *values in counts
        for name, value in zip(("appearances", "best", "worst"), values, strict=True)
    }


VIGNETTE = Recipe(
    "bwsTools, vdata",
    "[bwsTools](https://cran.r-project.org/package=bwsTools) 1.2.0, vignette on aggregate scores: `totl`, "
    "`best`, `wrst`",
    f"[vdata]({BWSTOOLS})",
    f"giccs score {VDATA}",
    {
        f"{issue}, {name}": f"{value:,}"
        for issue, (best, worst) in ISSUES.items()
        for name, value in (("appearances", APPEARANCES), ("best", best), ("worst", worst))
    },
    _issues,
    (VDATA,),
)


def _of_annotator(judgments: Judgments, name: str) -> Judgments:
    index = [str(float(annotator)) for annotator in judgments.annotators].index(f"{name}.0")
    return judgments.select(np.flatnonzero(judgments.annotator_of == index))


def best_minus_worst(judgments: Judgments, name: str, item: str) -> float:
    """Return how often an annotator chose an item as best, minus as worst."""
    scores = bws.score(_of_annotator(judgments, name))
    index = list(scores.items).index(item)
    return float(scores.best[index] - scores.worst[index])


def _people(folder: Path) -> Numbers:
    judgments = bws.read_judgments(folder / INDIV)
    return {
        f"person {name}, {item}, best minus worst": best_minus_worst(judgments, name, item)
        for name, item in PEOPLE
    }


def _rows(folder: Path) -> Numbers:
    read = {
        name: bws.read_judgments(folder / file)
        for name, file in (("vdata", VDATA), ("indiv", INDIV), ("agg", AGG))
    }
    return {
        f"rows of {name}": float(len(judgments) * judgments.tuples.k)
        for name, judgments in read.items()
    }


DIFFERENCES = Recipe(
    "bwsTools, indiv",
    f"bwsTools, [test of diffscoring]({BWSTOOLS}/blob/master/tests/testthat/test_diffscoring.R)",
    f"[indiv]({BWSTOOLS})",
    'best_minus_worst(bws.read_judgments("bwstools/indiv.csv"), "10", "crime")'
    "  # benchmarks/reproduced/judgments.py",
    {f"person {name}, {item}, best minus worst": value for (name, item), value in PEOPLE.items()},
    _people,
    (INDIV,),
)
SIZES = Recipe(
    "bwsTools, sizes",
    f"bwsTools, [manual pages]({BWSTOOLS}/tree/master/man)",
    f"[vdata, indiv and agg]({BWSTOOLS})",
    f"len(bws.read_judgments({VDATA!r})) * 4",
    {"rows of vdata": "18,200", "rows of indiv": "520", "rows of agg": "400"},
    _rows,
    (VDATA, INDIV, AGG),
)

# Hollis

HOLLIS = "hollis-age-of-acquisition"


def compliances(judgments: Judgments) -> Sequence[float]:
    """Return the share of implied pairs of each annotator that agree with the scores of all, ascending.

    Scores are those of value learning; the annotator's own judgments are among them, as in Hollis's program.
    """
    utility = bws.utilities(judgments, "value-learning").utility
    rows = np.arange(len(judgments))
    scores = utility[judgments.tuples.members[judgments.tuple_of]]
    best, worst = (scores[rows, answer][:, None] for answer in (judgments.best, judgments.worst))
    agreeing = (best > scores).sum(axis=1) + (worst < scores).sum(axis=1) - (best > worst)[:, 0]
    pairs = 2 * judgments.tuples.k - 3
    sums = np.bincount(judgments.annotator_of, agreeing)
    return sorted(sums / (pairs * np.bincount(judgments.annotator_of)))


def _hollis(folder: Path) -> Numbers:
    judgments = bws.read_judgments(sorted((folder / HOLLIS).glob("*.csv")))
    values = compliances(judgments)
    return {
        "participants": float(len(judgments.annotators)),
        "words": float(len(judgments.tuples.items)),
        "lowest compliance, percent": 100 * values[0],
    }


AGE_OF_ACQUISITION = Recipe(
    "Hollis, age of acquisition",
    "best-worst-tools, [README](https://github.com/haratimo/best-worst-tools/blob/main/bestworst_tools_python3/"
    "README.txt)",
    "[best-worst-tools](https://github.com/haratimo/best-worst-tools), `samples/aoa_raw_data`",
    f'compliances(bws.read_judgments(sorted(Path("{HOLLIS}").glob("*.csv"))))'
    "  # benchmarks/reproduced/judgments.py",
    {"participants": "72", "words": "1,040", "lowest compliance, percent": "58.5"},
    _hollis,
    (HOLLIS,),
    remarks=(
        "`giccs agreement --annotators` compares annotators with the *others* only: their own judgments, "
        "which Hollis's program includes, raise compliance.",
    ),
)
RECIPES = (RUDDIT_SCORES, HINDI_SCORES, VIGNETTE, DIFFERENCES, SIZES, AGE_OF_ACQUISITION)
