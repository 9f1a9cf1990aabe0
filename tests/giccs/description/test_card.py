"""The card says what is known, says what is not, and every number in it can be had again."""

import hashlib
import importlib
import json
import re
import shlex
import shutil
import tomllib
from dataclasses import replace
from importlib import resources
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from click.testing import CliRunner

from bws import agreement
from bws.base.problems import InputError
from bws.files import read_judgments, write_soft_targets
from bws.files.soft_targets import soft_targets
from giccs.benchmark import read_benchmark, write_benchmark
from giccs.cli.card import card
from giccs.description.card.facts import how_judged
from giccs.description.card.stated import QUESTIONS, Stated, read_stated, template
from giccs.description.card.tables import items_table, judgments_table
from giccs.measures.ceiling import load_judgments

ROOT = Path(__file__).parents[3]
SCRIPTS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
SAMPLE = read_benchmark("giccs-sample")
JUDGMENTS = load_judgments(SAMPLE)
ANSWERS = """
title = "Zwei_Wörter | a # benchmark"
description = "Dialogues about *hotels*."
language = ["de"]
license = "cc-by-4.0"
license_link = "https://creativecommons.org/licenses/by/4.0/"
authors = ["A. B.", "C. D."]
citation = "```\\n@misc{x}"
homepage = "https://example.org/data"
version = "1.0.0"
published = "2026-01-31"
source = "Written by us."
annotators = "Five people of our group."
intended_use = "Evaluation."
limits = "Few dialogues."
personal_data = "None."
"""


def call(*arguments):
    return CliRunner().invoke(card, list(map(str, arguments)))


def stated(folder, text):
    path = folder / "card.toml"
    path.write_text(text, "utf-8")
    return path


def said(folder):
    """The card: its YAML, and the Markdown after it."""
    _, front, text = (folder / "README.md").read_text("utf-8").split("---\n", 2)
    return yaml.safe_load(front), text


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """The folder that the command writes of giccs-sample and a filled-in card.toml."""
    folder = tmp_path_factory.mktemp("card")
    done = call("giccs-sample", "--config", stated(folder, ANSWERS), "-o", folder / "out", "--json")
    assert done.exit_code == 0, done.output
    return folder / "out", json.loads(done.stdout), done.stderr


def test_the_folder_holds_what_is_told_and_nothing_else(published):
    folder, document, warnings = published
    result = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert result == sorted(document["files"]) == [
        "README.md", "croissant.json",
        "data/judgments-00000-of-00001.parquet", "data/test-00000-of-00001.parquet",
    ]  # fmt: skip
    assert document["not_stated"] == []
    assert document["simulated"] is True
    assert document["fingerprint"] == SAMPLE.fingerprint
    assert warnings == ""


def test_the_front_matter_is_what_the_hub_reads(published):
    front, _ = said(published[0])
    assert front["language"] == ["de"]
    assert front["license"] == "cc-by-4.0"
    assert front["pretty_name"] == "Zwei_Wörter | a # benchmark (simulated annotations)"
    assert front["task_categories"] == ["sentence-similarity"]
    assert front["size_categories"] == ["n<1K"]
    assert {"simulated", "best-worst scaling"} <= set(front["tags"])
    assert [config["config_name"] for config in front["configs"]] == ["default", "judgments"]
    for config in front["configs"]:
        assert (published[0] / config["data_files"][0]["path"]).is_file()


def test_what_is_simulated_says_so_where_it_is_read(published):
    _, text = said(published[0])
    title = next(line for line in text.splitlines() if line.startswith("# "))
    assert "simulated annotations" in title
    assert "> **Simulated.**" in text


def test_answers_stand_in_the_card(published):
    _, text = said(published[0])
    assert r"# Zwei\_Wörter \| a # benchmark" in text
    for answer in (
        "Dialogues about *hotels*.", "Written by us.", "Five people of our group.", "Evaluation.",
        "Few dialogues.", "A. B., C. D.",
        "[cc-by-4.0](<https://creativecommons.org/licenses/by/4.0/>)", "1.0.0",
        "2026-01-31",
        "````\n```\n@misc{x}\n````",
    ):  # fmt: skip
        assert answer in text
    assert "ot stated" not in text


