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

__all__ = ["PAIRS", "Built", "Rules", "build", "read_frequent", "write_built"]

Pair = tuple[str, str]
PAIRS = "pos_pair.txt"
WORDS, SENTENCES, FREQUENT = "basic_vocab.txt", "background_sent.txt", "wiki_vocab.txt"
LOG = "build.json"
BREAKS = re.compile(r"[\t\n\r]+")
"""What would break a line of the files, or a pair in two."""
CHOICE = "the first floor(top * N) pairs of a set after a stable sort by falling score"


@dataclass(frozen=True, slots=True)
class Rules:
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
class Built:
    """Ranking data and how it came about."""

    files: Mapping[str, Sequence[str]]
    """Name of a file -> its lines: pairs with a tab between, background, frequent words."""
    log: Mapping[str, Any]


def build(
    sets: Sequence[SimilaritySet], rules: Rules | None = None, frequent: Sequence[str] = ()
) -> Built:
    """Make ranking data of rated pairs; `frequent` are further background texts.

    Where no text has a space they are words: the background is ``basic_vocab.txt``, with ``wiki_vocab.txt``
    for frequent words; otherwise all of it is ``background_sent.txt``. Raises InputError where a set is too
    small for its top share to hold a pair, or no pair is left.

    >>> from giccs.evalrank.similarity_formats import RatedPair
    >>> rated = [RatedPair("car", "auto", 9), RatedPair("car", "sea", 1), RatedPair("sea", "sky", 4)]
    >>> built = build([SimilaritySet("three", tuple(rated), None, ())], Rules(top=0.34))
    >>> built.files["pos_pair.txt"], built.files["basic_vocab.txt"]
    (['car\\tauto', 'auto\\tcar'], ['car', 'auto', 'sea', 'sky'])
    """
    rules = rules or Rules()
    quarters = [_quarter(one, rules) for one in sets]
    chosen = [one.pairs[place] for one in quarters for place in one.chosen]
    kept = [pair for pair in chosen if rules.identical or pair[0] != pair[1]]
    pairs = list(dict.fromkeys(way for first, second in kept for way in _both(first, second)))
    if not pairs:
        names = ", ".join(one.name for one in sets)
        message = (
            "each of the most similar pairs is of a text with itself; there is nothing to rank"
        )
        raise InputError(Problem(names, None, message))
    every = [pair for one in quarters for pair in one.pairs]
    background = list(dict.fromkeys(text for pair in [*kept, *every] for text in pair))
    more = list(dict.fromkeys(_in_line(text, rules) for text in frequent))
    files = _files(sorted(pairs) if rules.sort else pairs, background, more)
    return Built(
        files,
        {
            "giccs": version("giccs"),
            "rules": {"choice": CHOICE, **asdict(rules)},
            "sources": [one.log() for one in quarters],
            "chosen": len(chosen),
            "identical": sum(first == second for first, second in chosen),
            "repeated": len(kept) - len({frozenset(pair) for pair in kept}),
            "pairs": len(pairs),
            "background": len(background),
            "frequent": {"given": len(frequent), "different": len(more)},
            "all_background": len({*background, *more}),
            "files": {name: _digest(lines) for name, lines in files.items()},
        },
    )


def read_frequent(path: str | os.PathLike[str], most: int) -> list[str]:
    """Return the first `most` texts of a file, one a line; what follows a tab (a frequency) is no part of it.

    Empty lines are left out. Raises InputError where the file holds no text.
    """
    lines = (line.partition("\t")[0].strip() for line in read_text(path).split("\n"))
    texts = [line for line in lines if line]
    if not texts:
        raise InputError(Problem(os.fspath(path), None, "holds no text; one a line is expected"))
    return texts[:most]


def write_built(built: Built, folder: str | os.PathLike[str]) -> None:
    """Write the files and ``build.json`` into a folder that is new or empty; InputError for another."""
    place = Path(folder)
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        message = "is there and not empty; name a new folder"
        raise InputError(Problem(str(folder), None, message))
    for name, lines in built.files.items():
        write_atomic(place / name, _text(lines))
    log = json.dumps(built.log, ensure_ascii=False, indent=2)
    write_atomic(place / LOG, f"{log}\n")


@dataclass(frozen=True)
class _Quarter:
    """A set as it is written, and which of its pairs are taken."""

    of: SimilaritySet
    pairs: Sequence[Pair]
    chosen: Sequence[int]
    """Places of the pairs that are taken, by falling score."""
    rewritten: int
    """Texts that had a tab or a line break."""

    def log(self) -> dict[str, Any]:
        scores = [pair.score for pair in self.of.pairs]
        cut = scores[self.chosen[-1]]
        return {
            "name": self.of.name,
            "files": [{"file": file, "sha256": sha256} for file, sha256 in self.of.files],
            "pairs": len(scores),
            "chosen": len(self.chosen),
            "cut": cut,
            "tied_at_cut": scores.count(cut),
            "tied_at_cut_chosen": sum(scores[place] == cut for place in self.chosen),
            "rewritten": self.rewritten,
        }


def _quarter(of: SimilaritySet, rules: Rules) -> _Quarter:
    size = math.floor(len(of.pairs) * rules.top + 1e-9)  # 0.29 * 100 is 28.999999999999996
    if not size:
        message = f"{of.name}: {rules.top:g} of {len(of.pairs)} pairs is none; give more, or a larger share"
        raise InputError(Problem(", ".join(file for file, _ in of.files), None, message))
    order = sorted(range(len(of.pairs)), key=lambda place: -of.pairs[place].score)
    pairs = [(_in_line(one.text1, rules), _in_line(one.text2, rules)) for one in of.pairs]
    rewritten = sum(bool(BREAKS.search(text)) for one in of.pairs for text in one[:2])
    return _Quarter(of, pairs, order[:size], rewritten)


def _in_line(text: str, rules: Rules) -> str:
    """Return a text that fits on a line: without tabs and line breaks, in lower case where that is a rule."""
    text = BREAKS.sub(" ", text)
    return text.lower() if rules.lowercase else text


def _both(first: str, second: str) -> tuple[Pair, Pair]:
    return (first, second), (second, first)


def _files(
    pairs: Sequence[Pair], background: Sequence[str], more: Sequence[str]
) -> dict[str, Sequence[str]]:
    positive = {PAIRS: ["\t".join(pair) for pair in pairs]}
    if any(" " in text for text in background):
        return {**positive, SENTENCES: list(dict.fromkeys([*background, *more]))}
    return {**positive, WORDS: background, **({FREQUENT: more} if more else {})}


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256(_text(lines).encode("utf-8")).hexdigest()
