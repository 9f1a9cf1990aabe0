"""The recipe evalrank-paper: its numbers are the paper's, numbers over models are of results."""

import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import spearmanr

from bws.stats.estimates import Estimate
from giccs.cli.evaluation import evaluate
from giccs.cli.reporting import report
from giccs.evalrank.across_models import better_postprocessed, results_across_models
from giccs.evaluation.recipe import ACROSS_MODELS, read_recipe
from giccs.measures.results import Group, Result

SHARED = Path(os.environ.get("GICCS_SHARED", Path(__file__).parents[4] / "shared"))
WORDS, SENTENCES = "word embedding models", "sentence embedding models"
METRICS = {"MRR": "mrr", "Hits@1": "hits@1", "Hits@3": "hits@3"}
SIMILARITY_SETS = {
    "WS-353-All": "EN-WS-353-ALL", "WS-353-Rel": "EN-WS-353-REL", "WS-353-Sim": "EN-WS-353-SIM",
    "RW-STANFORD": "EN-RW-STANFORD", "MEN-TR-3K": "EN-MEN-TR-3k", "MTURK-287": "EN-MTurk-287",
    "MTURK-771": "EN-MTurk-771", "SIMLEX-999": "EN-SIMLEX-999", "SIMVERB-3500": "EN-SimVerb-3500",
    "STS-Benchmark": "STSBenchmark", "SICK-Relatedness": "SICK", "STR": "STR",
} | {f"STS{year}": f"STS{year}-en-test" for year in range(12, 17)}  # fmt: skip
SOURCES = {"(STS-B)": "sent_evalrank_stsb", "(STR)": "sent_evalrank_str"}


