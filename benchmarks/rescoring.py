"""Reliability of public sets of raw best–worst judgments, with every split.

    python -m benchmarks.rescoring FOLDER [-o docs/background/rescoring.md]

FOLDER contains the files of `SETS`, which are not part of this project. With -o the tables replace the block
`rescoring` of a document. Missing files and unreadable rows are listed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.machine import provenance, replace_block
from bws.base.problems import InputError, Problem, summary
from bws.base.tables import Cell, Column, ResultTable
from bws.components import Generalisability, generalisability
from bws.files import read_judgments
from bws.records import Judgments
from bws.scoring import score
from bws.split_half import Reliability, ReliabilityGroup, average_ranks, correlate, reliability

CHOICE_MODEL = "best-worst-logit"
SEMREL = "https://github.com/semantic-textual-relatedness/Semantic_Relatedness_SemEval2024"
RUDDIT = "https://github.com/hadarishav/Ruddit"


@dataclass(frozen=True)
class PublicSet:
    """A public set of raw judgments."""

    name: str
    file: str
    """Path in the folder of the data, or a pattern of the paths of several files."""
    source: str
    """Origin of the file, as Markdown."""
    terms: str
    """Licence, as stated by the source."""
    published: str = "not verified"
    """Published split-half reliability, with its source; "not verified" if none could be read."""
    note: str = ""


SETS = (
    PublicSet(
        "SemRel Hindi",
        "semrel2024/hi_dev.csv",
        f"[BWS_annotations/hi_dev.csv]({SEMREL})",
        "none stated",
    ),
    PublicSet(
        "SemRel Algerian Arabic",
        "semrel2024/arq_bws.csv",
        f"[BWS_annotations/arq_bws.csv]({SEMREL})",
        "none stated",
    ),
    PublicSet(
        "SemRel Standard Arabic",
        "semrel2024/arb_bws.csv",
        f"[BWS_annotations/arb_bws.csv]({SEMREL})",
        "none stated",
    ),
    PublicSet(
        "Ruddit",
        "ruddit/Ruddit_individual_annotations.csv",
        f"[Dataset/Ruddit_individual_annotations.csv]({RUDDIT})",
        "MIT",
        note="all control comments have the id gold_comment",
    ),
    PublicSet(
        "Hollis, age of acquisition",
        "hollis-age-of-acquisition/*.csv",
        "[samples/aoa_raw_data](https://github.com/haratimo/best-worst-tools)",
        "CC BY-NC-SA 4.0",
        note="each of the 72 people judged all words once, in tuples of their own",
    ),
)
"""Sets whose file and terms were seen."""


@dataclass(frozen=True)
class Rescoring:
    """Reliability of a set."""

    judgments: Judgments
    reliability: Reliability
    components: Generalisability
    pearson: float
    """Correlation of counting scores with those of the choice model on the scale of counting."""
    spearman: float
    model_notes: Sequence[str]


def rescore(judgments: Judgments) -> Rescoring:
    """Score judgments and compute the reliability of counting scores.

    Raises InputError if there are no judgments.
    """
    splits = reliability(judgments)
    counting = score(judgments)
    model = score(judgments, CHOICE_MODEL, scale="counting")
    return Rescoring(
        judgments,
        splits,
        generalisability(judgments.canonical),
        correlate(counting.score, model.score),
        correlate(average_ranks(counting.score), average_ranks(model.score)),
        [note for note in model.notes if note not in counting.notes],
    )


def report(folder: Path, sets: Sequence[PublicSet] = SETS) -> str:
    """Return the tables of all sets and the lists of notes and unreadable rows, as Markdown."""
    outcomes = {each: _outcome(folder, each) for each in sets}
    rescored = {each: outcome.result for each, outcome in outcomes.items() if outcome.result}
    tables = [_set_table(outcomes)]
    if rescored:
        tables += [_size_table(rescored), _split_table(rescored), _summary_table(rescored)]
    parts = [table.text("markdown") for table in tables]
    if notes := [f"- {note}" for each, result in rescored.items() for note in _notes(each, result)]:
        parts.append("\n".join(notes))
    if problems := [problem for outcome in outcomes.values() for problem in outcome.problems]:
        lines = "\n".join(f"    {line}" for line in summary(problems))
        parts.append(f"What cannot be read:\n\n{lines}")
    return "\n\n".join(parts)


@dataclass(frozen=True)
class Outcome:
    """State and figures of a set."""

    state: str
    result: Rescoring | None = None
    problems: Sequence[Problem] = ()
    """Problems of skipped rows, or of a file that cannot be scored."""


def _outcome(folder: Path, each: PublicSet) -> Outcome:
    paths = sorted(folder.glob(each.file))
    if not paths:
        return Outcome(f"missing: expected as `{each.file}`")
    try:
        source = paths[0] if len(paths) == 1 else paths
        judgments = read_judgments(source, on_invalid="skip", merge_variants=True)
        return Outcome("scored", rescore(judgments), _located(judgments.left_out, each))
    except InputError as error:
        return Outcome("cannot be scored, see below", None, _located(error.problems, each))


def _located(problems: Sequence[Problem], each: PublicSet) -> list[Problem]:
    """Return problems with the file's path in the folder."""
    return [replace(problem, file=each.file) for problem in problems]


