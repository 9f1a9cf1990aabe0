"""What did a person drop on the page, and where is it kept while they stay?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from app.labels import say
from app.uploads import ENDINGS, FOLDER_PREFIX, MOST_MEGABYTES, Upload, keep, keep_results
from bws.problems import InputError, Problem

__all__ = ["dropped"]

FOLDER, KEPT = "uploads: folder", "uploads: kept"


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