class Tables(HTMLParser):
    """The cells of all HTML tables of a text."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.cell = [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self.cell = True

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.cell = None

    def handle_data(self, data):
        if self.cell:
            self.tables[-1][-1][-1] += data.strip()


@pytest.fixture(scope="module")
def tables():
    """Number of a table -> its rows; 11 and 12, 51 and 52 are the two parts of Tables 1 and 5."""
    paper = SHARED / "papers" / "evalrank.txt"
    if not paper.is_file():
        pytest.skip(f"{paper} is missing; set GICCS_SHARED")
    parsed = Tables(paper.read_text("utf-8")).tables
    return dict(zip((11, 12, 2, 3, 4, 51, 52, 6, 7), parsed, strict=False)) | {10: parsed[11]}


def published(model, metric):
    return {
        tuple(number.by.values()): round(100 * number.value, 2)
        for run in read_recipe("evalrank-paper").runs
        if (run.task, run.model) == (ACROSS_MODELS, model)
        for number in run.published
        if number.metric == metric
    }


def score_name(label, level, folder):
    if label in METRICS:
        return f"evalrank-{level}:{METRICS[label]}:{folder}"
    return f"{level}-similarity:spearman:{SIMILARITY_SETS[label]}"


def correlations(table, level, folder):
    sets = table[0][2:]
    return {
        (score_name(row[-len(sets) - 1], level, folder), of_set): float(value)
        for row in table[1:]
        for of_set, value in zip(sets, row[-len(sets) :], strict=True)
    }


VARIANTS = {"w/o wiki vocabs": "word_evalrank_basic", "w/ WN synonym": "word_evalrank_wordnet"}


def test_correlations_are_those_of_tables_3_4_6_and_7(tables):
    words = correlations(tables[3], "word", "word_evalrank")
    header, first, *rows = tables[4]
    for of_set, *cells in zip(header[1:], *(row[1:] for row in (first, *rows)), strict=True):
        assert words["evalrank-word:mrr:word_evalrank", of_set] == float(cells[0])
        for (label, *_), cell in zip(rows, cells[1:], strict=True):
            folder = VARIANTS.get(label, "word_evalrank:l2")
            words[f"evalrank-word:mrr:{folder}", of_set] = float(cell)
    assert len(rows) == 3
    assert published(WORDS, "spearman") == words
    sentences = correlations(tables[6], "sentence", "sent_evalrank")
    header, *rows = tables[7]
    for first in (3, 6):  # the first three rows are also in Table 6
        source = SOURCES[re.search(r"\(.+\)", rows[first][0])[0]]
        sentences |= correlations([header, *rows[first : first + 3]], "sentence", source)
    assert published(SENTENCES, "spearman") == sentences
    repeated = correlations([header, *rows[:3]], "sentence", "sent_evalrank")
    assert repeated.items() <= sentences.items()


def test_shares_are_those_of_table_10(tables):
    expected = {WORDS: {}, SENTENCES: {}}
    for label, *cells in tables[10][2:]:
        for (model, level), cell in zip(
            ((WORDS, "word"), (SENTENCES, "sentence")), cells, strict=True
        ):
            if cell != "NA":
                is_intrinsic = label in SIMILARITY_SETS
                name = (
                    score_name(label, level, "")
                    if is_intrinsic
                    else f"classification:accuracy:{label}"
                )
                expected[model][name,] = float(re.search(r"([\d.]+)%$", cell)[1])
    assert {model: published(model, "better_postprocessed") for model in expected} == expected


def test_table_5_is_compared_with_the_definition_and_the_program(tables):
    by_setting = {True: [], False: []}
    for run in read_recipe("evalrank-paper").runs:
        if run.published and run.task.startswith("evalrank-") and run.task != ACROSS_MODELS:
            if "toy_emb" in run.model:
                continue
            values = [round(100 * number.value, 2) for number in run.published]
            assert [number.metric for number in run.published] == list(METRICS.values())
            by_setting[bool(run.options.get("reference"))].append((run.skip != "", values))
    rows = [[float(cell) for cell in row[1:]] for row in tables[51][1:] + tables[52][1:]]
    assert [values for _, values in by_setting[False]] == rows
    of_program = [values for skipped, values in by_setting[False] if not skipped]
    assert [values for _, values in by_setting[True]] == of_program
    assert sum(skipped for skipped, _ in by_setting[False]) == 2  # InferSent


def test_table_1_has_the_named_rows(tables):
    of_step = {"BERT-flow": "+first-last+flow", "BERT-whitening": "+first-last+whitening"}
    runs = [run for run in read_recipe("evalrank-paper").runs if run.published]
    for label, *cells in tables[11]:
        if label in of_step:
            expected = [float(cell.partition(" ")[0]) for cell in cells]
            found = [
                round(100 * number.value, 2)
                for run in runs
                if run.model.endswith(of_step[label])
                and run.task in ("sentence-similarity", "classification")
                for number in run.published
            ]
            assert found == expected
    ranks = published(SENTENCES, "rank")
    scores = ("sts-test.csv", "sts-test.csv:l2")
    in_paper = [[float(cell[0]) for cell in row[1:]] for row in tables[12][1:]]
    models = list(dict.fromkeys(model for _, model in ranks))
    assert [
        [ranks[f"sentence-similarity:spearman:{score}", model] / 100 for score in scores]
        for model in models
    ] == in_paper
    assert len(models) == 5


def test_the_models_are_those_of_tables_8_and_9():
    runs = read_recipe("evalrank-paper").runs

    def models(task, folder):
        return {
            (run.model, str(run.options.get("pooling", "")))
            for run in runs
            if (run.task, run.folder) == (task, folder) and not run.published
        }

    assert len(models("word-similarity", "word_similarity")) == 38
    assert len(models("evalrank-word", "word_evalrank_basic")) == 38
    by_distance = [
        run for run in runs if run.options == {"similarity": "l2"} and run.task == "evalrank-word"
    ]
    assert len({run.model for run in by_distance if not run.published}) == 38
    # 67 models: 65 that can be evaluated, and two of InferSent, which are skipped with a reason
    assert len(models("sentence-similarity", "sent_similarity/SICK")) == 65
    assert len(models("evalrank-sentence", "sent_evalrank")) == 67


def result(task, model, data, metrics=(), groups=(), setting="cos"):
    def estimates(values):
        return {name: Estimate(value, np.nan, np.nan, 300) for name, value in dict(values).items()}

    by_set = tuple(Group({"set": name}, estimates(values)) for name, values in groups)
    signature = {"task": task, "data": data, "setting": setting}
    return Result(model, task, estimates(metrics), by_set, signature, {"data": data}, 0.0)


def results_of(model, rank, similarity, accuracy):
    sets = [("EN-SIMLEX-999", {"spearman": similarity}), ("EN-MTurk-771", {"spearman": rank})]
    reviews = [("MR", {"accuracy": accuracy})]
    ranking, pairs = "evalrank/word_evalrank", "evalrank/word_similarity"
    return [
        result("evalrank-word", model, ranking, {"mrr": rank}),
        result("evalrank-word", model, ranking, {"mrr": -rank}, setting="l2"),
        result("word-similarity", model, pairs, {"spearman": 0.0}, sets),
        result("classification", model, "evalrank", {"accuracy": 0.0}, reviews, ""),
    ]


@pytest.fixture
def results():
    """Scores of six word models, of which three are post-processed variants of the others."""
    models = [f"static:{name}.txt{step}" for name in "abc" for step in ("", "+abtt:2")]
    values = np.random.default_rng(0).normal(size=(len(models), 3))
    rows = [
        row
        for model, scores in zip(models, values, strict=True)
        for row in results_of(model, *scores)
    ]
    return rows, values


def test_correlations_and_shares_over_models_are_those_of_scipy(results):
    rows, values = results
    (words,) = results_across_models(rows, "evalrank")
    assert (words.model, words.task, words.environment["data"]) == (
        WORDS,
        ACROSS_MODELS,
        "evalrank",
    )
    numbers = {tuple(group.by.values()): group.metrics for group in words.groups}
    rank, similarity, accuracy = values.T
    for name, score in (
        ("evalrank-word:mrr:word_evalrank", rank),
        ("word-similarity:spearman:EN-SIMLEX-999", similarity),
    ):
        rho = numbers[name, "MR"]["spearman"]
        assert rho.value == pytest.approx(spearmanr(score, accuracy).statistic)
        assert rho.n == 6
        share = numbers[(name,)]["better_postprocessed"]
        assert share.value == pytest.approx(np.mean(score[1::2] > score[::2]))
        assert share.n == 3
    of_accuracy = numbers[("classification:accuracy:MR",)]["better_postprocessed"]
    assert of_accuracy.value == pytest.approx(np.mean(accuracy[1::2] > accuracy[::2]))


def test_scores_by_the_distance_have_their_own_correlations_and_ranks(results):
    rows, values = results
    (words,) = results_across_models(rows, "evalrank")
    numbers = {tuple(group.by.values()): group.metrics for group in words.groups}
    rho = numbers["evalrank-word:mrr:word_evalrank:l2", "MR"]["spearman"]
    assert rho.value == pytest.approx(spearmanr(-values[:, 0], values[:, 2]).statistic)
    models = [f"m{n}" for n in range(4)]
    scores = {"cos": [0.4, 0.9, 0.1, 0.6], "l2": [0.7, 0.2, 0.3, 0.3]}
    pairs = [
        result(
            "sentence-similarity", model, "evalrank/sts-test.csv", {"spearman": score}, setting=name
        )
        for name, column in scores.items()
        for model, score in zip(models, column, strict=True)
    ]
    extra = result(
        "sentence-similarity", "by cosine alone", "evalrank/sts-test.csv", {"spearman": 1.0}
    )
    (sentences,) = results_across_models([*pairs, extra], "evalrank")
    ranks = {
        (group.by["score"].rpartition(":")[2], group.by["model"]): group.metrics["rank"].value
        for group in sentences.groups
    }
    assert [ranks["sts-test.csv", model] for model in models] == [3, 1, 4, 2]
    assert [ranks["l2", model] for model in models] == [1, 4, 2, 2]
    assert len(ranks) == 8


def test_fewer_than_four_models_have_no_correlation(results):
    rows, _ = results
    few = [row for row in rows if row.model.startswith("static:a")]
    (words,) = results_across_models(few, "evalrank")
    assert all("spearman" not in group.metrics for group in words.groups)
    assert results_across_models(few[:1], "evalrank") == []
    assert np.isnan(better_postprocessed({"a": 1.0, "b+pcr:2": 2.0}, ["abtt"]).value)


RECIPE = """
data = "evalrank"
skip_missing = true

