"""EvalRank's ranking and classification with the toy vectors of its authors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import giccs
from benchmarks.reproduced.similarity import EVALRANK, TOY
from benchmarks.reproduced.values import Numbers, Recipe
from bws.stats.estimates import Estimate
from giccs.evalrank.data import read_sentences, read_words
from giccs.evalrank.records import RankingData

WORDS, SENTENCES = "evalrank/word_evalrank", "evalrank/sent_evalrank"
WORD_FILES = tuple(f"{WORDS}/{name}.txt" for name in ("pos_pair_5514", "basic_vocab", "wiki_vocab"))
SENTENCE_FILES = tuple(f"{SENTENCES}/{name}.txt" for name in ("pos_pair", "background_sent"))
METRICS = {"MRR": "mrr", "Hits@1": "hits@1", "Hits@3": "hits@3", "mean rank": "mean_rank"}
ROUNDING = (
    "the program scores a pair by one routine and the other texts by another; the last bit of a product "
    "decides whether the positive's own copy is ranked above it, and depends on the machine"
)
MEAN = (
    "the program subtracts the mean of all 5,000 vectors; giccs, to which models do not show their "
    "vocabulary, that of the known words of the background; and the reason for l2"
)
DEFINITION = (
    "`--reference-compat` ranks as the authors' program does. By the definition of the paper, the default of "
    "giccs, values differ: [EvalRank](../how-to/evalrank.md#7-use-the-published-data), section 7."
)


def _ranks(folder: Path, task: str, data: str, **options: Any) -> Mapping[str, Estimate]:
    model = f"static:{folder / TOY}{options.pop('step', '')}"
    (result,) = giccs.evaluate(model, str(folder / data), task=task, reference=True, **options)
    return result.metrics


WORD_VARIANTS: Mapping[str, Mapping[str, str]] = {
    "cos": {},
    "l2": {"similarity": "l2"},
    "cos, post-processed": {"step": "+abtt:2"},
    "l2, post-processed": {"similarity": "l2", "step": "+abtt:2"},
}


def _words(folder: Path) -> Numbers:
    return {
        f"{title}, {variant}": metrics[name]
        for variant, options in WORD_VARIANTS.items()
        for metrics in [_ranks(folder, "evalrank-word", WORDS, **options)]
        for title, name in METRICS.items()
        if name != "mean_rank"
    }


def _sentences(folder: Path) -> Numbers:
    metrics = _ranks(folder, "evalrank-sentence", SENTENCES)
    return {title: metrics[name] for title, name in METRICS.items()}


def _counts(folder: Path) -> Numbers:
    words, sentences = (
        read(str(folder / data))
        for read, data in ((read_words, WORDS), (read_sentences, SENTENCES))
    )
    return _sizes("words", words) | _sizes("sentences", sentences)


def _sizes(name: str, data: RankingData) -> dict[str, float]:
    return {
        f"{name}, positive pairs": float(len(data.pairs)),
        f"{name}, background": float(len(data.texts)),
    }


def _table(values: Mapping[str, Sequence[str]]) -> dict[str, str]:
    return {
        f"{metric}, {variant}": value
        for variant, row in values.items()
        for metric, value in zip(METRICS, row, strict=False)
    }


CLASSIFICATION = {
    "SCICITE": "70.93", "MR": "62.71", "CR": "69.80", "MPQA": "78.97", "SUBJ": "83.04",
    "SST2": "63.15", "SST5": "34.93", "TREC": "66.60", "MRPC": "70.96", "SICK-E": "70.02",
}  # fmt: skip
FILES_OF_SETS = {
    "SCICITE": ("train.txt", "dev.txt", "test.txt"),
    "MR": ("rt-polarity.pos", "rt-polarity.neg"),
    "CR": ("custrev.pos", "custrev.neg"),
    "MPQA": ("mpqa.pos", "mpqa.neg"),
    "SUBJ": ("subj.subjective", "subj.objective"),
    "SST": tuple(
        f"{kind}/sentiment-{part}"
        for kind in ("binary", "fine")
        for part in ("train", "dev", "test")
    ),
    "TREC": ("train_5500.label", "TREC_10.label"),
    "MRPC": ("msr_paraphrase_train.txt", "msr_paraphrase_test.txt"),
    "SICK": ("SICK_train.txt", "SICK_trial.txt", "SICK_test_annotated.txt"),
}


def _accuracies(folder: Path) -> Numbers:
    data = str(folder / "evalrank")
    (result,) = giccs.evaluate(f"static:{folder / TOY}", data, task="classification")
    return {
        str(dict(group.by)["set"]): group.metrics["accuracy"].transformed(_percent)
        for group in result.groups
    }


def _percent(share: float) -> float:
    return 100 * share


COUNTS = Recipe(
    "EvalRank, ranking data",
    "Wang, Kuo and Li ([2022](https://aclanthology.org/2022.acl-long.419/)), Table 2",
    f"[word_evalrank and sent_evalrank]({EVALRANK}/tree/main/data)",
    f'giccs.evalrank.data.read_sentences("{SENTENCES}")',
    {
        "words, positive pairs": "5,514",
        "words, background": "22,207",
        "sentences, positive pairs": "6,989",
        "sentences, background": "24,957",
    },
    _counts,
    (*WORD_FILES, *SENTENCE_FILES),
)
RANKED_WORDS = Recipe(
    "EvalRank, toy vectors, words",
    f"EvalRank, [word_evalrank.md]({EVALRANK}/blob/main/benchmarking/word_evalrank.md), divided by 100",
    f"[toy vectors and word_evalrank]({EVALRANK})",
    f"giccs eval static:{TOY} --task evalrank-word --data {WORDS} --reference-compat",
    _table(
        {
            "cos": ("0.0318", "0.0118", "0.0354"),
            "l2": ("0.3759", "0.3547", "0.3778"),
            "cos, post-processed": ("0.0310", "0.0107", "0.0350"),
            "l2, post-processed": ("0.3773", "0.3555", "0.3799"),
        }
    ),
    _words,
    (TOY, *WORD_FILES),
    {"cos": MEAN, "": ROUNDING},
    remarks=(DEFINITION,),
    is_exact=False,
)
RANKED_SENTENCES = Recipe(
    "EvalRank, toy vectors, sentences",
    f"EvalRank, [log of the authors' program]({EVALRANK}/blob/main/scripts/sentence_cos/s_1.log), rounded",
    f"[toy vectors and sent_evalrank]({EVALRANK})",
    f"giccs eval static:{TOY} --task evalrank-sentence --data {SENTENCES} --reference-compat",
    {"MRR": "0.4115", "Hits@1": "0.2879", "Hits@3": "0.4965", "mean rank": "494.06"},
    _sentences,
    (TOY, *SENTENCE_FILES),
    {"": ROUNDING},
    remarks=(DEFINITION,),
    is_exact=False,
)
CLASSIFIED = Recipe(
    "EvalRank, toy vectors, classification",
    f"EvalRank, [log of the authors' program]({EVALRANK}/blob/main/scripts/sentence_cos/s_1.log), accuracies "
    "in percent",
    f"[toy vectors and sent_classification]({EVALRANK}/tree/main/data)",
    f"giccs eval static:{TOY} --task classification --data evalrank",
    CLASSIFICATION,
    _accuracies,
    (
        TOY,
        *(
            f"evalrank/sent_classification/{name}/{file}"
            for name, files in FILES_OF_SETS.items()
            for file in files
        ),
    ),
    {
        "": "the program trains a network with early stopping on vectors as they are; giccs computes the "
        "exact solution of logistic regression on standardised vectors, with other folds "
        "([limitations](../how-to/evalrank.md#9-limitations))"
    },
    is_exact=False,
)
RECIPES = (COUNTS, RANKED_WORDS, RANKED_SENTENCES, CLASSIFIED)
