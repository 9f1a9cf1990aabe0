"""Judgments from rows of a file or from records, with validation, and writing of judgments."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from bws.base.ids import id_of, normal_id
from bws.base.notes import note
from bws.base.problems import InputError, Problem
from bws.files.assemble import MAX_K, Assembled, assemble_tuples, check_k
from bws.files.columns import Faults, encode, quoted, texts
from bws.files.controls import name_list, placeholders
from bws.files.rows import Rows, order_of, with_single_annotators
from bws.files.variants import Variants, find_variants, note_on_words
from bws.files.variants import merge_variants as merged_rows
from bws.model_annotators import RUN_COLUMNS, is_model
from bws.record_columns import COLUMN, series
from bws.records import Ints, Judgment, Judgments, Tuples

if TYPE_CHECKING:
    import polars as pl

log = logging.getLogger(__name__)

OnInvalid = Literal["error", "skip"]
ROOM = 1 << 26
MAX_LISTED = 5
"""Maximum number of names in a message."""
MAX_LOST_SHARE = 0.05
"""Share of an item's judgments above which its loss by skipped rows is reported."""


def judgments_of(
    rows: Rows,
    on_invalid: OnInvalid = "error",
    *,
    merge_variants: bool = False,
    control: Iterable[str] = (),
    control_optional: bool = False,
) -> Judgments:
    """Validate rows and return the valid judgments.

    on_invalid: ``error`` raises InputError with every fault of every row. ``skip`` skips these rows and lists
    their faults in `left_out`; items, tuples and annotators that occur only in skipped rows are omitted.
    Raises InputError if no row is valid.
    merge_variants: merge items that differ only in white space, case and punctuation
        (`bws.files.variants`).
    control: control items, in addition to those of the column ``control``, see `bws.files.controls`.
    control_optional: whether these may be in no row.
    """
    if on_invalid not in ("error", "skip"):
        raise ValueError(f"on_invalid is {on_invalid!r}; expected 'error' or 'skip'")
    if not len(rows.lines):
        nothing = [Problem(rows.file, None, "no judgments")]
        raise InputError(rows.problems or nothing)
    k = len(rows.items)
    check_k(rows.file, k)
    rows, merged = merged_rows(rows) if merge_variants else (rows, None)
    faults = Faults(rows.file, rows.lines, rows.problems, files=rows.files, names=rows.names)
    rows, notes = with_known_start(rows, on_invalid)
    rows, annotator_notes = with_single_annotators(rows)
    notes += annotator_notes
    declared = {name.rpartition("=")[0] or name for name in name_list(control)}
    if COLUMN not in rows.columns and (repeated := {*placeholders(rows.items)} - declared):
        control = [*name_list(control), *repeated]
        notes.append(
            f"{', '.join(sorted(repeated))} occurs several times in a row and is read as a control item"
        )
    assembled = assemble_tuples(
        faults, rows.items, rows.group, rows.tuple_id, control, rows.columns.get(COLUMN),
        control_optional=control_optional,
    )  # fmt: skip
    best = chosen_places(faults, rows, "best", rows.best, assembled)
    worst = chosen_places(faults, rows, "worst", rows.worst, assembled)
    best, worst = _first_occurrences(assembled, best, worst)
    faults.add(
        (best == worst) & (best >= 0),
        lambda row: (
            f"best and worst are both {quoted(str(rows.best[row]))}; expected different items"
        ),
    )
    annotator_of, annotators = _annotators(rows)
    run_of = _runs(rows, annotator_of, annotators)
    same_items = (
        ""
        if _has_ids(rows.tuple_id)
        else "; without tuple ids, rows with the same items are one tuple"
    )
    _check_once(faults, assembled.tuple_of, annotator_of, annotators, run_of, same_items)
    display_order = orders_shown(faults, rows, assembled)
    if (
        on_invalid == "error"
        and faults.wrong.any()
        and (variants := find_variants(assembled.ids.tolist()))
    ):
        faults.add_other(variants.message())
    faults.stop("judgments", always=on_invalid == "error")
    log.debug(
        "%s (%s): %d rows, %d tuples of %d, %d items, %d annotators; %d rows with faults",
        rows.file, rows.form, len(rows.lines), len(assembled.tuples), k, len(assembled.tuples.items),
        len(annotators), np.count_nonzero(faults.wrong),
    )  # fmt: skip
    judgments = Judgments(
        tuples=assembled.tuples,
        tuple_of=assembled.tuple_of,
        best=assembled.positions[best, assembled.row_of],
        worst=assembled.positions[worst, assembled.row_of],
        annotator_of=annotator_of,
        annotators=annotators,
        shown=display_order,
        columns={name: texts(column) for name, column in rows.columns.items()},
        source=f"{rows.file} ({rows.form})",
        left_out=faults.problems,
        lines=rows.lines,
        files=rows.files,
    )
    if faults.wrong.any():
        n_reduced, n_items = assembled.n_reduced_items(faults.wrong, MAX_LOST_SHARE)
        lost = note(
            "skipped rows: {n:d} of {total:d} items lost more than {share:g} % of their judgments",
            n=n_reduced,
            total=n_items,
            share=100 * MAX_LOST_SHARE,
        )
        notes.append(lost)
        judgments = _without_unused(judgments.select(~faults.wrong))
    items, groups = judgments.tuples.items.tolist(), judgments.tuples.group_of_item
    notes += note_on_words(items, groups, invisible_only=not merge_variants)
    judgments = replace(judgments, reading_notes=(*rows.notes, *notes))
    if not judgments.tuples.n_scored:
        raise InputError(Problem(rows.file, None, "all items are control items; expected others"))
    if merged is None:
        return replace(judgments, variants=_variants(judgments))
    n_items = merged.n_items - len(judgments.items_left_out)
    return replace(judgments, variants=replace(merged, n_items=n_items))


