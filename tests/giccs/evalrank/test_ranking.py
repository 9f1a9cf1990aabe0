"""Ranks: by hand, in fractions, against float64 brute force, and where float32 alone would go wrong."""

import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from giccs.evalrank import ranking
from giccs.evalrank.rank_metrics import estimate_metrics
from giccs.evalrank.ranking import Ranks, compute_ranks
from giccs.evalrank.spaces import SIMILARITIES, TIE, make_space
from giccs.evalrank.task import gpu_of


def generator(seed=0):
    return np.random.Generator(np.random.PCG64(seed))


def array(*rows):
    return np.array(rows, np.float32)


def every_pair(n):
    return np.array([(x, y) for x in range(n) for y in range(n)], np.intp)


def brute_force(vectors, pairs, similarity, tie=TIE):
    """Ranks by the definition, a pair at a time, in float64 throughout: (optimistic, pessimistic)."""
    vectors = vectors.astype(np.float64)
    finite = np.isfinite(vectors).all(axis=1)
    if similarity == "cos-centred" and finite.any():
        # as float32, which is what the vectors are
        vectors = (vectors - vectors[finite].mean(axis=0)).astype(np.float32).astype(np.float64)
    norms = np.array([math.sqrt(sum(v * v for v in row)) for row in vectors.tolist()])
    usable = finite if similarity == "l2" else finite & (norms > 0)
    result = []
    for x, y in pairs.tolist():
        if not (usable[x] and usable[y]):
            result.append((0, 0))
            continue
        if similarity == "l2":
            near, slack = -np.sqrt(((vectors - vectors[x]) ** 2).sum(axis=1)), tie * norms[x]
        else:
            with np.errstate(invalid="ignore", divide="ignore"):
                near, slack = (vectors * vectors[x]).sum(axis=1) / norms / norms[x], tie
        others = [j for j in range(len(vectors)) if usable[j] and j not in (x, y)]
        nearer = sum(near[j] - near[y] > slack for j in others)
        tied = sum(abs(near[j] - near[y]) <= slack for j in others)
        result.append((1 + nearer, 1 + nearer + tied))
    return np.array(result).T


def agree(vectors, pairs, similarity, **how):
    """Check ranks, by NumPy and by PyTorch, against `brute_force`; return them."""
    result = compute_ranks(vectors, pairs, similarity, **how)
    by_torch = compute_ranks(vectors, pairs, similarity, **how, device="cpu")
    assert by_torch.rank.tolist() == result.rank.tolist()
    assert by_torch.pessimistic.tolist() == result.pessimistic.tolist()
    rank, pessimistic = brute_force(vectors, pairs, similarity)
    assert result.rank.tolist() == rank.tolist()
    assert result.pessimistic.tolist() == pessimistic.tolist()
    return result


# By hand


def test_the_anchor_is_no_candidate_and_its_copy_is_one():
    # From 0, its copy 1 has cosine 1, 2 has 0.8, 3 has 0.6.
    vectors = array([1, 0], [1, 0], [4, 3], [3, 4])
    result = compute_ranks(vectors, np.array([[0, 2], [0, 1], [0, 3]]))
    assert result.rank.tolist() == [2, 1, 3]
    assert result.similarity == pytest.approx([0.8, 1.0, 0.6])


def test_ties_count_for_the_positive_and_in_the_pessimistic_rank_against_it():
    # From 0: three copies of the positive's direction, one nearer, one farther.
    vectors = array([1, 0], [4, 3], [8, 6], [4, 3], [4, 1], [0, 1])
    result = compute_ranks(vectors, np.array([[0, 1], [0, 5]]))
    assert result.rank.tolist() == [2, 5]
    assert result.pessimistic.tolist() == [4, 5]


def test_l2_ranks_by_distance_and_reports_one_over_one_plus_it():
    # Distances from 0: 2, 3, 1.
    result = compute_ranks(array([0], [2], [3], [1]), np.array([[0, 1], [0, 2], [0, 3]]), "l2")
    assert result.rank.tolist() == [2, 3, 1]
    assert result.similarity == pytest.approx([1 / 3, 1 / 4, 1 / 2])


