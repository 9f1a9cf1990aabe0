"""From files of transcripts to dialogues, with everything said that is not taken over."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby, pairwise

from bws.problems import InputError, Problem
from bws.textio import display_name, read_text
from giccs.benchmark.candidates import repeated_candidates
from giccs.benchmark.items import Candidate, Dialogue, Turn
from giccs.benchmark.languages import language_tag, matches
from giccs.preparation.transcripts.names import roles
from giccs.preparation.transcripts.objects import DialogueColumns, Line, Transcript
from giccs.preparation.transcripts.rows import read_dialogue_table, read_json_lines
from giccs.preparation.transcripts.smartkom import HEAD, read_smartkom

__all__ = ["Imported", "import_transcripts"]


@dataclass(frozen=True)
class Imported:
    """Imported dialogues, and what became of the rest."""

    dialogues: tuple[Dialogue, ...]
    warnings: tuple[Problem, ...]
    """What was left out, a problem each with its place."""
    notes: tuple[str, ...]
    """What was done to what was taken over."""
    stripped: Mapping[str, int]
    """Markers taken out of the text, by kind."""
    roles: Mapping[str, str]
    """The speakers' names that became ``user`` or ``system``."""
    counts: Mapping[str, int]
    """Files, dialogues, turns and candidates, and the dialogues left out."""
    unused: Mapping[str, int] = field(default_factory=dict)
    """Columns and keys that were not imported, and how many values each has."""


def import_transcripts(
    paths: Sequence[str | os.PathLike[str]],
    form: str = "auto",
    *,
    columns: Mapping[str, str] | None = None,
    source: str | None = None,
    domain: str | None = None,
    language: str | None = None,
    user: Sequence[str] = (),
    system: Sequence[str] = (),
    layout: DialogueColumns | None = None,
) -> Imported:
    """Read transcripts as dialogues.

    form: one of `giccs.preparation.transcripts.names.FORMATS`; ``auto`` is each file's own.
    columns: names of columns or keys that are not found by themselves, by part.
    source, domain: of dialogues whose transcript tells none.
    language: BCP 47 tag of dialogues whose transcript states none; a transcript in another one is a problem.
    user, system: names of speakers, in addition to the usual ones.
    layout: columns of files (tables or JSON Lines) with one row or object per dialogue; None: a row of a
        table is a turn, and a JSON object with ``turns`` is a dialogue with its candidates.

    Turns without text, dialogues of a single turn, and dialogues that repeat another are left out and
    named in `warnings`. Raises InputError with every problem of every file.
    """
    if layout and form not in ("auto", "table", "jsonl"):
        raise ValueError(f"format {form} has no columns for whole dialogues; table and jsonl have")
    layout = replace(layout, user=tuple(user), system=tuple(system)) if layout else None
    read = _read_all(paths, form, columns or {}, (source, domain, language), layout)
    grouped = _grouped(read)
    known = _known(read, user, system)
    notes = sum((transcript.notes for transcript in read), Counter[str]())
    candidates = {key: value for transcript in read for key, value in transcript.candidates.items()}
    apart: list[Problem] = []
    taken = [
        (lines[0], _dialogue(lines, _turns(lines, notes, apart), known, candidates.get(name, ())))
        for name, lines in grouped.items()
    ]
    if apart:
        raise InputError(apart)
    dialogues, left = _usable(taken)
    warnings = [warning for transcript in read for warning in transcript.warnings]
    warnings += [warning for lines in grouped.values() for warning in _odd(lines)]
    warnings += [*_same_texts(taken), *left, *_unknown(grouped, known)]
    counts = {
        "files": len(read),
        "dialogues": len(dialogues),
        "turns": sum(len(one.turns) for one in dialogues),
        "candidates": sum(len(dialogue.candidates) for dialogue in dialogues),
        "dialogues_left_out": len(left),
    }
    done = tuple(f"{times} {what}" for what, times in notes.items())
    stripped = sum((transcript.stripped for transcript in read), Counter[str]())
    unused = sum((transcript.unused for transcript in read), Counter[str]())
    return Imported(tuple(dialogues), tuple(warnings), done, stripped, known, counts, unused)


