"""Training: every way runs, the best epoch is kept, a killed training ends as if it had not been killed."""

import gc
import itertools
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import pearsonr, spearmanr

from bws.base.problems import InputError
from giccs.csts.cli import main
from giccs.csts.data import pairs, read_csts, write_csts
from giccs.csts.encoders import runs
from giccs.csts.encoders.curve import curve, curve_chart, curve_csv
from giccs.csts.encoders.runs import train, train_seeds, validated
from giccs.csts.encoders.settings import (
    Machine,
    Settings,
    why_impossible,
)
from giccs.csts.encoders.splits import read_splits, sample_rows
from giccs.csts.encoders.sweep import Grid, points, read_grid, sweep
from giccs.csts.measures import mean_metrics
from giccs.measures.results import Store
from giccs.report import report
from tests.nightly import others_nightly

from ..deferred import Deferred, requires
from . import killed_training, tiny_bert

pytestmark = requires("torch", "accelerate")
torch = Deferred("torch")
scorers = Deferred("giccs.csts.encoders.scorer")
training = Deferred("giccs.csts.encoders.training")

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
CPU = Machine("cpu")
SHORT = {"epochs": 1, "batch": 8, "learning_rate": 1e-3}
WAYS = [
    (encoding, objective, operation)
    for encoding, objective, operation in itertools.product(
        ("cross", "bi", "tri"), ("mse", "quad", "quad+mse"), ("hadamard", "concatenation")
    )
    if (encoding == "tri" or operation == "hadamard")
    and not (encoding == "cross" and objective != "mse")
]
POOLERS = [("cls", False), ("cls", True), ("mean", False)]


