"""Filters that select sentence pairs of moderate similarity for conditions.

The criteria are those of Deshpande et al. (2023), "C-STS: Conditional Semantic Textual Similarity", appendix
A.2 and Table 6. The paper does not define words, stop words or the treatment of repeated words. Here, a word
is a sequence of letters and digits, joined by hyphens and apostrophes, in lower case. The stop words are
spaCy's 326 English ones (which include "two", "front", "side" and "top"), removed after splitting clitics
such as "'s" or "n't". Repeated words count repeatedly, since the paper speaks of a bag.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bws.base.problems import InputError, Problem
from giccs.csts.mining.thresholds import Thresholds
from giccs.progress import Progress, silent

if TYPE_CHECKING:
    from scipy.sparse import csr_array

WORD = re.compile(r"[^\W_]+(?:['’‘\-][^\W_]+)*")
CLITIC = re.compile(r"(?:n['’‘]t|['’‘](?:d|ll|m|re|s|ve))$")
FILTERS = ("length", "ratio", "iou", "d_text")
"""In the order of application, the cheapest first."""

Indices = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Bags:
    """Properties of N sentences used by the filters, except embeddings."""

    content: csr_array
    """(N, V) word counts without stop words; float32."""
    content_words: NDArray[np.int32]
    """(N,) number of words without stop words."""
    words: NDArray[np.int32]
    """(N,) number of words including stop words."""
    length: NDArray[np.int32]
    """(N,) number of characters."""


def english_stop_words() -> frozenset[str]:
    """Return spaCy's English stop words without loading a model; raise InputError if spaCy is missing."""
    try:
        from spacy.lang.en.stop_words import STOP_WORDS
    except ImportError:
        message = "is not installed, and its stop words are needed: pip install 'giccs[csts]'"
        raise InputError(Problem("spacy", None, message)) from None
    return frozenset(STOP_WORDS)


def bags_of(texts: Sequence[str], stop_words: Iterable[str], progress: Progress = silent) -> Bags:
    """Split sentences into words and count them.

    >>> bags = bags_of(["The dog's ball and a dog", "a well-known dog"], {"the", "and", "a"})
    >>> bags.words.tolist(), bags.content_words.tolist()
    ([6, 3], [3, 2])
    """
    from scipy.sparse import csr_array

    stop_words = frozenset(stop_words)
    vocabulary: dict[str, int] = {}
    columns: list[int] = []
    times: list[int] = []
    ends, words, content_words = [0], [], []
    for text in progress(texts, "words", len(texts)):
        tokens = WORD.findall(text.lower())
        bag = Counter(stem for word in tokens if (stem := CLITIC.sub("", word)) not in stop_words)
        columns += (vocabulary.setdefault(word, len(vocabulary)) for word in bag)
        times += bag.values()
        ends.append(len(columns))
        words.append(len(tokens))
        content_words.append(bag.total())
    shape = (len(texts), max(1, len(vocabulary)))
    content: Any = csr_array((np.array(times, np.float32), columns, ends), shape=shape)
    content.sort_indices()
    length = np.fromiter(map(len, texts), np.int32, len(texts))
    return Bags(content, np.array(content_words, np.int32), np.array(words, np.int32), length)


def ious(bags: Bags, first: Indices, second: Indices) -> Floats:
    """Return (M,) intersection over union of the words of the sentences `first` and `second`.

    |A ∩ B| takes the smaller count of each word, and |A ∪ B| = |A| + |B| - |A ∩ B|. NaN if both sentences
    have only stop words.
    """
    shared = bags.content[first].minimum(bags.content[second]).sum(axis=1).astype(np.float64)
    union = bags.content_words[first] + bags.content_words[second] - shared
    return _share(shared, union)


def ratios(bags: Bags, first: Indices, second: Indices) -> Floats:
    """Return (M,) number of words of the shorter sentence over that of the longer one; NaN if both are 0."""
    few = np.minimum(bags.words[first], bags.words[second]).astype(np.float64)
    return _share(few, np.maximum(bags.words[first], bags.words[second]))


def _share(part: Floats, total: NDArray[Any]) -> Floats:
    shares: Floats = np.divide(part, total, out=np.full(len(part), np.nan), where=total > 0)
    return shares


def passes(
    thresholds: Thresholds, length: NDArray[Any], ratio: Floats, iou: Floats, d_text: Floats
) -> NDArray[np.bool_]:
    """Return (4, M) whether each of M pairs passes each of `FILTERS`; NaN never passes."""
    return np.stack(
        [
            length >= thresholds.length_at_least,
            ratio >= thresholds.ratio_at_least,
            iou <= thresholds.iou_at_most,
            (d_text >= thresholds.distance_at_least) & (d_text <= thresholds.distance_at_most),
        ]
    )
