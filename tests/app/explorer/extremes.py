"""A study at the limits of the pages: long and right-to-left texts, emoji, many models, undefined ones."""

import csv
import math
import random

import polars as pl

from bws.stats.estimates import Estimate
from giccs.benchmark import read_benchmark, write_benchmark
from giccs.benchmark.items import Item, Turn
from giccs.measures.results import Group, Result, Store

N_MODELS = 100
N_UNDEFINED = 3
N_ANNOTATORS = 20
TURN_LENGTH = 5000
END = "ENDE."
"""The last characters of each long text, which must be visible."""
RIGHT_TO_LEFT = {
    "arabic": ("أين يقع أقرب فندق (3 نجوم)؟", "الفندق قريب من المحطة."),
    "hebrew": ("איפה המלון הקרוב ביותר (WLAN)?", "המלון ליד התחנה."),
    "persian": ("نزدیک‌ترین هتل کجاست؟", "هتل کنار ایستگاه است، ۳ ستاره."),
    "urdu": ("قریب ترین ہوٹل کہاں ہے؟", "ہوٹل اسٹیشن کے پاس ہے۔"),
}
EMOJI = "👩‍👩‍👧‍👦🏳️‍🌈🎉 " * 12 + END
WORDS = ["Straßenbahnhaltestelle", "Donaudampfschifffahrtsgesellschaft", "und", "das", "Hotel"]


def long_text(length, seed):
    """Return words of exactly `length` characters with `END` at the end."""
    chosen = random.Random(seed)
    text = " ".join(chosen.choice(WORDS) for _ in range(length // 3))
    return text[: length - len(END) - 1] + " " + END


def dialogues():
    """Return the turns and candidates of each dialogue."""
    turns = [long_text(TURN_LENGTH, n) for n in range(3)]
    texts = {
        "long": (turns, [long_text(TURN_LENGTH if n == 5 else 60 * n + 60, n) for n in range(12)])
    }
    for name, (question, answer) in RIGHT_TO_LEFT.items():
        candidates = [f"{answer} {n}" for n in range(2)] + [question, f"{answer} " * 8 + END]
        texts[name] = ([question, answer], candidates)
    texts["emoji"] = ([EMOJI, "ok"], [EMOJI, f"🙂 {END}", "x" * 300 + END, "a"])
    return texts


def model_names():
    """Return hub names; many begin with the same 80 characters, some differ in the organisation only."""
    stem = "paraphrase-multilingual-distilled-mpnet-base-cased"
    names = [f"sentence-transformers/{stem}-v{n:03}" for n in range(N_MODELS - 20)]
    names += [f"{'an-organisation-of-many-words-' * 2}{n}/{stem[:34]}"[:96] for n in range(10)]
    return names + [f"org-{n}/mini" for n in range(10)]


def results(benchmark):
    """Yield a result per model and history; the last models have no value."""
    items = [item.item_id for item in benchmark.items]
    for n, name in enumerate(model_names()):
        for history in ("with", "without") if n < 40 or n >= N_MODELS - 5 else ("without",):
            value = 0.9 - 0.01 * n + (0.05 if history == "with" else 0)
            estimate = Estimate(value, value - 0.1, value + 0.1, len(items))
            if n >= N_MODELS - N_UNDEFINED:
                estimate = Estimate(math.nan, math.nan, math.nan, 0, "all predictions are equal")
            metrics = dict.fromkeys(("spearman", "pearson", "rank_spearman"), estimate)
            signature = {"task": "pairwise-sts", "model": name, "history": history}
            chosen = random.Random(f"{name} {history}")
            predictions = pl.DataFrame(
                {"item_id": items, "prediction": [chosen.random() for _ in items]}
            )
            groups = tuple(Group({"n_turns": turns}, metrics) for turns in (2, 3))
            yield Result(
                name, "pairwise-sts", metrics, groups,
                signature | {"data": benchmark.fingerprint}, {"data": "extreme"}, 1.0, predictions,
            )  # fmt: skip


def write_judgments(path):
    """Write a judgment of each dialogue's first candidates per annotator, with times, order and comments."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        columns = "tuple_id,group,item1,item2,item3,best,worst,annotator,seconds,shown,comment"
        file.write(f"{columns}\n")
        rows, chosen = csv.writer(file), random.Random(0)
        for annotator in range(N_ANNOTATORS):
            for name, (turns, candidates) in dialogues().items():
                for start in range(len(candidates) - 2):
                    items = [f"u{start + n}" for n in range(3)]
                    shown = chosen.sample(items, 3)
                    seconds = round(10 ** chosen.uniform(0.2, 3), 1)
                    rows.writerow(
                        [f"{name}{start}", name, *items, shown[0], shown[1], f"annotator-{annotator:02}",
                         seconds, ";".join(shown), turns[0][:400]]
                    )  # fmt: skip


def write_study(folder):
    """Write benchmark.jsonl, judgments.csv and results into a folder."""
    items = [
        Item(f"{name}-{n}", name, "written", name, tuple(Turn("user", turn) for turn in turns), f"u{n}", text,
             n / (len(candidates) - 1))
        for name, (turns, candidates) in dialogues().items()
        for n, text in enumerate(candidates)
    ]  # fmt: skip
    write_benchmark(items, folder / "benchmark.jsonl")
    write_judgments(folder / "judgments.csv")
    store = Store(folder / "results")
    for result in results(read_benchmark(str(folder / "benchmark.jsonl"))):
        store.add(result)
