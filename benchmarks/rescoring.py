"""Reliability of public sets of raw best–worst judgments, with every split.

    python -m benchmarks.rescoring FOLDER [-o docs/background/rescoring.md] [--paper paper/rescoring.md]

FOLDER contains the files of `SETS`, which are not part of this project. With -o the tables replace the block
`rescoring` of a document, and the picture is written into the folder ``pictures`` beside its own. Missing
files and unreadable rows are listed. With --paper the tables of the results replace the block
`rescoring-paper` of a document.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.machine import provenance, replace_block
from bws.base.charts import BLUE, GREEN, VERMILION, write_chart
from bws.base.commands import json_ready
from bws.base.problems import InputError, Problem, summary
from bws.base.tables import Cell, Column, ResultTable
from bws.components import Generalisability, generalisability
from bws.files import read_judgments
from bws.records import Judgments
from bws.scoring import score
from bws.split_half import Reliability, ReliabilityGroup, average_ranks, correlate, reliability

if TYPE_CHECKING:
    import altair as alt

CHOICE_MODEL = "best-worst-logit"
SEMREL = "https://github.com/semantic-textual-relatedness/Semantic_Relatedness_SemEval2024"
BWSTOOLS = "https://github.com/markhwhiteii/bwsTools"
PICTURE = "rescoring.svg"
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
    *(
        PublicSet(f"bwsTools {name}", f"bwstools/{name}.csv", f"[{name}]({BWSTOOLS})", "MIT")
        for name in ("vdata", "indiv", "agg")
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


def report(outcomes: Mapping[PublicSet, Outcome]) -> str:
    """Return the tables of all sets, and the lists of sentences, notes and unreadable rows, as Markdown."""
    rescored = {each: outcome.result for each, outcome in outcomes.items() if outcome.result}
    tables = [_set_table(outcomes)]
    if rescored:
        tables += [_size_table(rescored), _split_table(rescored), _summary_table(rescored)]
    parts = [table.text("markdown") for table in tables]
    if rescored:
        parts.append(_sentences(rescored))
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


def outcome_of(folder: Path, each: PublicSet) -> Outcome:
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
        Column("ceiling", "noise ceiling, its root", ".3f"),
        Column("pearson", "counting and choice model: Pearson", ".3f", align="right"),
        Column("spearman", "Spearman", ".3f", align="right"),
        Column("published", "published"),
    ]
    rows = [
        (
            each.name,
            result.components.reliability,
            result.components.root,
            result.pearson,
            result.spearman,
            each.published,
        )
        for each, result in rescored.items()
    ]
    return ResultTable(columns, rows)


SPLITS = {
    "annotation": "the annotations of each tuple",
    "tuple": "the tuples",
    "annotator": "the annotators",
}


def _sentences(rescored: Mapping[PublicSet, Rescoring]) -> str:
    lines = (f"- {_sentence(each, result)}" for each, result in rescored.items())
    return "A sentence for each set:\n\n" + "\n".join(lines)


def _sentence(each: PublicSet, result: Rescoring) -> str:
    """Return the reliability of a set as a sentence for its authors."""
    splits = ", ".join(
        f"{group.pearson.spearman_brown:.3f} if {SPLITS[split]} are split"
        for split, group in _splits(result.reliability).items()
        if not math.isnan(group.pearson.spearman_brown)
    )
    reliability, root = (
        Column("", "", ".3f").text(estimate, "markdown").replace("[–]", "(no interval)")
        for estimate in (result.components.reliability, result.components.root)
    )
    undefined = math.isnan(result.components.reliability.value)
    total = (
        "the reliability that includes all errors is undefined"
        if undefined
        else f"the reliability that includes all errors is {reliability}, so that a model that predicts the "
        f"true scores correlates with these scores by {root}"
    )
    return f"**{each.name}**: reliability (Spearman–Brown, Pearson) is {splits}; {total}."


def picture(rescored: Mapping[PublicSet, Rescoring]) -> alt.TopLevelMixin:
    """Return a chart of the reliability of each set by what is split, and with all errors."""
    import altair as alt

    rows = [
        {"set": each.name, "reliability": group.pearson.spearman_brown, "split": SPLITS[split]}
        for each, result in rescored.items()
        for split, group in _splits(result.reliability).items()
    ]
    components = [
        {"set": each.name, "reliability": value.value, "low": value.low, "high": value.high}
        for each, result in rescored.items()
        for value in (result.components.reliability,)
    ]
    axis = alt.Axis(labelLimit=300)
    base = alt.Chart(alt.Data(values=json_ready(components))).encode(
        y=alt.Y("set:N", sort=[each.name for each in rescored], title=None, axis=axis)
    )
    interval = base.mark_rule(strokeWidth=8, opacity=0.25).encode(
        x=alt.X("low:Q", scale=alt.Scale(zero=False), title="reliability"), x2="high:Q"
    )
    all_errors = base.mark_tick(thickness=3, color="black").encode(x="reliability:Q")
    colours = alt.Scale(domain=list(SPLITS.values()), range=[BLUE, VERMILION, GREEN])
    splits = (
        alt.Chart(alt.Data(values=json_ready(rows)))
        .mark_point(filled=True, size=70)
        .encode(
            y=alt.Y("set:N", sort=[each.name for each in rescored]),
            x="reliability:Q",
            color=alt.Color("split:N", scale=colours, title="split"),
            shape=alt.Shape(
                "split:N", scale=alt.Scale(domain=list(SPLITS.values())), title="split"
            ),
        )
    )
    title = alt.TitleParams(
        "Reliability of public judgments by what is split",
        subtitle="black: all errors, from variance components, with its 95 % interval",
        anchor="start",
    )
    layers: alt.TopLevelMixin = alt.layer(interval, all_errors, splits).properties(
        width=440, title=title
    )
    return layers


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
    parser.add_argument("--paper", type=Path, metavar="DOCUMENT", help="block `rescoring-paper`")
    options = parser.parse_args(arguments)
    if not options.folder.is_dir():
        parser.error(f"{options.folder} is not a folder; expected the folder of the data")
    start = time.monotonic()
    outcomes = {each: outcome_of(options.folder, each) for each in SETS}
    text = f"{report(outcomes)}\n\n{provenance('make rescoring')} {time.monotonic() - start:.0f} s."
    print(text)
    rescored = {each: outcome.result for each, outcome in outcomes.items() if outcome.result}
    if options.paper:
        tables = [_split_table(rescored), _summary_table(rescored)]
        parts = [*(table.text("markdown") for table in tables), _sentences(rescored)]
        replace_block(options.paper, "rescoring-paper", "\n\n".join(parts))
    if options.output:
        write_chart(picture(rescored), options.output.parents[1] / "pictures" / PICTURE)
        replace_block(options.output, "rescoring", text)


if __name__ == "__main__":
    main()
