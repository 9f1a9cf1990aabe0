"""giccs csts check: validate C-STS data and compare it with a reannotation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import click
import numpy as np

from bws.base.commands import Console, command
from bws.base.options import INPUT, Choice
from bws.base.problems import InputError
from bws.base.tables import tabulated
from bws.stats.estimates import Estimate
from giccs.csts.data import (
    INVALID,
    LABELS,
    SPLITS,
    Dataset,
    Instance,
    check_csts,
    merged,
    pairs,
    read_relabelled,
)
from giccs.measures.formatting import interval
from giccs.measures.metrics import correlations

VALIDATION = "validation"
"""The split reannotated by L-CSTS."""


@command(
    "giccs csts check",
    example="""
    giccs csts check csts_train.csv
    giccs csts check csts-sample
    giccs csts check csts_validation.csv --relabelled csts-val-reannotated.tsv
    """,
)
@click.argument("data", type=INPUT, metavar="DATA")
@click.option(
    "--split",
    type=Choice(SPLITS),
    help="Read only this file of a folder; default: all files.",
)
@click.option(
    "--relabelled",
    type=INPUT,
    metavar="FILE",
    help="Reannotated labels (uid, reannotated-label) of the file, or of the validation split of a folder.",
)
def check(console: Console, data: str, split: str | None, relabelled: str | None) -> None:
    """Validate C-STS data: a CSV file, or a folder with csts_train.csv, csts_validation.csv, csts_test.csv.

    Every sentence pair must have two adjacent rows with two conditions. Labels must be 1 to 5, or hidden in
    the whole file (empty or -1). The exit code is 2 if there are problems. Also printed are the labels and
    the mean number of words, separated by white space, of the sentences (each pair once) and conditions.
    """
    second = read_relabelled(relabelled) if relabelled else {}
    dataset, problems = check_csts(data, split or (VALIDATION if relabelled else None))
    console.warn(dataset.warnings)
    document = _summary(dataset) | {"problems": list(map(str, problems))}
    if relabelled:
        document["relabelled"] = _compared(dataset, second)
    document["signature"] = {"data": dataset.fingerprint, "giccs": version("giccs")}
    console.answer(_table(document), document)
    if problems:
        raise InputError(problems)


def _summary(dataset: Dataset) -> dict[str, Any]:
    label_counts = Counter(instance.label for instance in dataset.instances)
    sentence_pairs = pairs(dataset)
    first = {instance.pair: instance for instance in reversed(dataset.instances)}
    equal = sum(high.label == low.label for high, low in sentence_pairs)
    rising = sum(first[high.pair] is not high for high, _ in sentence_pairs)
    return {
        "data": dataset.name,
        "rows": len(dataset.instances),
        "sentence_pairs": len(first),
        "pairs_of_two": len(sentence_pairs),
        "order": {
            "falling": len(sentence_pairs) - equal - rising,
            "equal": equal,
            "rising": rising,
        },
        "labels": {str(label): label_counts[label] for label in LABELS},
        "not_labelled": label_counts[None],
        "words": {
            "sentence": _mean_words(
                sentence for row in first.values() for sentence in (row.sentence1, row.sentence2)
            ),
            "condition": _mean_words(row.condition for row in dataset.instances if row.condition),
        },
        "notes": list(map(str, dataset.warnings)),
        "warnings": list(map(str, dataset.warnings)),  # the former key
    }


def _mean_words(texts: Iterable[str]) -> float | None:
    """Return the mean number of words, separated by white space; None without texts (C-STS, section 3)."""
    counts = [len(text.split()) for text in texts]
    return sum(counts) / len(counts) if counts else None


def _compared(dataset: Dataset, second: Mapping[str, int]) -> dict[str, Any]:
    """Compare the second labels with the first ones.

    ``changed`` and the agreement (accuracy, Spearman's rho; L-CSTS, 3.2 and 4.1) are computed on the
    ``valid`` rows: those with a first label and a valid condition.
    """
    relabelled = merged(dataset, second)
    before = {instance.uid: instance.label for instance in dataset.labelled().instances}
    rows = [instance for instance in relabelled.dataset.instances if instance.uid in before]
    valid = [instance for instance in rows if instance.label != INVALID]
    label_counts = Counter(instance.label for instance in relabelled.dataset.instances)
    changed = sum(instance.label != before[instance.uid] for instance in valid)
    return {
        "rows": len(relabelled.dataset.instances),
        "labels": {str(label): label_counts[label] for label in (*LABELS, INVALID)},
        "compared": len(rows),
        "valid": len(valid),
        "changed": changed,
        "accuracy": 1 - changed / len(valid) if valid else None,
        "spearman": _spearman(before, valid).document(),
        "invalid": len(rows) - len(valid),
        "rows_without_label": list(relabelled.without_label),
        "labels_without_row": list(relabelled.without_row),
    }


def _spearman(before: Mapping[str, float | None], rows: Sequence[Instance]) -> Estimate:
    """Return rho between first and second labels, with an interval over sentence pairs."""
    first, second = (
        np.array(labels, dtype=np.float64)
        for labels in (
            [before[instance.uid] for instance in rows],
            [relabelled_instance.label for relabelled_instance in rows],
        )
    )
    _, pair = np.unique(
        np.array([instance.pair for instance in rows], dtype=np.intp), return_inverse=True
    )
    return correlations(first, second, pair)["spearman"]


def _table(document: Mapping[str, Any]) -> str:
    order = document["order"]
    rows = [
        ("rows", document["rows"]),
        ("sentence pairs", document["sentence_pairs"]),
        ("of two rows", document["pairs_of_two"]),
        ("· first label higher", order["falling"]),
        ("· equal", order["equal"]),
        ("· first label lower", order["rising"]),
        *((f"label {label}", count) for label, count in document["labels"].items()),
        ("unlabelled", document["not_labelled"]),
        *(
            (f"words per {part}", f"{mean:.1f}")
            for part, mean in document["words"].items()
            if mean is not None
        ),
        ("problems", len(document["problems"])),
    ]
    if second := document.get("relabelled"):
        rows += [("reannotated rows", second["rows"])]
        rows += [(f"· label {label}", count) for label, count in second["labels"].items()]
        rows += [
            ("· compared with a first label", second["compared"]),
            ("· invalid condition", _of(second["invalid"], second["compared"])),
            ("· valid", second["valid"]),
            ("· changed, of the valid rows", _of(second["changed"], second["valid"])),
            (
                "· accuracy (equal labels)",
                _of(second["valid"] - second["changed"], second["valid"]),
            ),
            ("· Spearman ρ of first and second labels", _rho(second["spearman"])),
            ("rows without a second label", len(second["rows_without_label"])),
            ("second labels without a row", len(second["labels_without_row"])),
        ]
    return f"{document['data']}\n\n{tabulated(rows, (), 'table')}"


def _rho(estimate: Mapping[str, Any]) -> str:
    numbers = (estimate["value"], estimate["low"], estimate["high"], estimate["n"])
    text = interval(Estimate(*numbers))
    return f"{text} ({estimate['reason']})" if "reason" in estimate else text


def _of(part: int, total: int) -> str:
    return f"{part} ({part / total:.1%})" if total else str(part)
