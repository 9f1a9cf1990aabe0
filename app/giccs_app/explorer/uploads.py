"""Uploaded files: their widgets, and the temporary directory that stores them during a session.

Of the name of a file only the extension is used, which must be a supported one; nothing is unpacked or
executed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir, mkdtemp

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from bws.base.problems import InputError, Problem
from giccs_app.explorer.labels import say

FOLDER_PREFIX = "giccs-explorer-"
"""Prefix of the temporary directory of a session; each upload has its own subdirectory."""
FOLDER = re.compile(
    rf"(?:{re.escape(gettempdir())}[/\\]|[^\s'\"]*){FOLDER_PREFIX}\w+(?:[/\\]\w+)?(?:[/\\]|\b)"
)
"""The temporary directory of an upload in a text."""
MAX_UPLOAD_MEGABYTES = 200
MAX_UPLOAD_ROWS = 2_000_000
FOLDER_KEY, FILES_KEY = "uploads: folder", "uploads: kept"
"""Keys of the session state."""
ENDINGS = {
    "benchmark": ("jsonl",),
    "judgments": ("csv", "tsv", "txt", "json", "jsonl"),
    "results": ("json", "parquet"),
}


@dataclass(frozen=True)
class Upload:
    """An uploaded file."""

    name: str
    content: bytes

    @property
    def ending(self) -> str:
        """File extension in lower case, without the dot.

        >>> Upload("../Mine.JSONL", b"").ending
        'jsonl'
        """
        return self.name.rpartition(".")[2].lower() if "." in self.name else ""

    @property
    def stem(self) -> str:
        """Sanitised file name without directories and extension.

        >>> Upload("..\\\\..\\\\my file.jsonl", b"").stem
        'my-file'
        """
        last = re.split(r"[/\\]", self.name)[-1].rpartition(".")[0]
        return re.sub(r"[^\w.-]+", "-", last).strip(".-")[:80] or "upload"


def without_folder(text: object) -> str:
    """Return a text, such as a path or a message, without the temporary directories of uploads.

    >>> without_folder(f"{gettempdir()}/giccs-explorer-a1_b/x7/judgments.csv:3: unknown item")
    'judgments.csv:3: unknown item'
    >>> without_folder("/tmp/giccs-explorer-a1/x7")
    ''
    """
    return FOLDER.sub("", str(text))


def upload_files() -> tuple[dict[str, str], list[Problem]]:
    """Show the upload widgets; return the path of each kind of upload, and problems."""
    paths: dict[str, str] = {}
    problems: list[Problem] = []
    with st.expander(say("page.own_files"), icon=":material/upload_file:"):
        for kind, endings in ENDINGS.items():
            uploaded = st.file_uploader(
                say(f"page.upload_{kind}"),
                type=list(endings),
                accept_multiple_files=kind == "results",
                key=f"upload {kind}",
                help=say(f"page.upload_{kind}_help"),
                max_upload_size=MAX_UPLOAD_MEGABYTES,
            )
            files = uploaded if isinstance(uploaded, list) else [uploaded] if uploaded else []
            path, file_problems = _store_once(kind, files) if files else (None, [])
            paths |= {kind: path} if path else {}
            problems += file_problems
        st.caption(say("page.upload_no_link"))
    return paths, problems


def _store_once(kind: str, files: Sequence[UploadedFile]) -> tuple[str | None, list[Problem]]:
    """Return the path of uploaded files and their problems; each upload is written once."""
    stored = st.session_state.setdefault(FILES_KEY, {})
    file_ids = tuple(file.file_id for file in files)
    if stored.get(kind, (None,))[0] != file_ids:
        stored[kind] = (
            file_ids,
            *_store(kind, [Upload(file.name, file.getvalue()) for file in files]),
        )
    path, problems = stored[kind][1:]
    return path, problems


def _store(kind: str, uploads: Sequence[Upload]) -> tuple[str | None, list[Problem]]:
    if FOLDER_KEY not in st.session_state:
        st.session_state[FOLDER_KEY] = TemporaryDirectory(
            prefix=FOLDER_PREFIX
        )  # deleted with the session
    folder = Path(mkdtemp(dir=st.session_state[FOLDER_KEY].name))
    if kind == "results":
        return str(folder), store_results(uploads, folder)
    try:
        return str(store_file(uploads[0], kind, folder)), []
    except InputError as error:
        return None, list(error.problems)


def store_file(upload: Upload, kind: str, folder: Path) -> Path:
    """Write an uploaded benchmark or judgments file to `folder`; InputError if it is too large."""
    _check(upload, kind)
    rows = upload.content.count(b"\n")
    if rows > MAX_UPLOAD_ROWS:
        message = f"has {rows} lines; expected at most {MAX_UPLOAD_ROWS} (larger files: --data, --judgments)"
        raise InputError(Problem(upload.name, None, message))
    path = folder / f"{upload.stem}.{upload.ending}"
    path.write_bytes(upload.content)
    return path


def store_results(uploads: Sequence[Upload], folder: Path) -> list[Problem]:
    """Write uploaded results to `folder` in the layout of `Store`; return the problems.

    A result is a JSON file of giccs eval with the predictions in a Parquet file of the same name.
    """
    problems: list[Problem] = []
    tables = {upload.stem: upload for upload in uploads if upload.ending == "parquet"}
    for upload in uploads:
        if upload.ending == "parquet":
            continue
        try:
            path = _store_result(upload, folder)
            if table := tables.pop(upload.stem, None):
                _store_predictions(table, path.with_suffix(".parquet"))
        except InputError as error:
            problems += error.problems
    return [*problems, *_unmatched_predictions(tables.values())]


def _store_result(upload: Upload, folder: Path) -> Path:
    from giccs.measures.results import Result, Store

    _check(upload, "results")
    try:
        result = Result.from_document(json.loads(upload.content))
        path = Store(folder).path(result.model, result.task, result.signature)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(Problem(upload.name, None, "is not a result of giccs eval")) from None
    path.write_bytes(upload.content)
    return path


def _store_predictions(upload: Upload, path: Path) -> None:
    from giccs.benchmark.parquet import count_rows

    _check(upload, "results")
    try:
        rows = count_rows(upload.content)
    except (ValueError, OSError):
        raise InputError(Problem(upload.name, None, "is not a valid Parquet file")) from None
    if rows > MAX_UPLOAD_ROWS:
        message = f"has {rows} rows; expected at most {MAX_UPLOAD_ROWS} (larger files: --results)"
        raise InputError(Problem(upload.name, None, message))
    path.write_bytes(upload.content)


def _unmatched_predictions(tables: Iterable[Upload]) -> Iterator[Problem]:
    for table in tables:
        message = "is missing the result of the same name; upload the .json file, too"
        yield Problem(table.name, None, message)


def _check(upload: Upload, kind: str) -> None:
    allowed = ENDINGS[kind]
    if upload.ending not in allowed:
        message = f"unsupported file extension for {kind}; expected one of: {', '.join(allowed)}"
        raise InputError(Problem(upload.name, None, message))
    size = len(upload.content)
    if size > MAX_UPLOAD_MEGABYTES * 1_000_000:
        message = f"has {size // 1_000_000} MB; expected at most {MAX_UPLOAD_MEGABYTES} MB"
        raise InputError(Problem(upload.name, None, message))
