"""Elo, Rescorla–Wagner and value learning (Hollis 2018): items learn from match after match.

A judgment is 2K-3 matches: the best beats every other item, and every other item beats the worst.
All matches are played in `passes` passes, in shuffled order. At the end of each pass every item, in
shuffled order, loses to a dummy item and beats another; the two dummies of a group learn as the items
do and keep the items' values in a bounded range.

The matches are drawn once, at random, into rounds in which no item plays twice, and a pass plays the
rounds in shuffled order: matches of different items do not touch each other, so a round is one array
operation and gives the numbers that its matches would give one after another. Only the dummies'
matches run one by one; they are what a pass costs beside a few array operations a match.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bws.scoring.answers import Answers
from bws.scoring.records import Fit, Floats, Integers, Utilities

__all__ = [
    "ELO_START", "PASSES", "elo", "fit_elo", "fit_rescorla_wagner", "fit_value_learning",
    "rescorla_wagner", "value_learning",
]  # fmt: skip

PASSES = 100
RATE = 0.025
"""Learning rate of the first pass; pass number s learns at RATE / s (Elo does not use it)."""
ELO_START = 1000.0
ELO_K = 30.0
BARELY = 1e-4
State = tuple[Any, ...]
"""What an item has learned: numbers, or arrays of one number an item."""
Update = Callable[[State, State, float], tuple[State, State]]
"""(winner, loser, rate) -> (winner, loser) after the match."""


def elo(winner: State, loser: State, rate: float) -> tuple[State, State]:
    """Move both ratings by 30 (1 - E), E the winner's expected result 1 / (1 + 10^((l - w) / 400)).

    >>> elo((1000.0,), (1000.0,), 0)
    ((1015.0,), (985.0,))
    """
    w, l = winner[0], loser[0]  # noqa: E741
    gain = ELO_K / (1 + 10.0 ** ((w - l) / 400))
    return (w + gain,), (l - gain,)


def value_learning(winner: State, loser: State, rate: float) -> tuple[State, State]:
    """Move the winner's value towards 1 and the loser's towards 0, further the greater the surprise.

    >>> value_learning((0.5,), (0.5,), 0.1)
    ((0.525,), (0.475,))
    """
    w, l = winner[0], loser[0]  # noqa: E741
    learned = rate * _surprise(w, l)
    return (w + learned * (1 - w),), (l - learned * l,)


def rescorla_wagner(winner: State, loser: State, rate: float) -> tuple[State, State]:
    """Strengthen the winner's association with winning and the loser's with losing.

    What an item can still learn is 1 minus the sum of its two associations.

    >>> rescorla_wagner((0.25, 0.25), (0.25, 0.25), 0.1)
    ((0.275, 0.25), (0.25, 0.275))
    """
    learned = rate * _surprise(_win_share(winner), _win_share(loser))
    (w_won, w_lost), (l_won, l_lost) = winner, loser
    w_won_now = w_won + learned * (1 - w_won - w_lost)
    l_lost_now = l_lost + learned * (1 - l_won - l_lost)
    return (w_won_now, w_lost), (l_won, l_lost_now)


def _surprise(w: Any, l: Any) -> Any:  # noqa: E741
    """Return 1 - o_w / (o_w + o_l) for chances of winning w and l with odds o = p / (1 - p)."""
    upset = l * (1 - w)
    return upset / (upset + w * (1 - l))


def _win_share(state: State) -> Any:
    won, lost = state
    return won / (won + lost)


def _fit_by(update: Update, start: State, read: Callable[[Floats, Answers], Floats]) -> Fit:
    """Return the `Fit` of a rule: its update, an item's first state, the utilities in the states."""

    def fit(
        answers: Answers, *, clusters: Integers | None, seed: int, passes: float = PASSES
    ) -> Utilities:
        if passes != int(passes) or passes < 1:
            raise ValueError(f"passes is {passes}; it is a whole number, at least 1")
        rng = np.random.Generator(np.random.PCG64(seed))
        state = _learned(answers, update, start, int(passes), rng)
        seen = answers.counts.appearances > 0
        return Utilities(np.where(seen, read(np.where(seen, state, np.nan), answers), np.nan))

    return fit


