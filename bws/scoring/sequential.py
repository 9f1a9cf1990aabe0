"""Elo, Rescorla–Wagner and value learning (Hollis 2018): sequential updates from matches.

A judgment is 2K-3 matches: the best beats every other item, and every other item beats the worst. All
matches are played in `passes` passes, in shuffled order. At the end of each pass, every item, in shuffled
order, loses to one dummy item and beats another. The two dummies of a group are updated like items and keep
the values of the items in a bounded range.

With few items, matches are played one at a time, in a new order per pass. With many items, matches are
assigned once, at random, to rounds in which no item plays twice, and each pass plays the rounds in shuffled
order. Matches of different items do not affect each other, so a round is one array operation with the same
result as playing its matches in sequence. Only the matches with dummies are played one at a time.

The learning rate of Rescorla–Wagner and value learning decreases from pass to pass, so that the last matches
have little influence. Elo has a constant rate, and ratings keep following the latest results. Hollis (2018)
therefore averages the final ratings of 100 orders of the matches. Here an item's rating is its mean during
the second half of the passes, sampled after every round (or every 16N single matches of N items). This
averages more ratings of the same matches and depends less on their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from bws.base.progress import tracked
from bws.records import CanonicalJudgments
from bws.scoring.methods import METHODS, Fit, Floats, Integers, Method, Utilities, logistic

PASSES = 100
LEARNING_RATE = 0.025
"""Learning rate of the first pass; the rate of pass s is LEARNING_RATE / s (not used by Elo)."""
ELO_START = 1000.0
ELO_K = 30.0
INITIAL_ASSOCIATION = 1e-4
MIN_ROUND_MATCHES = 32
"""Mean matches per round from which an array operation per round is faster than a loop over matches."""
MATCHES_PER_ITEM = 16
"""Matches per item between two samples of the ratings, if matches are played one at a time."""
State = tuple[Any, ...]
"""The learned state of an item: numbers, or arrays of one number per item."""
Update = Callable[[State, State, float], tuple[State, State]]
"""(winner, loser, rate) -> (winner, loser) after the match."""
PassRunner = Callable[[Update, Floats, float], Iterator[Floats]]
"""(update, states, rate) -> the states, updated in place by the matches of a pass; yielded repeatedly."""


def elo(winner: State, loser: State, rate: float) -> tuple[State, State]:
    """Move both ratings by 30 (1 - E), with the winner's expected result E = 1 / (1 + 10^((l - w) / 400)).

    >>> elo((1000.0,), (1000.0,), 0)
    ((1015.0,), (985.0,))
    """
    w, l = winner[0], loser[0]  # noqa: E741
    gain = ELO_K / (1 + 10.0 ** ((w - l) / 400))
    return (w + gain,), (l - gain,)


def value_learning(winner: State, loser: State, rate: float) -> tuple[State, State]:
    """Move the winner's value towards 1 and the loser's towards 0, in proportion to the surprise.

    >>> value_learning((0.5,), (0.5,), 0.1)
    ((0.525,), (0.475,))
    """
    w, l = winner[0], loser[0]  # noqa: E741
    step = rate * _surprise(w, l)
    return (w + step * (1 - w),), (l - step * l,)


def rescorla_wagner(winner: State, loser: State, rate: float) -> tuple[State, State]:
    """Strengthen the winner's association with winning and the loser's with losing.

    The remaining capacity of an item is 1 minus the sum of its two associations.

    >>> rescorla_wagner((0.25, 0.25), (0.25, 0.25), 0.1)
    ((0.275, 0.25), (0.25, 0.275))
    """
    step = rate * _surprise(_win_share(winner), _win_share(loser))
    (w_won, w_lost), (l_won, l_lost) = winner, loser
    new_w_won = w_won + step * (1 - w_won - w_lost)
    new_l_lost = l_lost + step * (1 - l_won - l_lost)
    return (new_w_won, w_lost), (l_won, new_l_lost)


def _surprise(w: Any, l: Any) -> Any:  # noqa: E741
    """Return 1 - o_w / (o_w + o_l) for win probabilities w and l with odds o = p / (1 - p)."""
    upset = l * (1 - w)
    return upset / (upset + w * (1 - l))


def _win_share(state: State) -> Any:
    won, lost = state
    return won / (won + lost)


def _make_fit(
    update: Update,
    start: State,
    to_utility: Callable[[Floats, CanonicalJudgments], Floats],
    *,
    average: bool = False,
) -> Fit:
    """Return the `Fit` of an update rule, given an item's initial state and a function from states to
    utilities.

    average: use the mean state during the second half of the passes instead of the last state.
    """

    def fit(
        judgments: CanonicalJudgments,
        *,
        clusters: Integers | None,
        seed: int,
        passes: float = PASSES,
    ) -> Utilities:
        if passes != int(passes) or passes < 1:
            raise ValueError(f"passes is {passes}; expected an integer, at least 1")
        rng = np.random.Generator(np.random.PCG64(seed))
        last, mean = _run_passes(judgments, update, start, int(passes), rng)
        state = mean if average else last
        is_judged = judgments.counts.appearances > 0
        return Utilities(
            np.where(is_judged, to_utility(np.where(is_judged, state, np.nan), judgments), np.nan)
        )

    return fit


def _centre_ratings(state: Floats, judgments: CanonicalJudgments) -> Floats:
    """Shift ratings to mean 1000 per group, without control items; only differences are meaningful."""
    rating = state[0]
    is_judged = ~np.isnan(rating)
    is_judged[judgments.n_scored :] = False
    size, groups = len(judgments.groups), judgments.group_of[is_judged]
    counts = np.maximum(np.bincount(groups, minlength=size), 1)
    mean = np.bincount(groups, rating[is_judged], size) / counts
    centred: Floats = rating - mean[judgments.group_of] + ELO_START
    return centred


fit_elo = _make_fit(elo, (ELO_START,), _centre_ratings, average=True)
fit_value_learning = _make_fit(value_learning, (0.5,), lambda state, _: state[0])
# Hollis starts without associations; a small initial value of both gives the first match even odds.
fit_rescorla_wagner = _make_fit(
    rescorla_wagner,
    (INITIAL_ASSOCIATION, INITIAL_ASSOCIATION),
    lambda state, _: _win_share((state[0], state[1])),
)


def _run_passes(
    judgments: CanonicalJudgments,
    update: Update,
    start: State,
    passes: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Return (S, N) the items' states after all passes, and their mean during the second half."""
    n, groups = len(judgments.items), len(judgments.groups)
    state = np.repeat(np.array(start)[:, None], n, axis=1)
    total, count = np.zeros_like(state), 0
    dummies = [[start] * groups, [start] * groups]
    winner, loser = judgments.comparisons()
    play = _make_pass_runner(winner.ravel(), loser.ravel(), n, rng)
    judged_items = np.unique(judgments.judged_items)
    for pass_number in tracked(range(1, passes + 1), "passes", passes):
        rate = LEARNING_RATE / pass_number
        for current in play(update, state, rate):
            if pass_number > passes // 2:
                total += current
                count += 1
        _play_dummies(
            update, state, dummies, judgments.group_of, rng.permutation(judged_items), rate
        )
    return state, total / max(count, 1)


