"""Memory-mapped cache of word vectors, written when a file is first read.

The cache folder contains, named by the SHA-256 of the source's content, the matrix (.npy), the words (.txt
with one word per line) and, written last, a .json file that marks both as complete. Each file is written
atomically with deterministic content, so concurrent processes do not interfere. Files that contradict the
.json file are rebuilt.
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

from bws.base.text import write_atomic, write_with
from giccs.caching import cache_folder
from giccs.models.static.formats import Block, blocks, files_of

VERSION = 1
"""Incremented when files are read differently."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts from reading a file."""

    words: int
    dimensions: int
    duplicates: int
    """Entries skipped because their word occurs earlier in the file."""
    undecodable: int
    """Words with bytes that are not UTF-8."""


@dataclass(frozen=True, slots=True)
class Table:
    """Words and their vectors."""

    words: list[str]
    vectors: NDArray[np.float32]
    """(words, dimensions), memory-mapped from the cache, read-only."""
    counts: Counts


def content_digest(location: Path) -> str:
    """Return the hexadecimal SHA-256 of the content of a file, or of the matrix and words of a folder.

    Files are read only if their path, size or time has changed since the last call.
    """
    return hashlib.sha256("".join(map(_file_digest, files_of(location))).encode()).hexdigest()


def open_table(location: Path) -> Table:
    """Return the words and vectors of a file or folder; raise InputError if it cannot be read."""
    stem = _folder() / f"{content_digest(location)}-{VERSION}"
    table = _mapped(stem)
    if table is None:
        _convert(location, stem)
        table = _mapped(stem)
    if table is None:
        raise OSError(f"cannot read the files just written to {stem.parent}; check the disk")
    return table


def _folder() -> Path:
    folder = cache_folder() / "static"
    folder.mkdir(exist_ok=True)
    return folder


def _file_digest(file: Path) -> str:
    state = file.stat()
    file_state = f"{file.resolve()}\n{state.st_size}\n{state.st_mtime_ns}\n{state.st_ctime_ns}"
    note = _folder() / f"{_sha256(file_state)}.sha256"
    if note.is_file():
        digest, _, check = note.read_bytes().decode("ascii", "replace").partition(" ")
        if check == _sha256(f"{digest}\n{file_state}"):
            return digest
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    check = _sha256(f"{digest}\n{file_state}")
    write_atomic(note, f"{digest} {check}")
    return digest


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _mapped(stem: Path) -> Table | None:
    """Return the table at `stem`, or None if it is missing or incomplete.

    The words are verified by their digest, the matrix by size and shape without reading it.
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


def _convert(location: Path, stem: Path) -> None:
    sink = _Sink()
    write_with(stem.with_suffix(".npy"), partial(_write_matrix, read=blocks(location), sink=sink))
    words = "".join(f"{word}\n" for word in sink.words).encode("utf-8")
    write_atomic(stem.with_suffix(".txt"), words)
    about = {"counts": asdict(sink.counts()), "words_sha256": hashlib.sha256(words).hexdigest()}
    write_atomic(stem.with_suffix(".json"), json.dumps(about))


class _Sink:
    """The distinct words so far."""

    def __init__(self) -> None:
        self.words: dict[str, None] = {}
        self.dimensions = self.duplicates = self.undecodable = 0

    def new(self, block: Block) -> NDArray[np.float32]:
        """Add the words of a block; return the vectors of new words."""
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
    """Write vectors as they arrive; the header with their number is rewritten at the end."""
    with open(path, "wb") as file:
        _write_head(file, 0, 1)
        for block in read:
            file.write(np.ascontiguousarray(sink.new(block), dtype="<f4").data)
        file.seek(0)
        _write_head(file, len(sink.words), sink.dimensions)


def _write_head(file: BinaryIO, rows: int, columns: int) -> None:
    """Write the header of a .npy file with constant length for all shapes."""
    shape = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}"
    length = 128 - 10
    file.write(b"\x93NUMPY\x01\x00" + length.to_bytes(2, "little"))
    file.write(shape.encode("ascii").ljust(length - 1) + b"\n")
