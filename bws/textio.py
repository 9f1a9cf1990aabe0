"""Reading and writing text files: one way for ``-``, ``.gz``, byte order marks and failures."""

from __future__ import annotations

import csv
import gzip
import io
import json
import logging
import os
import re
import sys
import time
import tomllib
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from bws.problems import InputError, Problem

__all__ = [
    "check_is_text",
    "csv_text",
    "display_name",
    "json_lines_text",
    "parse_toml",
    "read_bytes",
    "read_text",
    "read_toml",
    "too_much",
    "write_atomic",
    "write_with",
]

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
WORKBOOK = "save the sheet as CSV (UTF-8)"
OTHER_FORMATS = {
    b"PK\x03\x04": f"is a ZIP archive, as Excel and LibreOffice write; {WORKBOOK}",
    b"\xd0\xcf\x11\xe0": f"is a Microsoft Office file; {WORKBOOK}",
    b"\xff\xfe": "is UTF-16 text; save the file as UTF-8 (in Excel: CSV UTF-8)",
    b"\xfe\xff": "is UTF-16 text; save the file as UTF-8",
    b"PAR1": "is a Parquet file; text (UTF-8) is expected",
    b"%PDF": "is a PDF file; text (UTF-8) is expected",
}
"""How files of other formats begin, and what to do with each."""
ANY_RATIO = 64 * 2**20
"""So many bytes may be unpacked, however small the packed file is."""
RATIO = 100
"""Beyond that, how many bytes may come of one: text comes to ten or twenty, a bomb to a thousand."""
UNPACKED = 2 * 2**30
"""So many bytes are unpacked into memory at most."""
PIECE = 2**20
TOML_LOCATION = re.compile(r" \(at line (\d+), column \d+\)$")
TEMPORARY = ".bws.part"
"""How the names of temporary files end, which no other program calls so."""
FORGOTTEN = 3600.0
"""Seconds without a change after which a temporary file is one that a killed process left."""

log = logging.getLogger(__name__)
_looked: dict[Path, float] = {}
"""Folder -> when this process last looked for what killed ones left there."""