def test_what_is_not_stated_is_listed_and_warned_about(tmp_path):
    done = call("giccs-sample", "-o", tmp_path / "out")
    assert done.exit_code == 0
    front, text = said(tmp_path / "out")
    assert {"license", "pretty_name"}.isdisjoint(front)
    assert front["language"] == ["de"]  # as the items state
    listed = text.partition("## Not stated\n")[2]
    for key, question in QUESTIONS.items():
        known = key in ("simulated", "language")  # the sample tells
        assert (question.asks in listed) is not known
        assert (f"warning: card.toml: {key} is not stated" in done.stderr) is not known
    croissant = json.loads((tmp_path / "out" / "croissant.json").read_text("utf-8"))
    assert {"license", "creator", "citeAs", "version", "datePublished", "url"}.isdisjoint(croissant)


def numbers_of(text):
    """Each section with a command: its title, its commands, the cells of its table."""
    for part in text.split("\n### ")[1:]:
        part = part.partition("\n## ")[0]
        rows = [line.strip("|").split("|") for line in part.splitlines() if line.startswith("|")]
        cells = [cell.strip().replace("\\", "") for row in rows[2:] for cell in row]
        commands = re.search(r"```console\n(.*?)\n```", part, re.S)[1].splitlines()
        yield part.partition("\n")[0], commands, cells


def test_every_number_is_what_the_command_beside_it_prints(published, tmp_path, monkeypatch):
    folder, _, _ = published
    _, text = said(folder)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").symlink_to(folder / "data")
    exec(re.search(r"```python\n(import polars.*?)```", text, re.S)[1])  # as the card tells
    sections = list(numbers_of(text))
    assert [title for title, _, _ in sections] == [
        "The dialogues", "Distribution of the scores", "Inter-annotator agreement",
        "Reliability of the scores", "Noise ceiling",
    ]  # fmt: skip
    for title, commands, cells in sections:
        printed = ""
        for line in commands:
            name, *arguments = shlex.split(line)
            module, function = SCRIPTS[name].split(":")
            done = CliRunner().invoke(getattr(importlib.import_module(module), function), arguments)
            assert done.exit_code == 0, done.output
            printed += done.stdout
        numbers = [cell for cell in cells if re.match(r"\d", cell)]
        assert numbers
        for number in numbers:
            assert number in printed, f"{title}: {number}"


def test_the_files_for_the_commands_are_those_that_were_published(published, tmp_path):
    items = tmp_path / "benchmark.jsonl"
    pl.read_parquet(published[0] / "data/test-00000-of-00001.parquet").write_ndjson(items)
    assert read_benchmark(items).fingerprint == SAMPLE.fingerprint
    judged = tmp_path / "judgments.csv"
    pl.read_parquet(published[0] / "data/judgments-00000-of-00001.parquet").write_csv(judged)
    result = read_judgments(judged)
    assert len(result) == 3000
    assert agreement(result).groups[0].alpha["both"].value == pytest.approx(
        agreement(JUDGMENTS).groups[0].alpha["both"].value
    )


def test_without_judgments_neither_their_numbers_nor_a_claim(tmp_path):
    items = [item for item in SAMPLE.items if item.n_turns == 3]
    write_benchmark(items, tmp_path / "b.jsonl")
    done = call(tmp_path / "b.jsonl", "-o", tmp_path / "out", "--json")
    assert json.loads(done.stdout)["simulated"] is None
    front, text = said(tmp_path / "out")
    assert "Simulated" not in text
    assert "simulated" not in str(front)
    assert [title for title, _, _ in numbers_of(text)] == [
        "The dialogues",
        "Distribution of the scores",
    ]
    assert "## Creation of the scores\n\n*Not stated.*" in text
    assert not (tmp_path / "out/data/judgments-00000-of-00001.parquet").exists()