def _variants(judgments: Judgments) -> Variants | None:
    tuples = judgments.tuples
    times = np.bincount(judgments.tuple_of, minlength=len(tuples))
    counts = np.bincount(tuples.members.ravel(), times.repeat(tuples.k), len(tuples.items))
    return find_variants(tuples.items.tolist(), tuples.group_of_item, counts.astype(np.int64))


def _without_unused(judgments: Judgments) -> Judgments:
    """Return the judgments without unused tuples, items, groups and annotators."""
    tuples = judgments.tuples
    used, tuple_of = np.unique(judgments.tuple_of, return_inverse=True)
    items, members = np.unique(tuples.members[used], return_inverse=True)
    groups, group_of_item = np.unique(tuples.group_of_item[items], return_inverse=True)
    people, annotator_of = np.unique(judgments.annotator_of, return_inverse=True)
    unnamed = int(people[:1].tolist() == [-1])  # -1 is the smallest and remains.
    return replace(
        judgments,
        items_left_out=tuple(np.delete(tuples.items, items).tolist()),
        tuples=Tuples(
            ids=tuples.ids[used],
            items=tuples.items[items],
            group_of_item=group_of_item.astype(np.int32),
            groups=tuples.groups[groups],
            members=members.reshape(len(used), tuples.k).astype(np.int32),
            controls=tuples.controls,
        ),
        tuple_of=tuple_of.astype(np.int32),
        annotator_of=(annotator_of - unnamed).astype(np.int32),
        annotators=judgments.annotators[people[unnamed:]],
    )


