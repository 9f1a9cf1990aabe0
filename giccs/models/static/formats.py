"""File formats of word vectors: text, word2vec's binary format, and a matrix with words; read in blocks.

Text has a word and its numbers per line, optionally after a first line ``COUNT WIDTH``. Blocks of complete
lines are parsed by Polars. Blocks that it rejects (words with spaces, bytes that are not UTF-8, faults) are
parsed again line by line, with exact error messages.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bws.base.problems import InputError, Problem
from bws.base.text import read_text, too_much
from giccs.benchmark.parquet import read_table

BLOCK_BYTES = 1 << 24
"""Bytes read at a time; memory holds a few blocks, never the whole file."""
MOST = 20
"""Maximum number of problems reported per file."""
LONGEST_LINE = 1_000_000
LARGEST = float(np.finfo(np.float32).max)
NUMBER = re.compile(rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
NOT_FINITE = re.compile(rb"[-+]?(?:nan|inf|infinity)", re.IGNORECASE)
LONGEST_WORD = 10_000
HEADER = re.compile(rb"(\d{1,12})[ \t](\d{1,12})[ \t]*\r?\n")
CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
"""Control characters, which do not occur in text but frequently in 32-bit floats."""
PEEK = 1 << 16
WIDEST = 100_000
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
REFUSED = {
    b"\xba\x16\x4f\x2f": "is fastText's own model format; use the vectors in its .vec file",
    b"PK\x03\x04": "is a zip archive; unpack it and specify a file in it",
    b"\x93NUMPY": "is a matrix without words; specify the folder that contains both",
    b"\x80": "is a Python pickle, which is never loaded; save it in word2vec's format",
}
"""First bytes of unsupported files -> remedy."""


@dataclass(frozen=True, slots=True)
class Block:
    """Words and their vectors, in the order of the file."""

    words: list[str]
    vectors: NDArray[np.float32]
    """(words, dimensions), all finite."""
    undecodable: int = 0
    """Words with bytes that are not UTF-8, which are replaced by U+FFFD."""


def _decoded(raw: Sequence[bytes]) -> tuple[list[str], int]:
    """Return words as text, and the number of words that are not UTF-8.

    >>> _decoded(["Köln".encode(), "Köln".encode("latin-1")])
    (['Köln', 'K�ln'], 1)
    """
    words = [word.decode("utf-8", "replace") for word in raw]
    pairs = zip(words, raw, strict=True)
    return words, sum(
        "\ufffd" in word and word.encode("utf-8") != raw_word for word, raw_word in pairs
    )


class _Faults:
    """The problems of a file, which are reported together; reading stops after many."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._found: list[Problem] = []

    def add(self, line: int | None, message: str) -> None:
        """Add a problem; raise all problems after the maximum number."""
        self._found.append(Problem(self.file, line, message))
        if len(self._found) == MOST:
            self._found.append(Problem(self.file, None, f"{MOST} problems; reading stopped"))
            self.tell()

    def tell(self) -> None:
        """Raise InputError if there are problems."""
        if self._found:
            raise InputError(self._found)


def _text_blocks(
    stream: BinaryIO, file: str, width: int | None, first_line: int
) -> Iterator[Block]:
    """Yield the blocks of a text whose next line is number `first_line`.

    `width` is the number of components of a word; None for that of the first line. Raises InputError with all
    faults, at the latest after the last block.
    """
    faults = _Faults(file)
    line = first_line
    for lines in _whole_lines(stream, file):
        if width is None:
            width = _width(lines[: lines.index(b"\n")], file)
        block = _fast(lines, width)
        yield _slow(lines, width, line, faults) if block is None else block
        line += lines.count(b"\n")
    faults.tell()


def _whole_lines(stream: BinaryIO, file: str) -> Iterator[bytes]:
    """Yield pieces that end at a line break, without preceding spaces and carriage returns."""
    remainder, ended = b"", False
    while not ended:
        read = stream.read(BLOCK_BYTES)
        ended = not read
        piece = remainder + (read or b"\n" * bool(remainder))
        cut = piece.rfind(b"\n") + 1
        remainder = piece[cut:]
        if len(remainder) > LONGEST_LINE:
            message = f"a line of more than {LONGEST_LINE:,} bytes; expected a file of word vectors"
            raise InputError(Problem(file, None, message))
        if cut:
            yield piece[:cut].replace(b"\r\n", b"\n").replace(b" \n", b"\n")


