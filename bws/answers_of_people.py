"""Answers of people in files, which are not replaced by simulated answers or those of language models.

An answer is simulated if its annotator has a name of `bws.simulation.is_simulated`, or if its comment is
``simulated``, the comment of every answer of mturk-hits simulate; it is a model's if its annotator has a name
of `bws.model_annotators.is_model`. All other answers, also those without an annotator, are people's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from bws.file_uses import unprotected
from bws.model_annotators import is_model
from bws.problems import InputError, Problem
from bws.records import Judgments

__all__ = [
    "SIMULATED_COMMENT",
    "check_no_answers_of_people",
    "keep_answers_of_people",
    "sources_of",
]

SIMULATED_COMMENT = "simulated"
Sources = Iterable[tuple[str, str]]
"""Annotator and comment of each answer; either may be empty."""


def keep_answers_of_people(path: str | os.PathLike[str], sources: Sources) -> None:
    """Raise InputError if none of the answers to be written is people's, but some in the file are."""
    answers = list(sources)
    if answers and not any(map(_is_by_people, answers)):
        check_no_answers_of_people(path)


def check_no_answers_of_people(path: str | os.PathLike[str]) -> None:
    """Raise InputError if an existing file contains answers of people, in any format of judgments."""
    if not os.path.isfile(path):
        return
    with unprotected():
        n_answers = sum(map(_is_by_people, _sources_in(path)))
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
    from bws.simulation import is_simulated

    annotator, comment = source
    return not (is_simulated(annotator) or is_model(annotator) or comment == SIMULATED_COMMENT)


def _sources_in(path: str | os.PathLike[str]) -> Sources:
    """Return the sources of the judgments in a file, or of the rows with an annotator of another table."""
    from bws.files import read_judgments
    from bws.files.table import read_table

    try:
        return sources_of(read_judgments(path, on_invalid="skip"))
    except ValueError:  # Other answers, such as conditions, or no answers.
        pass
    try:
        frame = read_table(path).frame
    except InputError:
        return []
    if "annotator" not in frame.columns:
        return []
    comments = frame["comment"] if "comment" in frame.columns else [""] * len(frame)
    sources = zip(frame["annotator"], comments, strict=True)
    return [source for source in sources if source[0]]
