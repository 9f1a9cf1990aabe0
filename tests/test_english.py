"""English dialogues of a spreadsheet become tuples, a page, scores, a benchmark and a result in English."""

import csv
import io
import json
import re
import tomllib
from importlib import import_module, resources
from pathlib import Path

import pytest
from click.testing import CliRunner

from giccs.benchmark import read_benchmark
from giccs.measures.results import Store

ROOT = Path(__file__).parents[1]
SCRIPTS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
PLACES = (
    "bakery", "library", "museum", "station", "market", "pharmacy", "stadium", "theatre", "cinema",
    "harbour", "castle", "bookshop", "garage", "chapel", "gallery", "playground", "restaurant",
    "hospital", "airport", "observatory",
)  # fmt: skip
TIMES = ("six", "seven", "eight", "nine", "ten")
CANDIDATES = {
    "c1": "My sister plays the trumpet.",
    "c2": "Then I will walk to the {place} tomorrow evening.",
    "c3": "At {time} I will be at the {place}.",
    "c4": "The {place} is closed for repairs.",
    "c5": "Then I will probably go to the {place} shortly after {time}.",
}
LEVELS = {"c1": 1, "c2": 3, "c3": 5, "c4": 2, "c5": 4}


def call(name, *arguments, code=0):
    module, function = SCRIPTS[name].split(":")
    runner = CliRunner()
    done = runner.invoke(getattr(import_module(module), function), list(map(str, arguments)))
    assert done.exit_code == code, (name, done.output, done.exception)
    return done