def test_without_the_libraries_the_command_says_what_is_missing(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "lexicalrichness", None)
    done = call("giccs-sample", "-o", tmp_path / "out")
    assert done.exit_code == 0
    reason = "lexicalrichness is not installed; pip install 'giccs[stats]'"
    warning = f"warning: giccs-sample: the card has no statistics of the dialogues: {reason}"
    assert warning in done.stderr.splitlines()
    text = said(tmp_path / "out")[1]
    assert next(numbers_of(text))[0] == "Distribution of the scores"
    assert "installed" not in text


@pytest.fixture
def unstated(tmp_path):
    """Items that state no language."""
    path = tmp_path / "unstated.jsonl"
    write_benchmark([replace(item, language=None) for item in SAMPLE.first(3).items], path)
    return path


def test_a_language_without_lemmas_is_told(tmp_path, unstated):
    config = stated(tmp_path, 'language = ["zxx"]')
    done = call(unstated, "--config", config, "-o", tmp_path / "o")
    assert done.exit_code == 0
    reason = "the card has no statistics of the dialogues: lang is 'zxx'; expected one of "
    assert f"warning: {unstated}: {reason}" in done.stderr
    text = said(tmp_path / "o")[1]
    assert "### The dialogues" not in text
    assert "expected" not in text


def test_the_language_is_published_with_every_item(tmp_path, unstated):
    done = call(unstated, "-o", tmp_path / "o")
    assert done.exit_code == 2
    assert done.stderr == (
        f"{unstated}: the data state no language, and lemmas depend on it; "
        "expected --language, such as --language de\n"
    )
    assert call(unstated, "--language", "de-AT", "-o", tmp_path / "o").exit_code == 0
    front, text = said(tmp_path / "o")
    assert front["language"] == ["de"]
    assert "giccs stats benchmark.jsonl\n" in text
    assert {item.language for item in read_benchmark(tmp_path / "o").items} == {"de-AT"}


def test_a_card_in_another_language_than_its_data_is_refused(tmp_path):
    config = stated(tmp_path, 'language = ["en", "fr"]')
    done = call("giccs-sample", "--config", config, "-o", tmp_path / "o")
    assert done.exit_code == 2
    assert "card.toml states the language en, fr, but that of the data is de" in done.stderr


def test_text_of_the_data_stays_text(tmp_path, benchmark_file):
    rows = [json.loads(line) for line in benchmark_file.read_text("utf-8").splitlines()]
    for row in rows:
        row["domain"] = "<b>a|b</b>"
    rows[0]["utterance"] = "```\n# Heading"
    benchmark_file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    assert call(benchmark_file, "-o", tmp_path / "o").exit_code == 0
    text = re.sub(r"```json.*?\n```\n", "", said(tmp_path / "o")[1], flags=re.S)
    assert r"&lt;b&gt;a\|b&lt;/b&gt;" in text
    assert "<b>" not in text
    assert "\n# Heading" not in text


def test_simulated_can_be_stated(tmp_path, benchmark_file):
    for number, (answer, known) in enumerate([("true", True), ("false", False)]):
        config = stated(tmp_path, f"simulated = {answer}")
        done = call(benchmark_file, "--config", config, "-o", tmp_path / str(number), "--json")
        assert json.loads(done.stdout)["simulated"] is known
        front, text = said(tmp_path / str(number))
        assert ("simulated" in front["tags"]) is known
        assert ("> **Simulated.**" in text) is known
        croissant = json.loads((tmp_path / str(number) / "croissant.json").read_text("utf-8"))
        assert ("simulated" in croissant["description"].lower()) is known


def test_simulated_is_seen_in_the_annotators_names(tmp_path, sample_copy):
    data, judgments = sample_copy
    done = call(data, "--judgments", judgments, "-o", tmp_path / "o", "--json")
    assert json.loads(done.stdout)["simulated"] is True
    config = stated(tmp_path, "simulated = false")
    done = call(data, "--judgments", judgments, "--config", config, "-o", tmp_path / "p")
    assert done.exit_code == 2
    assert "the judgments are simulated, but card.toml states simulated = false" in done.stderr
    assert not (tmp_path / "p").exists()


