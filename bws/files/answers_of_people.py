"""Answers of people in files, which are not replaced by simulated answers or those of language models.

An answer is simulated if its annotator has a name of `bws.model_annotators.is_simulated`, or if its comment
is ``simulated``, the comment of every answer of giccs annotate simulate; it is a model's if its annotator
has a name of `bws.model_annotators.is_model`. All others, also those without an annotator, are people's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from bws.base.file_uses import unprotected
from bws.base.problems import InputError, Problem
from bws.files.formats import read_judgments
from bws.files.table import read_table
from bws.model_annotators import SIMULATED_COMMENT, is_model
from bws.records import Judgments

SOURCE_COLUMNS = (("annotator", "comment"), ("WorkerId", "Answer.comment"))
"""Annotator and comment in tables of answers, and in batch results of Mechanical Turk."""
Sources = Iterable[tuple[str, str]]
"""Annotator and comment of each answer; either may be empty."""


def keep_answers_of_people(path: str | os.PathLike[str], sources: Sources) -> None:
    """Raise InputError as `check_replaceable` if none of the answers to be written is people's."""
    answers = list(sources)
    if answers and not any(map(_is_by_people, answers)):
        check_replaceable(path)


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Raise InputError unless answers that are not people's may replace a file.

    They may if the file is missing or empty, or if all its rows can be read and are simulated or of models.
    """
    check_no_answers_of_people(path)
    if not os.path.isfile(path) or os.path.getsize(path) == 0:
        return
    with unprotected():
        sources, is_complete = _sources_in(path)
    if not is_complete or _number_by_people(sources):
        message = (
            "cannot be read as simulated judgments or judgments of a model, and would be lost; "
            "expected another file"
        )
        raise InputError(Problem(os.fspath(path), None, message))


def check_no_answers_of_people(path: str | os.PathLike[str]) -> None:
    """Raise InputError if an existing file contains answers of people, in any format of judgments."""
    if not os.path.isfile(path):
        return
    with unprotected():
        n_answers = _number_by_people(_sources_in(path)[0])
    if n_answers:
        message = (
            f"contains {n_answers} answers of people, which would be lost; expected another file"
        )
        raise InputError(Problem(os.fspath(path), None, message))


def sources_of(judgments: Judgments) -> list[tuple[str, str]]:
    """Return annotator and comment of each judgment."""
    names = [*judgments.annotators.tolist(), ""]
    annotators = [names[index] for index in judgments.annotator_of.tolist()]
    comments = judgments.columns.get("comment", [""] * len(judgments))
    return list(zip(annotators, comments, strict=True))


def _is_by_people(source: tuple[str, str]) -> bool:
    from bws.model_annotators import is_simulated

    annotator, comment = source
    return not (is_simulated(annotator) or is_model(annotator) or comment == SIMULATED_COMMENT)


def _number_by_people(sources: Sources) -> int:
    return sum(map(_is_by_people, sources))


def _sources_in(path: str | os.PathLike[str]) -> tuple[list[tuple[str, str]], bool]:
    """Return the sources of the answers in a file, and whether they are those of all its rows.

    They are read from the valid judgments, or from all rows of a table with annotators and comments.
    """
    judged: list[tuple[str, str]] = []
    try:
        judgments = read_judgments(path, on_invalid="skip")
        judged = sources_of(judgments)
        if not judgments.left_out:
            return judged, True
    except ValueError:  # Other answers, such as conditions, or no answers.
        pass
    try:
        table = read_table(path)
    except InputError:
        return judged, False
    names = [pair for pair in SOURCE_COLUMNS if pair[0] in table.frame.columns]
    if not names:
        return judged, False
    (annotator, comment), *_ = names
    frame = table.frame
    comments = frame[comment] if comment in frame.columns else [""] * len(frame)
    named = [source for source in zip(frame[annotator], comments, strict=True) if source[0]]
    is_read = len(named) == len(frame) and not table.problems
    is_of_answers = comment in frame.columns or frame.is_empty()
    return max(judged, named, key=_number_by_people), is_read and is_of_answers
