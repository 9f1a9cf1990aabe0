"""Correlations of models with rated sentence pairs: MiniLM, and the toy vectors of EvalRank."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import giccs
from benchmarks.reproduced.values import Numbers, Recipe, as_estimate
from bws.stats.estimates import Estimate
from giccs.evalrank.similarity_data import read_similarity
from giccs.measures.results import Result

Floats = NDArray[np.floating]
TASK = "sentence-similarity"
MINILM = "package:minilm"
REVISION = "8b3219a92973c328a8e22fadcfa821b5dc75636a"
MTEB = (
    "mteb, [results of all-MiniLM-L6-v2](https://github.com/embeddings-benchmark/results/tree/main/results/"
    f"sentence-transformers__all-MiniLM-L6-v2/{REVISION}), rounded to four places"
)
EVALRANK = "https://github.com/BinWang28/EvalRank-Embedding-Evaluation"
PAIRS = (
    "[an evaluation with mteb](https://github.com/tlkahn/Language-Model-STS-CFT/blob/main/eval/mteb/results/"
    "sts_eval_results.md)"
)
GERMAN = "german-STSbenchmark, machine translation by T-Systems on site services, CC BY-SA 4.0"
OTHER_COPY = (
    "the weights are the same, because the English values are equal; mteb reads another copy of the German "
    "sentences (revision e3690754), which was not compared with this one"
)
SEMEVAL = f"[inputs and gold scores]({EVALRANK}/tree/main/data/sent_similarity/STS)"
TOY = "evalrank/toy_emb.txt"
TOY_LOG = (
    f"EvalRank, [log of the authors' program]({EVALRANK}/blob/main/scripts/sentence_cos/s_1.log), rounded to "
    "four places"
)
STS_SETS = {
    "12": ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    "13": ("FNWN", "OnWN", "headlines"),
    "14": ("OnWN", "deft-forum", "deft-news", "headlines", "images", "tweet-news"),
    "15": ("answers-forums", "answers-students", "belief", "headlines", "images"),
    "16": ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}


def sts_files(year: str) -> tuple[str, ...]:
    """Return the files of the English test set of a year, 12 to 16."""
    kinds = ("input", "gs")
    folder = f"sts12-16/STS{year}-en-test"
    return tuple(f"{folder}/STS.{kind}.{name}.txt" for name in STS_SETS[year] for kind in kinds)


def _result(model: object, data: Path, **options: Any) -> Result:
    return giccs.evaluate(model, str(data), **{"task": TASK} | options)[0]


def _all_pairs(result: Result) -> Mapping[str, Estimate]:
    """Return the metrics over all pairs, not the mean over sets."""
    groups = [group.metrics for group in result.groups if dict(group.by) == {"pairs": "all"}]
    return groups[0] if groups else result.metrics


def _minilm(path: str, folder: Path) -> Numbers:
    metrics = _all_pairs(_result(MINILM, folder / path))
    return {"Spearman": metrics["spearman"], "Pearson": metrics["pearson"]}


def _minilm_and_pairs(path: str, folder: Path) -> Numbers:
    metrics = _minilm(path, folder)
    return {"pairs": float(as_estimate(metrics["Spearman"]).size), **metrics}


def _minilm_recipe(
    title: str, path: str, values: Mapping[str, str], files: Sequence[str], address: str = SEMEVAL
) -> Recipe:
    """Declare the correlations over all pairs."""
    return Recipe(
        f"{title}, MiniLM",
        f"{MTEB}; pairs: {PAIRS}" if "pairs" in values else MTEB,
        address,
        f"giccs eval {MINILM} --task {TASK} --data {path}",
        values,
        partial(_minilm_and_pairs if "pairs" in values else _minilm, path),
        files,
        {"Spearman|Pearson": OTHER_COPY} if address == GERMAN else {},
        is_exact=False,
    )


def _values(spearman: str, pearson: str, pairs: str = "") -> dict[str, str]:
    return ({"pairs": pairs} if pairs else {}) | {"Spearman": spearman, "Pearson": pearson}


_STSB = "evalrank/sent_similarity/STS/STSBenchmark/sts-test.csv"
_SICK = "evalrank/sent_similarity/SICK"
_SICK_FILES = tuple(f"{_SICK}/SICK_{part}.txt" for part in ("train", "trial", "test_annotated"))
_SICK_ADDRESS = f"[SICK]({EVALRANK}/tree/main/data/sent_similarity/SICK)"
MINILM_RECIPES = (
    *(
        _minilm_recipe(f"STS{year}", f"sts12-16/STS{year}-en-test", values, sts_files(year))
        for year, values in {
            "12": _values("0.7237", "0.8136", "3,108"),
            "13": _values("0.8060", "0.8015", "1,500"),
            "15": _values("0.8539", "0.8474", "3,000"),
            "16": _values("0.7899", "0.7794", "1,186"),
        }.items()
    ),
    _minilm_recipe("STS-B, test", _STSB, _values("0.8203", "0.8274", "1,379"), (_STSB,)),
    _minilm_recipe("SICK", _SICK, _values("0.7758", "0.8392", "9,927"), _SICK_FILES, _SICK_ADDRESS),
    *(
        _minilm_recipe(
            f"German STS-B, {split}", f"stsb-de/stsb_de_{split}.csv", values,
            (f"stsb-de/stsb_de_{split}.csv",), GERMAN,
        )
        for split, values in {
            "test": _values("0.6056", "0.6105"),
            "dev": _values("0.6729", "0.6716"),
        }.items()
    ),
)  # fmt: skip


# The toy vectors


def toy_vectors(folder: Path) -> dict[str, Floats]:
    """Read the 5,000 word vectors of EvalRank, in 32 bits as the authors' program does."""
    with (folder / TOY).open(encoding="utf-8", newline="\n") as lines:
        rows = [line.rstrip("\n").split(" ") for line in lines]
    return {word: np.array(numbers, np.float32) for word, *numbers in rows}


