"""Weights that do not match the architecture are refused by every backend; transformers makes them random."""

import json
import shutil

import numpy as np
import pytest

from bws.base.problems import InputError
from giccs.csts.encoders.base import load_encoder
from giccs.models import ModelOptions, open_model
from giccs.models.abilities import Prompt
from giccs.progress import silent

from ..causal_models import edit_json, make_model
from ..deferred import Deferred, requires

pytestmark = requires("sentence_transformers")
torch = Deferred("torch")
safetensors = Deferred("safetensors.torch")
transformers = Deferred("transformers")

TEXTS = ["Ich möchte einen Tisch", "Wie weit ist es?"], ["Ein Tisch am Fenster", "Zehn Minuten"]
T5 = {
    "vocab_size": 384, "d_model": 16, "d_ff": 32, "d_kv": 4, "num_layers": 1, "num_heads": 4,
    "decoder_start_token_id": 0,
}  # fmt: skip
TINY = {
    "vocab_size": 80, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
    "intermediate_size": 64, "max_position_embeddings": 64,
}  # fmt: skip


def edited(folder, target, edit):
    """Copy a model's folder with other tensors: what `edit` makes of a dictionary."""
    shutil.copytree(folder, target)
    file = next(target.rglob("model.safetensors"))
    safetensors.save_file(edit(safetensors.load_file(file)), file, metadata={"format": "pt"})
    return target


def renamed(prefix):
    return lambda tensors: {f"{prefix}{name}": tensor for name, tensor in tensors.items()}


def pair_scores(name, **options):
    return open_model(str(name), ModelOptions(**options)).pair_scores(*TEXTS, silent)


def score(name, **options):
    return open_model(str(name), ModelOptions(**options)).score([Prompt("Ja", (" a", " b"))])


def generate(name, **options):
    return open_model(str(name), ModelOptions(**options)).generate(["Ja"], 2)


def refusal(use, *args, **options):
    with pytest.raises(InputError) as caught:
        use(*args, **options)
    return str(caught.value)


