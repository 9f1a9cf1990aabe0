"""The same benchmark in another form gives the same numbers, or is refused.

Each transformation changes only how a benchmark is written: the order of dialogues and candidates, names,
keys, encodings, and the kind of source.
"""

import gzip
import json
import random
import zlib
from importlib.resources import files

import numpy as np
import pandas as pd
import polars as pl
import pytest

import giccs

ROWS = [
    json.loads(line)
    for line in (files("giccs") / "data/en/benchmark.jsonl").read_text("utf-8").splitlines()
][:100]


def word_overlap(left, right):
    pairs = [({*a.lower().split()}, {*b.lower().split()}) for a, b in zip(left, right, strict=True)]
    return [len(a & b) / len(a | b) for a, b in pairs]


def likelihoods(prompts, options):
    """Return log-likelihoods that depend on the words of prompt and option, as those of a model do."""
    return [
        [-len({*option.split()} - {*prompt.split()}) - len(option) / 1000 for option in of_prompt]
        for prompt, of_prompt in zip(prompts, options, strict=True)
    ]


def results(source):
    return [
        *giccs.evaluate(word_overlap, source, "pairwise-sts", history="both"),
        *giccs.evaluate(likelihoods, source, "multiple-choice-sts"),
    ]


def numbers(source):
    """Return values, limits and counts by task, history, group and metric."""
    table = {}
    for result in results(source):
        parts = [({}, result.metrics), *((group.by, group.metrics) for group in result.groups)]
        for by, metrics in parts:
            for name, estimate in metrics.items():
                key = result.task, str(result.signature.get("history")), str(by), name
                table |= {
                    (*key, part): getattr(estimate, part) for part in ("value", "low", "high", "n")
                }
    return table


def permuted(rows):
    return random.Random(3).sample(rows, len(rows))


def dialogues_reversed(rows):
    return sorted(rows, key=lambda row: row["dialogue_id"], reverse=True)


def prefixed(rows):
    names = ("item_id", "dialogue_id", "utterance_id")
    return [row | {name: f"new {row[name]}" for name in names} for row in rows]


def reversed_names(rows):
    dialogues = list(dict.fromkeys(row["dialogue_id"] for row in rows))
    new = {name: f"d{len(dialogues) - number:03}" for number, name in enumerate(dialogues)}
    return [
        row | {"dialogue_id": new[row["dialogue_id"]], "item_id": f"i{9999 - number}"}
        for number, row in enumerate(rows)
    ]


SAME = {
    "permuted rows": permuted,
    "dialogues in reverse order": dialogues_reversed,
    "keys in another order": lambda rows: [dict(reversed(row.items())) for row in rows],
    "further keys": lambda rows: [row | {"note": "x"} for row in rows],
}
RENAMED = {"prefixed ids": prefixed, "ids in reverse order": reversed_names}
"""The id of a dialogue and the seed determine the order of options in multiple choice, as documented."""


def lines(rows):
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    path = tmp_path_factory.mktemp("benchmark") / "benchmark.jsonl"
    path.write_text(lines(ROWS), "utf-8")
    return numbers(path)


@pytest.mark.parametrize("change", SAME.values(), ids=SAME.keys())
def test_another_form_has_the_same_numbers(change, expected, tmp_path):
    path = tmp_path / "benchmark.jsonl"
    path.write_text(lines(change(ROWS)), "utf-8")
    assert numbers(path) == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("change", RENAMED.values(), ids=RENAMED.keys())
def test_other_ids_have_the_same_similarities(change, expected, tmp_path):
    path = tmp_path / "benchmark.jsonl"
    path.write_text(lines(change(ROWS)), "utf-8")
    of_pairs = {key: value for key, value in expected.items() if key[0] == "pairwise-sts"}
    found = {key: value for key, value in numbers(path).items() if key in of_pairs}
    assert found == pytest.approx(of_pairs, rel=1e-9, abs=1e-12, nan_ok=True)


FILES = {
    "byte order mark": ("b.jsonl", lambda text: text.encode("utf-8-sig")),
    "CRLF": ("b.jsonl", lambda text: text.replace("\n", "\r\n").encode()),
    "empty lines": ("b.jsonl", lambda text: text.replace("\n", "\n\n").encode()),
    "gzip": ("b.jsonl.gz", lambda text: gzip.compress(text.encode())),
    "escaped": ("b.jsonl", lambda text: lines_in_ascii(text).encode()),
}


