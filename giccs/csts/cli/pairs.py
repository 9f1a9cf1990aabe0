"""giccs csts pairs: candidate sentence pairs from captions."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from bws.base.commands import Console, command
from bws.base.options import INPUT, MAX_COUNT, MODEL, OUTPUT, SEED, Choice, Number, RenamedOption
from giccs.cli.remarks import unknown_token_warning
from giccs.csts.mining.thresholds import PRESETS, Preset

if TYPE_CHECKING:
    from giccs.csts.mining.candidates import Candidates, Tally
    from giccs.csts.mining.captions import Captions
    from giccs.csts.mining.embeddings import Matrix


@command(
    "giccs csts pairs",
    example="""
    giccs csts pairs captions.jsonl --embeddings images.npy --model package:minilm --pairs 1000
    giccs csts pairs captions.csv --model package:minilm --preset flickr30k --neighbours 10
    giccs csts pairs captions.csv --model package:minilm --min-distance 0 --max-distance 0.6
    """,
)
@click.argument("captions_file", type=INPUT, metavar="CAPTIONS")
@click.option(
    "--embeddings",
    "source_file",
    type=INPUT,
    metavar="E.npy",
    help="Embeddings of the sources (images), one row per source in the order of first appearance "
    "in CAPTIONS.  [default: mean of the embeddings of a source's captions]",
)
@click.option(
    "--model",
    "model_name",
    type=MODEL,
    metavar="MODEL",
    help="Encoder of the captions, named as for giccs eval; for d_text.",
)
@click.option(
    "--caption-embeddings",
    "text_file",
    type=INPUT,
    metavar="T.npy",
    help="Embeddings of the captions, one row per caption in the order of CAPTIONS; instead of --model.",
)
@click.option(
    "--preset",
    type=Choice(list(PRESETS)),
    default="coco",
    show_default=True,
    help="Column of the paper's Table 6: K 64 or 128, shared words at most 0.12 or 0.2, distance "
    "at least 0.4, ratio at least 0.7, length at least 50 or 48. The next five options "
    "override single values.",
)
@click.option(
    "--neighbours",
    type=click.IntRange(1, MAX_COUNT),
    metavar="K",
    help="Number of nearest sources per source.",
)
@click.option(
    "--max-iou",
    "iou_at_most",
    cls=RenamedOption,
    former_names=["--iou-at-most"],
    type=Number(0, 1),
    metavar="X",
    help="Maximum share of common words.",
)
@click.option(
    "--min-distance",
    "distance_at_least",
    cls=RenamedOption,
    former_names=["--distance-at-least"],
    type=Number(0, 2),
    metavar="X",
    help="Minimum of 1 - cosine of the captions' embeddings (d_text).",
)
@click.option(
    "--min-ratio",
    "ratio_at_least",
    cls=RenamedOption,
    former_names=["--ratio-at-least"],
    type=Number(0, 1),
    metavar="X",
    help="Minimum ratio of the numbers of words, shorter to longer.",
)
@click.option(
    "--min-length",
    "length_at_least",
    cls=RenamedOption,
    former_names=["--length-at-least"],
    type=click.IntRange(0, MAX_COUNT),
    metavar="N",
    help="Minimum number of characters of the shorter caption.",
)
@click.option(
    "--max-distance",
    "distance_at_most",
    cls=RenamedOption,
    former_names=["--distance-at-most"],
    type=Number(0, 2),
    metavar="X",
    help="Maximum of d_text. Not in Table 6; section 2.2.1 corresponds to 0.6 with --min-distance 0.",
)
@click.option(
    "--pairs",
    "number",
    type=click.IntRange(1, MAX_COUNT),
    metavar="N",
    help="Sample N of the pairs.",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of the sample.")
@click.option(
    "-o",
    "--output",
    default="pairs.csv",
    show_default=True,
    type=OUTPUT,
    metavar="FILE",
    help="CSV: sentence1, sentence2, source1, source2, iou, d_text, ratio, length.",
)
def pairs(
    console: Console,
    captions_file: str,
    source_file: str | None,
    model_name: str | None,
    text_file: str | None,
    preset: str,
    neighbours: int | None,
    number: int | None,
    seed: int,
    output: str,
    **thresholds: float | None,
) -> None:
    """Find pairs of captions that are suitable for writing conditions.

    CAPTIONS is JSON Lines of {"source_id", "captions": [...]}, or a table with the columns source_id and
    caption. Each caption of a source is paired with each caption of its nearest sources. The pairs are then
    filtered by shared words, distance, word ratio and length. Stop words are spaCy's English ones.
    """
    from giccs.csts.mining.candidates import Tally, mine, sampled, write_pairs
    from giccs.csts.mining.captions import read_captions

    if (model_name is None) == (text_file is None):
        raise click.UsageError("specify either --model or --caption-embeddings, for d_text")
    if output == "-" or output.endswith(".gz"):
        raise click.UsageError("-o must name a CSV file; it is written incrementally")
    applied_preset = _apply_preset(preset, neighbours, thresholds)
    captions = read_captions(captions_file)
    console.warn(captions.warnings)
    texts = _text_units(console, captions, model_name, text_file)
    k, candidates = _candidates(console, captions, texts, source_file, applied_preset.k)
    tally = Tally()
    chunks = mine(candidates, applied_preset.thresholds, tally, console.progress)
    n_written = write_pairs(
        output, candidates, [sampled(chunks, number, seed)] if number else chunks
    )
    if number and n_written < number:
        console.note(f"only {n_written:,} pairs exist; {number:,} were requested")
    _answer(console, applied_preset, k, candidates, tally, n_written, output)


def _apply_preset(preset: str, k: int | None, thresholds: dict[str, float | None]) -> Preset:
    table = PRESETS[preset]
    overrides: dict[str, Any] = {
        name: value for name, value in thresholds.items() if value is not None
    }
    try:
        return replace(table, k=k or table.k, thresholds=replace(table.thresholds, **overrides))
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _text_units(
    console: Console, captions: Captions, model_name: str | None, text_file: str | None
) -> Matrix:
    from giccs.csts.mining.embeddings import encoded, read_array, units_of

    if text_file is not None:
        vectors = read_array(text_file, captions.in_file, "caption")[captions.caption_indices]
    else:
        from giccs.models import open_model

        model = open_model(str(model_name))
        with unknown_token_warning(console, model.name, captions.file):
            vectors = encoded(model, captions.texts, console.progress)
    names = [f"line {line} of {captions.file}" for line in captions.lines.tolist()]
    return units_of(vectors, text_file or str(model_name), names)


def _candidates(
    console: Console, captions: Captions, texts: Matrix, source_file: str | None, k: int
) -> tuple[int, Candidates]:
    """Return the number of neighbours per source, and the candidates."""
    from giccs.csts.mining.candidates import Candidates
    from giccs.csts.mining.embeddings import read_array, source_means, units_of
    from giccs.csts.mining.filters import bags_of, english_stop_words
    from giccs.csts.mining.neighbours import nearest, source_pairs

    if source_file is None:
        console.note("The embedding of a source is the mean of those of its captions.")
        vectors = source_means(texts, captions)
    else:
        vectors = read_array(source_file, len(captions.sources), "source")
    units = units_of(vectors, source_file or captions.file, captions.sources)
    bags = bags_of(captions.texts, english_stop_words(), console.progress)
    neighbours = nearest(units, k, console.progress)
    return neighbours.shape[1], Candidates(captions, texts, bags, *source_pairs(neighbours))


def _answer(
    console: Console, applied_preset: Preset, k: int, candidates: Candidates, tally: Tally,
    n_written: int, output: str,
) -> None:  # fmt: skip
    from tabulate import tabulate

    rows = [[name, tally.in_order[name], tally.rejected_only_by[name]] for name in tally.in_order]
    lines = [
        f"{len(candidates.captions.sources):,} sources, {len(candidates.captions.texts):,} captions",
        f"{k} neighbours per source",
        f"{len(candidates.first):,} pairs of sources, {tally.candidates:,} of captions",
        "",
        tabulate(rows, ["rejected by", "after preceding filters", "alone"], intfmt=","),
        "",
        f"{tally.repeated:,} repeated pairs of sentences skipped, {tally.passed:,} passed",
        f"{n_written:,} written to {output}",
    ]
    facts = asdict(tally) | {
        "sources": len(candidates.captions.sources),
        "captions": len(candidates.captions.texts),
        "k": k,
        "thresholds": asdict(applied_preset.thresholds),
        "source_pairs": len(candidates.first),
        "written": n_written,
        "output": output,
    }
    console.answer("\n".join(lines), facts)
