"""Common representation of transcripts, and a reader for rows and objects that contain a dialogue.

A spreadsheet with one row per dialogue has a column for the context or one column per turn, often one for
the target utterance, and one column per candidate. A JSON object has the same parts, some of them lists.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from bws.base.ids import normal_id
from bws.base.problems import InputError, Problem
from bws.files.schema import TEXT, LocatedRecord, Row, Unique
from giccs.benchmark.fields import LEVEL
from giccs.benchmark.items import Candidate
from giccs.preparation.sheet import candidate_id
from giccs.preparation.transcripts.chats import MESSAGE_KEYS, Chat, read_messages
from giccs.preparation.transcripts.names import assign_columns, speaker_roles


@dataclass(frozen=True, slots=True)
class Line:
    """A turn or a part of a turn in a transcript."""

    file: str
    line: int
    dialogue: str
    number: str
    """Number of the turn in its dialogue; empty if turns are not numbered."""
    speaker: str
    text: str
    source: str = ""
    domain: str = ""
    language: str = ""


@dataclass(frozen=True)
class Transcript:
    """Turns of a file in file order."""

    lines: tuple[Line, ...]
    warnings: tuple[Problem, ...] = ()
    """Skipped and suspicious content."""
    stripped: Counter[str] = field(default_factory=Counter)
    """Number of markers removed from the text, by kind."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """Role by speaker name, if the format determines it."""
    candidates: Mapping[str, tuple[Candidate, ...]] = field(default_factory=dict)
    """Candidates by dialogue."""
    unused: Counter[str] = field(default_factory=Counter)
    """Number of values of columns and keys that are not imported."""
    notes: Counter[str] = field(default_factory=Counter)
    """Number of changes to the text, by kind."""
    answers: tuple[Line, ...] = ()
    """Answers to requests, which are the last turns of dialogues of this or another file."""


def stem(file: str) -> str:
    """Return the name of a file without folder and suffixes, for dialogues without an id.

    >>> stem("corpus/w001_pk.trl.gz")
    'w001_pk'
    """
    return PurePath(file).name.partition(".")[0].strip("<>")


CANDIDATE_KEYS: Mapping[str, tuple[str, ...]] = {
    "utterance_id": ("utterance_id", "candidate_id", "id"),
    "text": ("text", "utterance", "candidate", "content"),
    "intended": ("intended", "level"),
}
"""The keys of a candidate that is an object; the first present is used."""
SPEAKER_LABEL = re.compile(r"([^\W\d_][\w .'-]{0,30}?)\s*:\s+(?=\S)")
"""The name of a speaker before a turn, as in ``User: When?``."""
LIKELY_SEPARATORS = ("[SEP]", "</s>", "<br>", "\\n", "||", " | ", " // ")
"""Separators of turns used by other programs; reported, but only split at if requested."""


@dataclass(frozen=True, slots=True)
class DialogueColumns:
    """Columns or keys of the parts of a dialogue."""

    context: tuple[str, ...] = ("turns",)
    """One column with all turns, or one column per turn."""
    target: str = ""
    """Column of the target utterance; empty: the last turn of the context is the target."""
    candidates: tuple[str, ...] = ()
    """One column per candidate, or one column with all candidates."""
    separator: str = ""
    """Separates turns in a single context column and candidates in a single column; empty: none does."""
    user: tuple[str, ...] = ()
    system: tuple[str, ...] = ()
    """Names of speakers in addition to the usual ones, for turns such as ``Guest: Hello.``"""

    @property
    def names(self) -> tuple[str, ...]:
        """All columns: context, target, candidates."""
        return (*self.context, *filter(None, [self.target]), *self.candidates)


class ObjectReader:
    """Reader of the turns and candidates of the objects of a file, with counts of unused keys."""

    def __init__(
        self, file: str, columns: Mapping[str, str], layout: DialogueColumns | None = None
    ) -> None:
        self.file, self.columns = file, columns
        self.layout = layout or DialogueColumns()
        self.lines: list[Line] = []
        self.answers: list[Line] = []
        self.candidates: dict[str, tuple[Candidate, ...]] = {}
        self.unused: Counter[str] = Counter()
        self.notes: Counter[str] = Counter()
        self._warnings: list[Problem] = []
        self._dialogues: list[LocatedRecord[str]] = []
        self._contents: dict[str, tuple[Any, ...]] = {}
        self._problems: list[Problem] = []
        self._unsplit: Counter[str] = Counter()
        self._unknown_labels: Counter[str] = Counter()

    def _found_warnings(self) -> list[Problem]:
        """Return warnings about content that may have been misinterpreted."""
        warnings = list(self._warnings)
        for separator, times in self._unsplit.items():
            message = (
                f"{times} cells contain {separator!r} and are not split; "
                f"use --separator '{separator}' to split them"
            )
            warnings.append(Problem(self.file, None, message))
        if self._unknown_labels:
            labels = ", ".join(self._unknown_labels)
            message = (
                f"labels of unknown speakers before turns are kept ({labels}); "
                "use --user and --system to name the speakers"
            )
            warnings.append(Problem(self.file, None, message))
        return warnings

    def add_turn(self, row: Row, name: str) -> None:
        """Add an object that represents a turn; `name` is the default dialogue id."""
        self._check_id_key(row)
        self.lines.append(self._line(row, row.values, name, {}))
        self._problems += row.problems

    def add_dialogue(self, row: Row, name: str, *, skip_equal: bool = False) -> None:
        """Add an object that represents a dialogue with its candidates; `name` is the default dialogue id.

        skip_equal: whether to count a dialogue that is equal to one of the same id instead of refusing it.
        """
        self._check_id_key(row)
        layout_keys = {*self.layout.names, *([] if self.layout.candidates else ["candidates"])}
        metadata = self._parts(
            row,
            {key: value for key, value in row.values.items() if key not in layout_keys},
            ignore=("turn", "text", "speaker"),
            is_dialogue=True,
        )
        if "dialogue" in metadata and not metadata["dialogue"].strip():
            row.wrong("empty dialogue id; expected one per dialogue")
        dialogue = normal_id(metadata.pop("dialogue", "")) or name
        turns = self._turns(row) or [""]  # A dialogue without turns is reported.
        content = (turns, row.values.get("candidates"), metadata)
        earlier = self._contents.setdefault(dialogue, content)
        is_equal = earlier is not content and earlier == content
        if skip_equal and is_equal and not row.problems:
            self.notes["dialogues equal to an earlier one of the same id left out"] += 1
            return
        self._dialogues.append(LocatedRecord(dialogue, row.location))
        self.lines += [
            self._line(row, turn, dialogue, metadata, str(number))
            for number, turn in enumerate(turns, start=1)
        ]
        self.candidates[dialogue] = self._candidates(row, dialogue)
        self._problems += row.problems

    def add_chat(self, row: Row, chat: Chat, name: str) -> None:
        """Add a conversation of a chat log; `name` is the default dialogue id."""
        self.notes += chat.notes
        turns = []
        for number, message in enumerate(
            read_messages(chat.messages, self.columns, self.notes, self.unused), start=1
        ):
            if message.fault:
                row.wrong(f"message {number}: {message.fault}")
            elif message.text:
                turns.append({"speaker": message.speaker, "text": message.text})
        inner = Row(row.location, chat.values | {"turns": turns})
        inner.problems = row.problems
        if chat.is_answer:
            dialogue = normal_id(str(chat.values["custom_id"]))
            self.answers += [self._line(inner, turn, dialogue, {}) for turn in turns]
            self._problems += inner.problems
        else:
            self.add_dialogue(inner, name, skip_equal=True)

    def add_messages(self, rows: Sequence[Row], name: str) -> None:
        """Add the messages of a conversation, one object each; `name` is the default dialogue id."""
        messages = read_messages(
            [row.values for row in rows], self.columns, self.notes, Counter[str]()
        )
        for row, message in zip(rows, messages, strict=True):
            if message.fault:
                row.wrong(message.fault)
                self._problems += row.problems
            elif message.text:
                values = {k: v for k, v in row.values.items() if k not in MESSAGE_KEYS}
                texts = {"speaker": message.speaker, "text": message.text}
                self.add_turn(Row(row.location, values | texts), name)

    def transcript(
        self, left_out: Iterable[Problem], unused: Counter[str], broken: Iterable[Problem] = ()
    ) -> Transcript:
        """Return the transcript; raise InputError with all problems.

        left_out, unused: warnings about unused keys, and their number of values.
        broken: problems of rows that are not objects.
        """
        unique = Unique[str]("dialogue", lambda name: name)
        if problems := [*broken, *self._problems, *unique.problems(self._dialogues)]:
            raise InputError(sorted(problems, key=lambda problem: problem.line or 0))
        return Transcript(
            tuple(self.lines),
            (*self._found_warnings(), *left_out),
            candidates=self.candidates,
            unused=unused,
            notes=self.notes,
            answers=tuple(self.answers),
        )

    def _check_id_key(self, row: Row) -> None:
        name = self.columns.get("dialogue")
        if name is not None and name not in row.values:
            row.wrong(f"no key {name}; existing keys are {', '.join(row.values)}")

    def _turns(self, row: Row) -> list[Any]:
        context = self._entries(row, self.layout.context)
        while context and _is_blank(context[-1]):
            context.pop()
        while context and _is_blank(context[0]):
            context.pop(0)
        target = row.values.get(self.layout.target) if self.layout.target else None
        if not self.layout.target:
            return self._without_labels(context)
        if _is_blank(target):
            row.wrong(f"{self.layout.target} is empty; expected the target utterance")
        elif context and context[-1] == target:
            message = "the last turn of the context is identical to the target utterance"
            self._warnings.append(row.location.problem(message))
        return self._without_labels([*context, target])

    def _entries(self, row: Row, keys: Sequence[str]) -> list[Any]:
        """Return the values of several keys, or the elements of the value of a single key."""
        if missing := [key for key in keys if key not in row.values]:
            existing_keys = ", ".join(row.values)
            row.wrong(f"no key {', '.join(missing)}; existing keys are {existing_keys}")
            return []
        if len(keys) != 1:
            return [row.values[key] for key in keys]
        value = row.values[keys[0]]
        if isinstance(value, str) and self.layout.separator:
            return self._split(value)
        if value is None or isinstance(value, list):
            return list(value or ())
        row.wrong(f"{keys[0]} is not a list; expected a list of strings or of objects with text")
        return []

    def _split(self, cell: str) -> list[str]:
        parts = [part.strip() for part in cell.split(self.layout.separator)]
        if len(parts) == 1:
            self._unsplit.update([mark for mark in LIKELY_SEPARATORS if mark in cell][:1])
        return [part for part in parts if part]

    def _without_labels(self, turns: list[Any]) -> list[Any]:
        """Return the turns, converting labels to speakers if each turn has the label of a known speaker."""
        labels = [SPEAKER_LABEL.match(turn) for turn in turns if isinstance(turn, str)]
        names = [label[1] for label in labels if label]
        if not names or len(names) < max(2, len(turns) - bool(self.layout.target)):
            return turns
        role_by_name = speaker_roles(names, self.layout.user, self.layout.system)
        if unknown := [name for name in names if name not in role_by_name]:
            self._unknown_labels.update(unknown)
            return turns
        self.notes["speakers taken from the labels before turns"] += len(names)
        return [
            _LabelledTurn(label[1], turn[label.end() :])
            if isinstance(turn, str) and (label := SPEAKER_LABEL.match(turn))
            else turn
            for turn in turns
        ]

    def _line(
        self, row: Row, turn: Any, dialogue: str, metadata: Mapping[str, str], number: str = ""
    ) -> Line:
        fields: dict[str, str] = {}
        if isinstance(turn, _LabelledTurn):
            fields = {"speaker": turn.speaker, "text": turn.text}
        elif isinstance(turn, str):
            fields = {"text": turn}
        elif isinstance(turn, dict):
            fields = self._parts(row, turn)
        if "text" not in fields:
            where = f"turn {number}" if number else f"the object (keys: {', '.join(row.values)})"
            other = "" if number else ", a dialogue with turns, or a conversation of a chat log"
            row.wrong(f"{where} has no text; expected a string or an object with text{other}")
        return Line(
            row.location.file,
            row.location.line or 0,
            normal_id(fields.get("dialogue", "")) or dialogue,
            number or fields.get("turn", ""),
            fields.get("speaker", "").strip(),
            fields.get("text", "").strip(),
            (fields.get("source") or metadata.get("source", "")).strip(),
            (fields.get("domain") or metadata.get("domain", "")).strip(),
            (fields.get("language") or metadata.get("language", "")).strip(),
        )

    def _parts(
        self,
        row: Row,
        values: Mapping[str, Any],
        ignore: tuple[str, ...] = (),
        *,
        is_dialogue: bool = False,
    ) -> dict[str, str]:
        """Return the known parts of an object as text; other keys with a value are counted as unused."""
        named_columns = {part: name for part, name in self.columns.items() if name in values}
        keys = {
            part: key
            for part, key in assign_columns(
                values, named_columns, row_is_dialogue=is_dialogue
            ).items()
            if part not in ignore
        }
        self.unused.update(
            key for key in values if key not in keys.values() and not _is_blank(values[key])
        )
        parts = {part: values[key] for part, key in keys.items() if values[key] is not None}
        for part, value in parts.items():
            if not isinstance(value, str | int):
                row.wrong(f"{keys[part]} is {type(value).__name__}; expected a string")
        return {part: str(value) for part, value in parts.items()}

    def _candidates(self, row: Row, dialogue: str) -> tuple[Candidate, ...]:
        keys = self.layout.candidates
        if not keys and row.values.get("candidates") is not None:
            keys = ("candidates",)
        entries = self._entries(row, keys)
        names = keys if len(keys) > 1 else [f"candidate {n}" for n in range(1, len(entries) + 1)]
        missing = [name for name, entry in zip(names, entries, strict=True) if _is_blank(entry)]
        if missing or (self.layout.candidates and not entries):
            message = f"dialogue {dialogue}: no text for {', '.join(missing) or keys[0]}"
            self._warnings.append(row.location.problem(message))
        candidates = []
        first: dict[tuple[str, str], str] = {}
        for index, (name, entry) in enumerate(zip(names, entries, strict=True)):
            if _is_blank(entry):
                continue
            candidate = self._candidate(row, entry, name, candidate_id(dialogue, index))
            for key in (("text", candidate.text), ("id", candidate.utterance_id)):
                earlier = first.setdefault(key, name)
                if earlier != name:
                    row.wrong(
                        f"{name} repeats the {key[0]} of {earlier}; expected different values"
                    )
            candidates.append(candidate)
        return tuple(candidates)

    def _candidate(self, row: Row, entry: Any, name: str, identity: str) -> Candidate:
        """Return the candidate of a string or an object; `identity` is the default id."""
        if isinstance(entry, str):
            return Candidate(identity, entry.strip())
        if not isinstance(entry, dict):
            row.wrong(f"{name} is {type(entry).__name__}; expected a string or an object")
            return Candidate(identity, "")
        keys = {
            part: next((key for key in known_keys if entry.get(key) is not None), "")
            for part, known_keys in CANDIDATE_KEYS.items()
        }
        self.unused.update(f"candidates.{key}" for key in entry if key not in keys.values())
        if not keys["text"]:
            row.wrong(f"{name} has no text; expected a string or an object with text")
            return Candidate(identity, "")
        inner = Row(row.location, entry)
        text = inner.get(keys["text"], TEXT).strip()
        level = inner.get(keys["intended"], LEVEL) if keys["intended"] else None
        utterance_id = entry.get(keys["utterance_id"])
        if utterance_id is not None and (
            not isinstance(utterance_id, str | int) or not str(utterance_id).strip()
        ):
            inner.wrong(f"{keys['utterance_id']} of {name} is {utterance_id!r}; expected a string")
        row.problems += inner.problems
        return Candidate(
            identity if utterance_id is None else normal_id(str(utterance_id)), text, level
        )


@dataclass(frozen=True, slots=True)
class _LabelledTurn:
    """A turn whose text began with the speaker's name."""

    speaker: str
    text: str


def _is_blank(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())