def spreadsheet():
    """Twenty dialogues of three turns, a row each."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["id", "topic", "context", "target", *CANDIDATES])
    for number, place in enumerate(PLACES):
        words = {"place": place, "time": TIMES[number % len(TIMES)]}
        context = "User: When does the {place} open?\nSystem: The {place} opens at {time}."
        target = "User: Then I will go to the {place} at {time}."
        sentences = [one.format(**words) for one in (context, target, *CANDIDATES.values())]
        rows.writerow([f"en-{number:02}", "opening hours", *sentences])
    return text.getvalue()


def truth():
    rows = [
        f"en-{number:02}-{letter},en-{number:02},{(level - 3) / 2}"
        for number in range(len(PLACES))
        for letter, level in zip("abcde", LEVELS.values(), strict=True)
    ]
    return "\n".join(["item,group,score", *rows, ""])


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A tiny GPT-2 with random weights, whose tokens are bytes."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    letters = {letter: n for n, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE({**letters, "<end>": len(letters)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    folder = tmp_path_factory.mktemp("gpt")
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>")
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=len(letters) + 1, n_embd=16, n_layer=1, n_head=2, n_positions=1024,
        bos_token_id=len(letters), eos_token_id=len(letters),
    )  # fmt: skip
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


def german_words():
    """The words of every German text that ships, but those of the English ones."""
    words = {"de": set(), "en": set()}
    for language, result in words.items():
        files = [
            *(Path(str(resources.files("mturk"))) / "kinds").glob("*/*.toml"),
            *resources.files("giccs.prompts").iterdir(),
        ]
        for file in files:
            if re.search(rf"[.-]{language}[.-]", file.name):
                result |= set(re.findall(r"[^\W\d_]{2,}", file.read_text("utf-8").lower()))
    return words["de"] - words["en"]


def test_an_english_spreadsheet_goes_all_the_way_in_english(tmp_path, monkeypatch, model):
    for extra in ("spacy", "simplemma", "lexicalrichness"):
        pytest.importorskip(extra)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sheet.csv").write_text(spreadsheet(), "utf-8")
    (tmp_path / "truth.csv").write_text(truth(), "utf-8")

    def run(name, *arguments):
        return call(name, *arguments).stdout

    # the language is stated here, and nowhere else
    run(
        "giccs-build", "import", "sheet.csv", "--id", "id", "--context", "context", "--target", "target",
        "--candidates", ",".join(CANDIDATES), "--columns", "domain=topic", "--language", "en",
        "-o", "dialogues.jsonl",
    )  # fmt: skip
    run("bws-make-tuples", "dialogues.jsonl", "-k", "3", "--tuples", "10", "-o", "tuples.csv")
    assert len((tmp_path / "tuples.csv").read_text("utf-8").splitlines()) == 1 + 20 * 10
    page = run("mturk-hits", "preview", "tuples.csv", "--dialogues", "dialogues.jsonl", "-o", "-")
    estimate = run(
        "mturk-hits", "estimate", "tuples.csv", "--dialogues", "dialogues.jsonl", "--json"
    )
    assert json.loads(estimate)["hits"] == 100
    run(
        "bws-simulate",
        "tuples.csv",
        "--truth",
        "truth.csv",
        "--annotators",
        "5",
        "-o",
        "judgments.csv",
    )
    run("bws-score", "judgments.csv", "--scale", "unit", "-o", "scores.csv")
    run(
        "giccs-build",
        "--dialogues",
        "dialogues.jsonl",
        "--scores",
        "scores.csv",
        "-o",
        "benchmark.jsonl",
    )
    benchmark = read_benchmark("benchmark.jsonl")
    assert len(benchmark.items) == 100
    assert {item.language for item in benchmark.items} == {"en"}

    german = german_words()
    assert {"dialog", "äußerung", "und"} <= german
    assert '<html lang="en">' in page
    assert set(re.findall(r'\blang="([^"]+)"', page)) == {"en"}
    shown = re.sub(r"<(style|script)\b.*?</\1>", "", page, flags=re.DOTALL)
    assert not german & set(re.findall(r"[^\W\d_]{2,}", re.sub(r"<[^>]*>", " ", shown).lower()))

    task = ("--task", "multiple-choice-sts", "--data", "benchmark.jsonl")
    (result,) = json.loads(run("giccs-eval", model, *task, "--json", "--batch-size", "64"))[
        "results"
    ]
    assert result["signature"]["template"]["name"] == "figure2-en-1"
    assert result["metrics"]["accuracy"]["n"] == 20
    (stored,) = Store("results").results()
    prompts = set(Store("results").predictions(stored)["prompt"])
    assert all(prompt.startswith("Dialogue:\nUtterance 1: ") for prompt in prompts)
    words = set(re.findall(r"[^\W\d_]{2,}", " ".join(prompts).lower()))
    assert not german & words

    assert " en" in json.loads(run("giccs-stats", "benchmark.jsonl", "--json"))["lemmatiser"]
    run("giccs-eval", "export-mteb", "--data", "benchmark.jsonl", "-o", "mteb")
    (module,) = (tmp_path / "mteb").glob("*.py")
    assert "eval_langs=['eng-Latn']" in module.read_text("utf-8")
    run("giccs-card", "benchmark.jsonl", "--judgments", "judgments.csv", "-o", "card")
    assert "\nlanguage:\n- en\n" in (tmp_path / "card" / "README.md").read_text("utf-8")


def test_german_is_no_default_anywhere_on_the_way(tmp_path, monkeypatch, model):
    """The same spreadsheet without --language: what depends on it stops and asks for it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sheet.csv").write_text(spreadsheet(), "utf-8")
    columns = ("--id", "id", "--context", "context", "--target", "target")
    call(
        "giccs-build", "import", "sheet.csv", *columns, "--candidates", ",".join(CANDIDATES),
        "-o", "dialogues.jsonl",
    )  # fmt: skip
    call(
        "bws-make-tuples",
        "dialogues.jsonl",
        "-k",
        "3",
        "--tuples",
        "2",
        "-o",
        "tuples.csv",
    )
    items = [
        {"item_id": one["utterance_id"], "dialogue_id": row["dialogue_id"], "source": "", "domain": "",
         "n_turns": 3, "turns": row["turns"], "utterance_id": one["utterance_id"],
         "utterance": one["text"], "score": place / 4}
        for row in map(json.loads, (tmp_path / "dialogues.jsonl").read_text("utf-8").splitlines())
        for place, one in enumerate(row["candidates"])
    ]  # fmt: skip
    (tmp_path / "benchmark.jsonl").write_text("\n".join(map(json.dumps, items)), "utf-8")
    study = ("tuples.csv", "--dialogues", "dialogues.jsonl")
    for name, *arguments in (
        ("mturk-hits", "estimate", *study),
        ("mturk-hits", "preview", *study, "--no-browser"),
        ("mturk-hits", "publish", *study),
        ("giccs-build", "sheet", "dialogues.jsonl", "-o", "writers.csv"),
        ("giccs-stats", "dialogues.jsonl"),
        ("giccs-stats", "benchmark.jsonl"),
        ("giccs-eval", model, "--data", "benchmark.jsonl"),
        ("giccs-eval", "export-lm-eval", "--data", "benchmark.jsonl", "-o", "exported"),
        ("giccs-eval", "export-mteb", "--data", "benchmark.jsonl", "-o", "exported"),
        ("giccs-card", "benchmark.jsonl", "-o", "card"),
    ):
        done = call(name, *arguments, code=2)
        assert "the data state no language" in done.stderr, (name, arguments)
        assert "expected --language, such as --language de" in done.stderr
    made = {path.name for path in tmp_path.iterdir()}
    assert made == {"sheet.csv", "dialogues.jsonl", "tuples.csv", "benchmark.jsonl"}
