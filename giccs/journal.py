"""Journals: answers of a model on disk as they arrive, so that an interrupted command can be resumed.

A journal is a file of JSON Lines beside the output. Its first line is the signature: all settings that
determine the answers. Each other line is an answer with its id.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from bws.base.commands import json_ready
from bws.base.problems import InputError, Problem
from bws.base.text import read_bytes, write_atomic

MAX_VALUE_LENGTH = 40
"""Maximum number of characters of a value in a message."""
Answer = TypeVar("Answer")


@dataclass(slots=True)
class Journal(Generic[Answer]):
    """Answers by id. Raises InputError if the file has another signature or is not a journal."""

    path: Path
    signature: Mapping[str, Any]
    parse: Callable[[Any], Answer]
    """Function from the JSON of an answer to the answer; an exception means that it is invalid."""
    as_json: Callable[[Answer], Any] = lambda answer: answer
    answers: dict[str, Answer] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if self.path.exists():
            self._read()
        else:
            write_atomic(self.path, _line({"signature": self.signature}))

    def add(self, answers: Iterable[tuple[str, Answer]]) -> None:
        """Store ids and answers; flushed to disk before the return."""
        rows = dict(answers)
        documents = ((uid, self.as_json(answer)) for uid, answer in rows.items())
        lines = "".join(_line({"uid": uid, "written": document}) for uid, document in documents)
        with open(self.path, "ab") as file:
            file.write(lines.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        self.answers |= rows

    def _read(self) -> None:
        data = read_bytes(self.path)
        complete_lines = data[: data.rfind(b"\n") + 1]
        try:
            header, *lines = [json.loads(line) for line in complete_lines.splitlines()]
            signature = header["signature"]
            self.answers = {line["uid"]: self.parse(line["written"]) for line in lines}
        except (ValueError, KeyError, TypeError, IndexError, RecursionError):
            raise self._refused("not a journal of answers; remove it, or use --force") from None
        if changed := _changed(signature, json_ready(self.signature)):
            raise self._refused(
                f"contains answers generated with other settings: {changed}; choose another "
                "output, or use --force to generate all answers again"
            )
        if len(complete_lines) < len(data):  # The last line of an interrupted program.
            os.truncate(self.path, len(complete_lines))

    def _refused(self, message: str) -> InputError:
        return InputError(Problem(str(self.path), None, message))


def open_journal(
    output: str,
    signature: Mapping[str, Any],
    parse: Callable[[Any], Answer],
    as_json: Callable[[Answer], Any] = lambda answer: answer,
    *,
    force: bool,
) -> Journal[Answer]:
    """Return the journal beside an output file, named ``OUTPUT.jsonl``.

    force: begin a new journal. Raises InputError for an output without its journal, which may be of another
    origin, and for a journal of other settings.
    """
    path = Path(f"{output}.jsonl")
    if force:
        path.unlink(missing_ok=True)
    elif Path(output).exists() and not path.exists():
        message = f"exists without its journal {path.name}; choose another file, or use --force"
        raise InputError(Problem(output, None, message))
    return Journal(path, signature, parse, as_json)


def _line(document: Mapping[str, Any]) -> str:
    return json.dumps(json_ready(document), ensure_ascii=False) + "\n"


def _changed(old: Any, new: Mapping[str, Any]) -> str:
    """Return the differences between two signatures: ``model was a, is b``."""
    before = old if isinstance(old, Mapping) else {}
    return ", ".join(
        f"{name} was {_short(before.get(name))}, is {_short(new.get(name))}"
        for name in dict.fromkeys([*before, *new])
        if before.get(name) != new.get(name)
    )


def _short(value: Any) -> str:
    """Return a value for a message; digests are shortened."""
    text = repr(value)
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[:MAX_VALUE_LENGTH]}…"
