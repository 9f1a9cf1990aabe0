"""Messages on the page: problems with files, and packages that are missing."""

from __future__ import annotations

import re
from collections.abc import Sequence

import streamlit as st

from app.explorer.labels import literal, say
from app.explorer.uploads import FOLDER_PREFIX
from bws.problems import Problem

__all__ = ["tell_missing", "tell_problems"]

PROBLEMS_SHOWN = 10
UPLOADED = re.compile(rf"\S*{FOLDER_PREFIX}\w+/\w+/")
"""The folder of an uploaded file: its own name says more."""


def tell_problems(what: str, problems: Sequence[Problem]) -> None:
    """Show a sentence and the first problems below it, what they quote as it is."""
    lines = [literal(UPLOADED.sub("", str(problem))) for problem in problems[:PROBLEMS_SHOWN]]
    more = len(problems) - len(lines)
    st.error("\n\n".join([what, *lines, *([say("page.more_problems", n=more)] if more else [])]))


def tell_missing(what: str, needs: str, extra: str) -> None:
    """Say that a part of the page needs a package that is not there: ``spaCy``, of the extra ``stats``."""
    command = literal(f"pip install 'giccs[{extra}]'")
    st.info(say("page.missing_extra", what=what, needs=needs, command=command))
