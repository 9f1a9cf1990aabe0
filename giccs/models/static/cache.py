"""Word vectors in a form that is mapped: read from their file once, then opened at once.

In the cache folder stand, named by the SHA-256 of the content they came from, the matrix (.npy), the words
(.txt, a word a line) and, written last, a .json that says that both are whole. Each is written
atomically and the same whoever writes it, so that processes at once do each other no harm. What is not
as the .json says is made again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from bws.textio import write_atomic, write_with
from giccs.caching import cache_folder
from giccs.models.static.formats import Block, blocks, files_of

__all__ = ["Counts", "Table", "content_digest", "open_table"]

VERSION = 1
"""Raised when the same file would be read differently."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What reading a file found."""

    words: int
    dimensions: int
    duplicates: int
    """Entries left out because their word stood earlier in the file."""
    undecodable: int
    """Words with bytes that are not UTF-8."""


@dataclass(frozen=True, slots=True)
class Table:
    """Words and their vectors."""

    words: list[str]
    vectors: NDArray[np.float32]
    """(words, dimensions), mapped from the cache, read-only."""
    counts: Counts


def content_digest(place: Path) -> str:
    """Return SHA-256, in hex, over the content of a file or of a folder's matrix and words.

    Files are read only where their path, size or time changed since last asked.
    """
    return hashlib.sha256("".join(map(_file_digest, files_of(place))).encode()).hexdigest()


def open_table(place: Path) -> Table:
    """Return the words and vectors of `place`; InputError where it cannot be read."""
    stem = _folder() / f"{content_digest(place)}-{VERSION}"
    table = _mapped(stem)
    if table is None:
        _convert(place, stem)
        table = _mapped(stem)
    if table is None:
        raise OSError(f"what was just written to {stem.parent} cannot be read; is its disk sound?")
    return table


def _folder() -> Path:
    folder = cache_folder() / "static"
    folder.mkdir(exist_ok=True)
    return folder


def _file_digest(file: Path) -> str:
    state = file.stat()
    known = f"{file.resolve()}\n{state.st_size}\n{state.st_mtime_ns}\n{state.st_ctime_ns}"
    note = _folder() / f"{_sha256(known)}.sha256"
    if note.is_file():
        digest, _, check = note.read_bytes().decode("ascii", "replace").partition(" ")
        if check == _sha256(f"{digest}\n{known}"):
            return digest
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    check = _sha256(f"{digest}\n{known}")
    write_atomic(note, f"{digest} {check}")
    return digest


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _mapped(stem: Path) -> Table | None:
    """Return the table at `stem`; None where it is not there or not whole.

    The words are checked by their digest, the matrix by its size and shape: its bytes are not read.
    """
    try:
        about = json.loads(stem.with_suffix(".json").read_bytes())
        counts, digest = Counts(**about["counts"]), about["words_sha256"]
        words = stem.with_suffix(".txt").read_bytes()
        vectors = np.load(stem.with_suffix(".npy"), mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError, KeyError, TypeError, RecursionError):
        return None
    if hashlib.sha256(words).hexdigest() != digest:
        return None
    if vectors.shape != (counts.words, counts.dimensions) or vectors.dtype != np.float32:
        return None
    return Table(words.decode("utf-8").removesuffix("\n").split("\n"), vectors, counts)


def _convert(place: Path, stem: Path) -> None:
    sink = _Sink()
    write_with(stem.with_suffix(".npy"), partial(_write_matrix, read=blocks(place), sink=sink))
    words = "".join(f"{word}\n" for word in sink.words).encode("utf-8")
    write_atomic(stem.with_suffix(".txt"), words)
    about = {"counts": asdict(sink.counts()), "words_sha256": hashlib.sha256(words).hexdigest()}
    write_atomic(stem.with_suffix(".json"), json.dumps(about))


class _Sink:
    """The words so far, each once."""

    def __init__(self) -> None:
        self.words: dict[str, None] = {}
        self.dimensions = self.duplicates = self.undecodable = 0

    def new(self, block: Block) -> NDArray[np.float32]:
        """Take the words of a block in; return the vectors of those that are new."""
        before = len(self.words)
        rows = [row for row, word in enumerate(block.words) if self._is_new(word)]
        self.dimensions = block.vectors.shape[1]
        self.duplicates += len(block.words) - (len(self.words) - before)
        self.undecodable += block.undecodable
        return block.vectors if len(rows) == len(block.words) else block.vectors[rows]

    def counts(self) -> Counts:
        return Counts(len(self.words), self.dimensions, self.duplicates, self.undecodable)

    def _is_new(self, word: str) -> bool:
        new = word not in self.words
        self.words[word] = None
        return new


def _write_matrix(path: str, read: Iterator[Block], sink: _Sink) -> None:
    """Write the vectors as they come; how many there are is written over the start at the end."""
    with open(path, "wb") as file:
        _write_head(file, 0, 1)
        for block in read:
            file.write(np.ascontiguousarray(sink.new(block), dtype="<f4").data)
        file.seek(0)
        _write_head(file, len(sink.words), sink.dimensions)


def _write_head(file: BinaryIO, rows: int, columns: int) -> None:
    """Write the head of a .npy file, of the same length whatever the shape."""
    shape = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}"
    length = 128 - 10
    file.write(b"\x93NUMPY\x01\x00" + length.to_bytes(2, "little"))
    file.write(shape.encode("ascii").ljust(length - 1) + b"\n")