def display_name(path: str | os.PathLike[str]) -> str:
    """Return how messages call a path: ``-`` is ``<stdin>``."""
    return "<stdin>" if os.fspath(path) == "-" else os.fspath(path)


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Read a whole file; ``-`` is standard input, ``.gz`` is unpacked, a byte order mark is dropped.

    Raises InputError where the file is missing, is a directory, cannot be read or unpacked, or where
    `too_much` comes of it.
    """
    name, began = os.fspath(path), time.perf_counter()
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        if name.endswith(".gz"):
            data = _unpacked(name, data)
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(Problem(name, None, "no such file")) from None
    except IsADirectoryError:
        raise InputError(Problem(name, None, "is a directory; a file is expected")) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(Problem(name, None, f"is not a whole gzip file ({error})")) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(Problem(name, None, f"cannot be read ({reason})")) from None
    seconds = time.perf_counter() - began
    log.debug("read %s: %d bytes, %.3f s", display_name(path), len(data), seconds)
    return data.removeprefix(BYTE_ORDER_MARK)


def too_much(packed: int, unpacked: int) -> str:
    """Return why no more of a gzip file is unpacked; empty where it may go on.

    packed, unpacked: bytes of the whole file, and those that have come of it so far.

    >>> too_much(1_000, 60_000_000), too_much(10_000_000, 300_000_000)
    ('', '')
    >>> too_much(70_000, 70_000_000)
    'unpacks to more than 100 times its size; where you know what it is, unpack it yourself'
    """
    if unpacked <= max(ANY_RATIO, RATIO * packed):
        return ""
    return f"unpacks to more than {RATIO} times its size; where you know what it is, unpack it yourself"


def _unpacked(name: str, data: bytes) -> bytes:
    """Return what a gzip file holds; InputError, before it fills the memory, where it is too much."""
    found = bytearray()
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        while piece := file.read(PIECE):
            found += piece
            reason = too_much(len(data), len(found))
            if not reason and len(found) > UNPACKED:
                reason = f"unpacks to more than {UNPACKED:,} bytes; unpack it yourself"
            if reason:
                raise InputError(Problem(name, None, reason))
    return bytes(found)


def check_is_text(data: bytes, name: str) -> None:
    """Raise InputError where a file is no UTF-8 text: another format, or the line of the first bad byte."""
    for magic, message in OTHER_FORMATS.items():
        if data.startswith(magic):
            raise InputError(Problem(name, None, message))
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise InputError(Problem(name, line, "a NUL byte; the file must be UTF-8 text"))
    if data.isascii():
        return
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8"
        raise InputError(Problem(name, line, message)) from None


def read_text(path: str | os.PathLike[str]) -> str:
    """Read a whole UTF-8 file as `read_bytes` does; InputError as of `check_is_text`."""
    data = read_bytes(path)
    check_is_text(data, display_name(path))
    return data.decode("utf-8")


def read_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a TOML file as `read_text` and `parse_toml` do."""
    return parse_toml(read_text(path), display_name(path))


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """Parse TOML of the file `name`; InputError names the line of a syntax error."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        location = TOML_LOCATION.search(str(error))
        reason = TOML_LOCATION.sub("", str(error))
        problem = Problem(name, int(location[1]) if location else None, f"is not TOML: {reason}")
        raise InputError(problem) from None


def csv_text(
    rows: Iterable[Sequence[object] | Mapping[str, object]],
    header: Sequence[str] = (),
    *,
    quote_all: bool = False,
) -> str:
    r"""Return rows as CSV with line feeds, fields quoted where necessary, None and missing keys empty.

    A mapping is written in the order of the header; ValueError where it has a key that the header lacks.

    >>> csv_text([("a", 0.5), {"score": None, "item": "b, c"}], ("item", "score"))
    'item,score\na,0.5\n"b, c",\n'
    """
    out = io.StringIO()
    quoting: Literal[0, 1] = csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL
    writer = csv.writer(out, lineterminator="\n", quoting=quoting)
    if header:
        writer.writerow(header)
    for row in rows:
        if isinstance(row, Mapping):
            if unknown := row.keys() - set(header):
                raise ValueError(f"keys {sorted(unknown)} are not in the header {list(header)}")
            row = [row.get(name, "") for name in header]
        writer.writerow(row)
    return out.getvalue()


def json_lines_text(objects: Iterable[Mapping[str, Any]]) -> str:
    r"""Return objects as JSON Lines, characters as they are.

    >>> json_lines_text([{"text": "Grüß Gott"}, {}])
    '{"text": "Grüß Gott"}\n{}\n'
    """
    return "".join(f"{json.dumps(value, ensure_ascii=False)}\n" for value in objects)


def write_atomic(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a whole file or nothing; ``-`` is standard output, ``.gz`` is packed.

    The content goes to a temporary file in the same folder, which then takes the name. Where that
    fails (a full disk, say) the old file stands as it was and the OSError is raised.
    """
    name = os.fspath(path)
    data = content.encode("utf-8") if isinstance(content, str) else content
    if name == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    if name.endswith(".gz"):
        data = gzip.compress(data, mtime=0)
    write_with(name, lambda temporary: Path(temporary).write_bytes(data))


def write_with(path: str | os.PathLike[str], write: Callable[[str], object]) -> None:
    """Let `write` fill a temporary file beside `path`, then give it that name; all or nothing.

    What is there and no regular file (a device, a pipe) is written to as it is, never replaced. A process
    that is killed leaves its temporary file; one that writes into the folder an hour later removes it.
    """
    import tempfile

    target, began = Path(path), time.perf_counter()
    if target.exists() and not target.is_file():
        write(os.fspath(target))
        return
    target = target.resolve()  # a link keeps pointing where it points
    target.parent.mkdir(parents=True, exist_ok=True)
    _tidy(target.parent)
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(TEMPORARY, f".{target.name}.", target.parent)
        os.close(handle)
        write(temporary)
        with open(temporary, "rb") as written:
            os.fsync(written.fileno())
            size = os.fstat(written.fileno()).st_size
        os.chmod(temporary, _mode_of(target))
        os.replace(temporary, target)
    except BaseException as error:
        if temporary:
            os.unlink(temporary)
        if isinstance(error, OSError):
            error.filename = os.fspath(target)  # not the temporary name, and never without a name
        raise
    log.debug("wrote %s: %d bytes, %.3f s", os.fspath(path), size, time.perf_counter() - began)


def _tidy(folder: Path) -> None:
    """Remove temporary files to which nobody has written for long; a look takes time in a large folder."""
    if time.monotonic() - _looked.get(folder, -FORGOTTEN) < FORGOTTEN:
        return
    _looked[folder] = time.monotonic()
    with suppress(OSError):  # what may not be listed may yet be written to
        left = [one for one in os.scandir(folder) if one.name.endswith(TEMPORARY)]
        for path in left:
            with suppress(OSError):  # another process was faster
                if time.time() - path.stat().st_mtime > FORGOTTEN:
                    os.unlink(path)


def _mode_of(target: Path) -> int:
    """Return the permissions the file has, or those that a new file would get."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
