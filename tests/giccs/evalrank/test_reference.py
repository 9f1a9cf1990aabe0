"""The published program's ranks: its rules by hand, and its log on the published sentences."""

import os
from pathlib import Path

import numpy as np
import pytest

from giccs.evalrank.data import read_sentences, read_words
from giccs.evalrank.rank_metrics import estimate_metrics
from giccs.evalrank.ranking import compute_ranks
from giccs.evalrank.reference import reference_ranks

SHARED = Path(os.environ.get("GICCS_SHARED", Path(__file__).parents[4] / "shared"))
DATA = SHARED / "data" / "evalrank"
published = pytest.mark.skipif(not DATA.is_dir(), reason=f"{DATA} is not there; set GICCS_SHARED")


def array(*rows):
    return np.array(rows, np.float32)


def test_the_anchor_takes_the_place_that_a_rank_from_1_would():
    # Distances from 0: itself 0, then 1, 2, 3; its own score is above every positive's.
    vectors = array([0], [1], [2], [3])
    result, own = reference_ranks(vectors, np.array([[0, 1], [0, 3]]), "l2", "word")
    assert (result.rank.tolist(), own) == ([1, 3], 0)
    assert result.similarity == pytest.approx([1 / 2, 1 / 4])


def test_cosines_are_those_of_centred_vectors():
    # Less their mean (2, 2) these are (1, 0), (-1, 0), (0, 1), (0, -1): from 0 the second is the last.
    vectors = array([3, 2], [1, 2], [2, 3], [2, 1])
    result, _ = reference_ranks(vectors, np.array([[0, 1]]), "cos", "sentence")
    assert result.similarity.tolist() == [-1]
    assert (
        result.rank.tolist()
        == compute_ranks(vectors, np.array([[0, 1]]), "cos-centred").rank.tolist()
    )
    assert compute_ranks(vectors, np.array([[0, 1]])).rank.tolist() == [3]


def test_two_unknown_words_are_found_in_one_another():
    unknown = [np.nan, np.nan]
    vectors = array([3, 2], unknown, [2, 3], unknown)
    pairs = np.array([[1, 3]])
    assert reference_ranks(vectors, pairs, "l2", "word")[0].rank.tolist() == [1]
    assert compute_ranks(vectors, pairs, "l2").rank.tolist() == [0]


def test_a_sentence_of_unknown_words_is_almost_zero():
    # Before the mean is subtracted; under l2 the distance to (3, 4) is 5.
    vectors = array([3, 4], [np.nan, np.nan], [9, 9])
    result, _ = reference_ranks(vectors, np.array([[0, 1]]), "l2", "sentence")
    assert result.similarity == pytest.approx([1 / 6])


def test_a_vector_of_zeros_is_found_as_a_positive_and_nearer_as_a_candidate():
    # The mean is 0 here; cosines from 0: itself 1, then 0.8, NaN, -0.95.
    vectors = array([5, 0], [4, 3], [0, 0], [-9, -3])
    result, _ = reference_ranks(vectors, np.array([[0, 1], [0, 2]]), "cos", "sentence")
    assert result.rank.tolist() == [2, 1]  # the anchor and the zeros; nothing is above NaN


def test_where_nothing_is_known_it_finds_everything():
    vectors = np.full((3, 2), np.nan, np.float32)
    for level in ("sentence", "word"):
        result, own = reference_ranks(vectors, np.array([[0, 1]]), "cos", level)
        assert (result.rank.tolist(), own) == ([1], 0)


# The published data


def toy_words():
    """The 5,000 word vectors, read plainly."""
    rows = [
        line.rstrip("\n").split(" ")
        for line in (DATA / "toy_emb.txt").open(encoding="utf-8", newline="\n")
    ]
    return {word: np.array(numbers, np.float32) for word, *numbers in rows}


def toy_sentences(texts, words):
    """The mean of the known words of each sentence; NaN where none is known."""
    vectors = np.full((len(texts), 50), np.nan, np.float32)
    for place, text in enumerate(texts):
        known = [words[word] for word in text.lower().split() if word in words]
        if known:
            vectors[place] = np.mean(known, axis=0)
    return vectors


@pytest.fixture(scope="module")
def sentences():
    data = read_sentences(str(DATA / "sent_evalrank"))
    return toy_sentences(data.texts, toy_words()), data.pairs


def measured(ranks, pairs):
    return {name: one.value for name, one in estimate_metrics(ranks, pairs, resamples=2).items()}


def rank_bounds(vectors, pairs, epsilon=1e-12):
    """Return the lowest and highest rank that the last bits of a product can give each pair.

    The anchor is counted, as the published program does; what scores within `epsilon` of the positive (its
    own copy, and sentences with the same vector) can be above it or not, depending on the CPU.
    """
    lowest, highest = np.empty((2, len(pairs)), np.intp)
    for start in range(0, len(pairs), 500):
        chunk = slice(start, start + 500)
        x, y = pairs[chunk].T
        positive = np.einsum("ij,ij->i", vectors[x], vectors[y])
        margin = vectors[x] @ vectors.T - positive[:, None]
        above = np.count_nonzero(margin > epsilon, axis=1)
        equal = np.count_nonzero(np.abs(margin) <= epsilon, axis=1)
        lowest[chunk], highest[chunk] = np.maximum(1, above), np.maximum(1, above + equal)
    return lowest, highest