def without_annotators(judgments: Judgments, annotators: Iterable[str]) -> Judgments:
    """Return the judgments of all other annotators, and the tuples and items that they judged.

    Results are those of a file without the rows of these annotators; notes on reading remain those of the
    whole file. annotators: names, or one name. Raises InputError for annotators without judgments, and if no
    judgment remains.

    >>> rows = [Judgment(("a", "b", "c"), "a", "c", name) for name in ("w1", "w2", "w3")]
    >>> without_annotators(judgments_from_records(rows), ["w2"]).annotators.tolist()
    ['w1', 'w3']
    """
    names = dict.fromkeys([annotators] if isinstance(annotators, str) else annotators)
    known = judgments.annotators.tolist()
    if unknown := [name for name in names if name not in {*known}]:
        listed = ", ".join(map(quoted, unknown[:MAX_LISTED]))
        more = f" and {len(unknown) - MAX_LISTED} more" if len(unknown) > MAX_LISTED else ""
        message = f"no judgments of {listed}{more}, to be excluded; expected annotators of the file"
        raise InputError(Problem(judgments.file, None, message))
    is_excluded = np.array([*(name in names for name in known), False])  # -1 is unknown
    remains = ~is_excluded[judgments.annotator_of]
    if not remains.any():
        raise InputError(Problem(judgments.file, None, "all annotators are excluded"))
    if remains.all():
        return judgments
    others = _without_unused(judgments.select(remains))
    return replace(others, n_excluded=judgments.n_excluded + len(names))


def _has_ids(column: pl.Series | None) -> bool:
    return column is not None and bool((column != "").any())


def _annotators(rows: Rows) -> tuple[Ints, NDArray[np.object_]]:
    """Return the annotator of each row, -1 if missing, and the annotators."""
    if rows.annotator is None:
        return np.full(len(rows.lines), -1, np.int32), np.empty(0, dtype=object)
    (codes,), ids = encode([rows.annotator])
    new = np.cumsum(ids != "", dtype=np.int32) - 1
    new[ids == ""] = -1
    return new[codes], ids[ids != ""]


def _runs(rows: Rows, annotator_of: Ints, annotators: NDArray[np.object_]) -> Ints:
    """Return (J,) the number of a model's prompt and run; 0 for people, who judge a tuple once."""
    import polars as pl

    columns = [rows.columns[name].fill_null("") for name in RUN_COLUMNS if name in rows.columns]
    by_model = np.array([*map(is_model, annotators), False])[annotator_of]
    if not columns or not by_model.any():
        return np.zeros(len(rows.lines), np.int32)
    (codes,), _ = encode([pl.select(pl.concat_str(columns, separator="\n")).to_series()])
    return np.where(by_model, codes, 0).astype(np.int32)


def _check_once(
    faults: Faults,
    tuple_of: Ints,
    annotator_of: Ints,
    annotators: NDArray[np.object_],
    run_of: Ints,
    same_items: str,
) -> None:
    """Add a fault for rows in which an annotator repeats a tuple, or a model a run of it.

    same_items: explanation of what a tuple is, for the messages.
    """
    import polars as pl

    rows = np.flatnonzero(~faults.wrong & (annotator_of >= 0))
    sizes = len(annotators), int(run_of.max(initial=0)) + 1
    key = tuple_of[rows].astype(np.int64) * sizes[0] + annotator_of[rows]
    key = key * sizes[1] + run_of[rows]
    if _distinct(key, (int(tuple_of.max()) + 1) * sizes[0] * sizes[1]):
        return
    again = ~pl.Series(key).is_first_distinct().to_numpy()
    earlier = dict(zip(key[~again].tolist(), rows[~again].tolist(), strict=True))
    key_of_row = dict(zip(rows[again].tolist(), key[again].tolist(), strict=True))
    mask = np.zeros(len(tuple_of), bool)
    mask[rows[again]] = True
    faults.add(
        mask,
        lambda row: (
            f"annotator {quoted(annotators[annotator_of[row]])} has judged this tuple in "
            f"{faults.place(earlier[key_of_row[row]], row)}; expected one judgment per annotator and tuple"
            f"{', and of a model one per prompt and run' if is_model(annotators[annotator_of[row]]) else ''}"
            f"{same_items}"
        ),
    )


