"""Paragraphs for papers: their numbers are those of the JSON of the same command."""

import json
import re
from importlib import resources
from string import Formatter

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import bws.paragraphs
from bws.base.text import parse_toml
from bws.cli import agreement, reliability, score, verdict
from bws.files import read_judgments, write_judgments
from bws.paragraphs import CITATION, Sentence, paragraph

from .model_judgments import study

SAMPLE = str(resources.files("giccs.data") / "judgments.csv")
NUMBER = re.compile(r"[−-]?\d[\d.,]*\d|\d")


def toml(name):
    return parse_toml((resources.files(bws.paragraphs) / name).read_text("utf-8"), name)


TEXTS = {language: toml(f"{language}.toml") for language in ("en", "de")}
REFERENCES = toml("references.toml")


def run(command, *arguments, code=0):
    done = CliRunner().invoke(command, [*map(str, arguments)])
    assert done.exit_code == code, done.output
    return done


def body(done):
    """The paragraph in one line, without its citations and its entries."""
    text = done.stdout.partition("\n\n")[0].replace("\n", " ")
    return re.sub(r" \([^()]*\d{4}[^()]*\)", "", text)


def numbers(text):
    """The numbers of an English text."""
    return [number.replace(",", "") for number in NUMBER.findall(text)]


def of_both_languages(command, *arguments):
    """The paragraph in English, after a check that the German one has the same numbers, and the JSON."""
    english, german = (
        body(run(command, *arguments, "--paragraph", language)) for language in ("en", "de")
    )
    separators = str.maketrans({",": ".", ".": ","})
    same = re.findall(r"\d[\d,.]*\d|\d", german.replace("giccs 0.1.0", "giccs 0,1,0"))
    assert sorted(n.translate(separators).replace(",", "") for n in same) == sorted(
        numbers(english)
    )
    return english, json.loads(run(command, *arguments, "--json").stdout)


def test_reliability_is_that_of_the_json():
    text, document = of_both_languages(reliability, SAMPLE, "--components", "--trials", 20)
    group, annotator = document["groups"][0], document["splits"]["annotator"][0]
    expected = ["300", "5", "3000", "600", "3", "5.0", "60", "20", "0"]
    for each in (group, annotator):
        values = [each[name]["mean"] for name in ("pearson", "spearman")]
        values += [each["spearman_brown"][name] for name in ("pearson", "spearman")]
        expected += [f"{value:.3f}" for value in values]
    components = document["components"]["reliability"]
    expected += [f"{components[name]:.3f}" for name in ("value", "low", "high")]
    assert numbers(text) == [*expected, "95", "0.1.0"]
    assert "The judgments are simulated." in text
    assert "from variance components" not in body(run(reliability, SAMPLE, "--paragraph"))


def test_agreement_is_that_of_the_json():
    text, document = of_both_languages(agreement, SAMPLE, "--intervals", "--strong", 0.6)
    (group,) = document["groups"]

    def interval(measure, answer, spec):
        limits = group["intervals"][measure][answer]
        return [format(n, spec) for n in (group[measure][answer], limits["low"], limits["high"])]

    expected = ["0"]
    for answer in ("best", "worst", "both"):
        expected += interval("alpha", answer, ".3f")
    expected += ["95", "60"]
    for answer in ("best", "worst"):
        expected += interval("strong", answer, ".1f")
    assert numbers(text)[7:] == [*expected, "0.1.0"]
    assert "95" not in body(run(agreement, SAMPLE, "--paragraph"))


@pytest.mark.parametrize(
    ("options", "texts"),
    [
        ([], ["as the best minus", "between −1 and 1"]),
        (["--scale", "unit", "--intervals"], ["from [−1, 1] to [0, 1]", "standard errors"]),
        (["--method", "best-worst-logit", "--scale", "counting"], ["logit", "scale of counting"]),
        (["--method", "elo", "--bootstrap", 2], ["method elo", "2 bootstrap resamples"]),
        (
            ["--intervals", "--ranks", "--cluster", "tuple"],
            ["generalise to other tuples", "Ranks hold"],
        ),
        (["--intervals", "--cluster", "judgment"], ["treat judgments as independent"]),
        (["--intervals", "--cluster", "annotator"], ["generalise to other annotators."]),
    ],
)
def test_scores_say_how_they_were_computed(options, texts):
    text, _ = of_both_languages(score, SAMPLE, *options)
    assert all(each in text for each in texts), text


def test_scores_are_written_beside_the_paragraph(tmp_path):
    path = tmp_path / "scores.csv"
    done = run(score, SAMPLE, "-o", path, "--paragraph")
    assert "300 items were annotated" in done.stdout
    assert pl.read_csv(path).height == 300