def bag_of_words(
    vectors: Mapping[str, Floats], words: Callable[[str], Sequence[str]]
) -> Callable[[Sequence[str], Sequence[str]], Floats]:
    """Return the cosines of mean vectors of known words, as the authors' program computes them.

    A text without known words has a vector of equal tiny numbers. words: the words of a text.
    """

    def mean(text: str) -> Floats:
        known = [vectors[word] for word in words(text.lower()) if word in vectors]
        return np.asarray(np.mean(known, axis=0) if known else np.full(50, 1e-9))

    def similarity(left: Sequence[str], right: Sequence[str]) -> Floats:
        pairs = zip(map(mean, left), map(mean, right), strict=True)
        return np.array([cosine(first, second) for first, second in pairs])

    return similarity


def cosine(first: Floats, second: Floats) -> float:
    """Return the cosine of two vectors."""
    return float(first @ second / (np.linalg.norm(first) * np.linalg.norm(second)))


def _weighted(result: Result) -> Numbers:
    """Return means over sets, weighted by their numbers of pairs, as in SentEval."""
    sets = [group.metrics for group in result.groups if list(group.by) == ["set"]]
    n = np.array([metrics["spearman"].size for metrics in sets])
    return {
        name: float(np.average([metrics[name].value for metrics in sets], weights=n))
        for name in ("pearson", "spearman")
    }


def _toy_sentences(folder: Path) -> Numbers:
    vectors = toy_vectors(folder)
    by_words, by_letters = (bag_of_words(vectors, words) for words in (str.split, list))
    metrics = {
        f"STS{year}": _weighted(_named(by_words, folder / f"sts12-16/STS{year}-en-test"))
        for year in ("12", "13", "14", "15")
    }
    metrics["STS-B, test"] = _named(by_words, folder / _STSB).metrics
    metrics["SICK, test"] = _named(by_words, folder / _SICK_FILES[-1]).metrics
    metrics["STR-2022"] = _named(by_letters, folder / STR).metrics
    return {
        f"{title}, {name.title()}": values[name]
        for title, values in metrics.items()
        for name in ("spearman", "pearson")
    }


def _named(model: object, data: Path, **options: Any) -> Result:
    return _result(model, data, name="toy vectors", **options)