METRICS = {
    "mrr": lambda rank: 1 / rank,
    "hits@1": lambda rank: rank <= 1.0,
    "hits@3": lambda rank: rank <= 3.0,
    "mean_rank": lambda rank: rank * 1.0,
}


@published
@pytest.mark.nightly
def test_its_log_on_toy_embeddings_is_a_draw_of_last_bits_below_the_definition(sentences):
    """Its log: MRR 0.4115, Hits@1 0.2879, Hits@3 0.4965, mean rank 494.06.

    The last bit of a product decides whether a positive's own copy ranks above it, so these numbers depend on
    the CPU. What does not: they lie between the ranks without and with all own copies, and one share of
    copies above their positive explains all four. Two vectors of 50 float64 numbers and norm 1 have products
    within 50 * 2**-53 = 6e-15 by any two routines.
    """
    vectors, pairs = sentences
    filled = np.where(np.isfinite(vectors), vectors.astype(np.float64), 1e-9)
    centred = filled - filled.mean(axis=0)
    lowest, highest = rank_bounds(centred / np.linalg.norm(centred, axis=1)[:, None], pairs)
    ranks, own = reference_ranks(vectors, pairs, "cos", "sentence")
    assert (lowest <= ranks.rank).all()
    assert (ranks.rank <= highest).all()
    assert own <= np.count_nonzero(highest > lowest)

    log = {"mrr": 0.4115, "hits@1": 0.2879, "hits@3": 0.4965, "mean_rank": 494.06}
    shares, errors = {}, {}
    for name, metric in METRICS.items():
        change = metric(lowest) * 1.0 - metric(highest)
        shares[name] = (metric(lowest).mean() - log[name]) / change.mean()
        errors[name] = np.sqrt(0.25 * (change**2).sum()) / abs(change.sum())  # a draw for each copy
    for name, share in shares.items():
        assert share == pytest.approx(shares["mrr"], abs=3 * (errors[name] + errors["mrr"]))
    assert (
        0.2 < shares["mrr"] < 0.3
    )  # of two routines that round alike it would be 0: the definition

    defined = measured(compute_ranks(vectors, pairs, "cos-centred"), pairs)
    assert defined["mrr"] == pytest.approx(
        METRICS["mrr"](lowest).mean(), abs=2 / len(pairs)
    )  # misses
    assert defined["mrr"] == pytest.approx(0.467, abs=0.001)


@published
def test_toy_embeddings_by_the_definition(sentences):
    vectors, pairs = sentences
    l2 = estimate_metrics(compute_ranks(vectors, pairs, "l2"), pairs, resamples=2)
    assert l2["mrr"].value == pytest.approx(0.447, abs=0.001)
    assert l2["mrr"].reason.startswith("2 of 6989 pairs are misses: a text has no vector")
    raw = measured(compute_ranks(vectors, pairs), pairs)
    assert raw["mrr"] == pytest.approx(0.443, abs=0.001)


@published
def test_its_l2_ranks_are_ours_but_for_the_positives_own_copies_and_ties(sentences):
    vectors, pairs = sentences
    some = pairs[::40]
    reference, own = reference_ranks(vectors, some, "l2", "sentence")
    ours = compute_ranks(vectors, some, "l2")
    known = ours.rank > 0
    more = (reference.rank - ours.rank)[known]
    assert 0 < own < 40
    assert (more >= -1).all()  # an anchor with the positive's very vector does not count itself
    assert np.count_nonzero(more > 0) <= own + np.count_nonzero(ours.pessimistic > ours.rank)
    assert abs(np.median(more)) == 0


@published
def test_toy_embeddings_on_words(tmp_path):
    """The log: MRR 0.0318, Hits@3 0.0354. Its mean is over the vocabulary, ours over the background."""
    data, words = read_words(str(DATA / "word_evalrank")), toy_words()
    unknown = np.full(50, np.nan, np.float32)
    vectors = np.array([words.get(text, unknown) for text in data.texts])
    ranks, _ = reference_ranks(vectors, data.pairs, "cos", "word")
    result = measured(ranks, data.pairs)
    assert result["mrr"] == pytest.approx(0.0318, abs=0.002)
    assert result["hits@3"] == pytest.approx(0.0354, abs=0.002)
    l2, _ = reference_ranks(vectors, data.pairs[::10], "l2", "word")
    defined = estimate_metrics(compute_ranks(vectors, data.pairs, "l2"), data.pairs, resamples=2)[
        "mrr"
    ]
    # two unknown words lie at one point: a third of the pairs is found there
    neither = np.isnan(vectors[data.pairs[::10]]).any(axis=2).all(axis=1)
    assert neither.mean() == pytest.approx(1920 / 5514, abs=0.02)
    assert (l2.rank[neither] == 1).all()
    assert measured(l2, data.pairs[::10])["mrr"] == pytest.approx(0.38, abs=0.03)
    assert defined.value == pytest.approx(0.031, abs=0.001)
    assert defined.extra["known"] == pytest.approx(0.125, abs=0.001)
    assert defined.reason.startswith("4144 of 5514 pairs are misses: a text has no vector")