@pytest.fixture(scope="module", autouse=True)
def frozen():
    """The Trainer collects garbage before each training; what is loaded already is none."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return str(tiny_bert.make(tmp_path_factory.mktemp("tiny-bert")))


@pytest.fixture(scope="module")
def still(tmp_path_factory):
    """The same without dropout, so that how a batch is cut into parts can make no difference."""
    folder = tmp_path_factory.mktemp("still-bert")
    return str(tiny_bert.make(folder, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))


@pytest.fixture(scope="module")
def splits():
    return killed_training.small()


@pytest.fixture(scope="module")
def whole(tiny, splits, tmp_path_factory):
    """Four epochs without interruption: the folder, and what came of it."""
    folder = tmp_path_factory.mktemp("whole")
    return folder, train(killed_training.settings(tiny), splits, folder, CPU)


def weights(folder):
    (path,) = Path(folder, "models").glob("*/model.safetensors")
    return path.read_bytes()


# Every way to train


@pytest.mark.parametrize(
    ("encoding", "objective", "operation", "pooling", "transform"),
    others_nightly(
        ((*way, *pooler) for way in WAYS for pooler in POOLERS),
        ("cross", "mse", "hadamard", "cls", True),
        ("bi", "quad", "hadamard", "mean", False),
        ("tri", "quad+mse", "concatenation", "cls", False),
    ),
)
def test_every_encoding_objective_and_pooler_trains_and_is_measured(
    tiny, tmp_path, encoding, objective, operation, pooling, transform
):
    settings = Settings(
        tiny, encoding=encoding, objective=objective, operation=operation, pooling=pooling,
        transform=transform, **SHORT,
    )  # fmt: skip
    result = train_seeds(settings, killed_training.small(8, 8), tmp_path, CPU)
    assert [group.by["split"] for group in result.groups] == ["validation", "test"]
    table = result.predictions
    assert np.isfinite(table["prediction"].to_numpy()).all()
    assert np.ptp(table["prediction"].to_numpy()) > 0
    assert result.metrics["spearman"].n == 8


def test_each_objective_is_what_moves_the_weights(tiny, splits, tmp_path):
    """One epoch with each from the same start comes to three different models."""
    result = {
        objective: train_seeds(
            Settings(tiny, objective=objective, **SHORT), splits, tmp_path, CPU
        ).predictions["prediction"].to_list()
        for objective in ("mse", "quad", "quad+mse")
    }  # fmt: skip
    assert result["mse"] != result["quad"] != result["quad+mse"] != result["mse"]


def test_rows_that_take_no_part_in_the_quadruplet_loss_are_counted(tiny, splits, tmp_path):
    first, second, *rest = splits.train[:10]
    equal = (replace(first, label=3), replace(second, label=3))
    part = replace(splits, train=(*equal, *rest))
    result = {}
    for objective in ("mse", "quad", "quad+mse"):
        settings = Settings(tiny, objective=objective, **SHORT)
        (seed,) = train(settings, part, tmp_path, CPU, keep=False).seeds
        result[objective] = seed.environment["rows"]
    assert result == {
        "mse": {"trained": 10, "in_pairs": 0, "left_out": 0},
        "quad": {"trained": 8, "in_pairs": 8, "left_out": 2},
        "quad+mse": {"trained": 10, "in_pairs": 8, "left_out": 0},
    }


@pytest.mark.parametrize("objective", ["mse", "quad"])
def test_it_learns_what_it_is_shown(still, objective, tmp_path):
    """Measured on what it was trained on: correlations go up."""
    rows = read_splits("csts-sample").train[:16]
    splits = replace(killed_training.small(), train=rows, validation=rows, test=())
    settings = Settings(
        still,
        objective=objective,
        pooling="mean",
        epochs=10,
        batch=8,
        learning_rate=3e-3,
        select="best",
    )
    outcome = train(settings, splits, tmp_path, CPU, keep=False)
    (seed,) = outcome.seeds
    assert outcome.result.signature["split"] == "validation"
    assert outcome.result.metrics["spearman"].value > 0.8
    assert seed.environment["epochs"][0]["loss"] > 2 * seed.environment["epochs"][-1]["loss"]
    assert outcome.models == ()


# What is kept, and what is measured


def test_the_best_epoch_is_kept_if_it_is_to_be_selected(whole):
    _, outcome = whole
    (seed,) = outcome.seeds
    epochs = seed.environment["epochs"]
    result = [epoch["spearman"] for epoch in epochs]
    assert [epoch["epoch"] for epoch in epochs] == [1, 2, 3, 4]
    assert seed.environment["best_epoch"] == 1 + int(np.argmax(result))
    assert seed.environment["selected_epoch"] == seed.environment["best_epoch"] == 2
    assert result[-1] < max(result)
    assert validated(seed)["spearman"].value == pytest.approx(max(result))


@pytest.fixture(scope="module")
def last(tiny, splits, tmp_path_factory):
    """The same training, of which the last epoch is kept: its folder and outcome."""
    folder = tmp_path_factory.mktemp("last")
    return folder, train(of_last_epoch(tiny), splits, folder, CPU)


def of_last_epoch(model):
    return replace(killed_training.settings(model), select="last")


def test_the_last_epoch_is_kept_by_default(whole, last, splits):
    assert Settings("m").select == "last"
    (best,), (seed,) = whole[1].seeds, last[1].seeds
    assert seed.environment["epochs"] == best.environment["epochs"]
    assert (seed.environment["best_epoch"], seed.environment["selected_epoch"]) == (2, 4)
    final = seed.environment["epochs"][-1]["spearman"]
    assert validated(seed)["spearman"].value == pytest.approx(final)
    assert validated(best)["spearman"].value > validated(seed)["spearman"].value
    again = scorers.load_trained(last[1].models[0]).predict(splits.test)
    assert again == pytest.approx(last[1].result.predictions["prediction"].to_numpy(), abs=1e-6)
    assert weights(last[0]) != weights(whole[0])


def test_the_choice_of_the_epoch_is_in_signature_and_setting(whole, last):
    assert [one[1].result.signature["settings"]["select"] for one in (whole, last)] == [
        "best", "last",
    ]  # fmt: skip
    assert whole[1].result.signature["setting"].endswith("best epoch")
    assert "epoch" not in last[1].result.signature["setting"].replace("epochs", "")


def test_scores_that_selected_the_epoch_are_marked(whole, last, splits, tiny, tmp_path):
    document = whole[1].result.document()
    of = {group["by"]["split"]: group["metrics"] for group in document["groups"]}
    for metric in of["validation"].values():
        assert metric["reason"].endswith("epoch selected on this split")
    assert {tuple(metric["selected"]) for metric in of["validation"].values()} == {("epoch",)}
    assert not any("selected" in metric for metric in of["test"].values())
    assert whole[1].result.signature["selected_on_validation"] == ["epoch"]
    assert last[1].result.signature["selected_on_validation"] == []
    assert "selected on" not in json.dumps(last[1].result.document())
    hidden = replace(splits, test=())  # what is reported is then validation
    settings = Settings(tiny, select="best", seeds=(1, 2), **SHORT)
    outcome = train(settings, hidden, tmp_path, CPU, keep=False)
    for result in (outcome.result, *outcome.seeds):
        assert result.metrics["spearman"].reason.endswith("epoch selected on this split")
    assert outcome.result.metrics["spearman"].extra["sd"] >= 0
    written = report([outcome.result], "table")
    assert "]*" in written
    assert (
        "Spearman ρ, Pearson r, pairwise ordering accuracy, split=validation: epoch selected on"
        in written
    )
    assert "split=validation: epoch selected on this split" in report([whole[1].result], "table")
    assert "*" not in report([last[1].result], "table")


def test_the_kept_model_says_what_was_measured(whole, splits):
    _, outcome = whole
    (model,) = outcome.models
    again = scorers.load_trained(model).predict(splits.test)
    assert again == pytest.approx(outcome.result.predictions["prediction"].to_numpy(), abs=1e-6)


def test_correlations_are_scipy_s(whole):
    _, outcome = whole
    table = outcome.result.predictions
    for name, of in (("spearman", spearmanr), ("pearson", pearsonr)):
        expected = of(table["prediction"], table["label"]).statistic
        assert outcome.result.metrics[name].value == pytest.approx(expected, abs=1e-12)


def test_pair_accuracy_is_counted_by_hand(whole, splits):
    _, outcome = whole
    said = dict(zip(*outcome.result.predictions[["uid", "prediction"]], strict=True))
    both = pairs(replace(read_csts("csts-sample", "test"), instances=splits.test))
    right = [said[high.uid] > said[low.uid] for high, low in both if high.label != low.label]
    assert outcome.result.metrics["pair_accuracy"].value == pytest.approx(np.mean(right))
    assert outcome.result.metrics["pair_accuracy"].n == len(right)


def test_a_result_is_found_again_and_nothing_is_trained(whole, tiny, splits, monkeypatch):
    folder, before = whole
    monkeypatch.setattr(training, "fit", lambda *_: pytest.fail("trained again"))
    after = train(killed_training.settings(tiny), splits, folder, CPU)
    assert after.is_reused
    assert not before.is_reused
    assert after.result.document() == json.loads(json.dumps(before.result.document()))
    assert after.models == before.models
    assert Store(folder).predictions(after.result).equals(before.result.predictions)


def test_nothing_is_left_but_results_and_safe_weights(whole):
    folder, _ = whole
    endings = {path.suffix for path in Path(folder).rglob("*") if path.is_file()}
    assert endings == {".json", ".parquet", ".safetensors"}
    assert not [*Path(folder, "running").iterdir()]


def test_the_signature_holds_everything_that_was_set(whole, tiny):
    _, outcome = whole
    signature = outcome.result.signature
    assert signature["setting"] == killed_training.settings(tiny).described()
    assert signature["settings"]["learning_rate"] == 1e-3
    assert signature["revision"].startswith("sha256:")
    assert signature["template"] == "pair({sentence}, {condition})"
    json.dumps(outcome.result.document())


def test_several_seeds_come_to_a_mean_and_a_standard_deviation(tiny, splits, tmp_path):
    settings = Settings(tiny, pooling="mean", seeds=(1, 2, 3), **SHORT)
    outcome = train(settings, splits, tmp_path, CPU, keep=False)
    for name in ("spearman", "pearson", "pair_accuracy"):
        values = [seed.metrics[name].value for seed in outcome.seeds]
        result = outcome.result.metrics[name]
        assert result.value == pytest.approx(np.mean(values))
        assert result.extra["sd"] == pytest.approx(np.std(values, ddof=1))
        assert result.low <= result.value <= result.high
    table = outcome.result.predictions
    assert table.columns[3:6] == ["sentence1", "sentence2", "condition"]
    columns = table.select("seed_1", "seed_2", "seed_3").to_numpy()
    assert table["prediction"].to_numpy() == pytest.approx(columns.mean(axis=1))
    assert len({tuple(column) for column in columns.T}) == 3
    # a seed that is known is not trained again
    one = train(replace(settings, seeds=(2,)), splits, tmp_path, CPU, keep=False)
    assert one.result.predictions["prediction"].to_list() == table["seed_2"].to_list()
    assert len([*Path(tmp_path, "seeds").glob("*.json")]) == 3


def test_the_interval_of_a_mean_is_that_of_one_where_all_trainings_agree(splits):
    scores = np.random.default_rng(0).normal(size=len(splits.test))
    one, three = mean_metrics([scores], splits.test), mean_metrics([scores] * 3, splits.test)
    for name, single in one.items():
        expected = pytest.approx((single.value, single.low, single.high))
        assert (three[name].value, three[name].low, three[name].high) == expected
        assert three[name].extra["sd"] == pytest.approx(0)
        assert three[name].reason == single.reason


def test_a_mean_with_something_undefined_is_undefined(splits):
    constant = np.zeros(len(splits.test))
    result = mean_metrics([np.arange(len(constant), dtype=float), constant], splits.test)
    assert np.isnan(result["spearman"].value)
    assert "all predictions are equal" in result["spearman"].reason
    assert result["pair_accuracy"].extra["seeds"] == 2


# Going on


@pytest.fixture(scope="module")
def killed(tiny, tmp_path_factory, commands):
    """What SIGKILL leaves in the middle of the second epoch of four, which is to be the best one."""
    folder = tmp_path_factory.mktemp("killed")
    program = (
        f"import runpy; runpy.run_path({str(HERE / 'killed_training.py')!r}, run_name='__main__')"
    )
    done = commands.run("-c", program, "train", tiny, folder, "5")
    assert done.returncode == -9, done.stderr
    return folder


def test_a_killed_training_goes_on_to_the_same_weights_and_numbers(
    whole, tiny, splits, killed, tmp_path
):
    _, straight = whole
    shutil.copytree(killed, tmp_path, dirs_exist_ok=True)
    (place,) = Path(tmp_path, "running").iterdir()
    assert training.last_whole(place).name == "checkpoint-3"
    assert [*Store(tmp_path).results()] == []
    half = place / "checkpoint-6"  # and a checkpoint that was cut off while it was written
    half.mkdir()
    (half / "model.safetensors").write_bytes(b"cut off")
    steps = []
    outcome = train(
        killed_training.settings(tiny), splits, tmp_path, CPU,
        lambda work, label, total=None: (steps.append(one) or one for one in work),
    )  # fmt: skip
    assert steps == [*range(12)]  # the bar goes on from where it was
    assert straight.seeds[0].environment["best_epoch"] == 2
    assert outcome.seeds[0].environment["epochs"] == straight.seeds[0].environment["epochs"]
    assert outcome.result.predictions.equals(straight.result.predictions)
    assert outcome.result.groups == straight.result.groups
    assert weights(tmp_path) == weights(whole[0])


@pytest.mark.parametrize("select", others_nightly(["best", "last"], "last"))
def test_a_training_that_was_interrupted_goes_on_likewise(
    whole, last, tiny, splits, tmp_path, select
):
    """Ctrl-C in the third epoch."""
    settings = replace(killed_training.settings(tiny), select=select)

    def interrupting(work, label, total=None):
        for step, one in enumerate(work):
            if step == 7:
                raise KeyboardInterrupt
            yield one

    with pytest.raises(KeyboardInterrupt):
        train(settings, splits, tmp_path, CPU, interrupting)
    train(settings, splits, tmp_path, CPU)
    assert weights(tmp_path) == weights((whole if select == "best" else last)[0])


def test_a_checkpoint_with_code_in_it_is_not_run(tiny, splits, killed, tmp_path):
    """Weights are safetensors; what is left of pickle in a checkpoint is read without running anything."""
    shutil.copytree(killed, tmp_path, dirs_exist_ok=True)
    (place,) = Path(tmp_path, "running").iterdir()
    written = tmp_path / "written"

    class Attack:
        def __reduce__(self):
            return Path.touch, (written,)

    assert not [*place.rglob("training_args.bin")]
    for name in ("rng_state.pth", "optimizer.pt", "scheduler.pt"):
        path = place / "checkpoint-3" / name
        good = path.read_bytes()
        torch.save({"state": Attack()}, path)
        with pytest.raises(InputError, match="UnpicklingError: Weights only load failed"):
            train(killed_training.settings(tiny), splits, tmp_path, CPU)
        assert not written.exists()
        path.write_bytes(good)


def test_a_training_that_ends_before_its_result_is_kept_is_not_trained_again(
    whole, tiny, splits, tmp_path, monkeypatch
):
    steps = []

    def watch(work, label, total=None):
        return (steps.append(one) or one for one in work)

    with monkeypatch.context() as broken:
        broken.setattr(Store, "add", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            train(killed_training.settings(tiny), splits, tmp_path, CPU)
    (place,) = Path(tmp_path, "running").iterdir()
    assert training.last_whole(place).name == "checkpoint-12"
    again = lambda *_: pytest.fail("trained again")  # noqa: E731
    monkeypatch.setattr(training.Trainer, "training_step", again)
    outcome = train(killed_training.settings(tiny), splits, tmp_path, CPU, watch)
    assert outcome.result.predictions.equals(whole[1].result.predictions)
    assert steps == [*range(12)]


def test_only_whole_checkpoints_are_gone_on_from(tmp_path):
    def checkpoint(step, state, *names):
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir()
        for name in names:
            (folder / name).touch()
        (folder / "trainer_state.json").write_text(state)

    files = ("model.safetensors", "optimizer.pt", "scheduler.pt")
    assert training.last_whole(tmp_path) is None
    checkpoint(9, '{"global_step": 9}', *files)
    checkpoint(10, '{"global_step": 10}', *files)
    checkpoint(11, '{"global_step": 1', *files)  # its last file is cut off
    checkpoint(12, '{"global_step": 12}', *files[:2])
    assert training.last_whole(tmp_path).name == "checkpoint-10"
    training.discard_broken(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint-10", "checkpoint-9"]


# Several devices, and less memory


def test_rows_at_once_do_not_change_what_is_learned(still, splits, tmp_path):
    settings = Settings(still, objective="quad+mse", **SHORT | {"epochs": 2})
    one = train_seeds(settings, splits, tmp_path, CPU)
    parts = train_seeds(settings, splits, tmp_path, Machine("cpu", rows_at_once=2))
    assert parts.signature["rows_at_once"] == 2
    expected = one.predictions["prediction"].to_numpy()
    assert parts.predictions["prediction"].to_numpy() == pytest.approx(expected, abs=1e-5)


@pytest.mark.nightly
def test_two_processes_learn_what_one_does_and_one_of_them_writes(still, tmp_path):
    data = tmp_path / "data"
    whole = killed_training.small(16, 7)  # 7 rows: two processes cannot share them evenly
    for split in ("train", "validation", "test"):
        write_csts(whole.rows(split), data / f"csts_{split}.csv")
    call = [
        "train", str(data), "--model", still, "--batch-size", "8", "--learning-rate", "1e-3",
        "--epochs", "1", "--device", "cpu", "--json",
    ]  # fmt: skip
    one = CliRunner().invoke(main, [*call, "-o", str(tmp_path / "one")])
    assert one.exit_code == 0, one.output
    launch = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc_per_node",
        "2",
    ]
    code = "import sys; sys.modules['peft'] = None; from giccs.csts.cli import main; main()"
    program = ["--no-python", sys.executable, "-c", code]
    command = [*launch, *program, *call, "-o", str(tmp_path / "two")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    two = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert two.returncode == 0, two.stderr
    (result,), (expected,) = (json.loads(text)["results"] for text in (two.stdout, one.stdout))
    assert (result["signature"]["processes"], expected["signature"]["processes"]) == (2, 1)
    stores = [Store(tmp_path / name) for name in ("two", "one")]
    a, b = (store.predictions(next(store.results())) for store in stores)
    assert a["uid"].to_list() == b["uid"].to_list()
    assert a["prediction"].to_numpy() == pytest.approx(b["prediction"].to_numpy(), abs=1e-5)
    assert len([*Path(tmp_path, "two").glob("*.json")]) == 1


@pytest.mark.parametrize(
    ("machine", "changes", "why"),
    [
        (Machine("cpu", rows_at_once=3), {}, "expected a divisor of 8"),
        (Machine("cpu", rows_at_once=1), {"objective": "quad"}, "expected a divisor of 8"),
    ],
)
def test_batches_that_cannot_be_cut_are_refused(tiny, splits, tmp_path, machine, changes, why):
    with pytest.raises(InputError, match=why):
        train_seeds(Settings(tiny, **SHORT | changes), splits, tmp_path, machine)


def test_a_batch_that_processes_cannot_share_is_refused(tiny, splits, tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises(InputError, match="multiple of 3"):
        train_seeds(Settings(tiny, **SHORT), splits, tmp_path, CPU)


# Sweep


def test_the_shipped_sweep_is_table_7():
    grid = read_grid("c-sts-sweep")
    result, impossible = points(grid, Settings("m"))
    of = lambda **wanted: sum(  # noqa: E731
        all(getattr(one, name) == value for name, value in wanted.items()) for one in result
    )
    # learning rate 2 × weight decay 2 × transform 2, × 3 objectives, × 2 operations of the tri-encoder
    assert (of(encoding="cross"), of(encoding="bi"), of(encoding="tri")) == (8, 24, 48)
    assert (
        sum(impossible.values()) == 32
    )  # a cross-encoder with quad, twice 8, for either operation
    assert not any(map(why_impossible, result))
    assert {one.seeds for one in result} == {(42,)}
    assert {one.select for one in result} == {"last"}
    assert grid.seeds == (42, 43, 44)


def test_a_sweep_takes_the_best_on_validation_and_trains_it_with_its_seeds(tiny, splits, tmp_path):
    grid = Grid(
        "g", "", {"encoding": ["bi", "cross"], "learning_rate": [1e-5, 1e-2]}, seeds=(42, 7)
    )
    notes = []
    given = Settings(tiny, **SHORT | {"batch": 12})
    result = sweep(grid, given, splits, tmp_path, CPU, note=notes.append)
    assert len(result.points) == 4
    for outcome, encoding in zip(result.best, ["bi", "cross"], strict=True):
        tried = {
            point.settings.learning_rate: validated(point.result)["spearman"].value
            for point in result.points
            if point.settings.encoding == encoding
        }
        assert outcome.result.signature["settings"]["learning_rate"] == max(tried, key=tried.get)
        assert [seed.signature["settings"]["seeds"] for seed in outcome.seeds] == [[42], [7]]
        assert outcome.result.signature["selected_on_validation"] == ["settings"]
        assert validated(outcome.result)["spearman"].extra["selected"] == ["settings"]
        assert "selected" not in outcome.result.metrics["spearman"].extra  # of test
        assert not any("selected" in validated(seed)["spearman"].extra for seed in outcome.seeds)
    assert len([*Store(tmp_path).results()]) == 2  # only the final ones
    assert len([*Store(tmp_path / "seeds").results()]) == 4 + 2  # seed 42 was known
    assert notes[0].startswith("1 of 4: ")


def test_a_sweep_file_is_checked_as_a_whole(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text('[grid]\ncolour = [1]\nencoding = "bi"\n[final]\nseeds = [1, 1]\n[other]\n')
    with pytest.raises(InputError) as caught:
        read_grid(path)
    assert len(caught.value.problems) == 4
    path.write_text('[grid]\nencoding = ["bi", "quad"]\nepochs = [0]\n')
    with pytest.raises(InputError, match="encoding is 'quad'"):
        points(read_grid(path), Settings("m"))
    path.write_text('[grid]\nencoding = ["cross"]\nobjective = ["quad"]\n')
    with pytest.raises(InputError, match="no valid combination"):
        points(read_grid(path), Settings("m"))
    path.write_text("[grid\n")
    with pytest.raises(InputError, match=r"sweep.toml:1: not valid TOML"):
        read_grid(path)


# Learning curve


def test_a_smaller_part_of_the_data_is_part_of_a_larger_one():
    rows = read_splits("csts-sample").train
    small, large = sample_rows(rows, 50, 1), sample_rows(rows, 101, 1)
    assert (len(small), len(large)) == (50, 102)  # whole sentence pairs
    assert set(small) < set(large) < set(rows)
    assert sample_rows(rows, 50, 2) != small
    assert sample_rows(rows, 10**6, 1) == sample_rows(rows, None, 1) == rows
    assert list(small) == sorted(small, key=rows.index)


def test_a_curve_has_a_point_for_each_size_and_setting(tiny, splits, tmp_path):
    lines = [Settings(tiny, encoding=encoding, **SHORT) for encoding in ("bi", "cross")]
    result = curve(lines, [8, 16, 1000, 2000], splits, tmp_path, CPU)
    assert [(one.settings.encoding, one.rows) for one in result] == [
        *(("bi", rows) for rows in (8, 16, 24)), *(("cross", rows) for rows in (8, 16, 24)),
    ]  # fmt: skip
    assert result[0].result.signature["settings"]["train_rows"] == 8
    assert result[2].result.signature["settings"]["train_rows"] is None
    written = curve_csv(result).splitlines()
    assert len(written) == 1 + 6 * 3
    assert written[1].startswith(f'{tiny},"bi, mse, lr 0.001, epochs 1, batch 8",8,test,spearman,')
    (charted,) = curve_chart(result).to_dict()["datasets"].values()
    values = [one.result.metrics["spearman"].value for one in result]
    assert [one["spearman"] for one in charted] == values
    with pytest.raises(ValueError, match="at least 2 rows"):
        curve(lines, [1], splits, tmp_path, CPU)


# Ablations


def test_ablations_read_only_what_is_left(tiny, splits, tmp_path):
    """Without the condition both rows of a pair read the same; without the sentences only it counts."""
    for encoding in ("bi", "cross"):
        settings = Settings(tiny, encoding=encoding, condition=False, **SHORT)
        result = train_seeds(settings, splits, tmp_path, CPU)
        said = result.predictions["prediction"].to_numpy().reshape(-1, 2)
        assert said[:, 0] == pytest.approx(said[:, 1], abs=1e-5)
        assert result.metrics["pair_accuracy"].n == len(said)
    settings = Settings(tiny, encoding="cross", sentences=False, **SHORT)
    alone = replace(
        splits, test=tuple(replace(one, sentence1="x", sentence2="y") for one in splits.test)
    )
    one, two = (train_seeds(settings, data, tmp_path, CPU) for data in (splits, alone))
    assert one.predictions["prediction"].to_list() == two.predictions["prediction"].to_list()


def answers_file(path, rows, prefix=""):
    lines = [f"{prefix}{row.uid},{row.uid} is one,{row.uid} is two" for row in rows]
    path.write_text("\n".join(["uid,answer1,answer2", *lines]) + "\n", "utf-8")
    return path


def test_answers_take_the_place_of_the_sentences(tiny, tmp_path):
    rows = read_csts("csts-sample").instances  # uids with their split
    splits = read_splits("csts-sample", answers=answers_file(tmp_path / "answers.csv", rows))
    assert splits.texts == "answers"
    assert splits.fingerprint != read_splits("csts-sample").fingerprint
    assert splits.train[3].sentence1 == "train:3 is one"
    assert splits.test[7].sentence2 == "test:7 is two"
    part = replace(splits, train=splits.train[:8], validation=splits.validation[:8], test=())
    settings = Settings(tiny, texts="answers", condition=False, **SHORT)
    result = train_seeds(settings, part, tmp_path / "results", CPU)
    assert "QA answers, no condition" in result.signature["setting"]
    with pytest.raises(ValueError, match="texts is 'sentences'"):
        train_seeds(replace(settings, texts="sentences", condition=True), part, tmp_path, CPU)


def test_a_uid_that_stands_for_rows_of_several_splits_is_refused(tmp_path):
    rows = read_csts("csts-sample", "train").instances  # uids without their split
    with pytest.raises(InputError, match=r"120 uids match rows in .* train:0"):
        read_splits("csts-sample", answers=answers_file(tmp_path / "answers.csv", rows))


# Data


def folder_of(path, **splits):
    for name, rows in splits.items():
        write_csts(rows, path / f"csts_{name}.csv")
    return path


def test_hidden_labels_of_test_make_validation_the_split_that_is_reported(tmp_path):
    rows = read_csts("csts-sample", "train").instances
    hidden = [replace(row, label=None) for row in rows[:10]]
    splits = read_splits(folder_of(tmp_path, train=rows[:20], validation=rows[20:30], test=hidden))
    assert (splits.test, splits.reported) == ((), "validation")
    assert any("labels of test are hidden" in str(warning) for warning in splits.warnings)


def test_without_a_validation_split_some_training_rows_are_held_out(tmp_path):
    rows = read_csts("csts-sample", "train").instances
    splits = read_splits(folder_of(tmp_path, train=rows[:60], test=rows[60:80]))
    assert (len(splits.train), len(splits.validation), len(splits.test)) == (54, 6, 20)
    assert not {one.pair for one in splits.train} & {one.pair for one in splits.validation}
    assert any("are held out instead" in str(warning) for warning in splits.warnings)


def test_missing_splits_are_refused(tmp_path):
    rows = read_csts("csts-sample", "train").instances[:6]
    with pytest.raises(InputError, match="not a folder"):
        read_splits(folder_of(tmp_path / "a", train=rows) / "csts_train.csv")
    with pytest.raises(InputError, match="expected at least one of them"):
        read_splits(tmp_path / "a")
    with pytest.raises(InputError, match=r"contains no csts_train\.csv"):
        read_splits(folder_of(tmp_path / "b", validation=rows))
    hidden = [replace(row, label=None) for row in rows]
    with pytest.raises(InputError, match="no row with a label"):
        read_splits(folder_of(tmp_path / "c", train=hidden, validation=rows))


def test_quad_without_a_single_pair_is_refused(tiny, splits, tmp_path):
    alone = replace(splits, train=splits.train[::2])
    with pytest.raises(InputError, match="two rows with different labels"):
        train_seeds(Settings(tiny, objective="quad", **SHORT), alone, tmp_path, CPU)


# As a command


def call(*arguments):
    return CliRunner().invoke(main, ["train", *map(str, arguments)])


def test_the_command_trains_and_prints_a_table(tiny, splits, tmp_path):
    data = folder_of(tmp_path / "data", train=splits.train, validation=splits.validation)
    common = [data, "--model", tiny, "--epochs", 1, "--batch-size", 8, "-o", tmp_path / "out"]
    done = call(*common, "--encoding", "bi", "--encoding", "cross", "--transform")
    assert done.exit_code == 0, done.output
    table = [line for line in done.stdout.splitlines() if line.startswith(tiny)]
    assert len(table) == 2
    assert "bi, mse, lr 3e-5, cls with MLP, epochs 1, batch 8" in table[0]
    assert "  1 (last)  " in table[0]
    assert "*" not in done.stdout
    best = call(*common, "--select", "best")
    (line,) = [line for line in best.stdout.splitlines() if line.startswith(tiny)]
    assert "1 (best)" in line
    assert line.endswith("]*")
    assert best.stdout.endswith("\n\n* selected by this score: optimistic for new data\n")
    assert "metrics are of validation" in done.stderr
    again = call(*common, "--transform", "--json")
    document = json.loads(again.stdout)
    assert "existing result" in again.stderr
    assert document["split"] == "validation"
    assert document["results"][0]["task"] == runs.TASK
    assert Path(document["models"][0], "model.safetensors").is_file()


def test_the_command_says_what_was_left_out_or_cut_off(tiny, splits, tmp_path):
    long = replace(splits.train[2], sentence1="a man " * 100)
    equal = [replace(one, label=2) for one in splits.train[:2]]
    data = folder_of(
        tmp_path / "data", train=[*equal, long, *splits.train[3:6]], validation=splits.validation
    )
    common = [
        "--model",
        tiny,
        "--objective",
        "quad",
        "--epochs",
        1,
        "--batch-size",
        8,
        "--no-models",
    ]
    done = call(data, *common, "-o", tmp_path / "out")
    assert done.exit_code == 0, done.output
    # the long sentence has lost its partner, because the pair is no longer the same two sentences
    assert "seed 42: 4 training rows are in no pair of two rows" in done.stderr
    cut = call(data, *common, "--objective", "quad+mse", "-o", tmp_path / "out")
    assert "seed 42: 1 texts were too long and truncated" in cut.stderr
    assert "were not saved" not in cut.stderr
    with_models = call(data, *common[:-1], "-o", tmp_path / "out")
    assert (
        "its trained models were not saved; use --force to train them again" in with_models.stderr
    )


def test_the_command_draws_a_curve_and_follows_a_sweep(tiny, splits, tmp_path):
    pytest.importorskip("altair")
    data = folder_of(tmp_path / "data", train=splits.train, validation=splits.validation)
    common = [
        data,
        "--model",
        tiny,
        "--epochs",
        1,
        "--batch-size",
        8,
        "-o",
        tmp_path / "out",
        "--json",
    ]
    done = call(*common, "--curve", "8,16")
    assert done.exit_code == 0, done.output
    assert [one["rows"] for one in json.loads(done.stdout)["curve"]] == [8, 16]
    assert (tmp_path / "out" / "curve.csv").is_file()
    assert (tmp_path / "out" / "curve.svg").read_text("utf-8").startswith("<svg")
    path = tmp_path / "sweep.toml"
    path.write_text('[grid]\nobjective = ["mse", "quad"]\n[final]\nseeds = [42]\n')
    document = json.loads(call(*common, "--sweep", path).stdout)
    assert [one["settings"]["objective"] for one in document["sweep"]] == ["mse", "quad"]
    assert len(document["results"]) == 1


def test_a_sweep_tries_its_values_with_everything_else_that_was_named(tiny, splits, tmp_path):
    data = folder_of(tmp_path / "data", train=splits.train, validation=splits.validation)
    path = tmp_path / "sweep.toml"
    path.write_text('[grid]\nobjective = ["mse", "quad"]\n[final]\nseeds = [42]\n')
    common = [
        data,
        "--model",
        tiny,
        "--epochs",
        1,
        "--batch-size",
        8,
        "-o",
        tmp_path / "out",
        "--json",
    ]
    done = call(*common, "--encoding", "bi", "--encoding", "cross", "--sweep", path)
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    tried = [
        (one["settings"]["encoding"], one["settings"]["objective"]) for one in document["sweep"]
    ]
    assert tried == [("bi", "mse"), ("bi", "quad"), ("cross", "mse")]
    assert len(document["results"]) == 2
    assert "1 combinations skipped: quad compares vectors" in done.stderr
    path.write_text('[grid]\nobjective = ["quad"]\n')
    none = call(*common, "--encoding", "bi", "--encoding", "cross", "--sweep", path)
    assert none.exit_code == 2
    assert "1 of 1" not in none.stderr  # what cannot be is known before anything is trained


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--encoding", "cross", "--objective", "quad"], "a cross-encoder has none"),
        (["--learning-rate", "0"], "0.0 is not in the range 0<x<=1"),
        (["--seed", "1", "--seed", "1"], "expected distinct integers"),
        (["--curve", "5,x"], "expected comma-separated integers from"),
        (["--curve", "5", "--rows", "8"], "omit --rows"),
        (["--warmup", "nan"], "nan is not finite"),
        (["--curve", "5", "--sweep", "x.toml"], "mutually exclusive"),
        (["--sweep", "no-such.toml"], "no such file"),
        (["--model", "package:use-multilingual"], "cannot be trained"),
        (["--answers", "no-such.csv"], "no such file"),
        (
            ["--answers", "x.csv", "--encoding", "cross", "--condition-only"],
            "omit one of the options",
        ),
    ],
)
def test_wrong_calls_end_with_2_and_say_why(tiny, tmp_path, arguments, why):
    done = call("csts-sample", "--model", tiny, "-o", tmp_path, *arguments)
    assert done.exit_code == 2, done.output
    assert why in done.stderr
    assert not any(tmp_path.iterdir())