[folders]
evalrank-word = "word_evalrank"
word-similarity = ["word_similarity", "more_sets"]

[[model]]
name = ["baseline:char-ngram", "static:a.txt", "static:missing.txt"]
task = ["evalrank-word", "word-similarity"]

[[model]]
name = "infersent"
task = "evalrank-word"
skip = "its weights are a pickle"
published = [{ metric = "mrr", value = 0.5 }]

[[model]]
name = "static:a.txt"
task = "evalrank-word"
published = [{ metric = "mrr", value = 0.6 }]

[[model]]
name = "word embedding models"
task = "evalrank-correlate"
published = [{ metric = "spearman", value = 0.9, by = { score = "evalrank-word:mrr:w", set = "MR" } }]
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("recipe.toml").write_text(RECIPE, "utf-8")
    Path("a.txt").write_text("car 1 0.2\nauto 1 0.1\ncat 0 1\ndog 0.2 1\n", "utf-8")
    folder = Path("evalrank", "word_evalrank")
    folder.mkdir(parents=True)
    folder.joinpath("pos_pair.txt").write_text("car\tauto\ncat\tdog\n", "utf-8")
    folder.joinpath("basic_vocab.txt").write_text("car\nauto\ncat\ndog\n", "utf-8")
    Path("evalrank", "word_similarity").mkdir()
    Path("evalrank", "word_similarity", "EN-A.txt").write_text(
        "car\tauto\t9\ncat\tdog\t6\ncar\tcat\t1\n", "utf-8"
    )
    return tmp_path