def test_a_text_paired_with_itself_is_at_rank_1_and_ties_with_its_copies():
    for similarity in ("cos", "l2"):
        result = compute_ranks(
            array([1, 0], [1, 0], [0, 1]), np.array([[0, 0], [2, 2]]), similarity
        )
        assert result.rank.tolist() == [1, 1]
        assert result.pessimistic.tolist() == [2, 1]


# Vectors that are none


def test_a_row_that_is_not_finite_is_no_candidate_and_gives_no_rank():
    vectors = array([1, 0], [4, 3], [np.nan, 1], [np.inf, 0], [3, 4])
    result = compute_ranks(vectors, np.array([[0, 4], [0, 2], [3, 0]]))
    assert result.rank.tolist() == [2, 0, 0]
    assert result.pessimistic.tolist() == [2, 0, 0]
    assert np.isnan(result.similarity).tolist() == [False, True, True]
    assert result.candidates == 3


def test_a_zero_has_a_distance_but_no_cosine():
    vectors, pairs = array([1, 0], [0, 0], [0, 3]), np.array([[0, 1], [0, 2], [1, 0]])
    assert compute_ranks(vectors, pairs).rank.tolist() == [0, 1, 0]
    assert compute_ranks(vectors, pairs, "l2").rank.tolist() == [1, 2, 1]


def test_where_no_row_is_usable_there_are_no_ranks():
    vectors = np.full((3, 2), np.nan, np.float32)
    for similarity in SIMILARITIES:
        result = compute_ranks(vectors, np.array([[0, 1]]), similarity)
        assert (result.rank.tolist(), result.candidates) == ([0], 0)


@pytest.mark.parametrize(
    ("vectors", "similarity", "message"),
    [
        (
            np.ones((2, 2)),
            "cos",
            "float64 of shape \\(2, 2\\); expected float32 of shape \\(N, D\\)",
        ),
        (np.ones(2, np.float32), "cos", "float32 of shape \\(2,\\)"),
        (np.ones((2, 2), np.float32), "dot", "'dot'; expected cos, cos-centred, l2"),
    ],
)
def test_other_vectors_and_similarities_are_refused(vectors, similarity, message):
    with pytest.raises(ValueError, match=message):
        compute_ranks(vectors, np.array([[0, 1]]), similarity)


# In fractions: exact ties, which the smallest other difference (more than 1e-4 here) is far above


def exact_cos(vectors, x, y):
    def signed_square(j):
        dot = sum(a * b for a, b in zip(vectors[x], vectors[j], strict=True))
        return Fraction(dot * abs(dot), sum(a * a for a in vectors[j]))

    return signed_square(y), signed_square


def exact_l2(vectors, x, y):
    def minus_square(j):
        return -sum((a - b) ** 2 for a, b in zip(vectors[x], vectors[j], strict=True))

    return minus_square(y), minus_square


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(*[st.integers(-2, 2)] * 3).filter(any), min_size=2, max_size=12),
    block=st.tuples(st.integers(1, 5), st.integers(1, 5)),
)
@pytest.mark.parametrize(("similarity", "exact"), [("cos", exact_cos), ("l2", exact_l2)])
def test_with_many_exact_ties_ranks_are_those_in_fractions(similarity, exact, rows, block):
    pairs = every_pair(len(rows))
    result = compute_ranks(array(*rows), pairs, similarity, block=block)
    for (x, y), rank, pessimistic in zip(pairs, result.rank, result.pessimistic, strict=True):
        own, near = exact(rows, x, y)
        others = [near(j) for j in range(len(rows)) if j not in (x, y)]
        assert rank == 1 + sum(value > own for value in others)
        assert pessimistic == 1 + sum(value >= own for value in others)


# Against brute force

NUMBERS = st.one_of(
    st.floats(-4, 4, width=32),
    st.sampled_from([0.0, 1.0, 1.0, 1e-20, 1e-44, 1e18, 3e38, math.nan, math.inf]),
)


