"""giccs csts: similarity under a condition. The module of each command is imported on demand."""

from __future__ import annotations

from bws.base.interrupts import handle_interrupts

handle_interrupts()  # Before any other import.

from bws.base.commands import group  # noqa: E402

__all__ = ["COMMANDS", "main"]

COMMANDS = {
    "check": "giccs.csts.cli.check:check",
    "conditions": "giccs.csts.cli.conditions:conditions",
    "pairs": "giccs.csts.cli.pairs:pairs",
    "verified": "giccs.csts.cli.verified:verified",
    "relabel": "giccs.csts.cli.relabel:relabel",
    "train": "giccs.csts.cli.train:train",
    "compare-labels": "giccs.csts.cli.compare_labels:compare_labels",
    "answers": "giccs.csts.cli.answers:answers",
    "rating-sheets": "giccs.csts.cli.quality:rating_sheets",
    "quality": "giccs.csts.cli.quality:quality",
    "errors": "giccs.csts.cli.errors:errors",
    "tfs": "giccs.csts.cli.tfs:tfs",
}
"""Name of a command -> ``module:function``."""

EXAMPLE = """
giccs csts check csts_validation.csv --relabelled csts-val-reannotated.tsv
giccs csts conditions csts-sample --figure conditions.svg
giccs csts pairs captions.jsonl --model package:minilm --preset coco --pairs 500 -o pairs.csv
giccs csts answers csts-sample --split validation --model package:smollm2 --chat-template
giccs csts errors answers.csv --model package:minilm -o suspicious.csv
giccs csts tfs structures.jsonl
"""


@group("giccs csts", COMMANDS, EXAMPLE)
def main() -> None:
    """Similarity under a condition: validate data, find pairs and errors, score structures."""