def _read_all(
    paths: Sequence[str | os.PathLike[str]],
    form: str,
    columns: Mapping[str, str],
    given: tuple[str | None, str | None, str | None],
    layout: DialogueColumns | None,
) -> list[Transcript]:
    """Return every file's turns; `given` is the source, domain and language where a file states none."""
    read: list[Transcript] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            name = _form_of(path) if form == "auto" else form
            found = _read(path, name, columns, layout)
        except InputError as error:
            problems += error.problems
            continue
        usual = _usual(name, found)
        problems += _wrong_languages(found, given[2])
        parts = (
            of_form if part is None else part for of_form, part in zip(usual, given, strict=True)
        )
        read.append(_told(found, *parts))
    if problems:
        raise InputError(problems)
    return read


def _usual(form: str, found: Transcript) -> tuple[str, str, str]:
    """Return the source, domain and language of a form; a transliteration without SMA is not of SmartKom."""
    if form == "crowdss":
        return "CROWDSS", "restaurant", "de"
    return ("BAS SmartKom", "", "de") if form == "smartkom" and found.roles else ("", "", "")


def _wrong_languages(found: Transcript, option: str | None) -> Iterator[Problem]:
    """Yield stated languages that are no BCP 47 tag, or not the one of the option; each value once."""
    first = {line.language: line for line in reversed(found.lines) if line.language}
    for value, line in first.items():
        try:
            tag = language_tag(value)
        except ValueError as error:
            yield _at(line, f"language: {error}")
            continue
        if option and not matches(option, tag):
            yield _at(line, f"the language is {tag}, but --language is {option}; expected the same")


def _told(found: Transcript, source: str, domain: str, language: str) -> Transcript:
    """Give source, domain and language to the dialogues of which no line tells them."""
    sources = {line.dialogue for line in found.lines if line.source}
    domains = {line.dialogue for line in found.lines if line.domain}
    languages = {line.dialogue for line in found.lines if line.language}
    lines = (
        replace(
            line,
            source=line.source if line.dialogue in sources else source,
            domain=line.domain if line.dialogue in domains else domain,
            language=line.language if line.dialogue in languages else language,
        )
        for line in found.lines
    )
    return replace(found, lines=tuple(lines))


def _read(
    path: str | os.PathLike[str],
    form: str,
    columns: Mapping[str, str],
    layout: DialogueColumns | None,
) -> Transcript:
    if form == "smartkom" and layout:
        message = "is a transliteration; --context, --target and --candidates read other files"
        raise InputError(Problem(display_name(path), None, message))
    if form == "smartkom":
        return read_smartkom(path)
    read = read_json_lines if form == "jsonl" else read_dialogue_table
    return read(path, columns, layout)


def _form_of(path: str | os.PathLike[str]) -> str:
    """Return the form of a file by its ending, or else by how it begins."""
    name = os.fspath(path).lower().removesuffix(".gz")
    for endings, form in (
        ((".jsonl", ".ndjson"), "jsonl"),
        ((".csv", ".tsv"), "table"),
        ((".trl",), "smartkom"),
    ):
        if name.endswith(endings):
            return form
    if name == "-":
        raise InputError(Problem(display_name(path), None, "standard input needs --format"))
    text = read_text(path).lstrip()
    if text.startswith("{"):
        return "jsonl"
    first = next((line for line in text.splitlines() if line[:1] not in ("", ";")), "")
    return "smartkom" if HEAD.match(first) else "table"


def _grouped(read: Iterable[Transcript]) -> dict[str, list[Line]]:
    """Return the lines of each dialogue; one that is in several files is a problem."""
    grouped: dict[str, list[Line]] = defaultdict(list)
    problems = []
    for transcript in read:
        told = set()
        for line in transcript.lines:
            others = grouped[line.dialogue]
            if others and others[0].file != line.file and line.dialogue not in told:
                told.add(line.dialogue)
                message = (
                    f"dialogue {line.dialogue} is also in {others[0].file}; one file has it all"
                )
                problems.append(_at(line, message))
            others.append(line)
    if problems:
        raise InputError(problems)
    return grouped


def _known(
    read: Iterable[Transcript], user: Sequence[str], system: Sequence[str]
) -> dict[str, str]:
    """Return the role of each speaker: as the form tells, by the usual names, or as the caller says."""
    known: dict[str, str] = {}
    for transcript in read:
        known |= transcript.roles
        known |= roles({line.speaker: None for line in transcript.lines}, user, system)
    return known