def _make_pass_runner(
    winner: Integers, loser: Integers, n: int, rng: np.random.Generator
) -> PassRunner:
    """Return the fastest way to play the matches of n items."""
    if n >= 2 * MIN_ROUND_MATCHES:  # a round has at most n / 2
        rounds = list(_rounds(winner, loser, n, rng))
        if len(winner) >= MIN_ROUND_MATCHES * len(rounds):
            return partial(_play_rounds, rounds, rng)
    return partial(_play_singly, winner, loser, rng)


def _play_rounds(
    rounds: list[tuple[Integers, Integers]],
    rng: np.random.Generator,
    update: Update,
    state: Floats,
    rate: float,
) -> Iterator[Floats]:
    """Play all rounds in shuffled order; update the (S, N) states in place and yield them per round."""
    for index in rng.permutation(len(rounds)):
        winner, loser = rounds[index]
        after = update(tuple(state[:, winner]), tuple(state[:, loser]), rate)
        state[:, winner], state[:, loser] = after
        yield state


def _play_singly(
    winner: Integers,
    loser: Integers,
    rng: np.random.Generator,
    update: Update,
    state: Floats,
    rate: float,
) -> Iterator[Floats]:
    """Play all matches in shuffled order; update the (S, N) states in place and yield them at intervals."""
    order, step = rng.permutation(len(winner)), max(MATCHES_PER_ITEM * state.shape[1], 1)
    values: list[State] = list(zip(*state.tolist(), strict=True))
    for start in range(0, len(order), step):
        batch = order[start : start + step]
        for w, l in zip(winner[batch].tolist(), loser[batch].tolist(), strict=True):  # noqa: E741
            values[w], values[l] = update(values[w], values[l], rate)
        state[:] = np.array(values).T
        yield state


def _rounds(
    winner: Integers, loser: Integers, n: int, rng: np.random.Generator
) -> Iterator[tuple[Integers, Integers]]:
    """Yield all matches in rounds (winners, losers) in which each of n items plays at most once.

    N matches wait at a time, in shuffled order; a round contains those with no earlier waiting match of
    either item.
    """
    queue = rng.permutation(len(winner))
    waiting, n_queued = queue[:0], 0
    while len(waiting) or n_queued < len(queue):
        more = max(n - len(waiting), 1)
        waiting = np.concatenate((waiting, queue[n_queued : n_queued + more]))
        n_queued += more
        w, l = winner[waiting], loser[waiting]  # noqa: E741
        positions = np.arange(len(waiting))
        first = np.full(n, len(waiting))
        np.minimum.at(first, w, positions)
        np.minimum.at(first, l, positions)
        is_ready = (first[w] == positions) & (first[l] == positions)
        yield w[is_ready], l[is_ready]
        waiting = waiting[~is_ready]


def _play_dummies(
    update: Update,
    state: Floats,
    dummies: list[list[State]],
    group_of: Integers,
    order: Integers,
    rate: float,
) -> None:
    """Let every item in turn lose to the first dummy of its group and beat the second, in place."""
    values: list[State] = list(zip(*state.tolist(), strict=True))
    (unbeaten, beaten), groups = dummies, group_of.tolist()
    for item in order.tolist():
        group = groups[item]
        unbeaten[group], value = update(unbeaten[group], values[item], rate)
        values[item], beaten[group] = update(value, beaten[group], rate)
    state[:] = np.array(values).T


def _share_to_score(u: Floats) -> Floats:
    return np.clip(2 * u - 1, -1, 1)  # ends of intervals can be outside [0, 1]


def _rating_to_score(u: Floats) -> Floats:
    return logistic((u - ELO_START) * np.log(10) / 400)


METHODS["elo"] = Method(
    "Elo ratings from shuffled passes", fit_elo, _rating_to_score, {"passes": PASSES}
)
METHODS["rescorla-wagner"] = Method(
    "associations with winning and losing from shuffled passes",
    fit_rescorla_wagner,
    _share_to_score,
    {"passes": PASSES},
)
METHODS["value-learning"] = Method(
    "values learned from shuffled passes", fit_value_learning, _share_to_score, {"passes": PASSES}
)