def _width(line: bytes, file: str) -> int:
    """Return the number of components at the end of a line, after its word."""
    fields = line.split(b" ")[1:]
    numbers = next(
        (n for n, field in enumerate(reversed(fields)) if not _number(field)), len(fields)
    )
    if not numbers:
        message = "expected a word followed by its numbers, separated by spaces"
        raise InputError(Problem(file, 1, f"{message}: {_excerpt(line)}"))
    return numbers


def _fast(lines: bytes, width: int) -> Block | None:
    """Return the block of regular lines, or None for others."""
    if lines.startswith(
        b"\xef\xbb\xbf"
    ):  # A word here that the parser would interpret as a null value.
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


def _slow(lines: bytes, width: int, first: int, faults: _Faults) -> Block:
    words: list[bytes] = []
    rows: list[list[bytes]] = []
    for number, line in enumerate(lines.split(b"\n")[:-1], first):
        if not line:
            continue  # No data follow that could be lost.
        fields = line.split(b" ")
        word, numbers = b" ".join(fields[:-width]), fields[-width:]
        wrong = _wrong(fields, width)
        if wrong:
            faults.add(number, wrong)
        else:
            words.append(word)
            rows.append(numbers)
    vectors = np.array(rows, dtype=np.float64).astype(np.float32).reshape(-1, width)
    texts, undecodable = _decoded(words)
    return Block(texts, vectors, undecodable)


def _wrong(fields: list[bytes], width: int) -> str:
    """Return the problem of a line; its word may contain spaces, but no number after one."""
    if len(fields) <= width:
        return f"expected a word and {width} numbers: {_excerpt(b' '.join(fields))}"
    if len(fields) > width + 1 and _number(fields[-width - 1]):
        return f"more than {width} numbers: {_excerpt(b' '.join(fields))}"
    for field in fields[-width:]:
        if not NUMBER.fullmatch(field) or abs(float(field)) > LARGEST:
            return f"{_excerpt(field)} is not a finite number (32 bits)"
    return ""


def _number(field: bytes) -> bool:
    return bool(NUMBER.fullmatch(field) or NOT_FINITE.fullmatch(field))


def _excerpt(text: bytes) -> str:
    return repr(text[:40].decode("utf-8", "replace")) + ("…" if len(text) > 40 else "")


def _binary_blocks(stream: BinaryIO, file: str, count: int, width: int) -> Iterator[Block]:
    """Yield the blocks of `count` words after the header.

    Raises InputError if the file ends early, continues after the last word, or contains a non-finite number.
    """
    done, remainder = 0, b""
    while done < count:
        read = stream.read(BLOCK_BYTES)
        if not read:
            message = f"ends within word {done + 1:,} of {count:,} words in its header"
            raise InputError(Problem(file, None, message))
        words, vectors, remainder = _records(remainder + read, count - done, 4 * width)
        if len(remainder) > LONGEST_WORD + 4 * width + 2 and done + len(words) < count:
            message = f"word {done + len(words) + 1:,} is longer than {LONGEST_WORD:,} bytes"
            raise InputError(Problem(file, None, f"{message}; expected word2vec's binary format"))
        if words:
            yield _block(words, b"".join(vectors), width, file, done)
        done += len(words)
    if (remainder + stream.read(1)).strip():
        message = f"continues after the {count:,} words in its header"
        raise InputError(Problem(file, None, message))


def _records(data: bytes, most: int, size: int) -> tuple[list[bytes], list[bytes], bytes]:
    """Return the complete words and vectors in `data`, and the remaining bytes."""
    words: list[bytes] = []
    vectors: list[bytes] = []
    at = 0
    while len(words) < most:
        space = data.find(b" ", at, at + LONGEST_WORD)
        if space < 0 or space + 1 + size > len(data):
            break
        words.append(
            data[at:space].lstrip(b"\n")
        )  # Some programs write a line break after each vector.
        vectors.append(data[space + 1 : space + 1 + size])
        at = space + 1 + size
    return words, vectors, data[at:]


def _block(raw: list[bytes], numbers: bytes, width: int, file: str, done: int) -> Block:
    vectors = np.frombuffer(numbers, dtype="<f4").reshape(-1, width)
    words, undecodable = _decoded(raw)
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        message = f"word {done + row + 1:,} ({words[row][:40]!r}) has a number that is not finite"
        raise InputError(Problem(file, None, message))
    return Block(words, vectors, undecodable)


