"""Judgments from rows as a file writes them, from records, and to files: whatever is wrong is found here."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from bws.files.assemble import MAX_K, Assembled, assemble_tuples, check_k
from bws.files.columns import Faults, delimited, encode, quoted, series, texts
from bws.files.pairs import SENTENCE_SEPARATOR
from bws.files.rows import Rows
from bws.files.tuples import item_columns
from bws.problems import InputError, Problem
from bws.records import Ints, Judgment, Judgments, Tuples, normal_id
from bws.textio import write_atomic
from bws.variants import Variants, find_variants
from bws.variants import merge_variants as merged_rows

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "JudgmentForm",
    "OnInvalid",
    "count_valid_answers",
    "judgments_from_records",
    "judgments_of",
    "respell_orders",
    "write_judgments",
]

log = logging.getLogger(__name__)

OnInvalid = Literal["error", "skip"]
MAX_BITMAP_SIZE = 1 << 26


def judgments_of(
    rows: Rows, on_invalid: OnInvalid = "error", *, merge_variants: bool = False
) -> Judgments:
    """Check rows and return the valid judgments.

    on_invalid: ``error`` raises InputError with every fault of every row; ``skip`` leaves these rows out
    and lists their faults in `left_out`; items, tuples and annotators of these rows only are not there
    either. InputError also where no row is valid.
    merge_variants: whether items that differ in white space, case and punctuation only are one item, see
    `bws.variants`.
    """
    if on_invalid not in ("error", "skip"):
        raise ValueError(f"on_invalid is {on_invalid!r}; 'error' and 'skip' are allowed")
    if not len(rows.lines):
        no_judgments = [Problem(rows.file, None, "holds no judgments")]
        raise InputError(rows.problems or no_judgments)
    k = len(rows.items)
    check_k(rows.file, k)
    rows, variants = merged_rows(rows) if merge_variants else (rows, None)
    faults = Faults(rows.file, rows.lines, rows.problems)
    assembled = assemble_tuples(faults, rows.items, rows.group, rows.tuple_id)
    best = chosen_positions(faults, rows, "best", rows.best, assembled)
    worst = chosen_positions(faults, rows, "worst", rows.worst, assembled)
    faults.add(
        (best == worst) & (best >= 0),
        lambda row: f"best and worst are both {quoted(str(rows.best[row]))}; they must differ",
    )
    annotator_of, annotators = _annotators(rows)
    _check_repeated_judgments(faults, assembled.tuple_of, annotator_of, annotators)
    display_order = display_orders(faults, rows, assembled)
    if (
        on_invalid == "error"
        and faults.is_invalid.any()
        and (spelling_variants := find_variants(assembled.ids.tolist()))
    ):
        faults.add_file_problem(spelling_variants.message())
    faults.raise_if_invalid("judgments", always=on_invalid == "error")
    log.debug(
        "%s (%s): %d rows, %d tuples of %d, %d items, %d annotators; %d rows with faults",
        rows.file, rows.form, len(rows.lines), len(assembled.tuples), k, len(assembled.tuples.items),
        len(annotators), np.count_nonzero(faults.is_invalid),
    )  # fmt: skip
    judgments = Judgments(
        tuples=assembled.tuples,
        tuple_of=assembled.tuple_of,
        best=assembled.member_position[best, assembled.row_of],
        worst=assembled.member_position[worst, assembled.row_of],
        annotator_of=annotator_of,
        annotators=annotators,
        shown=display_order,
        columns={name: texts(column) for name, column in rows.columns.items()},
        source=f"{rows.file} ({rows.form})",
        left_out=faults.problems,
    )
    if faults.is_invalid.any():
        judgments = _drop_unused(judgments.take(~faults.is_invalid))
    if variants is None:
        return replace(judgments, variants=_variants(judgments))
    n_items = variants.n_items - len(judgments.items_left_out)
    return replace(judgments, variants=replace(variants, n_items=n_items))


def _variants(judgments: Judgments) -> Variants | None:
    tuples = judgments.tuples
    n_judgments = np.bincount(judgments.tuple_of, minlength=len(tuples))
    counts = np.bincount(tuples.members.ravel(), n_judgments.repeat(tuples.k), len(tuples.items))
    return find_variants(tuples.items.tolist(), tuples.group_of_item, counts.astype(np.int64))


def _drop_unused(judgments: Judgments) -> Judgments:
    """Return the judgments without tuples, items, groups and annotators that none of them is about."""
    tuples = judgments.tuples
    used, tuple_of = np.unique(judgments.tuple_of, return_inverse=True)
    items, members = np.unique(tuples.members[used], return_inverse=True)
    groups, group_of_item = np.unique(tuples.group_of_item[items], return_inverse=True)
    annotators, annotator_of = np.unique(judgments.annotator_of, return_inverse=True)
    n_unnamed = int(annotators[:1].tolist() == [-1])  # -1 comes first, and stays
    return replace(
        judgments,
        items_left_out=tuple(np.delete(tuples.items, items).tolist()),
        tuples=Tuples(
            ids=tuples.ids[used],
            items=tuples.items[items],
            group_of_item=group_of_item.astype(np.int32),
            groups=tuples.groups[groups],
            members=members.reshape(len(used), tuples.k).astype(np.int32),
        ),
        tuple_of=tuple_of.astype(np.int32),
        annotator_of=(annotator_of - n_unnamed).astype(np.int32),
        annotators=judgments.annotators[annotators[n_unnamed:]],
    )


def _annotators(rows: Rows) -> tuple[Ints, NDArray[np.object_]]:
    """Return each row's annotator, -1 where none is named, and the annotators."""
    if rows.annotator is None:
        return np.full(len(rows.lines), -1, np.int32), np.empty(0, dtype=object)
    (codes,), ids = encode([rows.annotator])
    code_of_id = np.cumsum(ids != "", dtype=np.int32) - 1
    code_of_id[ids == ""] = -1
    return code_of_id[codes], ids[ids != ""]


