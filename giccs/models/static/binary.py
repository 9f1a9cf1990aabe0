"""Word vectors as word2vec writes them in binary: a word, a space, its numbers as 32-bit floats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from bws.problems import InputError, Problem
from giccs.models.static.blocks import BLOCK_BYTES, Block, decoded

__all__ = ["binary_blocks"]

LONGEST_WORD = 10_000


def binary_blocks(stream: BinaryIO, file: str, count: int, width: int) -> Iterator[Block]:
    """Yield the blocks of `count` words that stand behind the header.

    Raises InputError where the file ends early, goes on behind the last word, or has a number that
    is not finite.
    """
    done, rest = 0, b""
    while done < count:
        read = stream.read(BLOCK_BYTES)
        if not read:
            message = f"ends within word {done + 1:,} of the {count:,} that its header promises"
            raise InputError(Problem(file, None, message))
        words, vectors, rest = _records(rest + read, count - done, 4 * width)
        if len(rest) > LONGEST_WORD + 4 * width + 2 and done + len(words) < count:
            message = f"word {done + len(words) + 1:,} is longer than {LONGEST_WORD:,} bytes"
            raise InputError(Problem(file, None, f"{message}; is this word2vec's binary format?"))
        if words:
            yield _block(words, b"".join(vectors), width, file, done)
        done += len(words)
    if (rest + stream.read(1)).strip():
        message = f"goes on behind the {count:,} words that its header promises"
        raise InputError(Problem(file, None, message))


def _records(data: bytes, most: int, size: int) -> tuple[list[bytes], list[bytes], bytes]:
    """Return the words and vectors that stand in `data` as a whole, and what is left."""
    words: list[bytes] = []
    vectors: list[bytes] = []
    at = 0
    while len(words) < most:
        space = data.find(b" ", at, at + LONGEST_WORD)
        if space < 0 or space + 1 + size > len(data):
            break
        words.append(data[at:space].lstrip(b"\n"))  # some writers end each vector with a line's end
        vectors.append(data[space + 1 : space + 1 + size])
        at = space + 1 + size
    return words, vectors, data[at:]


def _block(raw: list[bytes], numbers: bytes, width: int, file: str, done: int) -> Block:
    vectors = np.frombuffer(numbers, dtype="<f4").reshape(-1, width)
    words, undecodable = decoded(raw)
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        message = f"word {done + row + 1:,} ({words[row][:40]!r}) has a number that is not finite"
        raise InputError(Problem(file, None, message))
    return Block(words, vectors, undecodable)