def _odd(lines: Sequence[Line]) -> Iterator[Problem]:
    for line in lines:
        if not line.text:
            yield _at(line, "the turn has no text and is left out")
    for what, values in (
        ("sources", [line.source for line in lines]),
        ("domains", [line.domain for line in lines]),
        ("languages", [line.language for line in lines]),
    ):
        told = list(dict.fromkeys(filter(None, values)))
        if len(told) > 1:
            message = f"dialogue {lines[0].dialogue} has several {what} ({', '.join(told)})"
            yield _at(lines[0], f"{message}; the first is taken")


def _turns(lines: Sequence[Line], notes: Counter[str], apart: list[Problem]) -> list[Line]:
    """Return the turns of a dialogue in order; rows of one turn that do not stand together go to `apart`."""
    ordered = list(enumerate(lines))
    if all(line.number.isdecimal() for line in lines):
        ordered.sort(key=lambda pair: int(pair[1].number))
        if ordered != list(enumerate(lines)):
            notes["dialogues put into the order of their turn numbers"] += 1
    turns = []
    for _, parts in groupby(ordered, key=lambda pair: (pair[1].number or pair[0], pair[1].speaker)):
        rows = list(parts)
        apart += [
            _at(row, f"turn {row.number} of dialogue {row.dialogue} is also in line {before.line}")
            for (place, before), (after, row) in pairwise(rows)
            if after != place + 1
        ]
        said = [row for _, row in rows if row.text]
        if said:
            turns.append(replace(said[0], text=" ".join(row.text for row in said)))
        if len(said) > 1:
            notes["turns joined of several rows"] += 1
    again = sum(one.speaker == other.speaker != "" for one, other in pairwise(turns))
    if again:
        notes["turns of the speaker of the turn before"] += again
    return turns


def _dialogue(
    lines: Sequence[Line],
    turns: Iterable[Line],
    known: Mapping[str, str],
    candidates: tuple[Candidate, ...],
) -> Dialogue:
    said = tuple(Turn(known.get(turn.speaker, turn.speaker), turn.text) for turn in turns)
    source = next((line.source for line in lines if line.source), "")
    domain = next((line.domain for line in lines if line.domain), "")
    language = next((line.language for line in lines if line.language), "")
    tag = language_tag(language) if language else None
    return Dialogue(lines[0].dialogue, source, domain, said, candidates, language=tag)


def _same_texts(taken: Iterable[tuple[Line, Dialogue]]) -> Iterator[Problem]:
    for line, dialogue in taken:
        for candidate, earlier in repeated_candidates(dialogue) if dialogue.turns else ():
            message = f"candidate {candidate.utterance_id} has the same text as {earlier}"
            yield _at(line, f"dialogue {dialogue.dialogue_id}: {message}")


def _usable(
    taken: Iterable[tuple[Line, Dialogue]],
) -> tuple[list[Dialogue], list[Problem]]:
    """Return the dialogues with two turns or more that repeat none before them, and the rest."""
    dialogues = []
    wrong = []
    first: dict[tuple[str, ...], str] = {}
    for line, dialogue in taken:
        name = dialogue.dialogue_id
        texts = tuple(turn.text for turn in dialogue.turns)
        earlier = first.setdefault(texts, name)
        lost = f" with {len(dialogue.candidates)} candidates" if dialogue.candidates else ""
        if len(texts) < 2:
            wrong.append(
                _at(line, f"dialogue {name} has fewer than two turns and is left out{lost}")
            )
        elif earlier != name:
            wrong.append(_at(line, f"dialogue {name} repeats {earlier} and is left out{lost}"))
        else:
            dialogues.append(dialogue)
    return dialogues, wrong


def _at(line: Line, message: str) -> Problem:
    return Problem(line.file, line.line, message)


def _unknown(grouped: Mapping[str, Sequence[Line]], known: Mapping[str, str]) -> Iterator[Problem]:
    spoken: dict[str, list[Line]] = defaultdict(list)
    for line in chain.from_iterable(grouped.values()):
        if line.speaker and line.speaker not in known:
            spoken[line.speaker].append(line)
    for speaker, lines in spoken.items():
        message = (
            f"{speaker!r} (turns: {len(lines)}) is neither user nor system and stays as it is; "
            "--user or --system tells which"
        )
        yield _at(lines[0], message)