def _check_repeated_judgments(
    faults: Faults, tuple_of: Ints, annotator_of: Ints, annotators: NDArray[np.object_]
) -> None:
    """Note the rows in which an annotator judges a tuple that he or she has judged before."""
    import polars as pl

    rows = np.flatnonzero(~faults.is_invalid & (annotator_of >= 0))
    key = tuple_of[rows].astype(np.int64) * len(annotators) + annotator_of[rows]
    if _are_distinct(key, int(tuple_of.max()) * len(annotators) + len(annotators)):
        return
    is_repeat = ~pl.Series(key).is_first_distinct().to_numpy()
    earlier = dict(
        zip(key[~is_repeat].tolist(), faults.lines[rows[~is_repeat]].tolist(), strict=True)
    )
    key_of_row = dict(zip(rows[is_repeat].tolist(), key[is_repeat].tolist(), strict=True))
    mask = np.zeros(len(tuple_of), bool)
    mask[rows[is_repeat]] = True
    faults.add(
        mask,
        lambda row: (
            f"annotator {quoted(annotators[annotator_of[row]])} has judged this tuple in line "
            f"{earlier[key_of_row[row]]}; one judgment a person and tuple is allowed"
        ),
    )


def _are_distinct(keys: NDArray[np.int64], size: int) -> bool:
    """Tell whether keys below `size` are all different, by ticking them off where there is room."""
    import polars as pl

    if size > MAX_BITMAP_SIZE:
        return pl.Series(keys).n_unique() == len(keys)
    seen = np.zeros(size, bool)
    seen[keys] = True
    return int(np.count_nonzero(seen)) == len(keys)


def judgments_from_records(records: Iterable[Judgment]) -> Judgments:
    """Check records and return their judgments; problems name a record by its number from 1.

    Every record gives its items in the order in which they were shown. Raises InputError as for a file.
    """
    judgment_list = list(records)
    file = "records"
    if not judgment_list:
        raise InputError(Problem(file, None, "there are none; judgments are expected"))
    k = len(judgment_list[0].items)
    problems = [
        Problem(file, number, f"{len(record.items)} items; the first record has {k}")
        for number, record in enumerate(judgment_list, start=1)
        if len(record.items) != k
    ]
    numbers = [
        number for number, record in enumerate(judgment_list, start=1) if len(record.items) == k
    ]
    valid = [judgment_list[number - 1] for number in numbers]
    return judgments_of(
        Rows(
            file=file,
            form="records",
            lines=np.array(numbers, np.int64),
            items=[series([r.items[position] for r in valid]) for position in range(k)],
            best=series([r.best for r in valid]),
            worst=series([r.worst for r in valid]),
            tuple_id=series([r.tuple_id for r in valid]),
            group=series([r.group for r in valid]),
            annotator=series([r.annotator for r in valid]),
            items_in_display_order=True,
            problems=tuple(problems),
        )
    )


LETTERS = "ABCDEFGHIJKL"
POSITION_NUMBER = r"^(\d{1,2})(?:\.0)?$"  # spreadsheets write 2 as 2.0
EXPECTED_ANSWER = {
    "item": "one of the row's items",
    "position": "a position from 1 to {k}",
    "letter": "a letter from A to {last}",
}


