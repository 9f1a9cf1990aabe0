"""Spelling variants: detection and merging of items that differ in white space, case and punctuation only.

If texts serve as ids, an item with two spellings becomes two items, each with part of the judgments. Two
items of a group are variants if they differ only in white space, case and punctuation and at least one of
them is a text. A text has white space between words, or is in a script without such white space. Single
words and ids such as ``a-1`` and ``a1`` or ``A`` and ``a`` are not merged, because ids often differ in
punctuation and case alone; `note_on_words` names them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bws.base.ids import normal_id
from bws.base.notes import note
from bws.files.columns import quoted
from bws.files.rows import Rows, respelled_order
from bws.records import Ints

if TYPE_CHECKING:
    import polars as pl

TEXT_PATTERN = re.compile(
    r"\S\s+\S|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
    r"\U00020000-\U0003ffff]"
)
"""White space between words, or a character of a script without it (Thai, Lao, Burmese, Khmer, kana, Han)."""
BETWEEN_DIGITS = re.compile(r"(?<=\d) +(?=\d)")
FORMAT_CHARACTERS_OF_EMOJI = frozenset({"\u200d", *map(chr, range(0xE0020, 0xE0080))})
"""Format characters that distinguish emoji: the zero width joiner and tags."""
MAX_EXAMPLES = 10
MAX_MESSAGE_EXAMPLES = 2


class _RemovalTable(dict[int, str]):
    """Translation table: white space, punctuation, control and format characters become spaces."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        category = unicodedata.category(character)
        removed = category[0] in "PZ" or category in ("Cc", "Cf")
        self[code] = " " if removed and character not in FORMAT_CHARACTERS_OF_EMOJI else character
        return self[code]


REMOVAL_TABLE = _RemovalTable()


def variant_key(text: str) -> str:
    """Return a text without white space, case and punctuation (Unicode NFC, case folded).

    Letters, marks, digits and symbols are kept, including those of emoji. Digits are not joined: removed
    characters between two digits are replaced by a mark. NFKC is not used, as it would equate 10² and 102.

    >>> variant_key("A dog,  barks!") == variant_key("a dogbarks")
    True
    >>> variant_key("item 1.1") == variant_key("item 11"), variant_key("?!")
    (False, '')
    """
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    return BETWEEN_DIGITS.sub("\0", folded.translate(REMOVAL_TABLE)).replace(" ", "")


@dataclass(frozen=True)
class Variants:
    """Spelling variants among the items of judgments."""

    n_items: int
    """Number of items, counting each variant."""
    spellings: tuple[tuple[str, ...], ...]
    """Spellings of each item with variants, most frequent first; ties by first appearance."""
    merged: bool = False
    """Whether variants were replaced by the most frequent spelling."""

    @property
    def n_distinct(self) -> int:
        """Number of items, counting the variants of an item once."""
        return self.n_items - sum(len(spellings) - 1 for spellings in self.spellings)

    def message(self, remedy: str = "--merge-variants merges them") -> str:
        """Return a message with counts and examples, followed by `remedy`."""
        counts = f"{self.n_items} items are {self.n_distinct}"
        if self.merged:
            return f"{counts} after variants in white space, case and punctuation were merged"
        examples = ", ".join(
            " and ".join(map(quoted, spellings[:2]))
            for spellings in self.spellings[:MAX_MESSAGE_EXAMPLES]
        )
        return f"{counts} when white space, case and punctuation are ignored, such as {examples}; {remedy}"

    def document(self) -> dict[str, Any]:
        """Return the counts and up to ten examples as a JSON-serialisable dict."""
        return {
            "items": self.n_items,
            "distinct": self.n_distinct,
            "merged": self.merged,
            "examples": [list(spellings) for spellings in self.spellings[:MAX_EXAMPLES]],
        }


def find_variants(
    items: Sequence[str],
    groups: Sequence[str] | Ints | None = None,
    counts: Sequence[int] | Ints | None = None,
) -> Variants | None:
    """Return the variants among distinct items, or None.

    groups: (N,) group of each item; only items of the same group are compared. counts: (N,) number of
    occurrences of each item.

    >>> find_variants(["A dog barks.", "a dog  barks", "a-1", "a1"]).spellings
    (('A dog barks.', 'a dog  barks'),)
    """
    if not any(map(TEXT_PATTERN.search, items)):
        return None
    times = np.zeros(len(items), np.int64) if counts is None else np.asarray(counts)
    spellings = tuple(
        tuple(items[index] for index in sorted(indices, key=lambda place: -times[place]))
        for indices in _indices_of_texts(
            items, [0] * len(items) if groups is None else groups
        ).values()
        if len(indices) > 1
    )
    return Variants(len(items), spellings) if spellings else None