STR = "str-2022/sem_text_rel_ranked.csv"
TOY_SENTENCES = Recipe(
    "EvalRank, toy vectors, sentence similarity",
    TOY_LOG,
    f"[toy vectors, SICK, STS-B and STS12 to 15]({EVALRANK}), "
    "[STR-2022](https://doi.org/10.5281/zenodo.7599667)",
    "model = bag_of_words(toy_vectors(folder), str.split)  # benchmarks/reproduced/similarity.py\n"
    'giccs.evaluate(model, "sts12-16/STS12-en-test", task="sentence-similarity", name="toy vectors")',
    {
        f"{title}, {name}": value
        for title, values in {
            "STS12": ("0.4286", "0.3034"),
            "STS13": ("0.3504", "0.3138"),
            "STS14": ("0.4112", "0.3743"),
            "STS15": ("0.5205", "0.4626"),
            "STS-B, test": ("0.3075", "0.2386"),
            "SICK, test": ("0.4779", "0.4882"),
            "STR-2022": ("0.3553", "0.3150"),
        }.items()
        for name, value in zip(("Spearman", "Pearson"), values, strict=True)
    },
    _toy_sentences,
    (
        TOY,
        *(file for year in ("12", "13", "14", "15") for file in sts_files(year)),
        _STSB,
        _SICK_FILES[-1],
        STR,
    ),
    {
        "": "sentences with the same words have a cosine of 1 except for rounding, which orders such pairs "
        "at random: with vectors in 64 bits, the value is another one"
    },
    remarks=(
        "Values of a year are means over its sets, weighted by their numbers of pairs, as the log says. The "
        "program gives a sentence without known words a vector of equal tiny numbers, and so does the model "
        "here; `static:toy_emb.txt` excludes these pairs and says how many (22 of 3,108 in STS12).",
        "In the program, the sentences of STR-2022 are not divided into words, and so the published values "
        "are those of the vectors of *letters*; other sets are not affected. With words, `giccs eval` has a "
        "Spearman correlation of 0.376.",
    ),
    is_exact=False,
)


def _toy_words(folder: Path) -> Numbers:
    metrics = {
        similarity: _named(
            word_similarity(toy_vectors(folder), similarity), folder / WS353, task="word-similarity"
        ).metrics
        for similarity in ("cos", "l2")
    }
    return {
        f"{name.title()}, {similarity}": values[name]
        for similarity, values in metrics.items()
        for name in ("spearman", "pearson")
    }


def word_similarity(
    vectors: Mapping[str, Floats], similarity: str
) -> Callable[[Sequence[str], Sequence[str]], Floats]:
    """Return similarities of words as the authors' program computes them.

    Unknown words have the mean of all vectors. For ``cos``, vectors are centred and divided by their length
    before, and similarities are inner products; for ``l2``, they are 1 / (1 + distance).
    """
    matrix = np.stack([*vectors.values()])
    if similarity == "cos":
        matrix = matrix - matrix.mean(axis=0)
        matrix = matrix / np.linalg.norm(matrix, axis=1)[:, None]
    prepared, mean = dict(zip(vectors, matrix, strict=True)), matrix.mean(axis=0)

    def one(left: str, right: str) -> float:
        first, second = (prepared.get(word.lower(), mean) for word in (left, right))
        if similarity == "cos":
            return float(first @ second)
        return float(1 / (1 + np.linalg.norm(first - second)))

    def all_pairs(left: Sequence[str], right: Sequence[str]) -> Floats:
        return np.array([one(*pair) for pair in zip(left, right, strict=True)])

    return all_pairs


WS353 = "evalrank/word_similarity/EN-WS-353-ALL.txt"
TOY_WORDS = Recipe(
    "EvalRank, toy vectors, WS-353",
    f"EvalRank, [word_similarity.md]({EVALRANK}/blob/main/benchmarking/word_similarity.md), divided by 100",
    f"[toy vectors and WS-353]({EVALRANK})",
    'model = word_similarity(toy_vectors(folder), "cos")  # benchmarks/reproduced/similarity.py\n'
    'giccs.evaluate(model, "evalrank/word_similarity/EN-WS-353-ALL.txt", task="word-similarity", '
    'name="toy vectors")',
    {
        "Spearman, cos": "0.2220",
        "Pearson, cos": "0.3186",
        "Spearman, l2": "0.2463",
        "Pearson, l2": "0.0751",
    },
    _toy_words,
    (TOY, WS353),
    remarks=(
        "For cosines, the program first subtracts the mean vector. It gives unknown words, which are in 153 "
        "of the 353 pairs, the mean of the vectors; `static:toy_emb.txt` excludes these pairs and says so.",
    ),
)


def _pairs(folder: Path) -> Numbers:
    return {"sentence pairs": float(sum(len(s.pairs) for s in read_similarity(folder / STR).sets))}


STR_2022 = Recipe(
    "STR-2022",
    "Abdalla, Vishnubhotla and Mohammad ([2023](https://arxiv.org/abs/2110.04845)), abstract",
    "[STR-2022](https://doi.org/10.5281/zenodo.7599667)",
    f'len(giccs.evalrank.similarity_data.read_similarity("{STR}").sets[0].pairs)',
    {"sentence pairs": "5,500"},
    _pairs,
    (STR,),
)
RECIPES = (*MINILM_RECIPES, TOY_SENTENCES, TOY_WORDS, STR_2022)
