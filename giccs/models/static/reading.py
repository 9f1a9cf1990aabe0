"""In which format are these word vectors?"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from bws.problems import InputError, Problem
from bws.textio import too_much
from giccs.models.static.binary import binary_blocks
from giccs.models.static.blocks import Block
from giccs.models.static.pair import pair_blocks, pair_files
from giccs.models.static.text import text_blocks

__all__ = ["blocks", "files_of"]

HEADER = re.compile(rb"(\d{1,12})[ \t](\d{1,12})[ \t]*\r?\n")
CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
"""What text does not have, and 32-bit floats soon do."""
PEEK = 1 << 16
WIDEST = 100_000
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
REFUSED = {
    b"\xba\x16\x4f\x2f": "is fastText's own model; use the vectors in its .vec file",
    b"PK\x03\x04": "is a zip archive; unpack it and name a file in it",
    b"\x93NUMPY": "is a matrix without its words; name the folder that has both",
    b"\x80": "is a Python pickle, which is never opened; save it in word2vec's format",
}
"""How files begin that are something else -> what to do."""


def files_of(place: Path) -> tuple[Path, ...]:
    """Return the files that a model is read from."""
    return pair_files(place) if place.is_dir() else (place,)


def blocks(place: Path) -> Iterator[Block]:
    """Yield the words and vectors of a file (``.gz`` is unpacked) or a folder, block by block.

    Raises InputError with what is wrong, where it stands, and what is allowed.
    """
    if place.is_dir():
        yield from pair_blocks(*pair_files(place))
        return
    try:
        with place.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            stream = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if packed else raw
            for block in _blocks(stream, str(place)):
                if packed and (reason := too_much(place.stat().st_size, stream.tell())):
                    raise InputError(Problem(str(place), None, reason))
                yield block
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(Problem(str(place), None, f"is not a whole gzip file ({error})")) from None
    except OSError as error:
        raise InputError(Problem(str(place), None, f"cannot be read ({error.strerror})")) from None


def _blocks(stream: BinaryIO, file: str) -> Iterator[Block]:
    start = stream.read(PEEK)
    for beginning, reason in REFUSED.items():
        if start.startswith(beginning):
            raise InputError(Problem(file, None, reason))
    if not start.strip():
        raise InputError(
            Problem(file, None, "is empty; a word and its numbers a line are expected")
        )
    mark = len(BYTE_ORDER_MARK) * start.startswith(BYTE_ORDER_MARK)
    header = HEADER.match(start, mark)
    stream.seek(header.end() if header else mark)
    if header is None:
        yield from text_blocks(stream, file, None, first_line=1)
        return
    count, width = map(int, header.groups())
    if not count or not 0 < width <= WIDEST:
        message = f"the header promises {count:,} words of {width:,} numbers"
        allowed = f"at least one word and 1 to {WIDEST:,} numbers are allowed"
        raise InputError(Problem(file, 1, f"{message}; {allowed}"))
    if CONTROL.search(start, header.end()):
        yield from binary_blocks(stream, file, count, width)
    else:
        yield from _counted(text_blocks(stream, file, width, first_line=2), file, count)


def _counted(read: Iterator[Block], file: str, count: int) -> Iterator[Block]:
    done = 0
    for block in read:
        done += len(block.words)
        yield block
    if done != count:
        message = f"the header promises {count:,} words; there are {done:,}"
        raise InputError(Problem(file, 1, message))
