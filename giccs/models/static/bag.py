"""Which of the words that have a vector stand in a text?"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cached_property

__all__ = ["RULES", "Lookup"]

RULES = {
    "whitespace": "white space; exact, lower case, any case",
    "words": "white space, then words and signs; exact, lower case, any case",
}
"""How a text can be cut -> the rule in short, as it stands in the identity of a model."""
PIECE = re.compile(r"\w+(?:[^\w\s]+\w+)*|[^\w\s]")
"""A word with the signs inside it (``don't``, ``e-mail``), or one sign."""


class Lookup:
    """The rows of a text's words.

    A text that is itself an entry is that entry, spaces and all. Any other is cut at white space, as
    the program of EvalRank does, which is right for text whose signs stand apart. With ``words`` a token
    without an entry is cut again, so that ``off.`` and ``off .`` are the same two entries. An entry is
    sought as it is written, then in lower case, then as the first of the file that differs in case
    only. Texts are brought to NFC.

    >>> entries = ["the", "Paris", "paris", "."]
    >>> Lookup(entries).rows("The Paris.")
    ([0], 1)
    >>> Lookup(entries, "words").rows("The Paris.")
    ([0, 1, 3], 0)
    """

    def __init__(self, words: Sequence[str], cut: str = "whitespace") -> None:
        if cut not in RULES:
            raise ValueError(f"cut is {cut!r}; allowed: {', '.join(RULES)}")
        self._rows = {word: row for row, word in enumerate(words)}
        self._pieces = cut == "words"

    def rows(self, text: str) -> tuple[list[int], int]:
        """Return the rows of the text's words in their order, and how many words have none."""
        text = unicodedata.normalize("NFC", text.strip())
        whole = self._row(text)
        if whole is not None:
            return [whole], 0
        found = [self._row(word) for word in self._words(text)]
        rows = [row for row in found if row is not None]
        return rows, len(found) - len(rows)

    def _words(self, text: str) -> Iterator[str]:
        for token in text.split():
            if self._pieces and self._row(token) is None:
                yield from PIECE.findall(token)
            else:
                yield token

    def _row(self, word: str) -> int | None:
        row = self._rows.get(word)
        if row is None:
            lower = word.lower()
            row = self._rows.get(lower)
            if row is None:
                row = self._without_case.get(lower)
        return row

    @cached_property
    def _without_case(self) -> dict[str, int]:
        rows: dict[str, int] = {}
        for word, row in self._rows.items():
            rows.setdefault(word.lower(), row)
        return rows