@pytest.fixture
def sample_copy(tmp_path):
    """Half of giccs-sample as files of one's own, with the judgments behind it."""
    kept = {item.dialogue_id for item in SAMPLE.items if item.n_turns == 3}
    write_benchmark([i for i in SAMPLE.items if i.dialogue_id in kept], tmp_path / "own.jsonl")
    rows = pl.read_csv(resources.files("giccs.data") / "judgments.csv", infer_schema=False)
    rows.filter(pl.col("group").is_in(kept)).with_columns(comment=pl.lit("my name is")).write_csv(
        tmp_path / "own.csv"
    )
    return tmp_path / "own.jsonl", tmp_path / "own.csv"


def renamed(path, form):
    rows = pl.read_csv(path, infer_schema=False)
    names = {f"simulated-{number}": form.format(number) for number in range(1, 6)}
    rows.with_columns(pl.col("annotator").replace(names)).write_csv(path)


@pytest.mark.parametrize("form", ["w-ba82317d276eb88{}", "ANNOTATOR1{}"])
def test_pseudonyms_are_published_and_comments_are_not(tmp_path, sample_copy, form):
    data, judgments = sample_copy
    renamed(judgments, form)
    done = call(data, "--judgments", judgments, "-o", tmp_path / "o", "--json")
    assert json.loads(done.stdout)["simulated"] is None
    frame = pl.read_parquet(tmp_path / "o/data/judgments-00000-of-00001.parquet")
    assert frame.columns == [
        "tuple_id", "group", "item1", "item2", "item3", "best", "worst", "annotator", "shown",
    ]  # fmt: skip
    assert set(frame["annotator"]) == {form.format(number) for number in range(1, 6)}


def with_comments(path, comments):
    """Give the first judgments these comments, and the others none."""
    rows = pl.read_csv(path, infer_schema=False).drop("comment")
    texts = [*comments, *[""] * (len(rows) - len(comments))]
    rows.with_columns(comment=pl.Series(texts)).write_csv(path)


def test_comments_are_published_if_requested_with_a_warning(tmp_path, sample_copy):
    data, judgments = sample_copy
    with_comments(judgments, ["Beide sind gleich.", "Schwer, „A“ oder B"])
    done = call(data, "--judgments", judgments, "--comments", "-o", tmp_path / "o")
    assert done.exit_code == 0, done.output
    assert f"{judgments}: 2 comments of annotators are part of the folder" in done.stderr
    frame = pl.read_parquet(tmp_path / "o/data/judgments-00000-of-00001.parquet")
    assert sorted(frame["comment"])[-2:] == ["Beide sind gleich.", "Schwer, „A“ oder B"]
    assert frame["comment"].n_unique() == 3
    _, text = said(tmp_path / "o")
    assert "Annotators' comments are published as written; times and assignments are not" in text
    assert "comment of the annotator, as written" in text


@pytest.mark.parametrize(
    ("comment", "kind"),
    [
        ("Mail: anna@example.org, danke", "e-mail addresses"),
        ("bin A2XK7QZ1PLM9R7.", "ids of Mechanical Turk"),
        ("(5f3c2a1b9d8e7f6a5b4c3d2e)", "ids of Prolific"),
    ],
)
def test_comments_with_ids_are_refused(tmp_path, sample_copy, comment, kind):
    data, judgments = sample_copy
    with_comments(judgments, ["nothing", comment])
    second = pl.read_csv(judgments, infer_schema=False)["tuple_id"][1]
    done = call(data, "--judgments", judgments, "--comments", "-o", tmp_path / "o")
    assert done.exit_code == 2
    assert f"own.csv (csv): a comment on tuple {second} contains {kind}" in done.stderr
    assert not (tmp_path / "o").exists()


def test_comments_that_do_not_exist_are_not_published(tmp_path, sample_copy):
    data, judgments = sample_copy
    pl.read_csv(judgments, infer_schema=False).drop("comment").write_csv(judgments)
    done = call(data, "--judgments", judgments, "--comments", "-o", tmp_path / "o")
    assert done.exit_code == 2
    assert "has no comments; leave out --comments" in done.stderr
    done = call(data, "--comments", "-o", tmp_path / "o")
    assert "--comments requires --judgments" in done.stderr