def _pair_files(folder: Path) -> tuple[Path, Path]:
    """Return the matrix file and the words file of a folder; raise InputError unless there is one of each."""
    matrices = sorted(folder.glob("*.npy"))
    words = sorted([*folder.glob("*.txt"), *folder.glob("*.parquet")])
    if len(matrices) != 1 or len(words) != 1:
        message = (
            f"expected one .npy file and one file of words (.txt or .parquet); found {len(matrices)} and "
            f"{len(words)}"
        )
        raise InputError(Problem(str(folder), None, message))
    return matrices[0], words[0]


def _pair_blocks(matrix_file: Path, words_file: Path) -> Iterator[Block]:
    """Yield the blocks; raise InputError if matrix and words do not match."""
    try:
        matrix = np.load(matrix_file, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise InputError(
            Problem(str(matrix_file), None, f"not a valid .npy file ({error})")
        ) from None
    words = _words(words_file)
    if matrix.ndim != 2 or matrix.dtype.kind != "f" or len(matrix) != len(words):
        message = (
            f"has shape {matrix.shape} of {matrix.dtype}; expected floats with {len(words):,} rows"
        )
        raise InputError(Problem(str(matrix_file), None, message))
    step = max(1, BLOCK_BYTES // (4 * matrix.shape[1] or 1))
    for start in range(0, len(words), step):
        vectors = np.asarray(matrix[start : start + step], dtype=np.float32)
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            message = f"row {start + int(np.argmin(finite)):,} has a number that is not finite"
            raise InputError(Problem(str(matrix_file), None, message))
        yield Block(words[start : start + step], vectors)


def _words(file: Path) -> list[str]:
    if file.suffix == ".txt":
        return read_text(file).removesuffix("\n").split("\n")
    try:
        table = read_table(file)
    except (ValueError, OSError) as error:
        raise InputError(Problem(str(file), None, f"not a valid Parquet file ({error})")) from None
    if table.width != 1 or table.dtypes[0] != pl.String:
        raise InputError(Problem(str(file), None, "expected one column of words"))
    return [word or "" for word in table.to_series().to_list()]


def files_of(location: Path) -> tuple[Path, ...]:
    """Return the files from which a model is read."""
    return _pair_files(location) if location.is_dir() else (location,)


def blocks(location: Path) -> Iterator[Block]:
    """Yield the words and vectors of a file (``.gz`` is decompressed) or a folder in blocks.

    Raises InputError with location, problem and expectation.
    """
    if location.is_dir():
        yield from _pair_blocks(*_pair_files(location))
        return
    try:
        with location.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            stream = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if packed else raw
            for block in _blocks(stream, str(location)):
                if packed and (reason := too_much(location.stat().st_size, stream.tell())):
                    raise InputError(Problem(str(location), None, reason))
                yield block
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            Problem(str(location), None, f"is not a complete gzip file ({error})")
        ) from None
    except OSError as error:
        raise InputError(
            Problem(str(location), None, f"cannot be read ({error.strerror})")
        ) from None


def _blocks(stream: BinaryIO, file: str) -> Iterator[Block]:
    start = stream.read(PEEK)
    for beginning, reason in REFUSED.items():
        if start.startswith(beginning):
            raise InputError(Problem(file, None, reason))
    if not start.strip():
        raise InputError(
            Problem(file, None, "is empty; expected one word and its numbers per line")
        )
    mark = len(BYTE_ORDER_MARK) * start.startswith(BYTE_ORDER_MARK)
    header = HEADER.match(start, mark)
    stream.seek(header.end() if header else mark)
    if header is None:
        yield from _text_blocks(stream, file, None, first_line=1)
        return
    count, width = map(int, header.groups())
    if not count or not 0 < width <= WIDEST:
        message = f"the header states {count:,} words of {width:,} numbers"
        allowed = f"expected at least one word and 1 to {WIDEST:,} numbers"
        raise InputError(Problem(file, 1, f"{message}; {allowed}"))
    if CONTROL.search(start, header.end()):
        yield from _binary_blocks(stream, file, count, width)
    else:
        yield from _check_count(_text_blocks(stream, file, width, first_line=2), file, count)


def _check_count(read: Iterator[Block], file: str, count: int) -> Iterator[Block]:
    done = 0
    for block in read:
        done += len(block.words)
        yield block
    if done != count:
        message = f"the header states {count:,} words, but there are {done:,}"
        raise InputError(Problem(file, 1, message))