def chosen_positions(
    faults: Faults, rows: Rows, role: str, answers: pl.Series, assembled: Assembled
) -> NDArray[np.int8]:
    """Return (J,) the place in the row of each answer, -1 and a fault where it names none of the items.

    what: how messages call the answers: best or worst.
    """
    positions = POSITION_PARSERS[rows.answers](rows, answers)
    if rows.answers == "item":
        _match_normalized(positions, answers, assembled)
    k = len(rows.items)
    expected = EXPECTED_ANSWER[rows.answers].format(k=k, last=LETTERS[k - 1])

    def message(row: int) -> str:
        answer = str(answers[row])
        description = f"is {quoted(answer)}" if answer.strip() else "is empty"
        return f"{role} {description}; it must be {expected}"

    faults.add(positions < 0, message)
    return positions


def count_valid_answers(rows: Rows) -> int:
    """Return how many rows name two of their items as best and worst, as the format says."""
    if len(rows.items) > MAX_K:
        return 0
    normalized = replace(rows, items=[_normalize(column) for column in rows.items])
    sets = ({"", *items} for items in zip(*normalized.items, strict=True))
    distinct = np.array([len(items) > len(rows.items) for items in sets], bool)
    best, worst = (
        POSITION_PARSERS[rows.answers](normalized, _normalize(a)) for a in (rows.best, rows.worst)
    )
    return int(np.count_nonzero((best >= 0) & (worst >= 0) & (best != worst) & distinct))


def _normalize(column: pl.Series) -> pl.Series:
    return series(normal_id(text) for text in column)


def _positions_of_items(rows: Rows, answers: pl.Series) -> NDArray[np.int8]:
    positions = np.full(len(answers), -1, np.int8)
    for position, column in enumerate(rows.items):
        positions[(answers == column).to_numpy()] = position
    positions[(answers == "").to_numpy()] = -1
    return positions


def _match_normalized(
    positions: NDArray[np.int8], answers: pl.Series, assembled: Assembled
) -> None:
    """Find the items of answers that no item is written like: empty, foreign, or in another Unicode form."""
    unmatched = np.flatnonzero((positions < 0) & (answers != "").to_numpy())
    if len(unmatched):
        (code_of_answer,), answer_ids = encode([answers.gather(unmatched)])
        code_of_id = {identity: code for code, identity in enumerate(assembled.ids)}
        answer_codes = np.array([code_of_id.get(text, -1) for text in answer_ids])[code_of_answer]
        equal = assembled.codes[:, assembled.row_of[unmatched]] == answer_codes
        positions[unmatched] = np.where(equal.any(axis=0), equal.argmax(axis=0), -1)


def _positions_of_numbers(rows: Rows, answers: pl.Series) -> NDArray[np.int8]:
    import polars as pl

    digits = answers.str.strip_chars().str.extract(POSITION_NUMBER)
    positions = digits.cast(pl.Int8).fill_null(0).to_numpy() - 1
    return np.where(positions < len(rows.items), positions, -1).astype(np.int8)


def _positions_of_letters(rows: Rows, answers: pl.Series) -> NDArray[np.int8]:
    import polars as pl

    letters = answers.str.strip_chars().str.to_uppercase()
    alphabet, positions = list(LETTERS[: len(rows.items)]), list(range(len(rows.items)))
    return letters.replace_strict(alphabet, positions, default=-1, return_dtype=pl.Int8).to_numpy()


POSITION_PARSERS = {
    "item": _positions_of_items,
    "position": _positions_of_numbers,
    "letter": _positions_of_letters,
}


def display_orders(faults: Faults, rows: Rows, assembled: Assembled) -> NDArray[np.int8] | None:
    """Return (J, K) which position of the tuple was shown first, second, ...; None where not told."""
    if rows.items_in_display_order:
        return assembled.member_position.T[assembled.row_of]
    if rows.display_order is None or not (rows.display_order != "").any():
        return None
    order_texts = rows.display_order
    order = _match_orders(order_texts, rows.items)
    is_invalid = (np.sort(order, axis=1) != np.arange(len(rows.items))).any(axis=1)
    for row in np.flatnonzero(
        is_invalid & ~faults.is_invalid
    ):  # other Unicode forms, ids with semicolons
        items = assembled.ids[assembled.codes[:, assembled.row_of[row]]].tolist()
        positions = _parse_order(normal_id(order_texts[int(row)]), items)
        if positions:
            order[row], is_invalid[row] = positions, False
    faults.add(
        is_invalid & ~faults.is_invalid,
        lambda row: (
            f"shown is {quoted(str(order_texts[row]))}; it must be the row's items in some order, "
            "with ; between them, in every row or in none"
        ),
    )
    return assembled.member_position.T[assembled.row_of[:, np.newaxis], order]


def respell_orders(
    orders: pl.Series, before: Sequence[pl.Series], after: Sequence[pl.Series]
) -> pl.Series:
    """Return the orders shown in the new spellings of the items; one that cannot be read stays as it is."""
    changed = np.any([(b != a).to_numpy() for b, a in zip(before, after, strict=True)], axis=0)
    texts = orders.to_list()
    for row in np.flatnonzero(changed & (orders != "").to_numpy()).tolist():
        positions = _parse_order(
            normal_id(texts[row]), [normal_id(column[row]) for column in before]
        )
        if positions:
            texts[row] = ";".join(after[position][row] for position in positions)
    return series(texts)