@pytest.mark.parametrize(
    ("form", "what"),
    [
        ("A2XK7QZ1PLM9R{}", "Mechanical Turk"), ("5f3c2a1b9d8e7f6a5b4c3d2{}", "Prolific"),
        ("person{}@example.org", "e-mail"),
    ],
)  # fmt: skip
def test_names_that_lead_to_a_person_are_refused(tmp_path, sample_copy, form, what):
    data, judgments = sample_copy
    renamed(judgments, form)
    done = call(data, "--judgments", judgments, "-o", tmp_path / "o")
    assert done.exit_code == 2
    assert re.search(f"5 of 5 annotator ids look like .*{what}", done.stderr)
    assert not (tmp_path / "o").exists()


def test_judgments_of_other_scores_are_refused(tmp_path, sample_copy):
    data, judgments = sample_copy
    rows = [json.loads(line) for line in data.read_text("utf-8").splitlines()]
    rows[0]["score"] = 1 - rows[0]["score"]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    done = call(data, "--judgments", judgments, "-o", tmp_path / "o")
    assert done.exit_code == 2
    assert "have another score than that of counting" in done.stderr


def test_judgments_that_name_no_dialogues_are_not_broken_down(tmp_path, sample_copy):
    data, judgments = sample_copy
    pl.read_csv(judgments, infer_schema=False).drop("group").write_csv(judgments)
    assert call(data, "--judgments", judgments, "-o", tmp_path / "o").exit_code == 0
    text = said(tmp_path / "o")[1]
    result = {title: (commands, cells) for title, commands, cells in numbers_of(text)}
    assert result["Inter-annotator agreement"][0] == ["giccs agreement judgments.csv"]
    assert result["Reliability of the scores"][1][0] == "all"
    assert "source=" not in text.partition("### Reliability")[2].partition("###")[0]
    assert "compared only within their dialogue" not in text


def release(folder):
    for n_turns in (3, 5):
        stem = f"{n_turns}_turn_dialogues"
        (folder / stem).mkdir(parents=True)
        turns = "\t".join(f"turn_{n}" for n in range(1, n_turns + 1))
        texts = "\t".join(f"text {n}" for n in range(1, n_turns + 1))
        lines = [f"original_domain\tsuggested_domain\t{turns}\tpaired_utterance\tsimilarity_score"]
        lines += [f"tv\tfind_tvProgram\t{texts}\tutterance {n}\t0.5" for n in range(5)]
        (folder / stem / f"GiCCS_dataset_{stem}.tsv").write_text("\n".join(lines) + "\n", "utf-8")
    return folder


def test_the_release_is_not_passed_on(tmp_path):
    done = call(release(tmp_path / "GiCCS"), "-o", tmp_path / "o")
    assert done.exit_code == 2
    assert "CC BY-NC-ND 3.0, does not permit the distribution of modified versions" in done.stderr
    assert not (tmp_path / "o").exists()


def test_a_folder_of_somebody_else_is_left_alone(tmp_path):
    for name, content in (("notes.txt", "x"), ("README.md", "# Mine"), ("data/own.csv", "a")):
        folder = tmp_path / name.replace("/", "-")
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text(content)
        done = call("giccs-sample", "-o", folder)
        assert done.exit_code == 2
        assert f"contains {name}, not written by giccs card" in done.stderr
        assert [path.name for path in folder.rglob("*") if path.is_file()] == [Path(name).name]


def test_writing_again_replaces_all_of_it(tmp_path, sample_copy):
    data, judgments = sample_copy
    (tmp_path / "o" / ".git").mkdir(parents=True)  # a clone of the hub's repository
    assert call(data, "--judgments", judgments, "-o", tmp_path / "o").exit_code == 0
    first = (tmp_path / "o/data/test-00000-of-00001.parquet").read_bytes()
    assert call(data, "-o", tmp_path / "o").exit_code == 0
    assert [path.name for path in (tmp_path / "o/data").iterdir()] == [
        "test-00000-of-00001.parquet"
    ]
    assert (tmp_path / "o/data/test-00000-of-00001.parquet").read_bytes() == first


