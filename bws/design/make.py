"""Generation of balanced tuples, within groups if items have groups."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Mapping, Sequence, Set
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bws.base.frames import Source, frames_like_source, is_path
from bws.base.ids import id_of
from bws.base.notes import note
from bws.design.balance import balanced, level_positions, pair_keys
from bws.files import read_items
from bws.records import Tuples

log = logging.getLogger(__name__)

MIN_K, MAX_K = 2, 12
MAX_TUPLES = 10_000_000
FACTOR = 2.0
"""Default number of tuples per item."""
MAX_GROUPS_NAMED = 3
ALL_USED = (
    "{n:d} items: all {possible:d} distinct tuples of {k:d} are used; {factor:g} per item would be "
    "{usual:d}"
)
ALL_USED_OF_GROUPS = (
    "{groups:d} groups of {n:d} items: all {possible:d} distinct tuples of {k:d} are used; {factor:g} per "
    "item would be {usual:d}"
)
CANONICAL_ITERATIONS = 100
Members = NDArray[np.int32]


@frames_like_source
def make_tuples(
    items: Sequence[str] | Source,
    k: int,
    *,
    factor: float | None = None,
    count: int | None = None,
    groups: Sequence[str] | None = None,
    seed: int = 0,
    compat: Literal["km"] | None = None,
    keep_apart: Sequence[Sequence[str]] = (),
    keep_together: Sequence[Sequence[str]] = (),
    allow_repeats: bool = False,
) -> Tuples:
    """Make a balanced design of K-tuples; equal seeds give equal designs on all platforms.

    items: ids (text or integers), or a path, a data frame or records as for `read_items`, with their groups.

    For N items there are ``int(0.5 + factor * N)`` tuples, or `count` if given. With `groups` (the group of
    each item) there is a separate design of this size within each group. In each design, the items of a
    tuple are distinct; appearances differ by at most one; pair counts are as equal as possible; the counts
    of an item per position differ by at most one (paper section 3.2: 2N distinct 3-tuples of N = 5, each
    item in six).

    Tuples are distinct: no two of a group have the same items. Without `factor` and `count`, `factor` is 2,
    and a group with fewer distinct tuples gets all of them, with a note in `Tuples.notes`.
    allow_repeats: tuples may repeat after every distinct tuple has been used; their counts differ by at most
    one.

    compat: ``km`` generates the design like the scripts of Kiritchenko and Mohammad, without balanced
    positions. Tuples may repeat although enough distinct tuples exist; `Tuples.n_repeated` counts them.
    keep_apart: sets of items of which no tuple contains two. keep_together: sets of at most K items, each of
    which at least one tuple contains completely.

    Raises ValueError for repeated or empty ids, K outside 2 … 12, groups smaller than K, and unsatisfiable
    constraints. Without `allow_repeats`, it also raises ValueError for more tuples than are distinct, and
    for constraints under which no distinct tuples are found.

    >>> design = make_tuples(["a", "b", "c", "d", "e"], 3, count=10)
    >>> len(design), np.bincount(design.members.ravel()).tolist()
    (10, [6, 6, 6, 6, 6])
    """
    if not _are_ids(items):
        if groups is not None:
            raise ValueError("groups are those of the file or data frame; omit groups")
        items, groups = read_items(items)
    ids, group_of_item, names = _validate_items(items, k, factor, count, groups)
    rng = np.random.Generator(np.random.PCG64(seed))
    if compat and (keep_apart or keep_together):
        raise ValueError(
            "compat='km' does not support constraints; omit keep_apart and keep_together"
        )
    constraints = Constraints(ids, group_of_item, keep_apart, keep_together)
    by_size = _by_size(group_of_item, len(names))
    n_tuples, notes = {n: _tuples_per_group(n, factor, count) for n, _ in by_size}, []
    check_total(sum(n_tuples[n] * len(of_group) for n, of_group in by_size))
    short_groups = [(n, of_group) for n, of_group in by_size if n_tuples[n] > math.comb(n, k)]
    if short_groups and not allow_repeats:
        if factor is not None or count is not None or compat:
            raise ValueError(
                _too_many_tuples_message(
                    short_groups, k, n_tuples, names if groups is not None else None
                )
            )
        notes = [
            _all_tuples_used_note(n, len(of_group), k, n_tuples[n]) for n, of_group in short_groups
        ]
        n_tuples |= {n: math.comb(n, k) for n, _ in short_groups}
    if len(ids) and not isinstance(next(iter(items)), str):
        notes.append(note("ids of items are text: integers were converted"))
    members_by_group: dict[int, Members] = {}
    for n, of_group in by_size:
        size = n_tuples[n]
        log.debug("%d tuples of %d for %d items in each of %d groups", size, k, n, len(of_group))
        unconstrained = [
            group for group in of_group if compat is None and group not in constraints.groups
        ]
        if unconstrained:
            prototype = level_positions(balanced(n, k, size, rng), n)
            designs = _relabel_design(prototype, n, len(unconstrained), rng)
            members_by_group |= dict(zip(unconstrained, designs, strict=True))
        for group in sorted(set(of_group) - set(unconstrained)):
            members_by_group[group] = _make_group_design(
                n, k, size, rng, compat, constraints, group
            )
            if group in constraints.groups and not allow_repeats:
                _check_distinct(members_by_group[group], k)
    items_by_group = np.split(
        np.argsort(group_of_item, kind="stable"), np.cumsum(np.bincount(group_of_item))[:-1]
    )
    members = np.concatenate(
        [items_by_group[group][members_by_group[group]] for group in range(len(names))]
    )
    return Tuples(
        ids=tuple_names(len(members)),
        items=ids,
        group_of_item=group_of_item,
        groups=names,
        members=members.astype(np.int32),
        notes=tuple(notes),
    )


def not_distinct(n_requested: int, n_distinct: int) -> str:
    """Return the reason for repeated tuples and the remedy, for the end of an error message.

    >>> not_distinct(8, 1)
    '1 distinct tuple exists, so 7 of 8 would repeat it; ask for 1 or allow repeats (--allow-repeats)'
    """
    noun, repeated = ("tuple exists", "it") if n_distinct == 1 else ("tuples exist", "others")
    limit = "1" if n_distinct == 1 else f"at most {n_distinct}"
    return (
        f"{n_distinct} distinct {noun}, so {n_requested - n_distinct} of {n_requested} would repeat "
        f"{repeated}; ask for {limit} or allow repeats (--allow-repeats)"
    )


def _tuples_per_group(n: int, factor: float | None, count: int | None) -> int:
    """Return the number of tuples of a group of `n` items."""
    if count is not None:
        return count
    factor = FACTOR if factor is None else factor
    check_total(factor * n)
    size = int(0.5 + factor * n)
    if size < 1:
        raise ValueError(f"factor {factor} gives no tuple of {n} items; expected a larger factor")
    return size


def _too_many_tuples_message(
    short_groups: list[tuple[int, list[int]]],
    k: int,
    n_tuples: dict[int, int],
    names: NDArray[np.object_] | None,
) -> str:
    """Return the error for groups with fewer distinct tuples than requested; one line per group size."""
    lines = []
    for n, of_group in short_groups:
        location = "" if names is None else f"{_format_groups(names[of_group].tolist())}: "
        lines.append(
            f"{location}{n} items, tuples of {k}: {not_distinct(n_tuples[n], math.comb(n, k))}"
        )
    return "\n".join(lines)


def _format_groups(groups: Sequence[str]) -> str:
    """Return the names of the first groups and the number of further groups.

    >>> _format_groups(["a", "b", "c", "d"])
    "groups 'a', 'b', 'c' and 1 more"
    """
    first = ", ".join(map(repr, groups[:MAX_GROUPS_NAMED]))
    more = len(groups) - MAX_GROUPS_NAMED
    return f"group{'s' * (len(groups) > 1)} {first}{f' and {more} more' if more > 0 else ''}"


def _all_tuples_used_note(n: int, n_groups: int, k: int, n_usual: int) -> str:
    values = {
        "groups": n_groups,
        "n": n,
        "possible": math.comb(n, k),
        "k": k,
        "factor": FACTOR,
        "usual": n_usual,
    }
    return note(ALL_USED_OF_GROUPS, **values) if n_groups > 1 else note(ALL_USED, **values)


def _check_distinct(members: Members, k: int) -> None:
    repeated = len(members) - len(np.unique(np.sort(members, axis=1), axis=0))
    if repeated:
        raise ValueError(
            f"under these constraints {repeated} of {len(members)} tuples of {k} repeat others; ask for "
            "fewer tuples, relax the constraints or allow repeats (--allow-repeats)"
        )


def tuple_names(count: int, before: int = 0) -> NDArray[np.object_]:
    """Return ``t1``, ``t2``, … with leading zeros, so that they sort; start after `before` existing names."""
    width = len(str(before + count))
    return np.array([f"t{n:0{width}}" for n in range(before + 1, before + count + 1)], dtype=object)


def check_factor(factor: float | None) -> None:
    """Raise ValueError unless `factor` is None or a positive finite number."""
    if factor is not None and not 0 < factor < math.inf:
        raise ValueError(f"factor is {factor}; it must be above 0 and finite")


def check_total(n_tuples: float) -> None:
    """Raise ValueError for more than `MAX_TUPLES` tuples, which limits memory and time."""
    if n_tuples > MAX_TUPLES:
        raise ValueError(
            f"a design of {n_tuples:.3g} tuples is too large; at most {MAX_TUPLES} are supported "
            "(--tuples, --factor)"
        )


def _are_ids(items: Sequence[str] | Source) -> bool:
    """Return whether items are ids, and not a path, a data frame or records."""
    if isinstance(items, (Set, Mapping)):
        message = (
            f"items are a {type(items).__name__}; expected a list of ids, whose order is fixed"
        )
        raise TypeError(message)
    if hasattr(items, "to_pylist"):  # An array of PyArrow.
        return True
    if is_path(items) or hasattr(items, "columns") or not isinstance(items, Collection):
        return False
    return not isinstance(next(iter(items), ""), Mapping)


def _validate_items(
    items: Sequence[str],
    k: int,
    factor: float | None,
    count: int | None,
    groups: Sequence[str] | None,
) -> tuple[NDArray[np.object_], NDArray[np.int32], NDArray[np.object_]]:
    """Return (N,) ids, (N,) index of the group, (G,) group ids."""
    if not MIN_K <= k <= MAX_K:
        raise ValueError(f"k is {k}; it must be between {MIN_K} and {MAX_K}")
    check_factor(factor)
    if count is not None and count < 1:
        raise ValueError(f"count is {count}; it must be 1 or more")
    if groups is not None and len(groups) != len(items):
        raise ValueError(
            f"{len(groups)} groups for {len(items)} items; expected one group per item"
        )
    ids = np.array([id_of(item) for item in items], dtype=object)
    group_ids = [id_of(group) for group in groups] if groups is not None else [""] * len(ids)
    index_of_group = {name: index for index, name in enumerate(dict.fromkeys(group_ids))}
    group_of_item = np.array([index_of_group[name] for name in group_ids], np.int32)
    distinct_items = set(zip(group_ids, ids, strict=True))
    if len(distinct_items) < len(ids) or "" in ids:
        raise ValueError(
            "an item is empty or repeated in its group; items must be unique per group"
        )
    for name, size in zip(index_of_group, np.bincount(group_of_item).tolist(), strict=True):
        if size < k:
            subject = f"group {name!r} has" if groups is not None else "there are"
            raise ValueError(f"{subject} {size} items; tuples of {k} need {k} or more")
    if not len(ids):
        raise ValueError(f"there are 0 items; tuples of {k} need {k} or more")
    return ids, group_of_item, np.array(list(index_of_group), dtype=object)


def _by_size(group_of_item: NDArray[np.int32], groups: int) -> list[tuple[int, list[int]]]:
    """Return (group size, indices of groups of this size), smallest first."""
    sizes = np.bincount(group_of_item, minlength=groups)
    return [(int(size), np.flatnonzero(sizes == size).tolist()) for size in np.unique(sizes)]


def _relabel_design(design: Members, n: int, n_copies: int, rng: np.random.Generator) -> Members:
    """Return (n_copies, T, K) copies of a design, each with items, tuples and positions permuted at random.

    Permutations preserve balance, so that one search is sufficient for all groups of equal size.
    """
    count, k = design.shape
    names = np.argsort(rng.random((n_copies, n)), axis=1).astype(np.int32)
    rows = np.argsort(rng.random((n_copies, count)), axis=1)
    columns = np.argsort(rng.random((n_copies, k)), axis=1)
    relabelled = names[np.arange(n_copies)[:, None, None], design[None]]
    ordered = np.take_along_axis(relabelled, rows[:, :, None], axis=1)
    return np.take_along_axis(ordered, columns[:, None, :], axis=2)


class Constraints:
    """Sets of items that must be apart or together, as indices within their group."""

    def __init__(
        self,
        ids: NDArray[np.object_],
        group_of_item: NDArray[np.int32],
        separate: Sequence[Sequence[str]],
        together: Sequence[Sequence[str]],
    ) -> None:
        self.separate: dict[int, list[list[int]]] = {}
        self.together: dict[int, list[list[int]]] = {}
        if separate or together:
            positions = _positions_in_groups(ids, group_of_item)
            for sets, of_group in ((separate, self.separate), (together, self.together)):
                for item_set in sets:
                    group, numbers = _locate_in_one_group(
                        [id_of(item) for item in item_set], positions
                    )
                    of_group.setdefault(group, []).append(numbers)
        self.groups = self.separate.keys() | self.together.keys()


def _positions_in_groups(
    ids: NDArray[np.object_], group_of_item: NDArray[np.int32]
) -> dict[str, list[tuple[int, int]]]:
    """Return (group, index of the item in its group) per id; an id may be in several groups."""
    n_seen: dict[int, int] = {}
    positions: dict[str, list[tuple[int, int]]] = {}
    for item, group in zip(ids, group_of_item.tolist(), strict=True):
        positions.setdefault(item, []).append((group, n_seen.setdefault(group, 0)))
        n_seen[group] += 1
    return positions


def _locate_in_one_group(
    item_set: Sequence[str], positions: dict[str, list[tuple[int, int]]]
) -> tuple[int, list[int]]:
    unknown = [item for item in item_set if item not in positions]
    if unknown:
        raise ValueError(f"unknown item {unknown[0]!r} in the constraints")
    common = set.intersection(*({group for group, _ in positions[item]} for item in item_set))
    if len(common) != 1:
        raise ValueError(
            f"items {', '.join(item_set)} are not in one group; constraints must be within a group"
        )
    group = common.pop()
    return group, [
        number for item in item_set for item_group, number in positions[item] if item_group == group
    ]


def _make_group_design(
    n: int,
    k: int,
    size: int,
    rng: np.random.Generator,
    compat: Literal["km"] | None,
    constraints: Constraints,
    group: int,
) -> Members:
    if compat == "km":
        return _canonical_design(n, k, size, rng)
    if compat is not None:
        raise ValueError(f"compat is {compat!r}; expected 'km'")
    separate, together = constraints.separate.get(group, []), constraints.together.get(group, [])
    members = balanced(n, k, size, rng, separate, together)
    return level_positions(rng.permutation(rng.permuted(members, axis=1)), n)


def _canonical_design(n: int, k: int, count: int, rng: np.random.Generator) -> Members:
    """Return (count, k) item indices: of a hundred random designs, the one with the most balanced pairs.

    The criterion is the standard deviation of pair counts over all pairs. For a fixed number of tuples, it
    orders designs like the sum of squared counts. Tuples may repeat, as in the original scripts.
    """
    if not 2 <= k <= n:
        raise ValueError(f"tuples of {k} need {max(k, 2)} or more items; there are {n}")
    designs = (_cut_shuffled_items(n, k, count, rng) for _ in range(CANONICAL_ITERATIONS))
    return min(designs, key=lambda members: _sum_of_squares(members, n))  # min keeps the first


def _cut_shuffled_items(n: int, k: int, count: int, rng: np.random.Generator) -> Members:
    """Cut tuples off the shuffled items; if too few items remain, shuffle all items again."""
    remaining = rng.permutation(n).tolist()
    tuples = []
    for _ in range(count):
        members, remaining = remaining[:k], remaining[k:]
        if len(members) < k:
            remaining = rng.permutation(n).tolist()
            fill = [item for item in remaining if item not in members][: k - len(members)]
            remaining = [item for item in remaining if item not in fill]
            members += fill
        tuples.append(members)
    return np.array(tuples, np.int32)


def _sum_of_squares(members: Members, n: int) -> int:
    return int((np.unique(pair_keys(members, n), return_counts=True)[1] ** 2).sum())
