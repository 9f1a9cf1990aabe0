"""Reading the ten sets, logistic regression against scikit-learn's nested search, the cache, the task."""

import json
import math
import os
import random
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bws.base.problems import InputError
from bws.stats.estimates import Estimate
from giccs.evalrank import logistic
from giccs.evalrank.classification import (
    Classification,
    accuracy,
    mean_accuracy,
    open_tasks,
)
from giccs.evalrank.classification_data import SETS, read_classification
from giccs.evalrank.dependence import number_texts, variances
from giccs.evalrank.logistic import FOLDS, INNER_FOLDS, Learner
from giccs.evalrank.vector_cache import cached_vectors
from giccs.evaluation.task_results import evaluate_task, signature_of
from giccs.measures.results import Store
from giccs.models import open_model
from giccs.progress import silent
from giccs.tasks import TaskOptions

SHARED = Path(os.environ.get("GICCS_SHARED", Path(__file__).parents[4] / "shared"))
LABELS = {
    "SCICITE": "background method result",
    "SST2": "0 1",
    "SST5": "0 1 2 3 4",
    "TREC": "ABBR DESC ENTY HUM LOC NUM",
    "MRPC": "0 1",
    "SICK-E": "CONTRADICTION ENTAILMENT NEUTRAL",
}
HEADERS = {
    "MRPC": "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n",
    "SICK-E": "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n",
}
FEW = (0.001, 0.03, 1.0)
WORDS = ("good", "bad", "dull", "fine", "old", "new")
LINES = {
    "SCICITE": lambda label, a, b: json.dumps({"text": a, "label": label, "metadata": {}}),
    "SST2": lambda label, a, b: f"{a}\t{label}",
    "SST5": lambda label, a, b: f"{label} {a}",
    "TREC": lambda label, a, b: f"{label}:x {a}",
    "MRPC": lambda label, a, b: f"{label}\t1\t2\t{a}\t{b}",
    "SICK-E": lambda label, a, b: f"1\t{a}\t{b}\t3.5\t{label}",
}


class TableModel:
    """Stands for a model in tests of what is done with vectors: a text's come from a function."""

    name = "made-up:table"

    def __init__(self, vector, identity="1"):
        self.vector, self.identity, self.calls = vector, {"kind": "table", "n": identity}, []

    def environment(self):
        return {}

    def vectors(self, texts, progress):
        self.calls.append(list(texts))
        return np.array([self.vector(text) for text in texts], np.float32)


def word_of(text):
    """A vector in which a text's class, its last word, stands plainly, more or less strongly."""
    vector = np.zeros(len(WORDS))
    vector[WORDS.index(text.split()[-1])] = noise_of(text).uniform(0.8, 1.2)
    return vector


def noise_of(text):
    """Draws that depend on the text, but for its last word."""
    return np.random.default_rng(list(text.rsplit(" ", 1)[0].encode()))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GICCS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(logistic, "COSTS", FEW)  # time is all that more of them would take
    return tmp_path / "cache" / "vectors"