def lines_in_ascii(text):
    return "".join(f"{json.dumps(json.loads(line))}\n" for line in text.splitlines())


@pytest.mark.parametrize(("name", "encode"), FILES.values(), ids=FILES.keys())
def test_another_file_has_the_same_numbers(name, encode, expected, tmp_path):
    (tmp_path / name).write_bytes(encode(lines(ROWS)))
    assert numbers(tmp_path / name) == expected


@pytest.mark.parametrize(
    "frame", [pd.DataFrame, pl.DataFrame, list], ids=["pandas", "Polars", "records"]
)
def test_another_source_has_the_same_numbers(frame, expected):
    assert numbers(frame(ROWS)) == expected


def word_vectors(texts):
    """Return (N, 64) counts of words by their hash, as a model's vectors."""
    table = np.full((len(texts), 64), 0.01)
    for row, text in enumerate(texts):
        for word in text.lower().split():
            table[row, zlib.crc32(word.encode()) % 64] += 1
    return table


def values(task, data):
    (result,) = giccs.evaluate(word_vectors, data, task)
    return {
        (name, part): getattr(estimate, part)
        for name, estimate in result.metrics.items()
        for part in ("value", "low", "high", "n")
    }


CSTS = (files("giccs") / "data/csts-sample/csts_validation.csv").read_text("utf-8").splitlines()


def permuted_pairs(rows):
    return [
        row for pair in permuted([rows[n : n + 2] for n in range(0, len(rows), 2)]) for row in pair
    ]


CSTS_FORMS = {
    "permuted pairs": lambda head, rows: "\n".join([head, *permuted_pairs(rows)]).encode(),
    "CRLF": lambda head, rows: "\r\n".join([head, *rows]).encode(),
    "byte order mark": lambda head, rows: "\n".join([head, *rows]).encode("utf-8-sig"),
}


@pytest.mark.parametrize("form", CSTS_FORMS.values(), ids=CSTS_FORMS.keys())
def test_another_form_of_conditions_has_the_same_numbers(form, tmp_path):
    path, other = tmp_path / "plain.csv", tmp_path / "other.csv"
    path.write_text("\n".join(CSTS), "utf-8")
    other.write_bytes(form(CSTS[0], CSTS[1:]))
    expected = values("csts", path)
    assert values("csts", other) == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True)


def test_the_order_of_queries_and_background_does_not_matter(tmp_path):
    texts = list(dict.fromkeys(text for row in ROWS for text in (row["utterance"],)))
    pairs = [f"{left}\t{right}" for left, right in zip(texts[:40:2], texts[1:40:2], strict=True)]

    def folder(name, order):
        path = tmp_path / name
        path.mkdir()
        (path / "pos_pair.txt").write_text("\n".join(order(pairs)), "utf-8")
        (path / "background_sent.txt").write_text("\n".join(order(texts)), "utf-8")
        return path

    expected = values("evalrank-sentence", folder("plain", list))
    found = values("evalrank-sentence", folder("other", permuted))
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("task", ["pairwise-sts", "multiple-choice-sts"])
def test_another_language_of_some_dialogues_is_another_result(task, tmp_path):
    """With several languages, prompts and groups depend on the language of each dialogue."""
    dialogues = list(dict.fromkeys(row["dialogue_id"] for row in ROWS))
    paths = [tmp_path / "even.jsonl", tmp_path / "odd.jsonl"]
    for remainder, path in enumerate(paths):
        german = {name for n, name in enumerate(dialogues) if n % 2 == remainder}
        rows = [row | {"language": "de" if row["dialogue_id"] in german else "en"} for row in ROWS]
        path.write_text(lines(rows), "utf-8")
    model = word_overlap if task == "pairwise-sts" else likelihoods
    signatures = [giccs.evaluate(model, path, task)[0].signature for path in paths]
    assert signatures[0]["data"] == signatures[1]["data"]
    assert signatures[0]["languages"] == ["de", "en"]
    assert signatures[0]["languages_sha256"] != signatures[1]["languages_sha256"]
    assert giccs.evaluate(model, paths[0], task)[0].signature == signatures[0]
