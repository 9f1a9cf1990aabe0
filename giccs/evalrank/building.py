"""How does similarity data become ranking data?  (EvalRank, section 4.3)

Positive pairs are the top quarter of every set, each with its reverse; the background is every text of the
sets. What the paper leaves open was found in the published files, which these rules rebuild byte by byte (the
word set whole, the sentence set as far as its sources are there):

- The top quarter of N pairs is the first N // 4 after a stable sort by falling score: among pairs that tie at
  the cut, those that stand first in the file are taken. To take all ties gives 110 word pairs too many, to
  take none 112 too few.
- The quarter is of a data set as a whole: train, dev and test of STS-Benchmark are one.
- Words are lower case; pairs of a text with itself are not among the words, and 13 are among the sentences.
  They tell nothing of a model, so here they go, unless a preset rebuilds what was published.
- The background begins with the texts of the positive pairs and goes on with the sets in file order. The
  published word pairs are sorted, the sentence pairs stand in the order of their scores.
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

from bws.problems import InputError, Problem
from bws.textio import read_text, write_atomic
from giccs.evalrank.similarity_data import SimilaritySet

__all__ = [
    "PAIRS_FILE",
    "BuildRules",
    "RankingFiles",
    "build_ranking_data",
    "read_frequent",
    "write_ranking_files",
]

Pair = tuple[str, str]
PAIRS_FILE = "pos_pair.txt"
WORDS_FILE, SENTENCES_FILE, FREQUENT_FILE = (
    "basic_vocab.txt",
    "background_sent.txt",
    "wiki_vocab.txt",
)
LOG_FILE = "build.json"
LINE_BREAKS = re.compile(r"[\t\n\r]+")
"""What would break a line of the files, or a pair in two."""
SELECTION_RULE = "the first floor(top * N) pairs of a set after a stable sort by falling score"


@dataclass(frozen=True, slots=True)
class BuildRules:
    """What is taken, and how it is written."""

    top: float = 0.25
    """Share of the pairs of every set, above 0 and up to 1."""
    lowercase: bool = False
    identical: bool = False
    """Keep pairs of a text with itself, which every model finds first."""
    sort: bool = False
    """Write the pairs in the order of their characters, not of their scores."""

    def __post_init__(self) -> None:
        if not 0 < self.top <= 1:
            raise ValueError(f"top is {self.top}; it must be above 0 and at most 1")


@dataclass(frozen=True)
class RankingFiles:
    """Ranking data and how it came about."""

    files: Mapping[str, Sequence[str]]
    """Name of a file -> its lines: pairs with a tab between, background, frequent words."""
    log: Mapping[str, Any]


def build_ranking_data(
    sets: Sequence[SimilaritySet], rules: BuildRules | None = None, frequent: Sequence[str] = ()
) -> RankingFiles:
    """Make ranking data of rated pairs; `frequent` are further background texts.

    Where no text has a space they are words: the background is ``basic_vocab.txt``, with ``wiki_vocab.txt``
    for frequent words; otherwise all of it is ``background_sent.txt``. Raises InputError where a set is too
    small for its top share to hold a pair, or no pair is left.

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
            "each of the most similar pairs is of a text with itself; there is nothing to rank"
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


def read_frequent(path: str | os.PathLike[str], max_count: int) -> list[str]:
    """Return the first `most` texts of a file, one a line; what follows a tab (a frequency) is no part of it.

    Empty lines are left out. Raises InputError where the file holds no text.
    """
    lines = (line.partition("\t")[0].strip() for line in read_text(path).split("\n"))
    texts = [line for line in lines if line]
    if not texts:
        raise InputError(Problem(os.fspath(path), None, "holds no text; one a line is expected"))
    return texts[:max_count]


def write_ranking_files(built: RankingFiles, folder: str | os.PathLike[str]) -> None:
    """Write the files and ``build.json`` into a folder that is new or empty; InputError for another."""
    path = Path(folder)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        message = "is there and not empty; name a new folder"
        raise InputError(Problem(str(folder), None, message))
    for name, lines in built.files.items():
        write_atomic(path / name, _join_lines(lines))
    log = json.dumps(built.log, ensure_ascii=False, indent=2)
    write_atomic(path / LOG_FILE, f"{log}\n")


@dataclass(frozen=True)
class _TopPairs:
    """A set as it is written, and which of its pairs are taken."""

    source: SimilaritySet
    pairs: Sequence[Pair]
    top_indices: Sequence[int]
    """Places of the pairs that are taken, by falling score."""
    rewritten: int
    """Texts that had a tab or a line break."""

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
    order = sorted(range(len(source.pairs)), key=lambda place: -source.pairs[place].score)
    pairs = [
        (_to_single_line(pair.text1, rules), _to_single_line(pair.text2, rules))
        for pair in source.pairs
    ]
    rewritten = sum(bool(LINE_BREAKS.search(text)) for pair in source.pairs for text in pair[:2])
    return _TopPairs(source, pairs, order[:size], rewritten)


def _to_single_line(text: str, rules: BuildRules) -> str:
    """Return a text that fits on a line: without tabs and line breaks, in lower case where that is a rule."""
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