def note_on_words(
    items: Sequence[str], groups: Sequence[str] | Ints, *, invisible_only: bool
) -> list[str]:
    """Return a note on single words or ids with several spellings, which stay items of their own.

    invisible_only: only spellings that differ in nothing but white space and invisible characters.

    >>> note_on_words(["Apple", "apple", "b"], [0, 0, 0], invisible_only=False)[0][:55]
    "2 items that are single words or ids, such as 'Apple' a"
    >>> note_on_words(["Apple", "apple", "b"], [0, 0, 0], invisible_only=True)
    []
    """
    if invisible_only and all(map(str.isprintable, items)):
        return []
    spellings = [
        [items[index] for index in indices]
        for indices in _indices_by_key(items, groups).values()
        if len(indices) > 1 and not any(TEXT_PATTERN.search(items[index]) for index in indices)
    ]
    if invisible_only:
        spellings = [words for words in spellings if len({*map(_visible, words)}) < len(words)]
    if not spellings:
        return []
    example = " and ".join(map(quoted, spellings[0][:2]))
    return [
        note(
            "{n:d} items that are single words or ids, such as {items}, differ only in case, punctuation or "
            "invisible characters and are not merged; correct them in the file if they are the same",
            n=sum(map(len, spellings)),
            items=example,
        )
    ]


def _visible(text: str) -> str:
    """Return the text without white space and control and format characters."""
    return "".join(c for c in text if unicodedata.category(c) not in ("Zs", "Cc", "Cf"))


def _indices_of_texts(
    items: Sequence[str], groups: Iterable[Any]
) -> dict[tuple[Any, str], list[int]]:
    """Return the indices of the spellings of each text item by group and key, in order."""
    return {
        key: indices
        for key, indices in _indices_by_key(items, groups).items()
        if any(TEXT_PATTERN.search(items[index]) for index in indices)
    }


def _indices_by_key(
    items: Sequence[str], groups: Iterable[Any]
) -> dict[tuple[Any, str], list[int]]:
    indices_by_key: dict[tuple[Any, str], list[int]] = {}
    for index, (group, item) in enumerate(zip(groups, items, strict=True)):
        if key := variant_key(item):
            indices_by_key.setdefault((group, key), []).append(index)
    return indices_by_key


def merge_variants(rows: Rows) -> tuple[Rows, Variants | None]:
    """Replace every variant by the most frequent spelling of its item; ties by first appearance.

    Answers and the displayed order, which refer to items, are replaced accordingly.
    """
    items, groups, counts = _count_spellings(rows)
    variants = find_variants(items, groups, counts)
    spelling = {
        key: items[max(indices, key=lambda index: counts[index])]
        for key, indices in _indices_of_texts(items, groups).items()
    }
    return _respell_rows(rows, spelling), replace(variants, merged=True) if variants else None


def _count_spellings(rows: Rows) -> tuple[list[str], list[str], list[int]]:
    """Return the distinct items, their groups and their counts, in order of first appearance."""
    import polars as pl

    k = len(rows.items)
    columns = [
        pl.DataFrame({"group": _groups(rows), "item": column}).with_columns(
            place=pl.int_range(pl.len(), dtype=pl.Int64) * k + number
        )
        for number, column in enumerate(rows.items)
    ]
    occurrences = pl.concat(columns).group_by("group", "item").agg(pl.col("place").min(), pl.len())
    counts: dict[tuple[str, str], int] = {}
    for group, item, _, count in occurrences.filter(pl.col("item") != "").sort("place").iter_rows():
        key = (normal_id(group), normal_id(item))
        counts[key] = counts.get(key, 0) + count
    return [item for _, item in counts], [group for group, _ in counts], list(counts.values())


def _groups(rows: Rows) -> pl.Series:
    import polars as pl

    return pl.repeat("", len(rows.lines), eager=True) if rows.group is None else rows.group


def _respell_rows(rows: Rows, spelling: Mapping[tuple[str, str], str]) -> Rows:
    """Return the rows with all items, and references to them, in the spelling of their group and key."""

    def respell(column: pl.Series) -> pl.Series:
        return _map_texts(
            column, _groups(rows), lambda g, text: spelling.get((g, variant_key(text)))
        )

    items = [respell(column) for column in rows.items]
    answers = (rows.best, rows.worst)
    best, worst = map(respell, answers) if rows.answers == "item" else answers
    order_shown = None if rows.shown is None else respelled_order(rows.shown, rows.items, items)
    return replace(rows, items=items, best=best, worst=worst, shown=order_shown)


def _map_texts(
    column: pl.Series, groups: pl.Series, replacement: Callable[[str, str], str | None]
) -> pl.Series:
    """Return the column with the `replacement` of each (group, text), or the text itself if it has none."""
    import polars as pl

    frame = pl.DataFrame({"group": groups, "text": column})
    distinct = frame.unique()
    texts = [
        replacement(normal_id(group), normal_id(text)) or text
        for group, text in distinct.iter_rows()
    ]
    replaced = distinct.with_columns(new=pl.Series(texts, dtype=pl.String))
    return frame.join(replaced, on=["group", "text"], how="left", maintain_order="left")["new"]