def _distinct(keys: NDArray[np.int64], size: int) -> bool:
    """Return whether keys below `size` are all different, using a table if memory allows."""
    import polars as pl

    if size > ROOM:
        return pl.Series(keys).n_unique() == len(keys)
    seen = np.zeros(size, bool)
    seen[keys] = True
    return int(np.count_nonzero(seen)) == len(keys)


def judgments_from_records(
    records: Iterable[Judgment], *, control: Iterable[str] = ()
) -> Judgments:
    """Validate records and return their judgments; problems refer to a record by its number from 1.

    Each record lists its items in display order. `control`: as in `read_judgments`. Raises InputError as for
    a file.
    """
    record_list = list(records)
    file = "records"
    if not record_list:
        raise InputError(Problem(file, None, "no records; expected judgments"))
    k = len(record_list[0].items)
    problems = [
        Problem(file, number, f"{len(record.items)} items; the first record has {k}")
        for number, record in enumerate(record_list, start=1)
        if len(record.items) != k
    ]
    numbers = [
        number for number, record in enumerate(record_list, start=1) if len(record.items) == k
    ]
    same = [record_list[number - 1] for number in numbers]
    return judgments_of(
        Rows(
            file=file,
            form="records",
            lines=np.array(numbers, np.int64),
            items=[_ids(r.items[index] for r in same) for index in range(k)],
            best=_ids(r.best for r in same),
            worst=_ids(r.worst for r in same),
            tuple_id=_ids(r.tuple_id for r in same),
            group=_ids(r.group for r in same),
            annotator=_ids(r.annotator for r in same),
            as_shown=True,
            problems=tuple(problems),
        ),
        control=control,
    )


def _ids(values: Iterable[object]) -> pl.Series:
    """Return ids as a column of text; None is a missing id, and text is not normalised yet."""
    return series(
        value if isinstance(value, str) else "" if value is None else id_of(value)
        for value in values
    )


LETTERS = "ABCDEFGHIJKL"
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
POSITION = r"^([0-9]{1,2})(?:[.,]0)?$"  # Spreadsheets write 2 as 2.0 or 2,0.
ALLOWED = {
    "item": "one of the row's items",
    "position": "a position from {first} to {k}",
    "letter": "a letter from A to {last}",
}


def chosen_places(
    faults: Faults, rows: Rows, role: str, answers: pl.Series, assembled: Assembled
) -> NDArray[np.int8]:
    """Return (J,) positions of the answers in their rows; -1 and a fault for answers that match no item.

    role: best or worst, for messages.
    """
    positions = ANSWER_PARSERS[rows.answers](rows, answers)
    if rows.answers == "item":
        _find_unlike(positions, answers, assembled)
    k = len(rows.items)
    allowed = ALLOWED[rows.answers].format(
        first=rows.start, k=k - 1 + rows.start, last=LETTERS[k - 1]
    )

    def message(row: int) -> str:
        answer = str(answers[row])
        state = f"is {quoted(answer)}" if answer.strip() else "is empty"
        return f"{role} {state}; it must be {allowed}"

    faults.add(positions < 0, message)
    return positions


def right_answers(rows: Rows) -> int:
    """Return the number of rows with two of their items as best and worst in the notation of the format."""
    if len(rows.items) > MAX_K:
        return 0
    normal = replace(rows, items=[_normal(column) for column in rows.items], start=_start(rows)[0])
    sets = ({"", *items} for items in zip(*normal.items, strict=True))
    distinct = np.array([len(items) > len(rows.items) for items in sets], bool)
    best, worst = (
        ANSWER_PARSERS[rows.answers](normal, _normal(a)) for a in (rows.best, rows.worst)
    )
    return int(np.count_nonzero((best >= 0) & (worst >= 0) & (best != worst) & distinct))


def _normal(column: pl.Series) -> pl.Series:
    return series(normal_id(text) for text in column)


