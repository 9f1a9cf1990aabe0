"""Conversion of similarity data to ranking data (EvalRank, section 4.3).

Positive pairs are the top quarter of each set, in both directions; the background contains all texts of the
sets. Details that the paper does not specify were inferred from the published files. These rules reproduce
the word data byte by byte, and the sentence data as far as its sources are available:

- The top quarter of N pairs is the first N // 4 pairs after a stable sort by descending score. Among pairs
  tied at the cut, those that come first in the file are selected. Selecting all ties yields 110 word pairs
  too many, selecting none 112 too few.
- The quarter is taken from the whole data set: train, dev and test of STS-Benchmark are one set.
- Words are in lower case. The published word pairs contain no pair of a text with itself, the sentence pairs
  contain 13. Such pairs do not discriminate between models and are removed, except by presets.
- The background begins with the texts of the positive pairs and continues with the sets in file order. The
  published word pairs are sorted alphabetically, the sentence pairs by score.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bws.base.problems import InputError, Problem
from bws.base.text import read_text, write_atomic
from giccs.evalrank.similarity_data import SimilaritySet

Pair = tuple[str, str]
PAIRS_FILE = "pos_pair.txt"
WORDS_FILE, SENTENCES_FILE, FREQUENT_FILE = (
    "basic_vocab.txt",
    "background_sent.txt",
    "wiki_vocab.txt",
)
LOG_FILE = "build.json"
LINE_BREAKS = re.compile(r"[\t\n\r]+")
"""Characters that separate lines or the texts of a pair in the files."""
FREQUENT_COUNT = 20_000
"""Number of frequent texts in the background (EvalRank, section 4.3)."""
SELECTION_RULE = "the first floor(top * N) pairs of a set after a stable sort by falling score"


@dataclass(frozen=True, slots=True)
class BuildRules:
    """Rules for selecting and writing positive pairs."""

    top: float = 0.25
    """Share of the pairs of each set that is selected, in (0, 1]."""
    lowercase: bool = False
    identical: bool = False
    """Whether to keep pairs of a text with itself, which every model ranks first."""
    sort: bool = False
    """Whether to sort the pairs alphabetically instead of by score."""

    def __post_init__(self) -> None:
        if not 0 < self.top <= 1:
            raise ValueError(f"top is {self.top}; expected a number above 0 and at most 1")


@dataclass(frozen=True)
class RankingFiles:
    """Files of ranking data, and a log of how they were built."""

    files: Mapping[str, Sequence[str]]
    """Lines by file name: tab-separated pairs, background texts, frequent words."""
    log: Mapping[str, Any]


def build_ranking_data(
    sets: Sequence[SimilaritySet], rules: BuildRules | None = None, frequent: Sequence[str] = ()
) -> RankingFiles:
    """Build ranking data from rated pairs; `frequent` are additional background texts.

    If no text contains a space, the texts are words: the background is written to ``basic_vocab.txt`` and the
    frequent words to ``wiki_vocab.txt``. Otherwise the whole background is written to
    ``background_sent.txt``. Raises InputError if the top share of a set contains no pair, or if no pair
    remains.

    >>> from giccs.evalrank.similarity_formats import RatedPair
    >>> rated = [RatedPair("car", "auto", 9), RatedPair("car", "sea", 1), RatedPair("sea", "sky", 4)]
    >>> built = build_ranking_data([SimilaritySet("three", tuple(rated), None, ())], BuildRules(top=0.34))
    >>> built.files["pos_pair.txt"], built.files["basic_vocab.txt"]
    (['car\\tauto', 'auto\\tcar'], ['car', 'auto', 'sea', 'sky'])
    """
    rules = rules or BuildRules()
    selections = [_select_top_pairs(similarity_set, rules) for similarity_set in sets]
    top_pairs = [
        selection.pairs[index] for selection in selections for index in selection.top_indices
    ]
    kept_pairs = [pair for pair in top_pairs if rules.identical or pair[0] != pair[1]]
    pairs = list(
        dict.fromkeys(
            direction
            for first, second in kept_pairs
            for direction in _both_directions(first, second)
        )
    )
    if not pairs:
        names = ", ".join(similarity_set.name for similarity_set in sets)
        message = (
            "each of the most similar pairs consists of identical texts; expected different texts"
        )
        raise InputError(Problem(names, None, message))
    all_pairs = [pair for selection in selections for pair in selection.pairs]
    background = list(dict.fromkeys(text for pair in [*kept_pairs, *all_pairs] for text in pair))
    frequent_texts = list(dict.fromkeys(_to_single_line(text, rules) for text in frequent))
    files = _make_files(sorted(pairs) if rules.sort else pairs, background, frequent_texts)
    return RankingFiles(
        files,
        {
            "giccs": version("giccs"),
            "rules": {"choice": SELECTION_RULE, **asdict(rules)},
            "sources": [selection.log() for selection in selections],
            "chosen": len(top_pairs),
            "identical": sum(first == second for first, second in top_pairs),
            "repeated": len(kept_pairs) - len({frozenset(pair) for pair in kept_pairs}),
            "pairs": len(pairs),
            "background": len(background),
            "frequent": {"given": len(frequent), "different": len(frequent_texts)},
            "all_background": len({*background, *frequent_texts}),
            "files": {name: _digest(lines) for name, lines in files.items()},
        },
    )


def read_frequent(path: str | os.PathLike[str]) -> list[str]:
    """Return the first `FREQUENT_COUNT` texts of a file, one per line.

    Text after a tab (a frequency) is ignored. Empty lines are skipped. Raises InputError if the file contains
    no text.
    """
    lines = (line.partition("\t")[0].strip() for line in read_text(path).split("\n"))
    texts = [line for line in lines if line]
    if not texts:
        raise InputError(Problem(os.fspath(path), None, "no texts; expected one per line"))
    return texts[:FREQUENT_COUNT]


def write_ranking_files(built: RankingFiles, folder: str | os.PathLike[str]) -> None:
    """Write the files and ``build.json`` to a new or empty folder; raise InputError for other folders."""
    path = Path(folder)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        message = "already exists and is not an empty folder; expected a new or empty folder"
        raise InputError(Problem(str(folder), None, message))
    for name, lines in built.files.items():
        write_atomic(path / name, _join_lines(lines))
    log = json.dumps(built.log, ensure_ascii=False, indent=2)
    write_atomic(path / LOG_FILE, f"{log}\n")


@dataclass(frozen=True)
class _TopPairs:
    """Pairs of a similarity set as written to the files, with the indices of the selected pairs."""

    source: SimilaritySet
    pairs: Sequence[Pair]
    top_indices: Sequence[int]
    """Indices of the selected pairs, by descending score."""
    rewritten: int
    """Number of texts with a tab or line break, which is replaced with a space."""

    def log(self) -> dict[str, Any]:
        scores = [pair.score for pair in self.source.pairs]
        cut = scores[self.top_indices[-1]]
        return {
            "name": self.source.name,
            "files": [{"file": file, "sha256": sha256} for file, sha256 in self.source.files],
            "pairs": len(scores),
            "chosen": len(self.top_indices),
            "cut": cut,
            "tied_at_cut": scores.count(cut),
            "tied_at_cut_chosen": sum(scores[index] == cut for index in self.top_indices),
            "rewritten": self.rewritten,
        }


def _select_top_pairs(source: SimilaritySet, rules: BuildRules) -> _TopPairs:
    size = math.floor(len(source.pairs) * rules.top + 1e-9)  # 0.29 * 100 is 28.999999999999996
    if not size:
        size_text = f"{rules.top:g} of {len(source.pairs)} pairs is less than one pair"
        message = f"{source.name}: {size_text}; expected more pairs or a larger share"
        raise InputError(Problem(", ".join(file for file, _ in source.files), None, message))
    order = sorted(range(len(source.pairs)), key=lambda index: -source.pairs[index].score)
    pairs = [
        (_to_single_line(pair.text1, rules), _to_single_line(pair.text2, rules))
        for pair in source.pairs
    ]
    rewritten = sum(bool(LINE_BREAKS.search(text)) for pair in source.pairs for text in pair[:2])
    return _TopPairs(source, pairs, order[:size], rewritten)


def _to_single_line(text: str, rules: BuildRules) -> str:
    """Return a text without tabs and line breaks, in lower case if required by the rules."""
    text = LINE_BREAKS.sub(" ", text)
    return text.lower() if rules.lowercase else text


def _both_directions(first: str, second: str) -> tuple[Pair, Pair]:
    return (first, second), (second, first)


def _make_files(
    pairs: Sequence[Pair], background: Sequence[str], frequent_texts: Sequence[str]
) -> dict[str, Sequence[str]]:
    positive = {PAIRS_FILE: ["\t".join(pair) for pair in pairs]}
    if any(" " in text for text in background):
        return {**positive, SENTENCES_FILE: list(dict.fromkeys([*background, *frequent_texts]))}
    return {
        **positive,
        WORDS_FILE: background,
        **({FREQUENT_FILE: frequent_texts} if frequent_texts else {}),
    }


def _join_lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256(_join_lines(lines).encode("utf-8")).hexdigest()
