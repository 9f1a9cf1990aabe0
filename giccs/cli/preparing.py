"""giccs import, select, sheet and candidates: preparation of dialogues for annotation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from bws.base.commands import Console, command
from bws.base.options import INPUT, OUTPUT, SEED, Choice, RenamedOption
from bws.base.problems import InputError, Problem
from giccs.cli.options import language_option, language_option_with_alias
from giccs.preparation.transcripts.names import FORMATS, PART_NAMES

if TYPE_CHECKING:
    from bws.files.schema import LocatedRecord
    from giccs.benchmark.items import Dialogue
    from giccs.preparation.transcripts.importing import ImportResult


def _parse_names(
    ctx: click.Context, parameter: click.Parameter, value: str | None
) -> tuple[str, ...]:
    return tuple(name.strip() for name in (value or "").split(",") if name.strip())


def _parse_columns(
    ctx: click.Context, parameter: click.Parameter, value: str | None
) -> dict[str, str]:
    columns = {}
    for pair in _parse_names(ctx, parameter, value):
        part, _, name = pair.partition("=")
        if part not in PART_NAMES or not name.strip():
            expected = ", ".join(f"{name}=NAME" for name in PART_NAMES)
            raise click.BadParameter(f"unknown column {pair!r} of a turn; expected {expected}")
        columns[part] = name.strip()
    return columns


def _output_option(content: str) -> Callable[[Any], Any]:
    return click.option(
        "-o",
        "--output",
        required=True,
        type=OUTPUT,
        metavar="FILE",
        help=f"{content}; - is standard output.",
    )


def _check_output(console: Console, output: str) -> None:
    if output == "-" and console.as_json:
        raise click.UsageError("-o - and --json both write to standard output; specify a file")


def _report(console: Console, lines: Sequence[str], document: Mapping[str, Any]) -> None:
    """Print a summary."""
    if console.as_json:
        console.answer("", document)
    else:
        console.note("\n".join(lines))


@command(
    "giccs import",
    example="""
    giccs import crowdss.tsv --from crowdss -o restaurant.jsonl
    giccs import cinema/*.trl --domain cinema -o cinema.jsonl
    giccs import chats.csv --columns dialogue=nr,speaker=who,text=said --user Guest -o chats.jsonl
    giccs import chats.jsonl -o dialogues.jsonl
    giccs import requests.jsonl answers.jsonl -o dialogues.jsonl
    giccs import sheet.csv --context before --target last --candidates c1,c2,c3 -o dialogues.jsonl
    """,
)
@click.argument("files", nargs=-1, required=True, type=INPUT, metavar="FILE...")
@click.option(
    "--from",
    "form",
    cls=RenamedOption,
    former_names=["--format"],
    type=Choice(FORMATS),
    default="auto",
    show_default=True,
    help="Format of the transcripts; auto uses the suffix and the beginning of each file.",
)
@_output_option("Dialogues JSONL")
@click.option(
    "--columns",
    callback=_parse_columns,
    metavar="PART=NAME,...",
    help=f"Names of columns or keys that differ from the defaults: {', '.join(PART_NAMES)}.",
)
@click.option(
    "--id",
    "id_column",
    metavar="COLUMN",
    help="Column of the dialogue id; like dialogue=COLUMN above.",
)
@click.option(
    "--context",
    callback=_parse_names,
    metavar="COLUMN,...",
    help="One row per dialogue: column with its turns, or one column per turn.",
)
@click.option(
    "--target",
    metavar="COLUMN",
    help="One row per dialogue: the target utterance.  [default: the last turn of the context]",
)
@click.option(
    "--candidates",
    "candidate_columns",
    callback=_parse_names,
    metavar="COLUMN,...",
    help="One row per dialogue: one column per candidate, or one column with all of them.",
)
@click.option(
    "--separator",
    metavar="TEXT",
    help="Separator of turns, and of candidates, within a cell.  [default: a line break]",
)
@click.option(
    "--user",
    callback=_parse_names,
    metavar="NAME,...",
    help="Names of speakers with the role user.",
)
@click.option(
    "--system",
    callback=_parse_names,
    metavar="NAME,...",
    help="Names of speakers with the role system.",
)
@click.option("--source", metavar="NAME", help="Source of dialogues that state none.")
@click.option("--domain", metavar="NAME", help="Domain of dialogues that state none.")
@language_option
def import_(
    console: Console,
    files: tuple[str, ...],
    form: str,
    output: str,
    columns: dict[str, str],
    id_column: str | None,
    context: tuple[str, ...],
    target: str | None,
    candidate_columns: tuple[str, ...],
    separator: str | None,
    user: tuple[str, ...],
    system: tuple[str, ...],
    source: str | None,
    domain: str | None,
    language: str | None,
) -> None:
    """Import dialogues from transcripts, chat logs, and tables with one row per dialogue.

    jsonl is JSON Lines or a JSON array of dialogues (with their candidates), turns, or conversations with
    language models: messages with roles, ShareGPT, batches of OpenAI with their answers, and similar ones,
    whose system prompts, tool calls and content other than text are left out and counted. table is CSV or TSV
    with one row per turn, with columns recognised by their names, or, with --context, one row per dialogue.
    crowdss is a table of turns with dialogue acts, which are ignored. smartkom is a transliteration of
    SmartKom or Verbmobil, whose markers of noises, pauses, repairs and similar events are removed and
    counted.

    Candidates keep their ids, or get the id of their dialogue with a letter. Columns and keys that are not
    imported are reported with the number of their values. """  # fmt: skip
    from giccs.benchmark.assemble import write_dialogues
    from giccs.preparation.transcripts.importing import import_transcripts
    from giccs.preparation.transcripts.objects import DialogueColumns

    layout = None
    if context or target or candidate_columns:
        layout = DialogueColumns(
            context or ("turns",), target or "", candidate_columns, separator or "\n"
        )
    elif separator is not None:
        raise click.UsageError("--separator requires --context, the column that it separates")
    if id_column:
        columns = columns | {"dialogue": id_column}
    _check_output(console, output)
    try:
        transcripts = import_transcripts(
            files, form, columns=columns, source=source, domain=domain, language=language, user=user,
            system=system, layout=layout,
        )  # fmt: skip
    except InputError:
        raise
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    console.warn(transcripts.warnings)
    if not transcripts.dialogues:
        raise InputError(Problem(files[0], None, "no dialogue with at least two turns"))
    write_dialogues(transcripts.dialogues, output)
    warnings = [str(warning) for warning in transcripts.warnings]
    document = {
        "counts": transcripts.counts,
        "roles": transcripts.roles,
        "stripped": transcripts.stripped,
        "notes": [*transcripts.notes, *warnings],
        "unused": transcripts.unused,
        "warnings": warnings,  # the former key, without the other notes
    }
    _report(console, _import_summary(transcripts), document)


def _import_summary(transcripts: ImportResult) -> list[str]:
    lines = [
        ", ".join(
            f"{n} {count_name.replace('_', ' ')}" for count_name, n in transcripts.counts.items()
        )
    ]
    for role in ("user", "system"):
        names = [name for name, speaker_role in transcripts.roles.items() if speaker_role == role]
        if names:
            lines.append(f"{role}: {', '.join(names)}")
    stripped = sorted(transcripts.stripped.items(), key=lambda pair: (-pair[1], pair[0]))
    if stripped:
        lines.append(f"removed: {', '.join(f'{kind} {n}' for kind, n in stripped)}")
    return [*lines, *transcripts.notes]


@command(
    "giccs build select",
    example="""
    giccs build select dialogues.jsonl -o selected.jsonl --log decisions.jsonl
    giccs build select restaurant.jsonl cinema.jsonl --config selection.toml --seed 7 -o selected.jsonl
    """,
)
@click.argument("files", nargs=-1, required=True, type=INPUT, metavar="DIALOGUES...")
@_output_option("Selected dialogues")
@click.option("--config", type=INPUT, metavar="FILE.toml", help="Rules, as above.")
@click.option("--seed", type=SEED, help="Random seed.  [default: that of the file, or 0]")
@click.option("--log", type=OUTPUT, metavar="FILE", help="Write every decision as JSONL.")
def select(
    console: Console,
    files: tuple[str, ...],
    output: str,
    config: str | None,
    seed: int | None,
    log: str | None,
) -> None:
    """Select dialogues at random, truncate them, and relabel their domains.

    A dialogue is truncated to its first turns and not changed otherwise.

    Without rules, as many dialogues as possible are selected from every source and domain, half of them
    truncated to three turns and half to five. Rules are TOML, with optional keys:

    \b
        seed = 0
        dialogues = 6           # per source and domain
        lengths = [3, 5]        # equal numbers of dialogues of each length
        start = "any"           # or user, system: turns before the first of that speaker are dropped
        last = "any"            # or user, system: speaker of the last turn, the target
        [[take]]                # rules for some dialogues; others are skipped
        source = "CROWDSS"
        domain = ["restaurant"]
        dialogues = 24
        start = "system"
        [relabel]               # the source's label is kept as original_domain
        cinema = "find_cinema"
        [dialogue.w001_pk]      # a single dialogue
        domain = "find_hotel"
        edit = {2 = "New text of turn 2."}
        [dialogue.w002_pk]
        leave_out = "The reason, for the log."
    """
    from dataclasses import replace

    from giccs.benchmark.assemble import repeated_dialogue_warnings, write_dialogues
    from giccs.preparation.selection import select as draw
    from giccs.preparation.selection.decisions import write_log
    from giccs.preparation.selection.rules import SelectionRules, read_rules

    _check_output(console, output)
    rules = read_rules(config) if config else SelectionRules()
    rules = rules if seed is None else replace(rules, seed=seed)
    located = _read(files)
    dialogues = [row.record for row in located]
    console.warn([*repeated_dialogue_warnings(located)])
    try:
        selection = draw(dialogues, rules)
    except ValueError as error:
        rules_source = config or files[0]
        raise InputError(
            [Problem(rules_source, None, line) for line in str(error).split("\n")]
        ) from None
    console.warn([Problem(config or files[0], None, warning) for warning in selection.warnings])
    if log:
        input_files = [*files, *([config] if config else [])]
        settings = {"seed": rules.seed, "rules": config}
        write_log(log, "giccs build select", input_files, settings, selection.decisions)
    if not selection.dialogues:
        raise InputError(
            Problem(files[0], None, "no dialogue was selected; --log writes the reasons")
        )
    write_dialogues(selection.dialogues, output)
    counts = Counter(decision.decision for decision in selection.decisions)
    cells = Counter(
        (dialogue.source, dialogue.domain, len(dialogue.turns)) for dialogue in selection.dialogues
    )
    document = {
        "seed": rules.seed,
        "decisions": counts,
        "cells": [
            {"source": source, "domain": domain, "n_turns": n_turns, "dialogues": number}
            for (source, domain, n_turns), number in sorted(cells.items())
        ],
    }
    lines = [
        f"{number:>4}  {f'{source} / {domain}, ' if source or domain else ''}{n_turns} turns"
        for (source, domain, n_turns), number in sorted(cells.items())
    ]
    decision_counts = ", ".join(f"{number} {decision}" for decision, number in counts.items())
    _report(console, [*lines, f"{decision_counts}; seed {rules.seed}"], document)


def _read(files: Sequence[str]) -> list[LocatedRecord[Dialogue]]:
    from giccs.benchmark.assemble import DIALOGUE_ID, read_located_dialogues

    rows = [row for file in files for row in read_located_dialogues(file, candidates=False)]
    if problems := [*DIALOGUE_ID.problems(rows)]:
        raise InputError(problems)
    return rows


@command(
    "giccs build sheet",
    example="""
    giccs build sheet selected.jsonl -o writers.csv --bom
    """,
)
@click.argument("dialogues", type=INPUT, metavar="DIALOGUES")
@_output_option("The sheet, CSV")
@language_option_with_alias
@click.option(
    "--texts",
    type=INPUT,
    metavar="FILE.toml",
    help="Texts of the sheet in a language other than de and en.",
)
@click.option(
    "--bom", is_flag=True, help="Begin with a byte order mark, which Excel requires for UTF-8."
)
def sheet(
    console: Console,
    dialogues: str,
    output: str,
    language: str | None,
    texts: str | None,
    bom: bool,
) -> None:
    """Write a sheet in which writers enter candidates.

    It has five rows per dialogue, from a paraphrase of the last turn to an unrelated utterance. Writers
    complete the column text. The criterion of each row and the dialogue are in other columns, in the language
    of the dialogues. The TOML file of --texts has the keys language, criteria (1 to 5) and speakers (user,
    system).
    """
    from bws.base.text import write_atomic
    from giccs.benchmark.assemble import read_dialogues
    from giccs.benchmark.languages import required_language
    from giccs.preparation.sheet import (
        check_not_completed,
        default_sheet_texts,
        read_sheet_texts,
    )
    from giccs.preparation.sheet import make_sheet as rows

    _check_output(console, output)
    check_not_completed(output)
    selected = read_dialogues(dialogues, candidates=False)
    tag = required_language(selected, dialogues, language, "the sheet's texts")
    try:
        language_texts = read_sheet_texts(texts, tag) if texts else default_sheet_texts(tag)
    except InputError:
        raise
    except ValueError as error:
        raise InputError(Problem(dialogues, None, str(error))) from None
    write_atomic(output, ("\ufeff" if bom else "") + rows(selected, language_texts))
    document = {"dialogues": len(selected), "rows": 5 * len(selected)}
    _report(console, [f"{5 * len(selected)} rows for {len(selected)} dialogues"], document)


@command(
    "giccs build candidates",
    example="""
    giccs build candidates selected.jsonl --sheet writers.csv -o dialogues.jsonl
    """,
)
@click.argument("dialogues", type=INPUT, metavar="DIALOGUES")
@click.option(
    "--sheet", "filled", required=True, type=INPUT, metavar="FILE", help="The completed sheet."
)
@_output_option("Dialogues with candidates")
@click.option(
    "--candidates",
    "number",
    type=click.IntRange(2, 1000),
    default=5,
    show_default=True,
    metavar="N",
    help="Number of rows per dialogue in the sheet.",
)
@click.option(
    "--seed",
    type=SEED,
    default=0,
    show_default=True,
    help="Seed of the random order, so that the position of a candidate does not reveal its level.",
)
def candidates(
    console: Console, dialogues: str, filled: str, output: str, number: int, seed: int
) -> None:
    """Read candidates from a completed sheet, in random order."""
    from giccs.benchmark.assemble import read_dialogues, write_dialogues
    from giccs.preparation.sheet import add_candidates, read_sheet

    _check_output(console, output)
    file, rows = read_sheet(filled)
    selected = read_dialogues(dialogues, candidates=False)
    completed, warnings = add_candidates(selected, file, rows, number, seed)
    console.warn(warnings)
    write_dialogues(completed, output)
    total = sum(len(dialogue.candidates) for dialogue in completed)
    document = {"dialogues": len(completed), "candidates": total, "seed": seed}
    summary = f"{total} candidates of {len(completed)} dialogues in random order, seed {seed}"
    _report(console, [summary], document)