def test_the_template_asks_every_question_and_answers_none(tmp_path):
    path = tmp_path / "card.toml"
    assert call("giccs-sample", "--init", path).exit_code == 0
    assert read_stated(path) == Stated({})
    assert call("giccs-sample", "--init", path).exit_code == 2  # it may be filled in
    blocks = template().split("\n\n")[1:]
    filled = "\n".join(
        line.removeprefix("# ") for block in blocks for line in block.splitlines()[1:]
    )
    assert set(read_stated(stated(tmp_path, filled)).answers) == set(
        QUESTIONS
    )  # examples are allowed


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("titel = 'x'", 1, "unknown key titel; expected one of title, "),
        ("title = 'x'\nlanguage = 'de'", 2, "language is 'de'; it must be a list of texts"),
        ("language = ['German']", 1, "language is 'German'; expected a form such as"),
        ("license = 'CC BY 4.0'", 1, "license is 'CC BY 4.0'; expected a form such as"),
        ("homepage = 'example.org'", 1, "homepage is 'example.org'"),
        ("published = '2026-02-30'", 1, "published is '2026-02-30'"),
        ("simulated = 'no'", 1, "simulated is 'no'; it must be true or false"),
        ("version = '1'\ntitle = x", 2, "not valid TOML"),
    ],
)
def test_wrong_answers_are_told_with_their_line(tmp_path, text, line, message):
    path = stated(tmp_path, text)
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        read_stated(path)
    assert (caught.value.problems[0].file, caught.value.problems[0].line) == (str(path), line)


def test_an_empty_answer_is_none(tmp_path):
    path = stated(tmp_path, "title = ' '\nauthors = ['']\npublished = ''\nsimulated = false")
    assert read_stated(path).answers == {"simulated": False}


def test_tables_hold_what_the_records_do():
    table = items_table(SAMPLE.items)
    row, item = table.frame.row(7, named=True), SAMPLE.items[7]
    assert row["turns"] == [{"speaker": t.speaker, "text": t.text} for t in item.turns]
    assert (row["score"], row["n_turns"], row["utterance"]) == (item.score, 3, item.utterance)
    assert "original_domain" not in table.frame.columns
    judged = judgments_table(JUDGMENTS).frame
    assert judged.height == 3000
    for row, one in zip(judged.iter_rows(named=True), JUDGMENTS.records(), strict=True):
        assert (row["tuple_id"], row["group"]) == (one.tuple_id, one.group)
        assert (row["best"], row["worst"], row["annotator"]) == (one.best, one.worst, one.annotator)
        assert row["shown"] == ";".join(one.items)
        assert {row["item1"], row["item2"], row["item3"]} == set(one.items)


def test_judgments_of_language_models_are_named_as_such():
    names = [f"model:m{n}@1" for n in range(len(JUDGMENTS.annotators))]
    runs = {name: np.full(len(JUDGMENTS), "0", dtype=object) for name in ("prompt", "run")}
    judgments = replace(
        JUDGMENTS,
        annotators=np.array(names, dtype=object),
        columns={**JUDGMENTS.columns, **runs},
    )
    told = how_judged(judgments, SAMPLE)
    assert "by language models, not people: m0@1, m1@1, m2@1, m3@1, m4@1." in told
    table = judgments_table(judgments)
    assert set(table.frame["annotator"]) == set(names)
    assert {"prompt", "run"} < set(table.frame.columns)


def test_a_call_that_asks_for_nothing_is_told_what_is_needed():
    done = call("giccs-sample")
    assert done.exit_code == 2
    assert "either -o FOLDER or --init card.toml" in done.stderr


