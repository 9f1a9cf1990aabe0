"""A piece of a file of word vectors, and what may be wrong with one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bws.problems import InputError, Problem

__all__ = ["BLOCK_BYTES", "Block", "Faults", "decoded"]

BLOCK_BYTES = 1 << 24
"""So much is read at once; memory holds a few of these, never the file."""
MOST = 20


@dataclass(frozen=True, slots=True)
class Block:
    """Some words and their vectors, in the order of the file."""

    words: list[str]
    vectors: NDArray[np.float32]
    """(words, dimensions), all finite."""
    undecodable: int = 0
    """Words with bytes that are not UTF-8; U+FFFD stands for those."""


def decoded(raw: Sequence[bytes]) -> tuple[list[str], int]:
    """Return words as text, and how many of them are not UTF-8.

    >>> decoded(["Köln".encode(), "Köln".encode("latin-1")])
    (['Köln', 'K�ln'], 1)
    """
    words = [word.decode("utf-8", "replace") for word in raw]
    pairs = zip(words, raw, strict=True)
    return words, sum("\ufffd" in word and word.encode("utf-8") != one for word, one in pairs)


class Faults:
    """The problems of one file, which are told together; after many the reading ends."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._found: list[Problem] = []

    def add(self, line: int | None, message: str) -> None:
        """Keep a problem; raise them all once there are enough."""
        self._found.append(Problem(self.file, line, message))
        if len(self._found) == MOST:
            self._found.append(Problem(self.file, None, f"{MOST} problems; read no further"))
            self.tell()

    def tell(self) -> None:
        """Raise InputError where there are problems."""
        if self._found:
            raise InputError(self._found)