def _place_of_item(rows: Rows, answers: pl.Series) -> NDArray[np.int8]:
    positions = np.full(len(answers), -1, np.int8)
    for position, column in reversed([*enumerate(rows.items)]):  # The first occurrence is kept.
        positions[(answers == column).to_numpy()] = position
    positions[(answers == "").to_numpy()] = -1
    return positions


def _find_unlike(positions: NDArray[np.int8], answers: pl.Series, assembled: Assembled) -> None:
    """Resolve answers that match no item literally: empty, unknown, or in another Unicode form."""
    unlike = np.flatnonzero((positions < 0) & (answers != "").to_numpy())
    if len(unlike):
        (code_of_answer,), unlike_texts = encode([answers.gather(unlike)])
        code_of_id = {
            identity: code for code, identity in enumerate(assembled.ids[: assembled.n_ids])
        }
        chosen_code = np.array([code_of_id.get(text, -1) for text in unlike_texts])[code_of_answer]
        equal = assembled.codes[:, assembled.row_of[unlike]] == chosen_code
        positions[unlike] = np.where(equal.any(axis=0), equal.argmax(axis=0), -1)


def _first_occurrences(
    assembled: Assembled, best: NDArray[np.int8], worst: NDArray[np.int8]
) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """Return the answers with those that are a repeated control item as its first occurrence in the row.

    If best and worst are the same control item, the worst one is its second occurrence.
    """
    is_repeated = np.any(assembled.codes >= assembled.n_ids, axis=0)[assembled.row_of]
    rows = np.flatnonzero(is_repeated & (best >= 0) & (worst >= 0))
    if not len(rows):
        return best, worst
    codes, index = (
        assembled.codes[:, assembled.row_of[rows]] % assembled.n_ids,
        np.arange(len(rows)),
    )
    is_best, is_worst = (codes == codes[answer[rows], index] for answer in (best, worst))
    best, worst = best.copy(), worst.copy()
    best[rows] = is_best.argmax(axis=0)
    is_other = is_worst.copy()
    is_other[best[rows], index] = False
    worst[rows] = np.where(is_other.any(axis=0), is_other, is_worst).argmax(axis=0)
    return best, worst


def _place_of_position(rows: Rows, answers: pl.Series) -> NDArray[np.int8]:
    import polars as pl

    digits = answers.str.strip_chars().str.extract(POSITION)
    positions = digits.cast(pl.Int8).fill_null(-1).to_numpy() - rows.start
    return np.where(positions < len(rows.items), np.maximum(positions, -1), -1).astype(np.int8)


def _place_of_letter(rows: Rows, answers: pl.Series) -> NDArray[np.int8]:

    positions = _letter_indices(answers).fill_null(-1).to_numpy()
    return np.where(positions < len(rows.items), positions, -1).astype(np.int8)


def _letter_indices(answers: pl.Series) -> pl.Series:
    """Return the index of each letter in `ALPHABET`; null for other texts."""
    import polars as pl

    letters = answers.str.strip_chars().str.to_uppercase()
    return letters.replace_strict(
        list(ALPHABET), list(range(len(ALPHABET))), default=None, return_dtype=pl.Int8
    )


