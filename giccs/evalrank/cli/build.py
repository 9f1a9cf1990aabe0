"""giccs-evalrank build: ranking data out of similarity data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from bws.command import Console, command
from bws.options import MAX_COUNT, Number

if TYPE_CHECKING:
    from bws.problems import Problem
    from giccs.evalrank.building import Built
    from giccs.evalrank.similarity_data import SimilaritySet
    from giccs.evalrank.similarity_formats import Columns

__all__ = ["build"]

FREQUENT_COUNT = 20_000


@command(
    "giccs-evalrank build",
    example="""
    giccs-evalrank build ratings.csv --columns sentence1,sentence2,similarity -o ranking
    giccs-evalrank build word_similarity/ --lowercase --frequent words.txt -o ranking
    giccs-evalrank build data/ --preset words -o words
    """,
)
@click.argument("data", metavar="DATA...", nargs=-1, required=True)
@click.option(
    "-o", "--output", required=True, metavar="FOLDER", help="A new folder, or an empty one."
)
@click.option(
    "--preset",
    type=click.Choice(["words", "sentences"]),
    help="Rebuild what was published; DATA is one folder with word_similarity/ and word_evalrank/, or"
    " sent_similarity/STS/STSBenchmark/ and sent_similarity/STR/.",
)
@click.option(
    "--top",
    type=Number(0, 1, min_open=True),
    metavar="SHARE",
    help="Share of the pairs of each set that are positive.  [default: 0.25]",
)
@click.option("--lowercase", is_flag=True, help="Write all texts in lower case.")
@click.option(
    "--columns",
    metavar="TEXT1,TEXT2,SCORE",
    help="What a table's columns are called.  [default: text1,text2,score and what is known of others]",
)
@click.option(
    "--frequent",
    metavar="FILE",
    help="More background: a text a line, the most frequent first; a tab and a count may follow.",
)
@click.option(
    "--frequent-count",
    type=click.IntRange(1, MAX_COUNT),
    default=FREQUENT_COUNT,
    show_default=True,
    metavar="N",
    help="At most so many of them.",
)
def build(
    console: Console,
    data: Sequence[str],
    output: str,
    preset: str | None,
    top: float | None,
    lowercase: bool,
    columns: str | None,
    frequent: str | None,
    frequent_count: int,
) -> None:
    """Make ranking data: the most similar pairs of each set, before a background of all texts.

    DATA are files of rated pairs, or folders of them: word word score, STS-Benchmark, SICK, STR, tables
    with a header, benchmarks of giccs. Each set gives its own top pairs; where scores tie at the cut, those
    that stand first in the file. Each pair is there in both directions. Pairs that repeat, and pairs of a
    text with itself, go and are counted. FOLDER is what giccs-eval --data takes, with build.json to say how
    it was made.
    """
    if preset:
        if len(data) != 1 or top is not None or lowercase or columns:
            raise click.UsageError(
                "--preset takes one folder, and no --top, --lowercase or --columns"
            )
        _preset(console, data[0], output, preset, frequent, frequent_count)
        return
    from giccs.evalrank.building import Rules, read_frequent
    from giccs.evalrank.building import build as built_of

    sets = _sets(console, data, _columns(columns))
    more = read_frequent(frequent, frequent_count) if frequent else []
    rules = Rules(lowercase=lowercase) if top is None else Rules(top, lowercase)
    _write(
        console, built_of(sets, rules, more), output, {"preset": None, "frequent_file": frequent}
    )


def _preset(
    console: Console, folder: str, output: str, name: str, frequent: str | None, count: int
) -> None:
    from giccs.evalrank.building import build as built_of
    from giccs.evalrank.building import read_frequent
    from giccs.evalrank.published import PRESETS, compared, sources

    preset = PRESETS[name]
    sets, missing = sources(preset, folder)
    console.warn(missing)
    file = frequent or (f"{folder}/{preset.frequent}" if preset.frequent else None)
    more = read_frequent(file, count) if file else []
    made = built_of(sets, preset.rules, more)
    how = {"preset": name, "frequent_file": file, "compared": compared(made, preset, folder)}
    _write(console, made, output, how)


def _sets(console: Console, data: Sequence[str], columns: Columns | None) -> list[SimilaritySet]:
    from bws.problems import InputError
    from giccs.evalrank.similarity_data import read_similarity

    sets: list[SimilaritySet] = []
    problems: list[Problem] = []
    for one in data:
        try:
            found = read_similarity(one, columns)
            console.warn(found.warnings)
            sets += found.sets
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return sets


def _columns(written: str | None) -> Columns | None:
    from giccs.evalrank.similarity_formats import Columns

    names = [name.strip() for name in written.split(",")] if written is not None else []
    if written is not None and (len(names) != 3 or not all(names)):
        raise click.UsageError(
            f"--columns is {written!r}; it must be three names: TEXT1,TEXT2,SCORE"
        )
    return Columns(*names) if names else None


def _write(console: Console, built: Built, output: str, how: Mapping[str, Any]) -> None:
    from dataclasses import replace

    from giccs.evalrank.building import write_built

    built = replace(built, log={**built.log, **how})
    write_built(built, output)
    console.answer(_told(built.log, output), {**built.log, "output": output})


def _told(log: Mapping[str, Any], output: str) -> str:
    from tabulate import tabulate

    headers = ["set", "pairs", "taken", "score of the last", "ties left out"]
    rows = [
        [one["name"], one["pairs"], one["chosen"], one["cut"], _ties_left(one)]
        for one in log["sources"]
    ]
    what = "kept" if log["rules"]["identical"] else "left out"
    lines = [
        tabulate(rows, headers, intfmt=","),
        "",
        f"{log['pairs']:,} positive pairs, both directions counted; of {log['chosen']:,} that were taken, "
        f"{log['repeated']:,} repeat another and {log['identical']:,} are of a text with itself ({what})",
        f"{log['all_background']:,} background texts, {log['background']:,} of them from the sets",
        *(_likeness(name, one) for name, one in log.get("compared", {}).items()),
        f"written to {output}",
    ]
    return "\n".join(lines)


def _ties_left(one: Mapping[str, Any]) -> int:
    left: int = one["tied_at_cut"] - one["tied_at_cut_chosen"]
    return left


def _likeness(name: str, one: Mapping[str, Any]) -> str:
    if one["same_bytes"]:
        return f"{name} is the published file, byte by byte"
    return (
        f"{name}: {one['equal']:,} of {one['there']:,} published lines, {one['only_there']:,} are not here, "
        f"{one['only_here']:,} are only here"
    )
