"""Files that a person drops on the page: kept in a folder of their own and given to the usual readers.

A file's name decides nothing but its ending, out of those that a reader takes; nothing is unpacked or run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bws.problems import InputError, Problem

__all__ = [
    "ENDINGS",
    "FOLDER_PREFIX",
    "MOST_MEGABYTES",
    "MOST_ROWS",
    "Upload",
    "keep",
    "keep_results",
]

FOLDER_PREFIX = "giccs-explore-"
"""How the name of the folder begins in which a visit's uploads are kept, each in a folder of its own."""
MOST_MEGABYTES = 200
MOST_ROWS = 2_000_000
ENDINGS = {
    "benchmark": ("jsonl",),
    "judgments": ("csv", "tsv", "txt", "json", "jsonl"),
    "results": ("json", "parquet"),
}


@dataclass(frozen=True)
class Upload:
    """A file as the browser sent it."""

    name: str
    content: bytes

    @property
    def ending(self) -> str:
        """What follows the last dot, in lower case.

        >>> Upload("../Mine.JSONL", b"").ending
        'jsonl'
        """
        return self.name.rpartition(".")[2].lower() if "." in self.name else ""

    @property
    def stem(self) -> str:
        """The name without folders and ending, of harmless characters only.

        >>> Upload("..\\\\..\\\\my file.jsonl", b"").stem
        'my-file'
        """
        last = re.split(r"[/\\]", self.name)[-1].rpartition(".")[0]
        return re.sub(r"[^\w.-]+", "-", last).strip(".-")[:80] or "upload"


def keep(upload: Upload, kind: str, folder: Path) -> Path:
    """Write an uploaded benchmark or judgments to `folder`; InputError where it is too large."""
    _check(upload, kind)
    rows = upload.content.count(b"\n")
    if rows > MOST_ROWS:
        message = f"has {rows} lines; at most {MOST_ROWS} can be uploaded, more with --data or --judgments"
        raise InputError(Problem(upload.name, None, message))
    path = folder / f"{upload.stem}.{upload.ending}"
    path.write_bytes(upload.content)
    return path


def keep_results(uploads: Sequence[Upload], folder: Path) -> list[Problem]:
    """Write uploaded results to `folder` as `Store` lays them out; return what could not be used.

    A result is a JSON file of giccs-eval; its predictions are a Parquet file of the same name.
    """
    problems: list[Problem] = []
    tables = {upload.stem: upload for upload in uploads if upload.ending == "parquet"}
    for upload in uploads:
        if upload.ending == "parquet":
            continue
        try:
            path = _keep_result(upload, folder)
            if table := tables.pop(upload.stem, None):
                _keep_table(table, path.with_suffix(".parquet"))
        except InputError as error:
            problems += error.problems
    return [*problems, *_left(tables.values())]


def _keep_result(upload: Upload, folder: Path) -> Path:
    from giccs.results import Result, Store

    _check(upload, "results")
    try:
        result = Result.from_document(json.loads(upload.content))
        if not isinstance(result.signature, dict):
            raise TypeError(result.signature)
        path = Store(folder).path(result.model, result.task, result.signature)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(Problem(upload.name, None, "is not a result of giccs-eval")) from None
    path.write_bytes(upload.content)
    return path


def _keep_table(upload: Upload, path: Path) -> None:
    from giccs.parquet import count_rows

    _check(upload, "results")
    try:
        rows = count_rows(upload.content)
    except (ValueError, OSError):
        raise InputError(Problem(upload.name, None, "is not a whole Parquet file")) from None
    if rows > MOST_ROWS:
        message = f"has {rows} rows; at most {MOST_ROWS} can be uploaded, more with --results"
        raise InputError(Problem(upload.name, None, message))
    path.write_bytes(upload.content)


def _left(tables: Iterable[Upload]) -> Iterator[Problem]:
    for table in tables:
        message = "has no result of the same name beside it; upload the .json file too"
        yield Problem(table.name, None, message)


def _check(upload: Upload, kind: str) -> None:
    allowed = ENDINGS[kind]
    if upload.ending not in allowed:
        message = f"is no {kind} file; allowed endings: {', '.join(allowed)}"
        raise InputError(Problem(upload.name, None, message))
    size = len(upload.content)
    if size > MOST_MEGABYTES * 1_000_000:
        message = f"has {size // 1_000_000} MB; at most {MOST_MEGABYTES} MB can be uploaded"
        raise InputError(Problem(upload.name, None, message))