def _match_orders(orders: pl.Series, items: Sequence[pl.Series]) -> NDArray[np.int8]:
    """Return (J, K) the place in the row of each part of `shown`, -1 where no item is written like it."""
    parts = orders.str.splitn(";", len(items)).struct.unnest()
    order = np.full((len(orders), len(items)), -1, np.int8)
    for column, part in enumerate(parts.iter_columns()):
        for position, item in enumerate(items):
            order[(part == item).fill_null(False).to_numpy(), column] = position
    return order


def _parse_order(text: str, items: Sequence[str]) -> list[int] | None:
    """Return the places in `items` in the order in which `text` joins them with semicolons.

    >>> _parse_order("b;a; c", ["a", "b", "c"]), _parse_order("y;x;y", ["y", "x;y"]), _parse_order("a", ["b"])
    ([1, 0, 2], [0, 1], None)
    """

    def parse(text: str, unused: Sequence[int]) -> list[int] | None:
        if not unused:
            return [] if text == "" else None
        for position in unused:
            remainder = text.strip().removeprefix(items[position]).lstrip()
            if text.strip().startswith(items[position]) and remainder[:1] in (";", ""):
                order = parse(remainder[1:], [index for index in unused if index != position])
                if order is not None:
                    return [position, *order]
        return None

    return parse(text, range(len(items)))


JudgmentForm = Literal["csv", "km", "semrel"]


def write_judgments(
    judgments: Judgments, path: str | os.PathLike[str], form: JudgmentForm = "csv"
) -> None:
    """Write judgments, whole or not at all (``-`` is standard output).

    form: ``csv`` is ours, with the order shown and further columns where there are any; ``km`` is
    ``Item1..ItemK,BestItem,WorstItem``; ``semrel`` is ``pair1a,pair1b,..,best-pair,worst-pair`` with
    letters, for items that are pairs (others stand in the first half).
    """
    columns = {"csv": _standard_columns, "km": _km_columns, "semrel": _semrel_columns}.get(form)
    if columns is None:
        raise ValueError(f"form is {form!r}; 'csv', 'km' and 'semrel' are allowed")
    write_atomic(path, delimited(columns(judgments)))


def _standard_columns(judgments: Judgments) -> dict[str, pl.Series]:
    tuples = judgments.tuples
    ids, items = series(tuples.ids), series(tuples.items)
    groups = series(tuples.groups)
    columns = {
        "tuple_id": ids.gather(judgments.tuple_of),
        "group": groups.gather(tuples.group_of_tuple[judgments.tuple_of]),
        **item_columns(tuples, judgments.tuple_of),
        "best": items.gather(judgments.best_item),
        "worst": items.gather(judgments.worst_item),
        "annotator": series([*judgments.annotators, ""]).gather(_annotator_indices(judgments)),
    }
    columns |= {name: series(column) for name, column in judgments.columns.items()}
    return columns | ({} if judgments.shown is None else {"shown": _order_texts(judgments)})


def _annotator_indices(judgments: Judgments) -> Ints:
    return np.where(
        judgments.annotator_of < 0, len(judgments.annotators), judgments.annotator_of
    ).astype(np.int32)


def _order_texts(judgments: Judgments) -> pl.Series:
    import polars as pl

    items, members = series(judgments.tuples.items), judgments.tuples.members
    order = np.zeros((len(judgments), 0), np.int8) if judgments.shown is None else judgments.shown
    item_columns_in_order = [
        items.gather(members[judgments.tuple_of, positions]) for positions in order.T
    ]
    return pl.select(pl.concat_str(item_columns_in_order, separator=";")).to_series()


def _km_columns(judgments: Judgments) -> dict[str, pl.Series]:
    standard = _standard_columns(judgments)
    items = {f"Item{n}": standard[f"item{n}"] for n in range(1, judgments.tuples.k + 1)}
    return items | {"BestItem": standard["best"], "WorstItem": standard["worst"]}


def _semrel_columns(judgments: Judgments) -> dict[str, pl.Series]:
    columns = {}
    for number, column in enumerate(item_columns(judgments.tuples, judgments.tuple_of).values(), 1):
        halves = column.str.splitn(SENTENCE_SEPARATOR, 2).struct.unnest().iter_columns()
        for half, text in zip("ab", halves, strict=True):
            columns[f"pair{number}{half}"] = text.fill_null("")
    for name, positions in (("best-pair", judgments.best), ("worst-pair", judgments.worst)):
        columns[name] = series(list(LETTERS)).gather(positions.astype(np.int32))
    return columns