def test_what_reviewers_ask_is_told(tmp_path):
    """Control items, exclusions, skipped rows, unnamed annotators, one annotator."""
    frame = pl.read_csv(SAMPLE)
    whole = read_judgments(SAMPLE)
    assert "Control items without a score: 1." in body(
        run(reliability, SAMPLE, "--control", whole.tuples.items[0], "--paragraph")
    )
    (tmp_path / "out.txt").write_text(f"{whole.annotators[0]}\n{whole.annotators[3]}\n")
    excluded = body(run(agreement, SAMPLE, "--exclude", tmp_path / "out.txt", "--paragraph"))
    assert "3 annotators gave 1,800 judgments" in excluded
    assert "Annotators whose judgments were left out: 2." in excluded

    path = tmp_path / "some.csv"
    frame.with_columns(
        best=pl.when(pl.int_range(pl.len()) < 2).then(pl.lit("?")).otherwise("best")
    ).write_csv(path)
    assert "left out: 2." in body(run(reliability, path, "--on-invalid", "skip", "--paragraph"))

    frame.with_columns(annotator=pl.lit("")).write_csv(path)
    assert "names are not all known" in body(run(reliability, path, "--paragraph"))
    frame.filter(pl.col("annotator") == whole.annotators[0]).write_csv(path)
    done = run(agreement, path, "--paragraph")
    assert "one annotator gave 600 judgments" in body(done)
    assert "is undefined for the best item" in body(done)
    assert "judgments of one annotator" in done.stderr or "two" in done.stderr, done.stderr


def test_the_decision_on_models_is_that_of_the_json(tmp_path):
    people, model = study(0.2, groups=20, items=6, runs=2)
    write_judgments(people, tmp_path / "people.csv")
    write_judgments(model, tmp_path / "model.csv")
    text, document = of_both_languages(
        verdict, tmp_path / "people.csv", "--model-judgments", tmp_path / "model.csv"
    )
    test = document["models"][0]["test"]
    assert test["may_replace"]
    assert " may: " in text
    assert f"is {test['winning_rate']:.2f}" in text
    advantage = test["advantage"]
    assert f"{advantage['value']:.3f} [{advantage['low']:.3f}, {advantage['high']:.3f}]" in text


def test_judgments_of_models_are_not_those_of_people(tmp_path):
    _, model = study(0.2, groups=20, items=6)
    write_judgments(model, tmp_path / "model.csv")
    text = body(run(reliability, tmp_path / "model.csv", "--paragraph", "--split", "tuple"))
    assert "judged by a language model" in text
    assert "it gave" in text
    assert "annotators gave" not in text


def test_forms_have_their_citations(typeset):
    latex = run(agreement, SAMPLE, "--paragraph", "--format", "latex").stdout
    assert r"best--worst scaling~\citep{kiritchenko2017bws}: 5" in latex
    assert "% @book{krippendorff2018," in latex
    text = typeset(rf"\def\citep#1{{(cited #1)}}{latex}")
    assert "300itemswereannotatedbybest–worstscaling(citedkiritchenko2017bws)" in text
    markdown = run(agreement, SAMPLE, "--paragraph", "de", "--format", "markdown").stdout
    assert "[@krippendorff2018]" in markdown
    assert "```bibtex\n@inproceedings{kiritchenko2017bws," in markdown
    document = json.loads(run(agreement, SAMPLE, "--paragraph", "--json").stdout)
    assert "[@krippendorff2018]" in document["paragraph"]
    assert document["groups"]


def test_tables_and_paragraphs_are_not_combined():
    for options in (["--format", "csv"], ["--columns", "part"]):
        done = run(agreement, SAMPLE, "--paragraph", "en", *options, code=2)
        assert "--paragraph requires --format table, markdown or latex" in done.stderr


def test_languages_have_the_same_sentences_with_the_same_values():
    def values(text):
        return {(name, form) for _, name, form, _ in Formatter().parse(text) if name}

    english, german = TEXTS.values()
    assert english.keys() == german.keys()
    for name in english.keys() - {"words"}:
        assert values(english[name]) == values(german[name]), name
        assert CITATION.findall(english[name]) == CITATION.findall(german[name]), name


def test_references_are_cited_and_cited_ones_exist():
    sentences = [text for name, text in TEXTS["en"].items() if name != "words"]
    assert {*bws.paragraphs.citation_keys(" ".join(sentences))} == REFERENCES.keys()
    for key, entry in REFERENCES.items():
        assert re.match(rf"@\w+{{{key},\n", entry["bibtex"].lstrip())
        year = re.search(r"year = {(\d+)}", entry["bibtex"])[1]
        assert entry["text"].endswith(year)


def test_numbers_without_a_value_are_words():
    sentence = Sentence("reliability_components", {"reliability": np.nan})
    assert "is undefined (95" in paragraph([sentence])
    assert "ist nicht definiert (95" in paragraph([sentence], "de")