@settings(max_examples=100, deadline=None)
@given(
    vectors=hnp.arrays(
        np.float32, st.tuples(st.integers(2, 9), st.integers(1, 4)), elements=NUMBERS
    ),
    similarity=st.sampled_from(["cos", "l2"]),
    block=st.tuples(st.integers(1, 4), st.integers(1, 4)),
)
def test_whatever_the_numbers_ranks_are_those_of_brute_force(vectors, similarity, block):
    agree(vectors, every_pair(len(vectors)), similarity, block=block)


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("width", [1, 7, 300])
def test_drawn_vectors_with_copies_and_scaled_copies_rank_as_by_brute_force(similarity, width):
    draw = generator(width)
    vectors = draw.standard_normal((150, width)).astype(np.float32) + np.float32(0.5)
    vectors[100:110] = vectors[:10]
    vectors[110:120] = vectors[:10] * np.float32(3)
    vectors[120:130] = vectors[:10] * np.float32(1e-9)
    vectors[130:135] = vectors[:5] + np.float32(1e-7) * draw.standard_normal((5, width))
    vectors[135] = np.nan
    pairs = draw.integers(150, size=(300, 2))
    agree(vectors.astype(np.float32), pairs, similarity, block=(64, 40))


def at_cosines(values, width, seed=0):
    """Vectors, the first an anchor, whose cosines with it are `values` but for the rounding to float32."""
    draw = generator(seed)
    anchor, *rest = np.linalg.qr(draw.standard_normal((width, len(values) + 1)))[0].T
    rows = [
        c * anchor + math.sqrt(1 - c * c) * other for c, other in zip(values, rest, strict=True)
    ]
    return np.array([anchor, *rows], np.float32)


def test_differences_below_what_a_float32_product_resolves_are_told_apart():
    # Rows of 512 numbers: a float32 inner product is off by up to 3e-5, the differences are 3e-6.
    above, below = [0.7 + 3e-6] * 20, [0.7 - 3e-6] * 20
    within = [0.7 + 3e-7] * 5 + [0.7 - 3e-7] * 5
    vectors = at_cosines([0.7, *above, *below, *within], 512)
    result = agree(vectors, np.array([[0, 1]]), "cos")
    assert (result.rank.tolist(), result.pessimistic.tolist()) == ([21], [31])
    assert result.n_exact_comparisons == 50


def test_l2_far_from_the_origin_does_not_cancel():
    # Norms near 1e5, distances of 1 to 5: a square of 1e10 has no digits left for them in float32.
    offset = np.full(64, 12345.0, np.float32)
    vectors = np.tile(offset, (6, 1))
    vectors[:, 0] += np.float32([0, 3, 1, 2, 5, 4])
    pairs = np.array([[0, j] for j in range(1, 6)])
    assert agree(vectors, pairs, "l2").rank.tolist() == [3, 1, 2, 5, 4]


def test_equal_rows_of_enormous_length_all_tie():
    result = compute_ranks(np.full((4, 2), 3e38, np.float32), np.array([[0, 1]]), "l2")
    assert (result.rank.tolist(), result.pessimistic.tolist()) == ([1], [3])


def test_one_row_of_enormous_length_costs_time_but_no_rank():
    vectors = generator().standard_normal((40, 5)).astype(np.float32)
    vectors[7] *= np.float32(1e30)
    for similarity in ("cos", "l2"):
        agree(vectors, every_pair(40), similarity)


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_correlated_dimensions_and_copies_change_no_rank(similarity):
    # Variances fall as those of text encoders do.
    draw = generator(3)
    spread = 1 / np.arange(1, 101, dtype=np.float32)
    vectors = (draw.standard_normal((300, 100)) * spread).astype(np.float32)
    vectors[150:] = vectors[:150] + (0.2 * draw.standard_normal((150, 100)) * spread).astype("f4")
    vectors[290:] = vectors[:10]
    pairs = np.concatenate(
        [np.stack([np.arange(150), np.arange(150) + 150], axis=1), draw.integers(300, size=(50, 2))]
    )
    agree(vectors, pairs, similarity, block=(64, 128))


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("width", [3, 768])
def test_scores_are_no_farther_off_than_their_bound(similarity, width):
    draw = generator(3)
    vectors = np.abs(draw.standard_normal((60, width))).astype(np.float32)  # errors add up
    vectors *= draw.lognormal(0, 2, size=(60, 1)).astype(np.float32)
    space, every = make_space(vectors, similarity), np.arange(60)
    left = ranking.product_rows(space, every, np.ones(60))
    right = ranking.product_rows(space, every, space.offsets(every))
    anchors, others = np.divmod(np.arange(60 * 60), 60)
    true = space.score(space.closeness(anchors, others), anchors).reshape(60, 60)
    bound = np.stack([ranking.product_error(width + 1, space.lengths, n) for n in space.lengths], 1)
    off = np.abs(left @ right.T - true) / bound
    assert 1e-3 < off.max() <= 1  # the bound is one on these errors, and not on something else


