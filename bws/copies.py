"""Copies among judgments: judgments that occur again under other ids of tuples or annotators.

An export that is used twice with new ids doubles every judgment. Scores stay the same, but reliability,
agreement and all intervals look more certain than they are. Judgments are therefore compared by content:
group, set of items, best and worst. There are three kinds of copies. The second and third are of people
alone, because language models repeat their answers, and do not include copies of the first kind.

1. *Same annotator*: the annotator has judged the same items with the same answer before, under another tuple
   id; for a model with the same prompt and run. Another answer to repeated items is no copy. If annotators
   gave other answers to some repeated items, the design repeats items, and copies are reported but not
   certain, unless equal answers are too many for annotators who repeat an answer with a probability of .8.
2. *Whole file*: the numbers of judgments with the same content are even, or have another common divisor.
   Chance is excluded if this holds for 10 sets of items with different answers: for each of them the
   probability is below 1/2, and 1/2 ** 10 < .001; or for so many of them that the binomial probability is
   below .001, as in a copy without some of the rows. It is also excluded for 31 sets of items, if two
   annotators agree with a probability of at most .8 (.8 ** 31 < .001; in public data it is .14 to .45). The
   latter requires that no annotator has judgments that no other annotator has.
3. *Equal annotators*: all n judgments of two annotators are equal. Chance is excluded if n_pairs * q ** n <
   .001, where n_pairs is the number of pairs of annotators and q the share of other annotators' judgments of
   these items with the same answer, to which ten judgments are added of which eight have the same answer.

Simulated annotators may agree on everything, and only sets with different answers count.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bws.base.problems import Problem
from bws.model_annotators import RUN_COLUMNS, is_model, is_simulated

if TYPE_CHECKING:
    from bws.records import Judgments

Longs = NDArray[np.int64]

MAX_CHANCE = 0.001
"""Maximum probability with which judgments that are no copies are reported."""
MIN_SETS = 31
EQUAL_SHARE = 0.8
"""Assumed probability that two annotators, or an annotator twice, give the same answer."""
ADDED_EQUAL, ADDED = 8, 10
MAX_EXAMPLES = 3


def certain_copies(judgments: Judgments) -> tuple[Problem, ...]:
    """Return a problem for each kind of copies that are not the answers to items which the design repeats."""
    return tuple(problem for problem, is_certain in _kinds_of_copies(judgments) if is_certain)


def find_copies(judgments: Judgments) -> tuple[Problem, ...]:
    """Return a problem for each kind of copies, with the number of judgments and the first of them.

    Tuples with control items do not count.

    >>> from bws.files import judgments_from_records
    >>> from bws.records import Judgment
    >>> rows = [Judgment(("a", "b", "c"), "a", "c", "w1", tuple_id=name) for name in ("t1", "t2")]
    >>> print(find_copies(judgments_from_records(rows))[0].message)
    1 of 2 judgments repeat annotator, items, best and worst under another tuple id (line 2 and 1)
    """
    return tuple(problem for problem, _ in _kinds_of_copies(judgments))


def _kinds_of_copies(judgments: Judgments) -> Iterator[tuple[Problem, bool]]:
    """Yield a problem for each kind of copies, and whether they are certain."""
    content = _content(judgments)
    first = _first_rows(_by_annotator(judgments, content))
    first_of_items = _first_rows(_by_annotator(judgments, content // judgments.tuples.k**2))
    has_control = np.any(judgments.tuples.members >= judgments.tuples.n_scored, axis=1)
    counts: NDArray[np.bool_] = ~has_control
    is_named = counts[judgments.tuple_of] & (judgments.annotator_of >= 0)
    is_copy = is_named & (first < np.arange(len(first)))
    copies = np.flatnonzero(is_copy)
    if len(copies):
        n_repeated = int(np.count_nonzero(is_named & (first_of_items < np.arange(len(first)))))
        is_certain = n_repeated == len(copies) or _exceeds(len(copies), n_repeated, EQUAL_SHARE)
        what = "repeat annotator, items, best and worst under another tuple id"
        pairs = _line_pairs(judgments, copies, first)
        yield _problem(judgments, copies, len(copies), what, pairs), is_certain
    rows = np.flatnonzero(counts[judgments.tuple_of] & ~is_copy & ~judgments.by_model)
    if len(rows):
        yield from ((each, True) for each in _copies_of_people(judgments, rows, content[rows]))


def _exceeds(count: int, n: int, p: float) -> bool:
    """Return whether `count` or more of n draws with probability p are less likely than `MAX_CHANCE`."""
    if count <= n * p or p**n >= MAX_CHANCE:  # the tail is at least 1/2, or p ** n
        return False
    from scipy.special import bdtrc

    return bool(bdtrc(count - 1, n, p) < MAX_CHANCE)


def similar_annotators(judgments: Judgments) -> tuple[Problem, ...]:
    """Return a problem if names of people differ only in case or white space.

    >>> from bws.files import judgments_from_records
    >>> from bws.records import Judgment
    >>> rows = [Judgment(("a", "b", "c"), "a", "c", name) for name in ("w 1", "W  1")]
    >>> print(*similar_annotators(judgments_from_records(rows)))
    records: 1 of 2 annotators differ from another only in case or white space ('W  1' and 'w 1')
    """
    first: dict[str, str] = {}
    people = [name for name in judgments.annotators if not is_model(name)]
    pairs = [(name, first.setdefault(" ".join(name.casefold().split()), name)) for name in people]
    similar = [f"{name!r} and {other!r}" for name, other in pairs if name != other]
    if not similar:
        return ()
    message = f"{len(similar)} of {len(people)} annotators differ from another only in case or white space"
    return (Problem(judgments.file, None, f"{message} ({_listed(similar)})"),)


def _content(judgments: Judgments) -> Longs:
    """Return (J,) a number of the set of items, times K ** 2, plus K times best plus worst as positions in
    it."""
    tuples = judgments.tuples
    members = tuples.members[judgments.tuple_of]
    content = tuples.item_sets[judgments.tuple_of]
    for item in (judgments.best_item, judgments.worst_item):
        content = content * tuples.k + (members < item[:, np.newaxis]).sum(axis=1)
    return content


def _by_annotator(judgments: Judgments, content: Longs) -> Longs:
    """Return (J,) a number of content and annotator; for models also of prompt and run."""
    key = content * (len(judgments.annotators) + 1) + judgments.annotator_of + 1
    for name in RUN_COLUMNS if judgments.by_model.any() else ():
        if name in judgments.columns:
            texts, code = np.unique(judgments.columns[name].astype(str), return_inverse=True)
            key = key * len(texts) + np.where(judgments.by_model, code, 0)
    return key


def _first_rows(key: Longs) -> Longs:
    """Return (J,) the first row with the same key."""
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    return first[number]


def _copies_of_people(judgments: Judgments, rows: Longs, content: Longs) -> Iterator[Problem]:
    """Yield the problem of the whole file or, if there is none, that of equal annotators."""
    contents, answer, n_equal = np.unique(content, return_inverse=True, return_counts=True)
    _, set_of_answer, n_answers = np.unique(
        contents // judgments.tuples.k**2, return_inverse=True, return_counts=True
    )
    annotator_of, named = judgments.annotator_of[rows], judgments.annotator_of[rows] >= 0
    n_of_set = np.bincount(set_of_answer, n_equal)[set_of_answer]
    twin_of, is_certain = _equal_annotators(annotator_of[named], answer[named], n_equal, n_of_set)
    divisor = int(np.gcd.reduce(n_equal))
    is_alone = np.bincount(twin_of)[twin_of] == 1
    has_twins = len(n_answers) >= MIN_SETS and not is_alone[annotator_of[named]].any()
    if named.all() and all(
        map(is_simulated, judgments.annotators)
    ):  # They may agree on everything.
        has_twins, is_certain = False, np.zeros_like(is_certain)
    is_disputed = n_answers > 1
    n_odd = np.bincount(set_of_answer, n_equal % max(divisor, 2))
    n_disputed, n_even = int(is_disputed.sum()), int((is_disputed & (n_odd == 0)).sum())
    is_unlikely = _exceeds(n_even, n_disputed, 0.5)
    if divisor == 1 and is_unlikely:
        what = (
            f"include equal ones: {n_even} of {n_disputed} sets of items with different answers have each "
            "answer an even number of times, as in a file to which most of it was appended"
        )
        yield _problem(judgments, rows[:0], len(rows), what, iter(()))
    elif divisor > 1 and (is_unlikely or has_twins):
        size = len(rows) // divisor
        what = (
            f"repeat items, best and worst: each occurs {divisor} times or a multiple of it, as in a file "
            "that was appended to itself"
        )
        parts = np.sort(content.reshape(divisor, size), axis=1)
        is_appended = bool((parts == parts[0]).all())
        copies, lines = rows[:0], list[tuple[str, str]]()
        if is_appended:
            copies = rows[size:]
            lines = [(f"lines {_lines(judgments, copies)}", _lines(judgments, rows[:size]))]
        yield _problem(judgments, copies, len(rows) - size, what, iter(lines))
    elif is_certain.any():
        copies = rows[named][is_certain[annotator_of[named]]]
        names = judgments.annotators
        pairs = ((repr(names[a]), repr(names[twin_of[a]])) for a in np.flatnonzero(is_certain))
        what = "are by annotators whose judgments are all equal to those of another annotator"
        yield _problem(judgments, copies, len(copies), what, pairs)


def _equal_annotators(
    annotator_of: NDArray[np.int32], answer: Longs, n_equal: Longs, n_of_set: NDArray[Any]
) -> tuple[Longs, NDArray[np.bool_]]:
    """Return (A,) the first annotator with the same judgments, and whether it is another one and chance is
    excluded.

    annotator_of, answer: of each judgment. n_equal, n_of_set: of each answer, the number of judgments with
    it, and of judgments of its items.
    """
    n = np.bincount(annotator_of)
    numbers = np.random.Generator(np.random.PCG64(0)).integers(2**62, size=len(n_equal))
    sums = np.zeros(len(n), np.int64)  # Equal for equal judgments; an overflow does not matter.
    np.add.at(sums, annotator_of, numbers[answer])
    twin_of = _first_rows(sums)
    n_own = np.bincount(twin_of)[twin_of] * n
    equal, others = (
        np.bincount(annotator_of, counts[answer]) - n_own for counts in (n_equal, n_of_set)
    )
    q = (equal + ADDED_EQUAL) / (others + ADDED)
    n_annotators = np.count_nonzero(n)
    chance = n_annotators * (n_annotators - 1) / 2 * q**n
    return twin_of, (twin_of < np.arange(len(n))) & (n > 0) & (chance < MAX_CHANCE)


def _problem(
    judgments: Judgments, copies: Longs, count: int, what: str, pairs: Iterator[tuple[Any, Any]]
) -> Problem:
    """Return the problem of the rows `copies`; pairs: examples."""
    examples = [f"{copy} and {original}" for copy, original in islice(pairs, MAX_EXAMPLES + 1)]
    message = f"{count} of {len(judgments)} judgments {what}"
    message += f" ({_listed(examples)})" if examples else ""
    file, line = judgments.file, 0
    if len(copies) and judgments.lines is not None:
        line = int(_lines_of(judgments)[copies[0]])
        file = file if judgments.files is None else judgments.files[copies[0]]
    return Problem(file, line or None, message)


def _listed(examples: list[str]) -> str:
    return ", ".join(examples[:MAX_EXAMPLES] + (["..."] if len(examples) > MAX_EXAMPLES else []))


def _lines_of(judgments: Judgments) -> Longs:
    """Return (J,) the line of each judgment, or the number of the row without lines."""
    lines = judgments.lines
    return np.arange(1, len(judgments) + 1) if lines is None or not lines.all() else lines


def _lines(judgments: Judgments, rows: Longs) -> str:
    """Return the first and the last line of some rows."""
    places = _places(judgments, rows[[0, -1]])
    return f"{places[0]} to {places[-1]}"


def _line_pairs(judgments: Judgments, copies: Longs, first: Longs) -> Iterator[tuple[str, str]]:
    """Yield the line of each copy and the one that it repeats."""
    word = "line " if judgments.files is None else ""
    for copy in copies.tolist():
        place, original = _places(judgments, np.array([copy, first[copy]]))
        yield f"{word}{place}", original


def _places(judgments: Judgments, rows: Longs) -> list[str]:
    """Return the line of each row, with its file if there are several."""
    lines = _lines_of(judgments)[rows].tolist()
    if judgments.files is None:
        return [str(line) for line in lines]
    return [f"{file}:{line}" for file, line in zip(judgments.files[rows], lines, strict=True)]