@pytest.fixture(scope="module")
def seq2seq(tmp_path_factory):
    folder = make_model(tmp_path_factory.mktemp("t5"))
    for file in folder.glob("*model*"):
        file.unlink()
    transformers.T5ForConditionalGeneration(transformers.T5Config(**T5)).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def sentence_folder(tmp_path_factory, plain_encoder):
    """A folder of sentence-transformers with a dense layer behind the mean."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Dense, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    torch.manual_seed(1)
    transformer = Transformer(str(plain_encoder))
    modules = [transformer, Pooling(32, "mean"), Dense(32, 8)]
    folder = tmp_path_factory.mktemp("sentence")
    SentenceTransformer(modules=modules, device="cpu").save(str(folder))
    return folder


@pytest.mark.parametrize("prefix", ["x_", "encoder."])  # the second as `giccs csts train` writes it
@pytest.mark.parametrize("backend", ["encoder", "sentence", "training", "causal", "seq2seq"])
def test_tensors_with_other_names_are_refused(
    tmp_path, backend, prefix, plain_encoder, sentence_folder, tiny_gpt, seq2seq
):
    folders = {"sentence": sentence_folder, "causal": tiny_gpt, "seq2seq": seq2seq}
    folder = edited(folders.get(backend, plain_encoder), tmp_path / "model", renamed(prefix))
    use = {"causal": score, "seq2seq": generate}.get(backend, pair_scores)
    training = backend == "training"
    message = refusal(load_encoder, str(folder), folder) if training else refusal(use, folder)
    assert str(folder) in message
    assert "its weights do not match " in message
    assert "tensors are missing and would be random (" in message
    assert f"tensors are unexpected ({prefix}" in message
    assert "\n" not in message


def test_the_first_names_are_listed_with_the_counts(tmp_path, plain_encoder):
    folder = edited(plain_encoder, tmp_path / "model", renamed("encoder."))
    assert refusal(pair_scores, folder) == (
        f"{folder}: cannot be loaded: its weights do not match BertModel: 37 tensors are missing and "
        "would be random (embeddings.LayerNorm.bias, embeddings.LayerNorm.weight, "
        "embeddings.position_embeddings.weight, ...); 39 tensors are unexpected "
        "(encoder.embeddings.LayerNorm.bias, encoder.embeddings.LayerNorm.weight, "
        "encoder.embeddings.position_embeddings.weight, ...)"
    )


def test_the_prefix_of_a_model_with_a_head_is_resolved(tmp_path, plain_encoder):
    folder = edited(plain_encoder, tmp_path / "model", renamed("bert."))
    assert pair_scores(folder) == pytest.approx(pair_scores(plain_encoder), abs=1e-6)


def test_one_tensor_is_enough(tmp_path, plain_encoder, tiny_gpt):
    weight = "encoder.layer.1.output.dense.weight"

    def without(tensors):
        return {name: tensor for name, tensor in tensors.items() if name != weight}

    folder = edited(plain_encoder, tmp_path / "missing", without)
    assert f"1 tensor is missing and would be random ({weight})" in refusal(pair_scores, folder)

    def shorter(tensors):
        return tensors | {weight: tensors[weight][:8].clone()}

    folder = edited(plain_encoder, tmp_path / "shape", shorter)
    for use, args in ((pair_scores, (folder,)), (load_encoder, ("m", folder))):
        message = refusal(use, *args)
        assert f"1 tensor is of another shape ({weight} is 8×64, expected 32×64)" in message
    folder = shutil.copytree(plain_encoder, tmp_path / "layers")
    edit_json(folder / "config.json", num_hidden_layers=1)
    assert "16 tensors are unexpected (encoder.layer.1.attention" in refusal(pair_scores, folder)
    folder = shutil.copytree(tiny_gpt, tmp_path / "gpt")
    edit_json(folder / "config.json", n_layer=1)
    assert "tensors are unexpected (transformer.h.1." in refusal(score, folder)


def test_quantised_loading_is_checked(tmp_path, plain_encoder):
    pytest.importorskip("bitsandbytes")
    folder = edited(plain_encoder, tmp_path / "encoder", renamed("x_"))
    assert "its weights do not match BertModel" in refusal(pair_scores, folder, quantise="8bit")
    gpt2 = make_model(tmp_path / "gpt2", "gpt2", n_embd=64)
    folder = edited(gpt2, tmp_path / "causal", renamed("x_"))
    assert "its weights do not match GPT2LMHeadModel" in refusal(score, folder, quantise="4bit")


def test_files_of_pytorch_are_checked(tmp_path, plain_encoder):
    folder = shutil.copytree(plain_encoder, tmp_path / "model")
    tensors = safetensors.load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(tensors, folder / "pytorch_model.bin")
    assert pair_scores(folder) == pytest.approx(pair_scores(plain_encoder), abs=1e-6)
    torch.save(renamed("x_")(tensors), folder / "pytorch_model.bin")
    assert "39 tensors are unexpected (x_embeddings" in refusal(pair_scores, folder)


def test_a_sentence_transformers_module_is_checked(tmp_path, sentence_folder):
    folder = shutil.copytree(sentence_folder, tmp_path / "model")
    (dense,) = folder.glob("2_Dense/model.safetensors")
    safetensors.save_file(renamed("x.")(safetensors.load_file(dense)), dense)
    message = refusal(pair_scores, folder)
    assert "Dense: Missing key(s) in state_dict: " in message
    assert "linear.weight" in message
    dense.unlink()
    assert "cannot be loaded: " in refusal(pair_scores, folder)
    shutil.rmtree(dense.parent)
    assert "cannot be loaded: " in refusal(pair_scores, folder)


def test_heads_of_another_task_are_named_and_change_nothing(tmp_path, plain_encoder):
    body = transformers.BertModel.from_pretrained(plain_encoder)
    masked = transformers.BertForMaskedLM(body.config)
    masked.bert.load_state_dict(body.state_dict(), strict=False)
    folder = shutil.copytree(plain_encoder, tmp_path / "model")
    masked.save_pretrained(folder)
    model = open_model(f"encoder:{folder}")
    scores = model.pair_scores(*TEXTS, silent)
    assert np.asarray(scores) == pytest.approx(pair_scores(plain_encoder), abs=1e-6)
    said = "cls (5 tensors) ignored; pooler (2 tensors) missing and not used"
    assert model.environment()["unused_weights"] == said
    plain = open_model(str(plain_encoder))
    plain.pair_scores(*TEXTS, silent)
    assert "unused_weights" not in plain.environment()


def test_a_classifier_on_a_causal_model_is_ignored_and_a_missing_output_layer_is_not(
    tmp_path, tiny_gpt
):
    folder = edited(
        tiny_gpt, tmp_path / "model", lambda tensors: tensors | {"score.weight": torch.zeros(2, 32)}
    )
    model = open_model(str(folder))
    model.score([Prompt("Ja", (" a", " b"))])
    assert model.environment()["unused_weights"] == "score (1 tensor) ignored"


ARCHITECTURES = {
    "BertForPreTraining": {},
    "BertForSequenceClassification": {},
    "BertForQuestionAnswering": {},
    "RobertaForMaskedLM": {},
    "RobertaForSequenceClassification": {},
    "XLMRobertaForMaskedLM": {},
    "CamembertForMaskedLM": {},
    "AlbertForPreTraining": {"embedding_size": 16},
    "DistilBertForMaskedLM": {},
    "DistilBertForSequenceClassification": {},
    "ElectraForPreTraining": {"embedding_size": 16},
    "ElectraForMaskedLM": {"embedding_size": 16},
    "MPNetForMaskedLM": {},
    "DebertaV2ForMaskedLM": {},
    "DebertaV2ForSequenceClassification": {},
    "ModernBertForMaskedLM": {"pad_token_id": 0},
    "ModernBertForSequenceClassification": {"pad_token_id": 0},
    "ConvBertForMaskedLM": {},
    "GPT2LMHeadModel": {"n_embd": 32, "n_layer": 2, "n_head": 2},
}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_heads_of_common_architectures_are_known(tmp_path, architecture):
    """A model with any of these heads is a base for an encoder."""
    kind = getattr(transformers, architecture)
    kind(kind.config_class(**TINY, **ARCHITECTURES[architecture])).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["architectures"] == [architecture]
    load_encoder(architecture, tmp_path)
