"""Reading and writing of text files, with uniform treatment of ``-``, ``.gz``, byte order marks and
errors."""

from __future__ import annotations

import gzip
import io
import logging
import os
import re
import sys
import time
import tomllib
import zlib
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from bws.base.file_uses import check_not_read, note_read, replacing
from bws.base.frames import Source, frame_bytes, is_path
from bws.base.problems import InputError, Problem, closest
from bws.base.terminal import printable

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
WORKBOOK = "save the sheet as CSV (UTF-8)"
OTHER_FORMATS = {
    b"PK\x03\x04": f"is a ZIP archive, as written by Excel and LibreOffice; {WORKBOOK}",
    b"\xd0\xcf\x11\xe0": f"is a Microsoft Office file; {WORKBOOK}",
    b"PAR1": "is a Parquet file; expected text (UTF-8)",
    b"%PDF": "is a PDF file; expected text (UTF-8)",
}
"""First bytes of files in other formats, with a remedy for each."""
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
"""First bytes of UTF-16 text, as exported by survey platforms and Excel."""
ANY_RATIO = 64 * 2**20
"""Size in bytes that may always be decompressed, irrespective of the ratio."""
RATIO = 100
"""Maximum ratio of decompressed to compressed size above that. Text reaches 10 to 20, a bomb up to 1,000."""
UNPACKED = 2 * 2**30
"""Maximum size in bytes of decompressed data in memory."""
PIECE = 2**20
TOML_LOCATION = re.compile(r" \(at line (\d+), column \d+\)$")
TEMPORARY = ".bws.part"
"""Suffix of temporary files, not used by other programs."""
FORGOTTEN = 3600.0
"""Age in seconds of a temporary file that is considered abandoned by a killed process."""
MAX_SCANNED_FILES = 1000
SAMPLES = ("giccs-sample", "giccs-sample-en", "csts-sample")
"""Names of samples in the package, which only some commands read without a copy."""

log = logging.getLogger(__name__)
_looked: dict[Path, float] = {}
"""Folder -> time of this process's last search for abandoned files."""


def display_name(path: Source) -> str:
    """Return the name of a source in messages: ``-`` is ``<stdin>``; frames and records are ``<data>``."""
    if not is_path(path):
        return "<data>"
    return "<stdin>" if os.fspath(path) == "-" else os.fspath(path)


def read_bytes(path: Source) -> bytes:
    """Read a whole file; ``-`` is standard input, ``.gz`` is decompressed, a byte order mark is dropped.

    A data frame or records are returned as CSV.

    Raises InputError if the file is missing, is a directory, cannot be read or decompressed, exceeds the
    limits of `too_much`, or is an output of the running command.
    """
    if not is_path(path):
        return frame_bytes(path)
    name, began = os.fspath(path), time.perf_counter()
    note_read(name)
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        if name.endswith(".gz"):
            data = _unpacked(name, data)
    except InputError:
        raise
    except FileNotFoundError:
        remedy = f"; giccs data copy {name} writes its files" if name in SAMPLES else ""
        remedy = remedy or _similar_file(Path(name))
        raise InputError(Problem(name, None, f"no such file{remedy}")) from None
    except IsADirectoryError:
        raise InputError(Problem(name, None, "is a directory; expected a file")) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(Problem(name, None, f"is not a complete gzip file ({error})")) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(Problem(name, None, f"cannot be read ({reason})")) from None
    seconds = time.perf_counter() - began
    log.debug("read %s: %d bytes, %.3f s", display_name(path), len(data), seconds)
    return data.removeprefix(BYTE_ORDER_MARK)


def _similar_file(path: Path) -> str:
    """Return the suggestion of a file of the same folder and type for a missing one."""
    try:
        with os.scandir(path.parent) as entries:
            names = [Path(entry.name) for entry in islice(entries, MAX_SCANNED_FILES)]
    except OSError:
        return ""
    stem = closest(path.stem, (name.stem for name in names if name.suffix == path.suffix))
    return f"; did you mean {stem + path.suffix!r}?" if stem else ""


def too_much(packed: int, unpacked: int) -> str:
    """Return the reason for stopping decompression, or an empty string.

    packed, unpacked: size in bytes of the compressed file, and of the decompressed data so far.

    >>> too_much(1_000, 60_000_000), too_much(10_000_000, 300_000_000)
    ('', '')
    >>> too_much(70_000, 70_000_000)
    'decompresses to more than 100 times its size; if you trust it, decompress it first'
    """
    if unpacked <= max(ANY_RATIO, RATIO * packed):
        return ""
    return f"decompresses to more than {RATIO} times its size; if you trust it, decompress it first"


def _unpacked(name: str, data: bytes) -> bytes:
    """Return the content of a gzip file; raise InputError before it exceeds the memory limit."""
    unpacked = bytearray()
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        while piece := file.read(PIECE):
            unpacked += piece
            reason = too_much(len(data), len(unpacked))
            if not reason and len(unpacked) > UNPACKED:
                reason = f"decompresses to more than {UNPACKED:,} bytes; decompress it first"
            if reason:
                raise InputError(Problem(name, None, reason))
    return bytes(unpacked)


