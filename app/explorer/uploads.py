"""Uploaded files: where they are dropped on the page, and the folder that keeps them while the visit lasts.

A file's name decides nothing but its ending, out of those that a reader takes; nothing is unpacked or run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from app.explorer.labels import say
from bws.problems import InputError, Problem

__all__ = [
    "ENDINGS",
    "FOLDER_PREFIX",
    "MOST_MEGABYTES",
    "MOST_ROWS",
    "Upload",
    "dropped",
    "keep",
    "keep_results",
]

FOLDER_PREFIX = "giccs-explore-"
"""How the name of the folder begins in which a visit's uploads are kept, each in a folder of its own."""
MOST_MEGABYTES = 200
MOST_ROWS = 2_000_000
FOLDER, KEPT = "uploads: folder", "uploads: kept"
"""Keys of the session's state."""
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


def dropped() -> tuple[dict[str, str], list[Problem]]:
    """Let files be uploaded; return the paths that they are kept at, and what of them cannot be used."""
    paths: dict[str, str] = {}
    problems: list[Problem] = []
    with st.expander(say("page.own_files"), icon=":material/upload_file:"):
        for kind, endings in ENDINGS.items():
            given = st.file_uploader(
                say(f"page.upload_{kind}"),
                type=list(endings),
                accept_multiple_files=kind == "results",
                key=f"upload {kind}",
                help=say(f"page.upload_{kind}_help"),
                max_upload_size=MOST_MEGABYTES,
            )
            files = given if isinstance(given, list) else [given] if given else []
            path, found = _kept(kind, files) if files else (None, [])
            paths |= {kind: path} if path else {}
            problems += found
        st.caption(say("page.upload_no_link"))
    return paths, problems


def _kept(kind: str, files: Sequence[UploadedFile]) -> tuple[str | None, list[Problem]]:
    """Return where uploaded files are kept, and what of them cannot be used; each is written once."""
    kept = st.session_state.setdefault(KEPT, {})
    which = tuple(file.file_id for file in files)
    if kept.get(kind, (None,))[0] != which:
        kept[kind] = (
            which,
            *_written(kind, [Upload(file.name, file.getvalue()) for file in files]),
        )
    path, problems = kept[kind][1:]
    return path, problems


def _written(kind: str, uploads: Sequence[Upload]) -> tuple[str | None, list[Problem]]:
    if FOLDER not in st.session_state:
        st.session_state[FOLDER] = TemporaryDirectory(prefix=FOLDER_PREFIX)  # gone with the session
    folder = Path(mkdtemp(dir=st.session_state[FOLDER].name))
    if kind == "results":
        return str(folder), keep_results(uploads, folder)
    try:
        return str(keep(uploads[0], kind, folder)), []
    except InputError as error:
        return None, list(error.problems)


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
    from giccs.measures.results import Result, Store

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
    from giccs.benchmark.parquet import count_rows

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