def test_scores_without_intervals_have_no_sentence_on_them(tmp_path):
    """Three annotators are too few for intervals of the default population."""
    path = tmp_path / "three.csv"
    frame = pl.read_csv(SAMPLE)
    frame.filter(pl.col("annotator").is_in([f"simulated-{n}" for n in (1, 2, 3)])).write_csv(path)
    text = body(run(score, path, "--intervals", "--ranks", "--paragraph"))
    assert "Intervals" not in text
    assert "generalise" not in text
    assert "Ranks" not in text


def test_scores_on_the_scale_of_another_batch_and_of_models_say_so(tmp_path):
    frame = pl.read_csv(SAMPLE)
    is_first = pl.int_range(pl.len()) % 2 == 0
    first, last = tmp_path / "first.csv", tmp_path / "last.csv"
    frame.filter(is_first).write_csv(first)
    frame.filter(~is_first).write_csv(last)
    text, document = of_both_languages(score, last, "--anchor", first)
    anchor = document["signature"]["anchor"]
    assert f"slope {anchor['slope']:.3f}, offset {anchor['offset']:.3f}" in text
    assert "between −1 and 1" not in text

    models = tmp_path / "models.csv"
    people = pl.col("tuple_id").is_in([f"t{n:03d}" for n in range(1, 301)])
    frame.filter(people).write_csv(last)
    frame.filter(pl.col("annotator") == "simulated-1").with_columns(
        annotator=pl.lit("model:m@1")
    ).write_csv(models)
    text = body(run(score, last, "--model-judgments", models, "--paragraph"))
    assert "600 judgments by language models (m@1)" in text
    assert "shrunk" not in text
    pooled = body(run(score, last, "--model-judgments", models, "--pool", "--paragraph"))
    assert "not for each item" in pooled


def test_options_of_the_split_are_told(tmp_path):
    path = tmp_path / "sparse.csv"
    pl.read_csv(SAMPLE).filter(pl.col("tuple_id").str.slice(1).cast(int) % 2 == 0).write_csv(path)
    options = ["--trials", 1, "--odd", "second", "--missing", "zero", "--split", "tuple"]
    text, document = of_both_languages(reliability, path, *options)
    assert "a single random split" in text
    assert "the second half always gets the extra unit" in text
    missing = document["groups"][0]["missing_items"]
    assert missing
    assert f"have the score 0 in that split: {missing}." in text


def test_judgments_that_do_not_count_in_the_agreement_are_told(tmp_path):
    path, frame = tmp_path / "some.csv", pl.read_csv(SAMPLE)
    is_late = pl.int_range(pl.len()) >= 1000
    frame.with_columns(
        round=is_late.cast(pl.Int64),
        purpose=pl.when(is_late).then(pl.lit("adaptive")).otherwise(pl.lit("start")),
    ).write_csv(path)
    text, _ = of_both_languages(agreement, path)
    assert "from 1,000 judgments of 200 tuples; 2,000 judgments of tuples" in text
    control = frame["item1"][0]
    has_control = pl.any_horizontal(pl.col("item1", "item2", "item3") == control)
    n = frame.filter(has_control).height
    assert f"{n} judgments of tuples" in body(
        run(agreement, SAMPLE, "--control", control, "--paragraph")
    )
    frame.filter((pl.col("tuple_id") != "t001") | (pl.col("annotator") == "simulated-1")).write_csv(
        path
    )
    text = body(run(agreement, path, "--paragraph", "--strong", 0.555))
    assert "count in no measure of agreement: 1." in text
    assert "At least 55.5 % of" in text.replace("\xa0", " ")


def test_a_row_with_two_faults_is_one_row_and_merged_items_are_counted(tmp_path):
    path, frame = tmp_path / "some.csv", pl.read_csv(SAMPLE)
    at = pl.int_range(pl.len())
    frame.with_columns(
        best=pl.when(at == 7).then(pl.lit("?")).otherwise("best"),
        worst=pl.when(at == 7).then(pl.lit("!")).otherwise("worst"),
    ).write_csv(path)
    assert "were left out: 1." in body(run(agreement, path, "--on-invalid", "skip", "--paragraph"))
    names = ["item1", "item2", "item3", "best", "worst"]
    texts = frame.drop("shown").with_columns(pl.col(names).str.replace_all("-", " "))
    other = pl.col(names).str.replace("^restaurant 01 c$", "Restaurant 01 c")
    is_first = pl.col("tuple_id") == "t001"
    texts.with_columns(pl.when(is_first).then(other).otherwise(pl.col(names))).write_csv(path)
    text = body(run(agreement, path, "--merge-variants", "--paragraph"))
    assert "300 items" in text
    assert "were merged: 1." in text
    assert "were merged" not in body(run(agreement, path, "--paragraph"))


def test_names_of_models_are_no_citations():
    sentence = Sentence("compare_ties", {"models": r"a [@zzz], b [@holm1979] {k} \x"})
    for form in ("table", "markdown", "latex"):
        text = paragraph([sentence], "en", form)
        assert "citep" not in text
        assert "@article" not in text
        assert "zzz], b" in text
