"""giccs-csts: similarity under a condition. Each command's module is loaded only when it is asked for."""

from __future__ import annotations

from bws.command import group

__all__ = ["COMMANDS", "main"]

COMMANDS = {
    "check": "giccs.cli.csts.check:check",
    "conditions": "giccs.cli.csts.conditions:conditions",
    "pairs": "giccs.cli.csts.pairs:pairs",
    "verified": "giccs.cli.csts.verified:verified",
    "relabel": "giccs.cli.csts.relabel:relabel",
    "train": "giccs.cli.csts.train:train",
    "answers": "giccs.cli.csts.answers:answers",
    "errors": "giccs.cli.csts.errors:errors",
    "tfs": "giccs.cli.csts.tfs:tfs",
}
"""Name of a command -> where it is."""

EXAMPLE = """
giccs-csts check csts_validation.csv --relabelled csts-val-reannotated.tsv
giccs-csts conditions csts-sample --figure conditions.svg
giccs-csts pairs captions.jsonl --model package:minilm --preset coco --pairs 500 -o pairs.csv
giccs-csts answers csts-sample --split validation --model package:smollm2 --chat-template
giccs-csts errors answers.csv --model package:minilm -o suspicious.csv
giccs-csts tfs structures.jsonl
"""


@group(COMMANDS, EXAMPLE)
def main() -> None:
    """Similarity under a condition: check data, find pairs and errors, score structures."""