def _centred_ratings(state: Floats, answers: Answers) -> Floats:
    """Shift ratings so that every group has mean 1000: only their differences mean something."""
    rating = state[0]
    seen = ~np.isnan(rating)
    size, groups = len(answers.groups), answers.group_of[seen]
    number = np.maximum(np.bincount(groups, minlength=size), 1)
    mean = np.bincount(groups, rating[seen], size) / number
    centred: Floats = rating - mean[answers.group_of] + ELO_START
    return centred


fit_elo = _fit_by(elo, (ELO_START,), _centred_ratings)
fit_value_learning = _fit_by(value_learning, (0.5,), lambda state, _: state[0])
# Hollis starts from no associations; a trace of both gives the first match its even odds.
fit_rescorla_wagner = _fit_by(
    rescorla_wagner, (BARELY, BARELY), lambda state, _: _win_share((state[0], state[1]))
)


def _learned(
    answers: Answers, update: Update, start: State, passes: int, rng: np.random.Generator
) -> Floats:
    """Return (S, N) the items' states after all passes."""
    n, groups = len(answers.items), len(answers.groups)
    state = np.repeat(np.array(start)[:, None], n, axis=1)
    dummies = [[start] * groups, [start] * groups]
    rounds = list(_rounds(*_matches(answers), n, rng))
    seen = np.unique(answers.members[answers.tuple_of])
    for number in range(1, passes + 1):
        rate = RATE / number
        for index in rng.permutation(len(rounds)):
            winner, loser = rounds[index]
            after = update(tuple(state[:, winner]), tuple(state[:, loser]), rate)
            state[:, winner], state[:, loser] = after
        _play_dummies(update, state, dummies, answers.group_of, rng.permutation(seen), rate)
    return state


def _matches(answers: Answers) -> tuple[Integers, Integers]:
    """Return the (J * (2K-3),) winners and losers."""
    shown = answers.best_first()
    best, middle, worst = shown[:, :1], shown[:, 1:-1], shown[:, -1:]
    winner = np.hstack((np.broadcast_to(best, shown[:, 1:].shape), middle))
    loser = np.hstack((shown[:, 1:], np.broadcast_to(worst, middle.shape)))
    return winner.ravel(), loser.ravel()


def _rounds(
    winner: Integers, loser: Integers, n: int, rng: np.random.Generator
) -> Iterator[tuple[Integers, Integers]]:
    """Yield all matches in rounds (winners, losers) in which each of n items plays at most once.

    N matches wait at a time, in shuffled order; a round takes those before which neither item waits.
    """
    queue = rng.permutation(len(winner))
    waiting, called = queue[:0], 0
    while len(waiting) or called < len(queue):
        more = max(n - len(waiting), 1)
        waiting = np.concatenate((waiting, queue[called : called + more]))
        called += more
        w, l = winner[waiting], loser[waiting]  # noqa: E741
        place = np.arange(len(waiting))
        first = np.full(n, len(waiting))
        np.minimum.at(first, w, place)
        np.minimum.at(first, l, place)
        free = (first[w] == place) & (first[l] == place)
        yield w[free], l[free]
        waiting = waiting[~free]


def _play_dummies(
    update: Update,
    state: Floats,
    dummies: list[list[State]],
    group_of: Integers,
    order: Integers,
    rate: float,
) -> None:
    """Let every item in turn lose to its group's first dummy and beat the second; changes both."""
    values: list[State] = list(zip(*state.tolist(), strict=True))
    (unbeaten, beaten), groups = dummies, group_of.tolist()
    for item in order.tolist():
        group = groups[item]
        unbeaten[group], value = update(unbeaten[group], values[item], rate)
        values[item], beaten[group] = update(value, beaten[group], rate)
    state[:] = np.array(values).T