def with_known_start(
    rows: Rows, on_invalid: OnInvalid, study: Sequence[Rows] = ()
) -> tuple[Rows, list[str]]:
    """Return the rows with the number of the first position, decided for all answers, and notes on it.

    study: the rows of all files of the study in this notation, if there are several.

    Positions count from 0 if 0 occurs and K does not, else from 1. With invalid rows skipped or several
    files, raises InputError if both 0 and K occur, or if positions or letters begin after the first and end
    after the last: the remaining answers could be of the wrong items.
    """
    if rows.answers == "item":
        return rows, []
    if len(study) < 2:
        study = (rows,)
    start, low, high = _start(*study)
    k = len(rows.items)
    if rows.answers == "letter":
        low, high = low + 1, high + 1
    is_ambiguous = rows.answers == "position" and low == 0 and high >= k
    if (is_ambiguous and len(study) > 1) or (
        on_invalid == "skip" and high >= low and (is_ambiguous or (low > 1 and high > k))
    ):
        names = [ALPHABET[n - 1] if rows.answers == "letter" else str(n) for n in (low, high, 1, k)]
        kind = "letters" if rows.answers == "letter" else "positions"
        reason = (
            "in all files of a study"
            if is_ambiguous and len(study) > 1
            else "since rows cannot be skipped if it is unknown which item an answer is (leave cells without "
            "an answer empty)"
        )
        message = (
            f"the answers have {kind} from {names[0]} to {names[1]}; expected {names[2]} to {names[3]}"
            f"{f' or 0 to {k - 1}' if kind == 'positions' else ''}, {reason}"
        )
        raise InputError(Problem(" and ".join(part.file for part in study), None, message))
    notes = []
    if start == 0:
        notes = [
            note("the positions of best and worst count from 0: 0 occurs, and {k:d} does not", k=k)
        ]
    elif rows.answers == "position" and 0 < low <= high < k:
        notes = [
            note(
                "the positions of best and worst are taken to count from 1: neither 0 nor {k:d} occurs",
                k=k,
            )
        ]
    return replace(rows, start=start), notes


def _start(*study: Rows) -> tuple[int, int, int]:
    """Return the number of the first position, and the lowest and the highest position or letter index.

    Without positions or letters, the highest is lower than the lowest.
    """
    import polars as pl

    rows = study[0]
    answers = pl.concat([column.rename("") for part in study for column in (part.best, part.worst)])
    if rows.answers == "letter":
        indices = _letter_indices(answers)
    else:
        indices = answers.str.strip_chars().str.extract(POSITION).cast(pl.Int8)
    if rows.answers == "item" or indices.null_count() == len(indices):
        return 1, 0, -1
    low, high = int(indices.min()), int(indices.max())  # type: ignore[arg-type]
    return int(not (rows.answers == "position" and low == 0 and high < len(rows.items))), low, high


ANSWER_PARSERS = {
    "item": _place_of_item,
    "position": _place_of_position,
    "letter": _place_of_letter,
}


def orders_shown(faults: Faults, rows: Rows, assembled: Assembled) -> NDArray[np.int8] | None:
    """Return (J, K) the tuple positions in display order; None if unknown."""
    if rows.as_shown:
        return assembled.positions.T[assembled.row_of]
    if rows.shown is None or not (rows.shown != "").any():
        return None
    order_texts = rows.shown
    order = _orders_alike(order_texts, rows.items)
    wrong = (np.sort(order, axis=1) != np.arange(len(rows.items))).any(axis=1)
    for row in np.flatnonzero(
        wrong & ~faults.wrong
    ):  # Other Unicode forms, or ids with semicolons.
        items = assembled.ids[assembled.codes[:, assembled.row_of[row]]].tolist()
        positions = order_of(normal_id(order_texts[int(row)]), items)
        if positions:
            order[row], wrong[row] = positions, False
    faults.add(
        wrong & ~faults.wrong,
        lambda row: (
            f"shown is {quoted(str(order_texts[row]))}; it must be the items of the row in display order, "
            "separated by ;, in all rows or in none"
        ),
    )
    return assembled.positions.T[assembled.row_of[:, np.newaxis], order]


def _orders_alike(order_texts: pl.Series, items: Sequence[pl.Series]) -> NDArray[np.int8]:
    """Return (J, K) the position in the row of each part of `order_texts`, -1 for parts that match no item
    literally."""
    parts = order_texts.str.splitn(";", len(items)).struct.unnest()
    order = np.full((len(order_texts), len(items)), -1, np.int8)
    for column, part in enumerate(parts.iter_columns()):
        for position, item in enumerate(items):
            order[(part == item).fill_null(False).to_numpy(), column] = position
    return order