def test_a_published_folder_is_read_as_the_benchmark_that_it_was_made_from(published, tmp_path):
    shutil.copytree(published[0], tmp_path / "made")
    assert read_benchmark(tmp_path / "made").fingerprint == SAMPLE.fingerprint
    table = tmp_path / "made" / "data" / "test-00000-of-00001.parquet"
    pl.read_parquet(table).with_columns(score=pl.col("score") + 1).write_parquet(table)
    with pytest.raises(
        InputError, match=r"parquet:1: score is 1\.\d+; expected a number"
    ) as result:
        read_benchmark(tmp_path / "made")
    assert len(result.value.problems) > 200
    table.write_bytes(b"PAR1 and no more")
    with pytest.raises(InputError, match="not a valid Parquet file"):
        read_benchmark(tmp_path / "made")


# Soft targets -------------------------------------------------------------------------------------


@pytest.fixture
def soft(tmp_path):
    """The file that giccs score --soft-targets writes of giccs-sample."""
    write_soft_targets(soft_targets(JUDGMENTS), tmp_path / "soft-targets.csv")
    return tmp_path / "soft-targets.csv"


def test_soft_targets_are_published_with_their_columns(tmp_path, soft):
    done = call("giccs-sample", "--soft-targets", soft, "-o", tmp_path / "out", "--json")
    assert done.exit_code == 0, done.output
    path = "data/soft-targets-00000-of-00001.parquet"
    assert path in json.loads(done.stdout)["files"]
    frame = pl.read_parquet(tmp_path / "out" / path)
    assert frame["p_best"].to_list() == soft_targets(JUDGMENTS).p_best.tolist()
    front, text = said(tmp_path / "out")
    assert [config["config_name"] for config in front["configs"]] == [
        "default", "judgments", "soft_targets"
    ]  # fmt: skip
    columns = text.partition("Columns of `soft_targets`:")[2].partition("The first item:")[0]
    assert "best / annotations: the raw share, without smoothing" in columns
    assert "number of annotators who judged this utterance most similar" in columns
    of_judgments = text.partition("Columns of `judgments`:")[2].partition("Columns of")[0]
    assert "the utterance judged most similar to the last turn" in of_judgments
    croissant = json.loads((tmp_path / "out" / "croissant.json").read_text("utf-8"))
    content = (tmp_path / "out" / path).read_bytes()
    hashes = {one["contentUrl"]: one["sha256"] for one in croissant["distribution"]}
    assert hashes[path] == hashlib.sha256(content).hexdigest()


def test_soft_targets_without_judgments(tmp_path, soft):
    write_benchmark(SAMPLE.items, tmp_path / "b.jsonl")
    done = call(tmp_path / "b.jsonl", "--soft-targets", soft, "-o", tmp_path / "out")
    assert done.exit_code == 0, done.output
    _, text = said(tmp_path / "out")
    assert "judgments.csv" not in text.partition("## Statistics")[2].partition("###")[0]
    assert "Annotators' comments" not in text
    done = call(tmp_path / "b.jsonl", "-o", tmp_path / "out")  # the next card has none
    assert [path.name for path in (tmp_path / "out" / "data").iterdir()] == [
        "test-00000-of-00001.parquet"
    ]


def test_soft_targets_of_other_judgments_are_refused(tmp_path, soft):
    half = JUDGMENTS.select(JUDGMENTS.annotator_of < 2)
    write_soft_targets(soft_targets(half), soft)
    done = call("giccs-sample", "--soft-targets", soft, "-o", tmp_path / "out")
    assert done.exit_code == 2
    assert "items have another score in giccs-sample than that of these counts" in done.stderr
    some = replace(SAMPLE, items=SAMPLE.items[5:])
    write_benchmark(some.items, tmp_path / "b.jsonl")
    write_soft_targets(soft_targets(JUDGMENTS), soft)
    done = call(tmp_path / "b.jsonl", "--soft-targets", soft, "-o", tmp_path / "out")
    assert done.exit_code == 2
    assert "5 items are not in " in done.stderr
    one_dialogue = JUDGMENTS.select(JUDGMENTS.tuples.group_of_tuple[JUDGMENTS.tuple_of] == 0)
    write_soft_targets(soft_targets(one_dialogue), soft)
    done = call("giccs-sample", "--soft-targets", soft, "-o", tmp_path / "out")
    assert "295 items of giccs-sample are missing" in done.stderr
    assert not (tmp_path / "out").exists()