def utf8_text(data: bytes, name: str) -> bytes:
    """Return the text of a file as UTF-8; UTF-16 is converted if it begins with a byte order mark.

    Raises InputError for other content, with its format or the line of the first invalid byte.

    >>> utf8_text("\u00e9".encode("utf-16"), "a.csv").decode()
    '\u00e9'
    """
    if data.startswith(UTF_16_MARKS):
        try:
            data = data.decode("utf-16").encode("utf-8")
        except UnicodeError as error:
            message = f"is not complete UTF-16 text ({error}); save the file as UTF-8"
            raise InputError(Problem(name, None, message)) from None
    _check_is_utf8(data, name)
    return data


def _check_is_utf8(data: bytes, name: str) -> None:
    for magic, message in OTHER_FORMATS.items():
        if data.startswith(magic):
            raise InputError(Problem(name, None, message))
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise InputError(Problem(name, line, "NUL byte; expected UTF-8 text"))
    if data.isascii():
        return
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = data[error.start : error.start + 1]
        message = f"byte 0x{byte.hex()} is not UTF-8; save the file as UTF-8"
        if (letter := byte.decode("cp1252", errors="ignore")).isalpha():
            message += f" (in Excel: CSV UTF-8); in Windows-1252 it is {letter!r}"
        raise InputError(Problem(name, line, message)) from None


def read_text(path: str | os.PathLike[str]) -> str:
    """Read a whole text file like `read_bytes` and `utf8_text`."""
    return utf8_text(read_bytes(path), display_name(path)).decode("utf-8")


def read_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a TOML file with `read_text` and `parse_toml`."""
    return parse_toml(read_text(path), display_name(path))


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """Parse TOML of the file `name`; raise InputError with the line of a syntax error."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        location = TOML_LOCATION.search(str(error))
        reason = TOML_LOCATION.sub("", str(error))
        problem = Problem(name, int(location[1]) if location else None, f"not valid TOML: {reason}")
        raise InputError(problem) from None


def write_atomic(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file atomically; ``-`` is standard output, ``.gz`` is compressed.

    The content is written to a temporary file in the same folder, which is then renamed. If this fails, for
    example on a full disk, the old file is unchanged and the OSError is raised.
    """
    name = os.fspath(path)
    data = content.encode("utf-8") if isinstance(content, str) else content
    if name == "-":
        if sys.stdout.isatty():
            data = printable(data.decode("utf-8", "surrogateescape")).encode(
                "utf-8", "surrogateescape"
            )
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    if name.endswith(".gz"):
        data = gzip.compress(data, mtime=0)
    write_with(name, lambda temporary: Path(temporary).write_bytes(data))


def write_with(path: str | os.PathLike[str], write: Callable[[str], object]) -> None:
    """Pass a temporary file beside `path` to `write`, then rename it to `path`; atomic.

    An existing device or pipe is written directly and never replaced. Raises InputError for an input of the
    running command. A killed process leaves its temporary
    file behind; it is removed by a process that writes to the folder an hour later.
    """
    import tempfile

    target, began = Path(path), time.perf_counter()
    if target.exists() and not target.is_file():
        write(os.fspath(target))
        return
    target = target.resolve()  # Keep the target of a symbolic link.
    target.parent.mkdir(parents=True, exist_ok=True)
    _tidy(target.parent)
    temporary = ""
    check_not_read(target)
    try:
        handle, temporary = tempfile.mkstemp(TEMPORARY, f".{target.name}.", target.parent)
        os.close(handle)
        write(temporary)
        with open(temporary, "rb") as temporary_file:
            os.fsync(temporary_file.fileno())
            size = os.fstat(temporary_file.fileno()).st_size
        os.chmod(temporary, _mode_of(target))
        with replacing(target):
            os.replace(temporary, target)
    except BaseException as error:
        if temporary:
            os.unlink(temporary)
        if isinstance(error, OSError):
            error.filename = os.fspath(target)  # Not the temporary name, and never empty.
        raise
    log.debug("wrote %s: %d bytes, %.3f s", os.fspath(path), size, time.perf_counter() - began)


def _tidy(folder: Path) -> None:
    """Remove abandoned temporary files; rarely, because listing a large folder takes time."""
    if time.monotonic() - _looked.get(folder, -FORGOTTEN) < FORGOTTEN:
        return
    _looked[folder] = time.monotonic()
    with suppress(OSError):  # A folder may be writable but not readable.
        left = [entry for entry in os.scandir(folder) if entry.name.endswith(TEMPORARY)]
        for path in left:
            with suppress(OSError):  # Removed by another process.
                if time.time() - path.stat().st_mtime > FORGOTTEN:
                    os.unlink(path)


def _mode_of(target: Path) -> int:
    """Return the permissions of the file, or those of a new file."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
