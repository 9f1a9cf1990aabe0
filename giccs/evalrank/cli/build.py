"""giccs evalrank build: build ranking data from similarity data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from bws.base.commands import Console, command
from bws.base.options import INPUT, OUTPUT_FOLDER, Choice, Number

if TYPE_CHECKING:
    from bws.base.problems import Problem
    from giccs.evalrank.building import RankingFiles
    from giccs.evalrank.similarity_data import SimilaritySet
    from giccs.evalrank.similarity_formats import Columns


@command(
    "giccs evalrank build",
    example="""
    giccs evalrank build ratings.csv --columns sentence1,sentence2,similarity -o ranking
    giccs evalrank build word_similarity/ --frequent words.txt -o ranking
    giccs evalrank build data/ --preset words -o words
    """,
)
@click.argument("data", type=INPUT, metavar="DATA...", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    required=True,
    type=OUTPUT_FOLDER,
    metavar="FOLDER",
    help="Output folder; must be new or empty.",
)
@click.option(
    "--preset",
    type=Choice(["words", "sentences"]),
    help="Rebuild published data. DATA is one folder with word_similarity/ and word_evalrank/, or"
    " sent_similarity/STS/STSBenchmark/ and sent_similarity/STR/.",
)
@click.option(
    "--top",
    type=Number(0, 1, min_open=True),
    metavar="SHARE",
    help="Share of the pairs of each set used as positives.  [default: 0.25]",
)
@click.option(
    "--columns",
    metavar="TEXT1,TEXT2,SCORE",
    help="Column names of a table.  [default: text1,text2,score or the names of a known data set]",
)
@click.option(
    "--frequent",
    type=INPUT,
    metavar="FILE",
    help="Additional background texts, one per line, most frequent first; text after a tab is ignored. The "
    "first 20,000 are used.",
)
def build(
    console: Console,
    data: Sequence[str],
    output: str,
    preset: str | None,
    top: float | None,
    columns: str | None,
    frequent: str | None,
) -> None:
    """Build ranking data: the most similar pairs of each set, and a background of all texts.

    DATA are files of rated pairs or folders of such files: word word score, STS-Benchmark, SICK, STR, tables
    with a header, benchmarks of giccs. The top pairs are selected per set; if scores are tied at the cut, the
    first pairs in the file are selected. Each pair is written in both directions. Repeated pairs and pairs
    of a text with itself are removed and counted. FOLDER is suitable for giccs eval --data; build.json
    documents the build.
    """
    if preset:
        if len(data) != 1 or top is not None or columns:
            raise click.UsageError(
                "--preset requires exactly one folder, without --top and --columns"
            )
        _build_preset(console, data[0], output, preset, frequent)
        return
    from giccs.evalrank.building import BuildRules, build_ranking_data, read_frequent

    sets = _read_sets(console, data, _parse_columns(columns))
    frequent_texts = read_frequent(frequent) if frequent else []
    rules = BuildRules() if top is None else BuildRules(top)
    _write_files(
        console,
        build_ranking_data(sets, rules, frequent_texts),
        output,
        {"preset": None, "frequent_file": frequent},
    )


def _build_preset(
    console: Console, folder: str, output: str, name: str, frequent: str | None
) -> None:
    from giccs.evalrank.building import build_ranking_data, read_frequent
    from giccs.evalrank.published import PRESETS, compare_with_published, read_sources

    preset = PRESETS[name]
    sets, missing = read_sources(preset, folder)
    console.warn(missing)
    file = frequent or (f"{folder}/{preset.frequent}" if preset.frequent else None)
    frequent_texts = read_frequent(file) if file else []
    built = build_ranking_data(sets, preset.rules, frequent_texts)
    build_info = {
        "preset": name,
        "frequent_file": file,
        "compared": compare_with_published(built, preset, folder),
    }
    _write_files(console, built, output, build_info)


def _read_sets(
    console: Console, data: Sequence[str], columns: Columns | None
) -> list[SimilaritySet]:
    from bws.base.problems import InputError
    from giccs.evalrank.similarity_data import read_similarity

    sets: list[SimilaritySet] = []
    problems: list[Problem] = []
    for source in data:
        try:
            similarity_data = read_similarity(source, columns)
            console.warn(similarity_data.warnings)
            sets += similarity_data.sets
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return sets


def _parse_columns(text: str | None) -> Columns | None:
    from giccs.evalrank.similarity_formats import Columns

    names = [name.strip() for name in text.split(",")] if text is not None else []
    if text is not None and (len(names) != 3 or not all(names)):
        raise click.UsageError(f"--columns is {text!r}; expected three names: TEXT1,TEXT2,SCORE")
    return Columns(*names) if names else None


def _write_files(
    console: Console, built: RankingFiles, output: str, build_info: Mapping[str, Any]
) -> None:
    from dataclasses import replace

    from giccs.evalrank.building import write_ranking_files

    built = replace(built, log={**built.log, **build_info})
    write_ranking_files(built, output)
    console.answer(_format_summary(built.log, output), {**built.log, "output": output})


def _format_summary(log: Mapping[str, Any], output: str) -> str:
    from tabulate import tabulate

    headers = ["set", "pairs", "selected", "cut-off score", "ties excluded"]
    rows = [
        [
            source["name"],
            source["pairs"],
            source["chosen"],
            source["cut"],
            _count_ties_left_out(source),
        ]
        for source in log["sources"]
    ]
    treatment = "kept" if log["rules"]["identical"] else "removed"
    lines = [
        tabulate(rows, headers, intfmt=","),
        "",
        f"{log['pairs']:,} positive pairs, counting both directions; of {log['chosen']:,} selected pairs, "
        f"{log['repeated']:,} repeat another pair and {log['identical']:,} consist of identical texts "
        f"({treatment})",
        f"{log['all_background']:,} background texts, {log['background']:,} of them from the sets",
        *(
            _format_comparison(name, comparison)
            for name, comparison in log.get("compared", {}).items()
        ),
        f"written to {output}",
    ]
    return "\n".join(lines)


def _count_ties_left_out(source: Mapping[str, Any]) -> int:
    n_left_out: int = source["tied_at_cut"] - source["tied_at_cut_chosen"]
    return n_left_out


def _format_comparison(name: str, comparison: Mapping[str, Any]) -> str:
    if comparison["same_bytes"]:
        return f"{name}: identical to the published file"
    return (
        f"{name}: {comparison['equal']:,} of {comparison['there']:,} published lines; "
        f"{comparison['only_there']:,} lines missing, {comparison['only_here']:,} additional lines"
    )
