"""Import of transcript files as dialogues, with warnings about all content that is not imported."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby, pairwise

from bws.base.problems import InputError, Problem
from bws.base.text import display_name, read_text
from bws.files.dialogue_texts import equal_form
from bws.files.formats import check_distinct
from giccs.benchmark.candidates import repeated_candidates
from giccs.benchmark.items import Candidate, Dialogue, Turn
from giccs.benchmark.languages import language_tag, matches
from giccs.preparation.transcripts.names import speaker_roles
from giccs.preparation.transcripts.objects import DialogueColumns, Line, Transcript
from giccs.preparation.transcripts.rows import read_dialogue_table, read_json
from giccs.preparation.transcripts.smartkom import TURN_HEAD, read_smartkom


@dataclass(frozen=True)
class ImportResult:
    """Imported dialogues, with warnings, notes and counts."""

    dialogues: tuple[Dialogue, ...]
    warnings: tuple[Problem, ...]
    """Excluded content, with file and line."""
    notes: tuple[str, ...]
    """Changes to imported content."""
    stripped: Mapping[str, int]
    """Number of markers removed from the text, by kind."""
    roles: Mapping[str, str]
    """Role (``user`` or ``system``) by speaker name."""
    counts: Mapping[str, int]
    """Numbers of files, dialogues, turns, candidates and excluded dialogues."""
    unused: Mapping[str, int] = field(default_factory=dict)
    """Number of values of columns and keys that were not imported."""


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
) -> ImportResult:
    """Read transcripts as dialogues.

    form: one of `giccs.preparation.transcripts.names.FORMATS`; ``auto`` detects the format of each file.
    columns: names of columns or keys with non-standard names, by part.
    source, domain: defaults for dialogues whose transcript does not state them.
    language: BCP 47 tag of dialogues whose transcript does not state a language; other languages are a
    problem. user, system: names of speakers, in addition to the usual ones.
    layout: columns of files (tables or JSON Lines) with one row or object per dialogue; None: a row of a
        table is a turn, and a JSON object with ``turns`` is a dialogue with its candidates.

    Turns without text, dialogues with a single turn, and dialogues that repeat another are excluded and
    listed in `warnings`. Raises InputError with all problems of all files.
    """
    if layout and form not in ("auto", "table", "jsonl"):
        raise ValueError(f"format {form} has no columns for dialogues; expected table or jsonl")
    check_distinct(paths)
    layout = replace(layout, user=tuple(user), system=tuple(system)) if layout else None
    transcripts = _read_files(paths, form, columns or {}, (source, domain, language), layout)
    transcripts = _join_answers(transcripts)
    grouped = _group_lines(transcripts)
    role_by_speaker = _collect_roles(transcripts, user, system)
    notes = sum((transcript.notes for transcript in transcripts), Counter[str]())
    candidates = {
        key: value for transcript in transcripts for key, value in transcript.candidates.items()
    }
    order_problems: list[Problem] = []
    located_dialogues = [
        (
            lines[0],
            _make_dialogue(
                lines,
                _order_turns(lines, notes, order_problems),
                role_by_speaker,
                candidates.get(name, ()),
            ),
        )
        for name, lines in grouped.items()
    ]
    if order_problems:
        raise InputError(order_problems)
    dialogues, left_out = _split_usable(located_dialogues)
    warnings = [warning for transcript in transcripts for warning in transcript.warnings]
    warnings += [warning for lines in grouped.values() for warning in _line_warnings(lines)]
    warnings += [
        *_repeated_candidate_warnings(located_dialogues),
        *left_out,
        *_unknown_speaker_warnings(grouped, role_by_speaker),
    ]
    counts = {
        "files": len(transcripts),
        "dialogues": len(dialogues),
        "turns": sum(len(dialogue.turns) for dialogue in dialogues),
        "candidates": sum(len(dialogue.candidates) for dialogue in dialogues),
        "dialogues_left_out": len(left_out),
    }
    note_lines = tuple(f"{times} {note}" for note, times in notes.items())
    stripped = sum((transcript.stripped for transcript in transcripts), Counter[str]())
    unused = sum((transcript.unused for transcript in transcripts), Counter[str]())
    return ImportResult(
        tuple(dialogues), tuple(warnings), note_lines, stripped, role_by_speaker, counts, unused
    )


def _read_files(
    paths: Sequence[str | os.PathLike[str]],
    form: str,
    columns: Mapping[str, str],
    metadata: tuple[str | None, str | None, str | None],
    layout: DialogueColumns | None,
) -> list[Transcript]:
    """Return the turns of each file; `metadata` is the default source, domain and language."""
    transcripts: list[Transcript] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            name = _detect_format(path) if form == "auto" else form
            transcript = _read_file(path, name, columns, layout)
        except InputError as error:
            problems += error.problems
            continue
        format_defaults = _format_defaults(name, transcript)
        problems += _language_problems(transcript, metadata[2])
        resolved = (
            format_default if default is None else default
            for format_default, default in zip(format_defaults, metadata, strict=True)
        )
        transcripts.append(_fill_metadata(transcript, *resolved))
    if problems:
        raise InputError(problems)
    return transcripts


def _join_answers(transcripts: Sequence[Transcript]) -> list[Transcript]:
    """Return the transcripts with the answers to requests as last turns of their dialogues."""
    lines = {line.dialogue: line for transcript in transcripts for line in transcript.lines}
    answers: dict[str, list[Line]] = defaultdict(list)
    first_answers: dict[str, Line] = {}
    problems = []
    for answer in chain.from_iterable(transcript.answers for transcript in transcripts):
        if first := first_answers.get(answer.dialogue):
            message = (
                f"the request {answer.dialogue!r} is also answered in line {first.line} of {first.file}; "
                "expected one answer per request"
            )
            problems.append(_line_problem(answer, message))
        elif last := lines.get(answer.dialogue):
            first_answers[answer.dialogue] = answer
            number = str(int(last.number or 0) + 1)
            same = replace(last, number=number, speaker=answer.speaker, text=answer.text)
            answers[answer.dialogue].append(same)
        else:
            message = f"the request {answer.dialogue!r} is in no file; expected its file as well"
            problems.append(_line_problem(answer, message))
    if problems:
        raise InputError(problems)
    return [
        replace(
            transcript,
            lines=tuple(
                each
                for line in transcript.lines
                for each in (
                    line,
                    *(answers[line.dialogue] if lines[line.dialogue] is line else ()),
                )
            ),
        )
        for transcript in transcripts
    ]


def _format_defaults(form: str, transcript: Transcript) -> tuple[str, str, str]:
    """Return the source, domain and language of a format; transliterations without SMA are not from
    SmartKom."""
    if form == "crowdss":
        return "CROWDSS", "restaurant", "de"
    return ("BAS SmartKom", "", "de") if form == "smartkom" and transcript.roles else ("", "", "")


def _language_problems(transcript: Transcript, option: str | None) -> Iterator[Problem]:
    """Yield a problem for each stated language that is not a BCP 47 tag or differs from the option."""
    first = {line.language: line for line in reversed(transcript.lines) if line.language}
    for value, line in first.items():
        try:
            tag = language_tag(value)
        except ValueError as error:
            yield _line_problem(line, f"language: {error}")
            continue
        if option and not matches(option, tag):
            yield _line_problem(
                line, f"the language is {tag}, but --language is {option}; expected the same"
            )


def _fill_metadata(transcript: Transcript, source: str, domain: str, language: str) -> Transcript:
    """Set source, domain and language of the dialogues that do not state them in any line."""
    sources = {line.dialogue for line in transcript.lines if line.source}
    domains = {line.dialogue for line in transcript.lines if line.domain}
    languages = {line.dialogue for line in transcript.lines if line.language}
    lines = (
        replace(
            line,
            source=line.source if line.dialogue in sources else source,
            domain=line.domain if line.dialogue in domains else domain,
            language=line.language if line.dialogue in languages else language,
        )
        for line in transcript.lines
    )
    return replace(transcript, lines=tuple(lines))


def _read_file(
    path: str | os.PathLike[str],
    form: str,
    columns: Mapping[str, str],
    layout: DialogueColumns | None,
) -> Transcript:
    if form == "smartkom" and layout:
        message = (
            "a transliteration; --context, --target and --candidates require a table or JSON Lines"
        )
        raise InputError(Problem(display_name(path), None, message))
    if form == "smartkom":
        return read_smartkom(path)
    read = read_json if form == "jsonl" else read_dialogue_table
    return read(path, columns, layout)


def _detect_format(path: str | os.PathLike[str]) -> str:
    """Return the format of a file, detected by its suffix or by its first line."""
    name = os.fspath(path).lower().removesuffix(".gz")
    for endings, form in (
        ((".jsonl", ".ndjson", ".json"), "jsonl"),
        ((".csv", ".tsv"), "table"),
        ((".trl",), "smartkom"),
    ):
        if name.endswith(endings):
            return form
    if name == "-":
        raise InputError(Problem(display_name(path), None, "standard input needs --format"))
    text = read_text(path).lstrip()
    if text.startswith(("{", "[")):
        return "jsonl"
    first = next((line for line in text.splitlines() if line[:1] not in ("", ";")), "")
    return "smartkom" if TURN_HEAD.match(first) else "table"


def _group_lines(transcripts: Iterable[Transcript]) -> dict[str, list[Line]]:
    """Return the lines of each dialogue; raise InputError for dialogues in several files."""
    grouped: dict[str, list[Line]] = defaultdict(list)
    problems = []
    for transcript in transcripts:
        reported_dialogues = set()
        for line in transcript.lines:
            dialogue_lines = grouped[line.dialogue]
            if (
                dialogue_lines
                and dialogue_lines[0].file != line.file
                and line.dialogue not in reported_dialogues
            ):
                reported_dialogues.add(line.dialogue)
                other_file = dialogue_lines[0].file
                message = (
                    f"dialogue {line.dialogue} is also in {other_file}; expected in one file; dialogues "
                    "without an id are named after their file: rename a file if its name is repeated"
                )
                problems.append(_line_problem(line, message))
            dialogue_lines.append(line)
    if problems:
        raise InputError(problems)
    return grouped


def _collect_roles(
    transcripts: Iterable[Transcript], user: Sequence[str], system: Sequence[str]
) -> dict[str, str]:
    """Return the role of each speaker, by the format, the usual names or the arguments."""
    role_by_speaker: dict[str, str] = {}
    for transcript in transcripts:
        role_by_speaker |= transcript.roles
        role_by_speaker |= speaker_roles(
            {line.speaker: None for line in transcript.lines}, user, system
        )
    return role_by_speaker


def _line_warnings(lines: Sequence[Line]) -> Iterator[Problem]:
    for line in lines:
        if not line.text:
            yield _line_problem(line, "turn without text skipped")
    for field_name, values in (
        ("sources", [line.source for line in lines]),
        ("domains", [line.domain for line in lines]),
        ("languages", [line.language for line in lines]),
    ):
        stated_values = list(dict.fromkeys(filter(None, values)))
        if len(stated_values) > 1:
            message = f"dialogue {lines[0].dialogue} has several {field_name} ({', '.join(stated_values)})"
            yield _line_problem(lines[0], f"{message}; the first is used")


def _order_turns(
    lines: Sequence[Line], notes: Counter[str], order_problems: list[Problem]
) -> list[Line]:
    """Return the turns of a dialogue in order; non-adjacent rows of a turn are added to `order_problems`."""
    ordered = list(enumerate(lines))
    if all(line.number.isdecimal() for line in lines):
        ordered.sort(key=lambda pair: int(pair[1].number))
        if ordered != list(enumerate(lines)):
            notes["dialogues sorted by turn number"] += 1
    turns = []
    for _, parts in groupby(ordered, key=lambda pair: (pair[1].number or pair[0], pair[1].speaker)):
        rows = list(parts)
        order_problems += [
            _line_problem(
                row, f"turn {row.number} of dialogue {row.dialogue} is also in line {before.line}"
            )
            for (index, before), (after, row) in pairwise(rows)
            if after != index + 1
        ]
        rows_with_text = [row for _, row in rows if row.text]
        if rows_with_text:
            turns.append(
                replace(rows_with_text[0], text=" ".join(row.text for row in rows_with_text))
            )
        if len(rows_with_text) > 1:
            notes["turns joined from several rows"] += 1
    n_same_speaker = sum(
        turn.speaker == next_turn.speaker != "" for turn, next_turn in pairwise(turns)
    )
    if n_same_speaker:
        notes["turns with the same speaker as the previous turn"] += n_same_speaker
    return turns


def _make_dialogue(
    lines: Sequence[Line],
    turns: Iterable[Line],
    role_by_speaker: Mapping[str, str],
    candidates: tuple[Candidate, ...],
) -> Dialogue:
    dialogue_turns = tuple(
        Turn(role_by_speaker.get(turn.speaker, turn.speaker), turn.text) for turn in turns
    )
    source = next((line.source for line in lines if line.source), "")
    domain = next((line.domain for line in lines if line.domain), "")
    language = next((line.language for line in lines if line.language), "")
    tag = language_tag(language) if language else None
    return Dialogue(lines[0].dialogue, source, domain, dialogue_turns, candidates, language=tag)


def _repeated_candidate_warnings(
    located_dialogues: Iterable[tuple[Line, Dialogue]],
) -> Iterator[Problem]:
    for line, dialogue in located_dialogues:
        for candidate, earlier in repeated_candidates(dialogue) if dialogue.turns else ():
            message = f"candidate {candidate.utterance_id} has the same text as {earlier}"
            yield _line_problem(line, f"dialogue {dialogue.dialogue_id}: {message}")


def _split_usable(
    located_dialogues: Iterable[tuple[Line, Dialogue]],
) -> tuple[list[Dialogue], list[Problem]]:
    """Return the dialogues with at least two turns that repeat no earlier dialogue, and warnings for the
    others."""
    dialogues = []
    left_out = []
    first: dict[tuple[str, ...], str] = {}
    for line, dialogue in located_dialogues:
        name = dialogue.dialogue_id
        texts = tuple(equal_form(turn.text) for turn in dialogue.turns)
        earlier = first.setdefault(texts, name)
        candidate_note = (
            f" with {len(dialogue.candidates)} candidates" if dialogue.candidates else ""
        )
        if len(texts) < 2:
            left_out.append(
                _line_problem(
                    line,
                    f"dialogue {name} has fewer than two turns; skipped{candidate_note}",
                )
            )
        elif earlier != name:
            left_out.append(
                _line_problem(line, f"dialogue {name} repeats {earlier}; skipped{candidate_note}")
            )
        else:
            dialogues.append(dialogue)
    return dialogues, left_out


def _line_problem(line: Line, message: str) -> Problem:
    return Problem(line.file, line.line, message)


def _unknown_speaker_warnings(
    grouped: Mapping[str, Sequence[Line]], role_by_speaker: Mapping[str, str]
) -> Iterator[Problem]:
    lines_by_speaker: dict[str, list[Line]] = defaultdict(list)
    for line in chain.from_iterable(grouped.values()):
        if line.speaker and line.speaker not in role_by_speaker:
            lines_by_speaker[line.speaker].append(line)
    for speaker, lines in lines_by_speaker.items():
        message = (
            f"{speaker!r} (turns: {len(lines)}) has no known role and is kept as the speaker name; "
            "expected --user or --system with this name"
        )
        yield _line_problem(lines[0], message)
