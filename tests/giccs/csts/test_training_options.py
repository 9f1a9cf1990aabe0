"""Mixed precision, frozen layers, margin and maximum length of trainings."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from bws.base.problems import InputError
from giccs.csts.cli import main
from giccs.csts.encoders.base import freeze
from giccs.csts.encoders.runs import train, train_seeds
from giccs.csts.encoders.settings import Machine, Settings, settings_of

from ..deferred import Deferred, requires
from . import killed_training, tiny_bert

pytestmark = requires("torch", "accelerate")
torch = Deferred("torch")
scorers = Deferred("giccs.csts.encoders.scorer")
training = Deferred("giccs.csts.encoders.training")
safetensors = Deferred("safetensors.torch")

CPU = Machine("cpu")
SHORT = {"epochs": 1, "batch": 8, "learning_rate": 1e-3, "pooling": "mean"}


@pytest.fixture(scope="module")
def bf16():
    if not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        pytest.skip("this CPU does not support bf16")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return str(tiny_bert.make(tmp_path_factory.mktemp("tiny-bert")))


@pytest.fixture(scope="module")
def splits():
    return killed_training.small()


def predicted(settings, splits, folder, machine=CPU):
    return train_seeds(settings, splits, folder, machine).predictions["prediction"].to_numpy()


def test_the_command_has_the_options_and_the_signature_their_values(tiny, tmp_path):
    arguments = ["csts-sample", "--model", tiny, "-o", tmp_path, "--device", "cpu", "--rows", 16]
    arguments += ["--epochs", 1, "--objective", "quad", "--margin", 0.5, "--max-length", 12]
    arguments += ["--frozen-layers", 1, "--no-models", "--json"]
    done = CliRunner().invoke(main, ["train", *map(str, arguments)])
    assert done.exit_code == 0, done.output
    (result,) = json.loads(done.stdout)["results"]
    settings = result["signature"]["settings"]
    names = ("margin", "max_length", "frozen_layers", "mixed_precision")
    assert [settings[name] for name in names] == [0.5, 12, 1, "no"]
    assert result["signature"]["setting"].endswith(
        "margin 0.5, max length 12, frozen layers 1, 16 rows"
    )
    assert "texts were too long and truncated" in done.stderr


def test_settings_of_earlier_versions_have_the_defaults():
    document = dict(training.Settings("m").document(), template="pair({sentence}, {condition})")
    del document["frozen_layers"], document["mixed_precision"]
    assert settings_of(document) == Settings("m")


def test_the_margin_changes_what_is_learned(tiny, splits, tmp_path):
    wide, none = (
        predicted(Settings(tiny, objective="quad", margin=margin, **SHORT), splits, tmp_path)
        for margin in (1.0, 0.0)
    )
    assert not np.array_equal(wide, none)


def test_frozen_layers_and_embeddings_keep_their_weights(tiny, splits, tmp_path):
    outcome = train(Settings(tiny, frozen_layers=1, **SHORT), splits, tmp_path, CPU)
    before = safetensors.load_file(Path(tiny, "model.safetensors"))
    after = safetensors.load_file(outcome.models[0] / "model.safetensors")
    changed = {
        name.split(".attention")[0].split(".intermediate")[0].split(".output")[0]
        for name, weights in before.items()
        if f"encoder.{name}" in after and not torch.equal(weights, after[f"encoder.{name}"])
    }
    assert changed == {"encoder.layer.1"}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"frozen_layers": 3}, "frozen layers: 3; expected at most its 2"),
        ({"frozen_layers": 2}, "no weights are left to train"),
        (
            {"mixed_precision": "fp16"},
            "mixed precision fp16 requires a GPU; on a CPU, use bf16 or no",
        ),
    ],
)
def test_what_cannot_be_trained_is_refused(tiny, splits, tmp_path, changes, why):
    with pytest.raises(InputError, match=why):
        train(Settings(tiny, **SHORT, **changes), splits, tmp_path, CPU)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_all_layers_can_be_frozen_below_a_new_one(tiny, splits, tmp_path):
    settings = Settings(tiny, encoding="tri", frozen_layers=2, **SHORT)
    assert np.ptp(predicted(settings, splits, tmp_path)) > 0


def test_shared_layers_cannot_be_frozen():
    from transformers import AlbertConfig, AlbertModel

    config = AlbertConfig(
        vocab_size=30, embedding_size=8, hidden_size=16, num_hidden_layers=3,
        num_attention_heads=2, intermediate_size=16,
    )  # fmt: skip
    with pytest.raises(ValueError, match="expected 0, its layers are not separate"):
        freeze(AlbertModel(config), 1)


def test_embeddings_are_found_under_another_name():
    from transformers import XLNetConfig, XLNetModel

    encoder = XLNetModel(XLNetConfig(vocab_size=30, d_model=16, n_layer=2, n_head=2, d_inner=16))
    freeze(encoder, 1)
    trained = {name for name, weights in encoder.named_parameters() if weights.requires_grad}
    assert {name.split(".")[0] for name in trained} == {"mask_emb", "layer"}
    assert not any(name.startswith("layer.0.") for name in trained)


def test_bf16_is_refused_by_a_cpu_without_it(tiny, splits, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: False)
    with pytest.raises(
        InputError, match="mixed precision bf16 is not supported by this CPU; use no"
    ):
        train(Settings(tiny, mixed_precision="bf16", **SHORT), splits, tmp_path, CPU)


@pytest.mark.usefixtures("bf16")
def test_bf16_is_for_training_and_the_saved_model_scores_what_was_measured(
    tiny, splits, tmp_path, monkeypatch
):
    seen = {True: set(), False: set()}
    pooled = scorers.Scorer._pooled

    def watched(self, hidden, mask):
        seen[self.training].add(torch.is_autocast_enabled("cpu"))
        assert hidden.dtype == torch.float32
        return pooled(self, hidden, mask)

    monkeypatch.setattr(scorers.Scorer, "_pooled", watched)
    outcome = train(Settings(tiny, mixed_precision="bf16", **SHORT), splits, tmp_path, CPU)
    assert seen == {True: {True}, False: {False}}
    scored = scorers.load_trained(outcome.models[0]).predict(splits.test)
    assert np.array_equal(scored, outcome.result.predictions["prediction"].to_numpy())
    single = predicted(Settings(tiny, **SHORT), splits, tmp_path)
    assert not np.array_equal(scored, single)
    assert np.abs(scored - single).max() < 0.1
    assert outcome.result.signature["setting"].endswith(", bf16")


@pytest.mark.usefixtures("bf16")
def test_an_interrupted_bf16_training_resumes_to_the_same_weights(tiny, splits, tmp_path):
    settings = replace(killed_training.settings(tiny), mixed_precision="bf16", epochs=3)

    def interrupting(work, label, total=None):
        for step, item in enumerate(work):
            if step == 5:
                raise KeyboardInterrupt
            yield item

    whole = train(settings, splits, tmp_path / "whole", CPU)
    with pytest.raises(KeyboardInterrupt):
        train(settings, splits, tmp_path / "cut", CPU, interrupting)
    resumed = train(settings, splits, tmp_path / "cut", CPU)
    files = [outcome.models[0] / "model.safetensors" for outcome in (whole, resumed)]
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.usefixtures("bf16")
def test_the_environment_of_accelerate_does_not_change_a_training(
    tiny, splits, tmp_path, monkeypatch
):
    expected = predicted(Settings(tiny, **SHORT), splits, tmp_path / "plain")
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "bf16")
    assert np.array_equal(predicted(Settings(tiny, **SHORT), splits, tmp_path / "bf16"), expected)


@pytest.mark.cuda
@pytest.mark.parametrize("name", ["bf16", "fp16"])
def test_mixed_precision_on_a_card_learns_what_float32_does(tiny, splits, tmp_path, name):
    if name == "bf16" and not torch.cuda.is_bf16_supported(including_emulation=False):
        pytest.skip("this card does not support bf16")
    card = Machine("auto")
    single = predicted(Settings(tiny, **SHORT), splits, tmp_path, card)
    mixed = predicted(Settings(tiny, mixed_precision=name, **SHORT), splits, tmp_path, card)
    assert 0 < np.abs(mixed - single).max() < 0.1
