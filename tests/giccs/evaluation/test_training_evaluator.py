"""The evaluator in a real training: its numbers are those of giccs, after every epoch, in the CSV file."""

import csv
import logging

import pytest

import giccs
from bws.base.problems import InputError
from giccs.benchmark import write_benchmark

from ..deferred import Deferred, requires

pytestmark = requires("torch")
library = Deferred("sentence_transformers")

METRICS = ["pearson", "spearman", "rank_spearman"]


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """Return a benchmark whose judgments are unknown."""
    path = tmp_path_factory.mktemp("sample") / "benchmark.jsonl"
    write_benchmark(giccs.load_benchmark("giccs-sample").first(12).items, path)
    return giccs.load_benchmark(path)


def own_numbers(model, data, **options):
    (result,) = giccs.evaluate(model, data, "pairwise-sts", **options)
    return {name: result.metrics[name].value for name in METRICS}


@pytest.mark.parametrize("history", ["with", "without"])
def test_the_metrics_are_those_of_giccs(static_encoder, sample, history):
    model = library.SentenceTransformer(str(static_encoder), device="cpu")
    metrics = giccs.PairwiseSTSEvaluator(sample, history=history)(model)
    assert metrics == pytest.approx(own_numbers(model, sample, history=history))


def test_the_share_of_the_noise_ceiling(static_encoder):
    model = library.SentenceTransformer(str(static_encoder), device="cpu")
    evaluator = giccs.PairwiseSTSEvaluator(name="sample")
    metrics = evaluator(model)
    rho = own_numbers(model, "giccs-sample")["spearman"]
    ceiling = giccs.noise_ceiling("giccs-sample")["spearman"].value
    assert evaluator.primary_metric == "sample_spearman"
    assert metrics["sample_spearman"] == pytest.approx(rho)
    assert metrics["sample_spearman_share_of_ceiling"] == pytest.approx(rho / ceiling)
    assert rho != pytest.approx(rho / ceiling, abs=1e-5)


def test_a_training_keeps_the_epoch_with_the_best_correlation(plain_encoder, sample, tmp_path):
    datasets = pytest.importorskip("datasets")
    from sentence_transformers.sentence_transformer import losses

    model = library.SentenceTransformer(str(plain_encoder), device="cpu")
    data = {
        "sentence1": [item.last_turn for item in sample.items],
        "sentence2": [item.utterance for item in sample.items],
        "score": [item.score for item in sample.items],
    }
    evaluator = giccs.PairwiseSTSEvaluator(sample)
    trainer = library.SentenceTransformerTrainer(
        model,
        library.SentenceTransformerTrainingArguments(
            str(tmp_path / "run"), num_train_epochs=3, per_device_train_batch_size=16,
            learning_rate=1e-2, eval_strategy="epoch", save_strategy="epoch", seed=1, use_cpu=True,
            load_best_model_at_end=True, metric_for_best_model="eval_spearman", report_to="none",
            disable_tqdm=True,
        ),
        train_dataset=datasets.Dataset.from_dict(data),
        loss=losses.CosineSimilarityLoss(model),
        evaluator=evaluator,
    )  # fmt: skip
    trainer.train()
    (file,) = tmp_path.rglob("pairwise_sts_evaluation_results.csv")
    rows = list(csv.DictReader(file.open(encoding="utf-8")))
    assert [float(row["epoch"]) for row in rows] == [1, 2, 3]
    assert list(rows[0]) == ["epoch", "steps", *METRICS]
    logged = [entry for entry in trainer.state.log_history if "eval_spearman" in entry]
    for metric in METRICS:
        in_file = [float(row[metric]) for row in rows]
        assert in_file == pytest.approx([entry[f"eval_{metric}"] for entry in logged])
        assert len(set(in_file)) == 3
    best = max(float(row["spearman"]) for row in rows)
    assert trainer.state.best_metric == pytest.approx(best)
    assert own_numbers(model, sample)["spearman"] == pytest.approx(best)
    evaluator(model, str(tmp_path))
    model.save(str(tmp_path / "saved"))
    assert "rank_spearman" in (tmp_path / "saved" / "README.md").read_text("utf-8")


def test_no_file_if_none_is_wanted(static_encoder, sample, tmp_path):
    model = library.SentenceTransformer(str(static_encoder), device="cpu")
    giccs.PairwiseSTSEvaluator(sample, write_csv=False)(model, str(tmp_path))
    assert not list(tmp_path.iterdir())


def test_undefined_metrics_are_nan_with_a_warning(sample, caplog):
    from sentence_transformers.sentence_transformer.modules import BoW

    model = library.SentenceTransformer(modules=[BoW(vocab=["unbekannt"])], device="cpu")
    with caplog.at_level(logging.WARNING):
        metrics = giccs.PairwiseSTSEvaluator(sample)(model)
    assert metrics == pytest.approx(dict.fromkeys(METRICS, float("nan")), nan_ok=True)
    assert "spearman is undefined: 60 predictions are NaN" in caplog.text


def test_invalid_data_are_refused_before_the_training(sample, tmp_path):
    with pytest.raises(InputError, match=r"missing\.jsonl"):
        giccs.PairwiseSTSEvaluator(tmp_path / "missing.jsonl")
    (tmp_path / "judgments.csv").write_text(
        "tuple_id,group,item1,item2,item3,best,worst,annotator\nt,g,a,b,c,a,b,x\n"
    )
    with pytest.raises(InputError, match="60 of 60 items are not judged"):
        giccs.PairwiseSTSEvaluator(sample, tmp_path / "judgments.csv")
    with pytest.raises(ValueError, match="history is 'past'; expected without or with"):
        giccs.PairwiseSTSEvaluator(sample, history="past")