def fill(folder, name, per_class=12):
    """Write one set; the last word of a text, in pairs of the first, is different for each class."""
    draw = random.Random(name)
    layout = SETS[name]
    for place, (file, part) in enumerate(layout.files.items()):
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        text = lambda k: f"film {draw.random():.6f} is {WORDS[k]}"  # noqa: E731
        if not part:
            lines = [text(place) for _ in range(per_class * 2)]
        else:
            labels = list(enumerate(LABELS[name].split())) * per_class
            draw.shuffle(labels)
            lines = [LINES[name](label, text(k), text(0)) for k, label in labels]
        path.write_text(HEADERS.get(name, "") + "".join(f"{line}\n" for line in lines), "utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for name in SETS:
        fill(folder, name)
    return folder


@pytest.fixture(scope="module")
def separable(folder, tmp_path_factory):
    """What a model finds whose vectors tell the class."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GICCS_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(logistic, "COSTS", FEW)
        return evaluate_task(Classification(), TableModel(word_of), read_classification(folder))


def data_of(folder, *names):
    for name in names:
        fill(folder, name)
    return read_classification(folder)


def features_and_classes(n=100, classes=3, dims=6, signal=0.6, seed=1):
    draw = np.random.default_rng(seed)
    y = np.arange(n) % classes
    x = draw.normal(size=(n, dims)) * [1, 1, 5, 0.1, 1, 1][:dims]
    x[:, 0] += signal * y
    x[:, 3] += 0.1 * signal * (y == 1)
    return x.astype(np.float32), [f"c{label}" for label in y]


def pipeline(cost=1.0):
    return make_pipeline(StandardScaler(), LogisticRegression(C=cost, max_iter=2000))


def test_cross_validation_is_scikit_learns_nested_search():
    """GridSearchCV of a pipeline, itself cross-validated: scaling and C never see the fold that is tested."""
    x, y = features_and_classes()
    outer = StratifiedKFold(FOLDS, shuffle=True, random_state=7)
    inner = StratifiedKFold(INNER_FOLDS, shuffle=True, random_state=7)
    search = GridSearchCV(pipeline(), {"logisticregression__C": FEW}, cv=inner)
    expected = cross_val_score(search, x, np.array(y), cv=outer)
    predicted, fold, costs = Learner(x, y, 7).cross_validate()
    right = np.array([a == b for a, b in zip(y, predicted, strict=True)])
    assert [right[np.array(fold) == k].mean() for k in range(FOLDS)] == pytest.approx(expected)
    assert len(costs) == FOLDS


def test_with_one_cost_it_is_plain_cross_validation(monkeypatch):
    monkeypatch.setattr(logistic, "COSTS", (0.01,))
    x, y = features_and_classes(n=97)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=3)
    expected = cross_val_score(pipeline(0.01), x, np.array(y), cv=folds)
    predicted, fold, costs = Learner(x, y, 3).cross_validate()
    right = np.array([a == b for a, b in zip(y, predicted, strict=True)])
    assert [right[np.array(fold) == k].mean() for k in range(FOLDS)] == pytest.approx(expected)
    assert set(costs) == {0.01}


def test_train_and_test_rows_are_those_of_a_grid_search():
    x, y = features_and_classes(n=140)
    train, test = np.arange(90), np.arange(90, 140)
    inner = StratifiedKFold(INNER_FOLDS, shuffle=True, random_state=0)
    search = GridSearchCV(pipeline(), {"logisticregression__C": FEW}, cv=inner)
    search.fit(x[train], np.array(y)[train])
    predicted, cost = Learner(x, y).predict_test(train, np.array([], np.intp), test)
    means = search.cv_results_["mean_test_score"]  # equal ones differ in their last bits
    assert cost == FEW[int(np.argmax(means > means.max() - 1e-9))]
    again = pipeline(cost).fit(x[train], np.array(y)[train])
    assert predicted == again.predict(x[test]).tolist()


def test_with_dev_rows_the_cost_is_the_one_that_does_best_there():
    x, y = features_and_classes(n=150)
    train, dev, test = np.arange(90), np.arange(90, 120), np.arange(120, 150)
    labels = np.array(y)
    on_dev = [pipeline(c).fit(x[train], labels[train]).score(x[dev], labels[dev]) for c in FEW]
    predicted, cost = Learner(x, y).predict_test(train, dev, test)
    assert cost == FEW[int(np.argmax(on_dev))]
    assert predicted == pipeline(cost).fit(x[train], labels[train]).predict(x[test]).tolist()


def test_a_row_that_is_tested_changes_nothing_for_the_others():
    """Neither the scale nor C is fitted on it: a test row a million times as long is no one else's matter."""
    x, y = features_and_classes()
    predicted, fold, costs = Learner(x, y).cross_validate()
    longer = x.copy()
    longer[17] *= 1e6
    again, _, costs_again = Learner(longer, y).cross_validate()
    same_fold = [row for row in range(100) if fold[row] == fold[17] and row != 17]
    assert [predicted[row] for row in same_fold] == [again[row] for row in same_fold]
    assert costs[fold[17]] == costs_again[fold[17]]
    train, test = np.arange(60), np.arange(60, 100)
    longer = x.copy()
    longer[99] *= 1e6
    result = [Learner(v, y).predict_test(train, np.array([], np.intp), test) for v in (x, longer)]
    assert result[0][0][:-1] == result[1][0][:-1]
    assert result[0][1] == result[1][1]


def test_the_unit_of_vectors_does_not_matter():
    x, y = features_and_classes()
    predictions = [Learner(x * unit, y).cross_validate()[0] for unit in (1, 1024)]
    assert predictions[0] == predictions[1]


def test_separable_classes_are_told_apart_in_every_set(separable):
    result = separable
    found = {group.by["set"]: group.metrics["accuracy"] for group in result.groups}
    assert list(found) == list(SETS)
    assert {name: one.value for name, one in found.items()} == dict.fromkeys(SETS, 1.0)
    assert all(one.low > 0.8 and one.high > 0.999 for one in found.values())
    assert result.metrics["accuracy"].value == 1.0
    assert result.metrics["accuracy"].n == 10


def test_vectors_that_know_nothing_give_chance(folder):
    """Vectors that do not depend on the class: of ten intervals at 95 % one may miss chance, not two."""
    noise = TableModel(lambda text: noise_of(text).normal(size=5))
    data = read_classification(folder)
    result = evaluate_task(Classification(), noise, data)
    outside = 0
    for group in result.groups:
        found = group.metrics["accuracy"]
        chance = 1 / len(LABELS.get(group.by["set"], "pos neg").split())
        outside += not found.low <= chance <= found.high
        assert found.extra["majority"] == pytest.approx(chance)
    assert outside <= 1


def test_predictions_are_kept_a_row_each_and_give_the_accuracies(separable):
    result = separable
    assert set(result.predictions.columns) == {"set", "place", "label", "prediction", "fold"}
    for group in result.groups:
        rows = result.predictions.filter(set=group.by["set"])
        assert rows.height == group.metrics["accuracy"].n
        assert (rows["label"] == rows["prediction"]).mean() == group.metrics["accuracy"].value
    of_mr = result.predictions.filter(set="MR")
    assert sorted(set(of_mr["fold"])) == list(range(10))
    assert of_mr["place"][0] == "MR/rt-polarity.pos:1"


def test_a_result_goes_through_the_store_and_depends_on_the_seed(tmp_path):
    data, model = data_of(tmp_path, "SCICITE", "SICK-E").first(12), TableModel(word_of)
    (task,) = open_tasks(TaskOptions(seed=4))
    result = evaluate_task(task, model, data)
    store = Store(tmp_path / "results")
    store.add(result)
    assert (
        store.find(model.name, task.name, signature_of(task, model, data)).groups == result.groups
    )
    assert store.find(model.name, task.name, signature_of(Classification(5), model, data)) is None


def test_a_real_encoder_does_it(static_encoder, tmp_path):
    model = open_model(str(static_encoder))
    task = Classification()
    assert task.refuses(model) == ""
    result = evaluate_task(task, model, data_of(tmp_path, "SST5", "TREC", "MRPC"))
    assert all(0 <= group.metrics["accuracy"].value <= 1 for group in result.groups)
    assert result.environment["device"]


def test_pairs_are_differences_and_products(tmp_path):
    """The class is whether the sentences are alike: no single sentence tells, |u - v| does."""
    draw = random.Random(0)
    sentences = [f"sentence {n}" for n in range(40)]
    rows = []
    for _ in range(200):
        a, b = draw.sample(sentences, 2)
        rows.append(draw.choice([f"1\t1\t2\t{a}\t{a}", f"0\t1\t2\t{a}\t{b}"]))
    (tmp_path / "MRPC").mkdir()
    for part in ("train", "test"):
        path = tmp_path / "MRPC" / f"msr_paraphrase_{part}.txt"
        path.write_text(HEADERS["MRPC"] + "\n".join(rows), "utf-8")
    model = TableModel(lambda text: np.random.default_rng(sum(map(ord, text))).normal(size=8))
    result = evaluate_task(Classification(), model, read_classification(tmp_path))
    assert result.groups[0].metrics["accuracy"].value > 0.9


def test_unknown_texts_are_zeros_and_counted(tmp_path):
    data = data_of(tmp_path, "CR")
    lost = {row.texts[0] for row in data.sets[0].rows[:5]}
    vector = lambda text: np.full(6, np.nan) if text in lost else word_of(text)  # noqa: E731
    result = evaluate_task(Classification(), TableModel(vector), data)
    assert result.metrics["accuracy"].reason == "5 texts without a vector count as zeros"
    found = result.groups[0].metrics["accuracy"]
    assert found.extra["unknown"] == 5
    assert found.reason == "5 texts without a vector count as zeros"
    assert found.value > 0.8


def test_a_class_that_is_too_rare_is_no_accuracy_but_a_reason(tmp_path):
    data = data_of(tmp_path, "MR", "SST2")
    (tmp_path / "MR/rt-polarity.neg").write_text("one bad film\nanother\n")
    data = read_classification(tmp_path)
    result = evaluate_task(Classification(), TableModel(word_of), data)
    found = {group.by["set"]: group.metrics["accuracy"] for group in result.groups}
    assert math.isnan(found["MR"].value)
    assert "class neg has 2 training rows" in found["MR"].reason
    assert result.metrics["accuracy"].value == found["SST2"].value
    assert result.metrics["accuracy"].reason == "1 data sets excluded"


def test_vectors_are_computed_once_and_kept(cache, tmp_path):
    data = data_of(tmp_path, "SCICITE", "SST2", "MRPC")
    model = TableModel(word_of)
    first = evaluate_task(Classification(), model, data)
    assert len(model.calls) == 3
    assert all(len(texts) == len(set(texts)) for texts in model.calls)
    again = TableModel(word_of)
    assert evaluate_task(Classification(seed=1), again, data).groups[0].by == first.groups[0].by
    assert again.calls == []
    other = TableModel(word_of, identity="2")
    evaluate_task(Classification(), other, data)
    assert len(other.calls) == 3
    assert len(list(cache.iterdir())) == 2 * 3


def test_a_broken_cache_is_computed_again(cache):
    model = TableModel(word_of)
    texts = ["a good", "b bad", "a good"]
    first = cached_vectors(model, texts, silent)
    assert first.shape == (3, 6)
    assert (first[0] == first[2]).all()
    (path,) = cache.iterdir()
    good = path.read_bytes()
    for broken in (b"", good[:-8], b"no array", good[:200]):
        path.write_bytes(broken)
        assert (cached_vectors(model, texts, silent) == first).all()
        assert path.read_bytes() == good
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    assert (cached_vectors(model, texts, silent) == first).all()


def test_models_without_vectors_are_refused_with_what_to_do():
    task = Classification()
    assert "requires an encoder" in task.refuses(open_model("baseline:chance"))

    class Causal:
        def encoder_name(self):
            return "encoder:gpt2"

    assert "use encoder:gpt2 for" in task.refuses(Causal())


def test_interval_grows_where_texts_repeat():
    right = [True] * 60 + [False] * 40
    apart = accuracy(right, [(str(n),) for n in range(100)])
    twice = accuracy(right + right, [(str(n),) for n in range(100)] * 2)
    assert twice.high - twice.low > 0.9 * (apart.high - apart.low)
    assert accuracy([True] * 10, [("a",)] * 10).high == pytest.approx(1.0)


def test_variances_are_double_sums():
    draw = np.random.default_rng(2)
    off = draw.normal(size=30)
    texts = [tuple(draw.choice(list("abcdefgh"), 2)) for _ in range(30)]
    texts[3] = ("a", "a")
    pairs = [(i, j) for i in range(30) for j in range(30) if set(texts[i]) & set(texts[j])]
    result = variances(off, *number_texts(texts))
    assert result.shared_text == pytest.approx(sum(off[i] * off[j] for i, j in pairs))
    same = [(i, j) for i, j in pairs if set(texts[i]) == set(texts[j])]
    assert result.same_pair == pytest.approx(sum(off[i] * off[j] for i, j in same))


def test_the_mean_over_sets():
    one, two = Estimate(0.6, 0.5, 0.75, 10), Estimate(0.8, 0.7, 0.85, 10)
    lost = Estimate(math.nan, math.nan, math.nan, 3, "lost")
    result = mean_accuracy([one, two, lost])
    assert result.value == pytest.approx(0.7)
    assert result.low == pytest.approx(0.7 - math.hypot(0.1, 0.1) / 2)
    assert result.high == pytest.approx(0.7 + math.hypot(0.15, 0.05) / 2)
    assert math.isnan(mean_accuracy([lost]).value)


def test_all_forms_are_read(folder):
    data = read_classification(folder)
    result = {data_set.name: data_set for data_set in data.sets}
    assert list(result) == list(SETS)
    assert result["MR"].splits == ()
    assert result["TREC"].splits == ("train", "test")
    assert result["SICK-E"].splits == ("train", "dev", "test")
    assert {row.label for row in result["TREC"].rows} == set(LABELS["TREC"].split())
    assert all(len(row.texts) == 2 for row in result["MRPC"].rows)
    assert data.warnings == ()
    assert data.described() == f"{sum(len(one.rows) for one in data.sets):,} rows in 10 data sets"
    assert read_classification(folder).fingerprint == data.fingerprint
    assert data.first(20).fingerprint != data.fingerprint


def test_the_folder_above_will_do(tmp_path):
    fill(tmp_path / "sent_classification", "CR")
    data = read_classification(tmp_path)
    assert [data_set.name for data_set in data.sets] == ["CR"]
    assert len(data.warnings) == 9
    assert "MR is missing; skipped" in str(data.warnings[1])


def test_limit_keeps_the_proportion_of_classes(folder):
    data = read_classification(folder).first(12)
    for data_set in data.sets:
        for part in data_set.splits or ("",):
            labels = [data_set.rows[row].label for row in data_set.rows_of_split(part)]
            counts = [labels.count(label) for label in set(labels)]
            assert len(labels) == 12
            assert max(counts) - min(counts) <= 1
    assert read_classification(folder).first(10**6) == read_classification(folder)


def test_latin_1_is_read_where_publishers_use_it_and_said(tmp_path):
    fill(tmp_path, "MR")
    path = tmp_path / "MR/rt-polarity.pos"
    path.write_bytes(path.read_bytes() + "a café film\n".encode("latin-1"))
    data = read_classification(tmp_path)
    assert data.sets[0].rows[24].texts == ("a café film",)
    assert any(
        f"{path}:25: byte 0xe9 is not valid UTF-8" in str(warning) for warning in data.warnings
    )
    fill(tmp_path, "SST2")
    path = tmp_path / "SST/binary/sentiment-dev"
    path.write_bytes(path.read_bytes() + "a café film\t1\n".encode("latin-1"))
    with pytest.raises(InputError, match="sentiment-dev:25: byte 0xe9 is not UTF-8"):
        read_classification(tmp_path)


def test_empty_lines_are_left_out_and_counted(tmp_path):
    fill(tmp_path, "CR")
    path = tmp_path / "CR/custrev.neg"
    path.write_text(path.read_text().replace("\n", "\n\n", 2) + "  \n")
    data = read_classification(tmp_path)
    assert len(data.sets[0].rows) == 48
    assert f"{path}: 3 empty lines skipped" in map(str, data.warnings)


def test_every_bad_line_is_named(tmp_path):
    for name in ("SCICITE", "SST2", "SST5", "TREC", "MRPC", "SICK-E"):
        fill(tmp_path, name)
    wrong = {
        "SCICITE/dev.txt": ("{]", "invalid JSON"),
        "SCICITE/test.txt": ('{"text": 3, "label": "method"}', "expected an object with"),
        "SST/binary/sentiment-dev": ("no tab 1", "1 tab-separated cells; expected 2"),
        "SST/fine/sentiment-test": ("7 great", "unknown class '7'; expected one of 0, 1, 2, 3, 4"),
        "TREC/TREC_10.label": (
            "LOC Where?",
            "'LOC' is not a class; expected a class such as LOC:city",
        ),
        "MRPC/msr_paraphrase_test.txt": ("1\t1\t2\t \tx", "empty text"),
        "SICK/SICK_trial.txt": ("1\ta\tb\t3\tMAYBE", "one of CONTRADICTION, ENTAILMENT, NEUTRAL"),
    }
    places = {}
    for file, (line, _) in wrong.items():
        path = tmp_path / file
        places[file] = path.read_text().count("\n") + 1
        path.write_text(path.read_text() + line + "\n")
    with pytest.raises(InputError) as raised:
        read_classification(tmp_path)
    said = [str(problem) for problem in raised.value.problems]
    assert len(said) == len(wrong)
    for file, (_, message) in wrong.items():
        assert any(
            line.startswith(f"{tmp_path / file}:{places[file]}: ") and message in line for line in said
        ), (file, said)  # fmt: skip


def test_half_a_set_and_no_set_are_problems(tmp_path):
    fill(tmp_path, "MR")
    (tmp_path / "MR/rt-polarity.neg").unlink()
    with pytest.raises(InputError, match=r"rt-polarity.neg: missing; required for MR"):
        read_classification(tmp_path)
    with pytest.raises(InputError, match="no such folder; expected at least one of"):
        read_classification(tmp_path / "nothing")
    (tmp_path / "nothing").mkdir()
    with pytest.raises(InputError, match="contains no data set; expected at least one"):
        read_classification(tmp_path / "nothing")
    fill(tmp_path, "MR")
    fill(tmp_path, "SICK-E")
    (tmp_path / "SICK/SICK_train.txt").write_text("other titles\n")
    (tmp_path / "MR/rt-polarity.neg").write_text("\n")
    with pytest.raises(InputError) as raised:
        read_classification(tmp_path)
    assert "no rows; expected" in str(raised.value)
    assert "expected a line that begins with 'pair_ID\\t'" in str(raised.value)


def test_the_published_folder_is_read_whole():
    published = SHARED / "data" / "evalrank" / "sent_classification"
    if not published.is_dir():
        pytest.skip(f"{published} is not there; set GICCS_SHARED")
    data = read_classification(published)
    sizes = {data_set.name: len(data_set.rows) for data_set in data.sets}
    assert sizes == {
        "SCICITE": 10097, "MR": 10662, "CR": 3771, "MPQA": 10603, "SUBJ": 10000, "SST2": 70042,
        "SST5": 11855, "TREC": 5952, "MRPC": 5801, "SICK-E": 9927,
    }  # fmt: skip
    message = [str(warning).removeprefix(f"{published}{os.sep}") for warning in data.warnings]
    assert message == [
        "CR/custrev.pos: 2 empty lines skipped",
        "CR/custrev.neg: 2 empty lines skipped",
        "MPQA/mpqa.pos: 1 empty lines skipped",
        "MPQA/mpqa.neg: 2 empty lines skipped",
        "TREC/train_5500.label:66: byte 0xf0 is not valid UTF-8; the file is read as Latin-1",
    ]