def test_missing_models_and_folders_are_skipped_with_a_reason(place):
    done = CliRunner().invoke(evaluate, ["--recipe", "recipe.toml", "-o", "results", "--json"])
    assert done.exit_code == 0, done.output
    results = json.loads(done.stdout)["results"]
    assert sorted((one["model"], one["task"]) for one in results) == [
        ("baseline:char-ngram", "word-similarity"),
        ("static:a.txt", "evalrank-word"),
        ("static:a.txt", "word-similarity"),
    ]
    assert {one["environment"]["data"] for one in results} == {
        "evalrank/word_evalrank", "evalrank/word_similarity",
    }  # fmt: skip
    for line in (
        "skipped: infersent: its weights are a pickle",
        "skipped: evalrank/more_sets: no such file or folder",
        "skipped: missing.txt: no such file",
        "skipped: baseline:char-ngram",
        "numbers over models: giccs report RESULTS_FOLDER --against recipe.toml",
    ):
        assert line in done.stderr
    shown = CliRunner().invoke(report, ["results", "--against", "recipe.toml", "--json"])
    lines = json.loads(shown.stdout)["against"]
    assert [(one["model"], one["verdict"]) for one in lines] == [
        ("infersent", "no result"),
        ("static:a.txt", "no interval"),
        ("word embedding models", "no result"),
    ]


def test_the_data_can_be_elsewhere(place):
    Path("evalrank").rename("copy")
    arguments = ["--recipe", "recipe.toml", "-o", "results", "--data", "copy/", "static:a.txt"]
    done = CliRunner().invoke(evaluate, arguments)
    assert done.exit_code == 0, done.output
    shown = CliRunner().invoke(
        report, ["results", "--against", "recipe.toml", "--data", "copy", "--json"]
    )
    (of_a,) = [one for one in json.loads(shown.stdout)["against"] if one["ours"]]
    assert (of_a["data"], of_a["verdict"]) == ("copy/word_evalrank", "no interval")


def test_a_result_on_a_folder_is_not_beside_numbers_of_another(place):
    """As the ranking of words with fewer background words, of which Table 5 has no number."""
    Path("evalrank", "word_evalrank").rename("evalrank/basic")
    text = RECIPE.replace('evalrank-word = "word_evalrank"', 'evalrank-word = ["words", "basic"]')
    text = text.replace('task = "evalrank-word"\n', 'task = "evalrank-word"\nfolder = "words"\n')
    Path("recipe.toml").write_text(text, "utf-8")
    done = CliRunner().invoke(evaluate, ["--recipe", "recipe.toml", "-o", "results"])
    assert done.exit_code == 0, done.output
    shown = CliRunner().invoke(report, ["results", "--against", "recipe.toml", "--json"])
    lines = json.loads(shown.stdout)["against"]
    assert [one["verdict"] for one in lines] == ["no result"] * 3


def test_nothing_but_missing_data_is_an_error(place):
    Path("evalrank").rename("elsewhere")
    done = CliRunner().invoke(evaluate, ["--recipe", "recipe.toml", "-o", "results"])
    assert done.exit_code == 2
    assert "evalrank/word_evalrank: no such file or folder" in done.stderr


def test_a_missing_model_of_another_recipe_is_an_error(place):
    Path("strict.toml").write_text(RECIPE.replace("skip_missing = true", ""), "utf-8")
    done = CliRunner().invoke(evaluate, ["--recipe", "strict.toml", "-o", "results"])
    assert done.exit_code == 2
    assert "missing.txt: no such file" in done.stderr


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (
            "skip_missing = true",
            'skip_missing = "yes"',
            "skip_missing is 'yes'; expected true or false",
        ),
        ('evalrank-word = "word', 'evalrank-words = "word', "folders: evalrank-words is unknown"),
        (
            'name = "static:a.txt"',
            'name = ["static:a.txt", "b"]',
            "published is for one run; the lists make 2",
        ),
        ('skip = "its', 'answers = "a.csv"\nskip = "its', "answers is for csts-train"),
        ('name = "static:a.txt"', "name = []", "name is []; expected text"),
        ('name = "static:a.txt"', "name = [1]", "name is 1; expected text"),
    ],
)
def test_faults_of_a_recipe_are_reported(place, before, after, why):
    Path("recipe.toml").write_text(RECIPE.replace(before, after), "utf-8")
    done = CliRunner().invoke(evaluate, ["--recipe", "recipe.toml", "-o", "results"])
    assert done.exit_code == 2
    assert why in done.stderr
