"""Word vectors as text: a word and its numbers a line, with or without a first line ``COUNT WIDTH``.

Blocks of whole lines go through Polars' reader of floats. What it refuses (words with spaces in them,
bytes that are not UTF-8, faults) is read again line by line, which says what is wrong and where.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
import polars as pl

from bws.problems import InputError, Problem
from giccs.models.static.blocks import BLOCK_BYTES, Block, Faults, decoded

__all__ = ["text_blocks"]

LONGEST_LINE = 1_000_000
LARGEST = float(np.finfo(np.float32).max)
NUMBER = re.compile(rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
NOT_FINITE = re.compile(rb"[-+]?(?:nan|inf|infinity)", re.IGNORECASE)


def text_blocks(stream: BinaryIO, file: str, width: int | None, first_line: int) -> Iterator[Block]:
    """Yield the blocks of a text whose next line is number `first_line`.

    `width` is how many numbers a word has; None: as many as in the first line. Raises InputError
    with all faults, at the latest after the last block.
    """
    faults = Faults(file)
    line = first_line
    for lines in _whole_lines(stream, file):
        if width is None:
            width = _width(lines[: lines.index(b"\n")], file)
        block = _fast(lines, width)
        yield _slow(lines, width, line, faults) if block is None else block
        line += lines.count(b"\n")
    faults.tell()


def _whole_lines(stream: BinaryIO, file: str) -> Iterator[bytes]:
    """Yield pieces that end with a line's end; spaces before it and carriage returns are dropped."""
    rest, ended = b"", False
    while not ended:
        read = stream.read(BLOCK_BYTES)
        ended = not read
        piece = rest + (read or b"\n" * bool(rest))
        cut = piece.rfind(b"\n") + 1
        rest = piece[cut:]
        if len(rest) > LONGEST_LINE:
            message = f"a line of more than {LONGEST_LINE:,} bytes; is this a file of word vectors?"
            raise InputError(Problem(file, None, message))
        if cut:
            yield piece[:cut].replace(b"\r\n", b"\n").replace(b" \n", b"\n")


def _width(line: bytes, file: str) -> int:
    """Return how many numbers stand at the end of a line, behind its word."""
    fields = line.split(b" ")[1:]
    numbers = next(
        (n for n, field in enumerate(reversed(fields)) if not _number(field)), len(fields)
    )
    if not numbers:
        message = "not a word with its numbers behind it, separated by spaces"
        raise InputError(Problem(file, 1, f"{message}: {_shown(line)}"))
    return numbers


def _fast(lines: bytes, width: int) -> Block | None:
    """Return the block of lines without any peculiarity; None for others."""
    if lines.startswith(b"\xef\xbb\xbf"):  # a word here, which the reader would take for a mark
        return None
    schema = {"word": pl.String(), **{str(n): pl.Float32() for n in range(width)}}
    try:
        table = pl.read_csv(lines, has_header=False, separator=" ", quote_char=None, schema=schema)
    except pl.exceptions.PolarsError:
        return None
    if len(table) != lines.count(b"\n") or sum(table.null_count().row(0)):
        return None
    matrix = table.drop("word").to_numpy(order="c")
    return Block(table["word"].to_list(), matrix) if np.isfinite(matrix).all() else None


def _slow(lines: bytes, width: int, first: int, faults: Faults) -> Block:
    words: list[bytes] = []
    rows: list[list[bytes]] = []
    for number, line in enumerate(lines.split(b"\n")[:-1], first):
        if not line:
            continue  # nothing stands there that could be lost
        fields = line.split(b" ")
        word, numbers = b" ".join(fields[:-width]), fields[-width:]
        wrong = _wrong(fields, width)
        if wrong:
            faults.add(number, wrong)
        else:
            words.append(word)
            rows.append(numbers)
    vectors = np.array(rows, dtype=np.float64).astype(np.float32).reshape(-1, width)
    texts, undecodable = decoded(words)
    return Block(texts, vectors, undecodable)


def _wrong(fields: list[bytes], width: int) -> str:
    """Return what is wrong with a line; its word may have spaces, but no number behind one."""
    if len(fields) <= width:
        return f"a word and {width} numbers are expected: {_shown(b' '.join(fields))}"
    if len(fields) > width + 1 and _number(fields[-width - 1]):
        return f"more than {width} numbers: {_shown(b' '.join(fields))}"
    for field in fields[-width:]:
        if not NUMBER.fullmatch(field) or abs(float(field)) > LARGEST:
            return f"{_shown(field)} is not a finite number (32 bits)"
    return ""


def _number(field: bytes) -> bool:
    return bool(NUMBER.fullmatch(field) or NOT_FINITE.fullmatch(field))


def _shown(text: bytes) -> str:
    return repr(text[:40].decode("utf-8", "replace")) + ("…" if len(text) > 40 else "")