# What must not matter


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), similarity=st.sampled_from(SIMILARITIES))
def test_neither_order_nor_blocks_nor_scale_matter(seed, similarity):
    draw = generator(seed)
    vectors = draw.integers(-3, 4, size=(30, 4)).astype(np.float32)
    pairs = draw.integers(30, size=(40, 2))
    result = compute_ranks(vectors, pairs, similarity)
    order = draw.permutation(30)
    place = np.argsort(order)
    scale = np.float32(2.0 ** draw.integers(-20, 20))
    for other in (
        compute_ranks(vectors[order], place[pairs], similarity),
        compute_ranks(vectors, pairs, similarity, block=(3, 7)),
        compute_ranks(vectors * scale, pairs, similarity),
    ):
        assert other.rank.tolist() == result.rank.tolist()
        assert other.pessimistic.tolist() == result.pessimistic.tolist()


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_under_the_cosine_each_vector_may_have_a_scale_of_its_own(seed):
    draw = generator(seed)
    vectors = draw.standard_normal((25, 6)).astype(np.float32)
    scaled = vectors * draw.lognormal(0, 3, size=(25, 1)).astype(np.float32)
    pairs = draw.integers(25, size=(40, 2))
    assert compute_ranks(scaled, pairs).rank.tolist() == compute_ranks(vectors, pairs).rank.tolist()


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), similarity=st.sampled_from(["cos", "l2"]))
def test_a_far_item_changes_nothing_and_a_copy_of_an_anchor_costs_a_rank(seed, similarity):
    draw = generator(seed)
    vectors = np.abs(draw.standard_normal((20, 4))).astype(np.float32)
    pairs = np.array([(0, y) for y in range(1, 20)])
    result = compute_ranks(vectors, pairs, similarity).rank
    far = np.concatenate([vectors, -100 * vectors[:1]])
    near = np.concatenate([vectors, vectors[:1]])
    assert compute_ranks(far, pairs, similarity).rank.tolist() == result.tolist()
    assert compute_ranks(near, pairs, similarity).rank.tolist() == (result + 1).tolist()


def test_where_all_is_left_open_it_is_settled_in_parts(monkeypatch):
    monkeypatch.setattr(ranking, "MAX_PENDING_COMPARISONS", 10)
    vectors = np.ones((30, 3), np.float32)
    vectors[20:] = generator().standard_normal((10, 3))
    result = agree(vectors, every_pair(30), "cos", block=(7, 13))
    assert result.pessimistic[:2].tolist() == [20, 19]  # 19 copies beside itself, 18 beside a pair


@pytest.mark.cuda
@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_ranks_on_a_card_are_those_of_the_host(similarity):
    vectors = generator(1).standard_normal((20_000, 96)).astype(np.float32)
    vectors[10_000:10_100] = vectors[:100]
    pairs = generator(2).integers(20_000, size=(3000, 2))
    host, card = (compute_ranks(vectors, pairs, similarity, device=name) for name in ("", "cuda"))
    assert card.rank.tolist() == host.rank.tolist()
    assert card.pessimistic.tolist() == host.pessimistic.tolist()


def test_the_precision_of_other_products_is_not_changed():
    torch = pytest.importorskip("torch")
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        agree(generator().standard_normal((30, 5)).astype(np.float32), every_pair(30), "cos")
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize(
    ("device", "expected"),
    [("cpu", ""), ("mps", ""), ("cuda", "cuda"), ("cuda:1", "cuda:1"), ("cuda:0, cuda:1", "")],
)
def test_ranks_are_computed_where_one_card_has_the_model(device, expected):
    class Model:
        def environment(self):
            return {"device": device}

    assert gpu_of(Model()) == expected