def _set_table(outcomes: Mapping[PublicSet, Outcome]) -> ResultTable:
    columns = [Column(name, name) for name in ("set", "from", "terms", "state")]
    rows = [(each.name, each.source, each.terms, found.state) for each, found in outcomes.items()]
    return ResultTable(columns, rows)


def _size_table(rescored: Mapping[PublicSet, Rescoring]) -> ResultTable:
    counts = ("items", "K", "tuples", "judgments", "annotators", "skipped rows", "merged spellings")
    columns = [Column("set", "set"), *(Column(name, name, align="right") for name in counts)]
    return ResultTable(columns, [(each.name, *_sizes(result)) for each, result in rescored.items()])


def _sizes(rescoring: Rescoring) -> list[Cell]:
    judgments, variants = rescoring.judgments, rescoring.judgments.variants
    overall = rescoring.reliability.groups[0]
    return [
        overall.items,
        judgments.tuples.k,
        overall.tuples,
        overall.annotations,
        len(judgments.annotators) or "not named",
        judgments.n_left_out,
        variants.n_items - variants.n_distinct if variants else 0,
    ]


def _split_table(rescored: Mapping[PublicSet, Rescoring]) -> ResultTable:
    columns = [Column("set", "set"), Column("split", "split")]
    for name in ("Pearson", "Spearman"):
        columns += [
            Column(name, f"{name} of the halves", ".3f", align="right"),
            Column(f"{name}_full", "Spearman–Brown", ".3f", align="right"),
        ]
    rows: list[Sequence[Cell]] = [
        (each.name, split, *_coefficients(group))
        for each, result in rescored.items()
        for split, group in _splits(result.reliability).items()
    ]
    return ResultTable(columns, rows)


def _coefficients(group: ReliabilityGroup) -> list[float]:
    correlations = (group.pearson, group.spearman)
    return [value for r in correlations for value in (r.mean, r.spearman_brown)]


def _splits(result: Reliability) -> dict[str, ReliabilityGroup]:
    """Return the group of all tuples per split, annotation first."""
    groups = {str(result.signature["split"]): result.groups, **result.splits}
    return {split: parts[0] for split, parts in groups.items()}


def _summary_table(rescored: Mapping[PublicSet, Rescoring]) -> ResultTable:
    columns = [
        Column("set", "set"),
        Column("components", "reliability from variance components, 95 % interval", ".3f"),
        Column("pearson", "counting and choice model: Pearson", ".3f", align="right"),
        Column("spearman", "Spearman", ".3f", align="right"),
        Column("published", "published"),
    ]
    rows = [
        (each.name, result.components.reliability, result.pearson, result.spearman, each.published)
        for each, result in rescored.items()
    ]
    return ResultTable(columns, rows)


def _notes(each: PublicSet, result: Rescoring) -> Iterator[str]:
    """Yield the notes on a set, with the split or estimate that they concern."""
    if each.note:
        yield f"{each.name}: {each.note}"
    for split, group in _splits(result.reliability).items():
        yield from (f"{each.name}, by {split}: {note}" for note in group.notes)
    yield from (f"{each.name}: {note}" for note in result.reliability.notes)
    yield from (f"{each.name}, variance components: {note}" for note in result.components.notes)
    yield from (f"{each.name}, choice model: {note}" for note in result.model_notes)


def main(arguments: list[str] | None = None) -> None:
    """Score the sets of a folder and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rescoring")
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("-o", "--output", type=Path, metavar="DOCUMENT")
    options = parser.parse_args(arguments)
    if not options.folder.is_dir():
        parser.error(f"{options.folder} is not a folder; expected the folder of the data")
    start = time.monotonic()
    tables = report(options.folder)
    text = f"{tables}\n\n{provenance('make rescoring')} {time.monotonic() - start:.0f} s."
    print(text)
    if options.output:
        replace_block(options.output, "rescoring", text)


if __name__ == "__main__":
    main()