def test_memory_is_that_of_a_block_and_not_of_all_products():
    vectors = generator().standard_normal((20_000, 80)).astype(np.float32)
    pairs = generator().integers(20_000, size=(2000, 2))
    tracemalloc.start()
    compute_ranks(vectors, pairs, block=(256, 2048))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 * 2**20  # all products are 153 MiB


# Measures


def test_measures_are_means_over_pairs_with_ties_both_ways():
    # Optimistic 1, 2, 4, 20, 1, 5: MRR (1 + 1/2 + 1/4 + 1/20 + 1 + 1/5) / 6 = 0.5; pessimistic 2.75 / 6.
    ranks = Ranks(
        np.array([1, 2, 4, 20, 1, 5]),
        np.array([1, 4, 4, 20, 1, 5]),
        np.array([0.9, 0.8, 0.7, 0.1, 0.9, 0.6]),
        30,
    )
    result = estimate_metrics(ranks, np.array([[0, 1], [1, 0], [2, 3], [4, 5], [6, 7], [8, 9]]))
    assert {name: one.value for name, one in result.items()} == pytest.approx(
        {"mrr": 0.5, "hits@1": 2 / 6, "hits@3": 0.5, "hits@10": 5 / 6, "mean_rank": 5.5}
    )
    assert result["mrr"].extra == {"pessimistic": pytest.approx(2.75 / 6), "ties": 1}
    assert result["hits@3"].extra["pessimistic"] == pytest.approx(2 / 6)
    assert 0.05 <= result["mrr"].low < 0.5 < result["mrr"].high <= 1


def test_pairs_without_a_vector_are_misses_and_are_told():
    ranks = Ranks(np.array([1, 0]), np.array([1, 0]), np.array([0.9, np.nan]), 30)
    result = estimate_metrics(ranks, np.array([[0, 1], [2, 3]]))
    assert (result["hits@1"].value, result["hits@1"].extra["known"], result["hits@1"].n) == (
        0.5,
        1,
        2,
    )
    assert result["hits@1"].reason == (
        "1 of 2 pairs are misses: a text has no vector; 2 pairs: no interval, which needs 5"
    )
    assert (result["mean_rank"].value, result["mean_rank"].n) == (1, 1)


def test_without_any_rank_values_are_nan_with_a_reason():
    nothing = Ranks(np.zeros(2, int), np.zeros(2, int), np.full(2, np.nan), 0)
    for estimate_metric in estimate_metrics(nothing, np.array([[0, 1], [1, 0]])).values():
        assert math.isnan(estimate_metric.value)
        assert estimate_metric.reason == "no pair has a vector for both texts"


def test_a_pair_and_its_reverse_alone_have_no_interval():
    ranks = Ranks(np.array([1, 2]), np.array([1, 2]), np.ones(2), 9)
    result = estimate_metrics(ranks, np.array([[0, 1], [1, 0]]))["mrr"]
    assert (result.value, result.reason) == (0.75, "1 pairs: no interval, which needs 5")
    assert math.isnan(result.low)


def test_intervals_cover_the_mean_of_a_known_distribution_though_pairs_share_texts():
    """Ranks 1 or 2 by a coin a text: pairs that share one are dependent, and the intervals must know it."""
    draw = generator(1)
    pairs = np.array([(a, b) for a in range(40) for b in range(a + 1, 40) if (a + b) % 9 == 0])
    covered = wide = 0
    for seed in range(200):
        coin = draw.integers(2, size=40)
        rank = 1 + (coin[pairs].sum(axis=1) >= 1)  # 2 with probability 3/4: Hits@1 is 1/4
        result = estimate_metrics(
            Ranks(rank, rank, np.ones(len(rank)), 9), pairs, resamples=200, seed=seed
        )
        covered += result["hits@1"].low <= 0.25 <= result["hits@1"].high
        wide += result["hits@1"].high - result["hits@1"].low
    assert 170 <= covered <= 198  # without the widening 137
