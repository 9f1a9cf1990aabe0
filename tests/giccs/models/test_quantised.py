"""Large models: weights of 4 and 8 bits, and weights that lie on several devices, in main memory or on disk.

All runs on a CPU, which bitsandbytes has code for. What GPUs alone show is not tested: several of them,
and their kernels.
"""

import importlib.metadata
import importlib.util
import json
import shutil

import numpy as np
import pytest

from bws.base.problems import InputError
from giccs.models import ModelOptions, open_model, quantisation
from giccs.models.abilities import Prompt
from giccs.progress import silent
from tests.nightly import others_nightly

from ..causal_models import GERMAN, edit_json, make_model, torch, transformers

PROMPTS = [
    Prompt(GERMAN[0], (" Ja", " Nein, danke", " Zehn Minuten zu Fuß")),
    Prompt(GERMAN[1], (" A", " B", " Wie weit ist das Hotel?")),
]
WIDE = {"hidden_size": 64, "intermediate_size": 128}
"""bitsandbytes takes the weights of 4 bits 64 at a time."""
T5 = {
    "vocab_size": 384, "d_model": 64, "d_ff": 128, "d_kv": 16, "num_layers": 1, "num_heads": 4,
    "decoder_start_token_id": 0,
}  # fmt: skip
TEXTS = ["Ich möchte einen Tisch", "Wie weit ist es?"], ["Ein Tisch am Fenster", "Zehn Minuten"]


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("llama"), "llama", "pieces", **WIDE)


def placed(tmp_path, parts):
    path = tmp_path / "map.json"
    path.write_text(json.dumps(parts))
    return str(path)


def numbers(model):
    return [option.logprob for options in model.score(PROMPTS).options for option in options]


def refusal(name, **options):
    with pytest.raises(InputError) as caught:
        open_model(str(name), ModelOptions(**options))
    return str(caught.value)


# Weights of 4 and 8 bits


def rounded(folder, how):
    """Return the model with its matrices quantised and dequantised by bitsandbytes' functions."""
    functional = pytest.importorskip("bitsandbytes.functional")
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    for name, part in model.named_modules():
        if isinstance(part, torch.nn.Linear) and name != "lm_head":
            if how == "4bit":
                weights = functional.dequantize_4bit(
                    *functional.quantize_4bit(part.weight.data, quant_type="nf4")
                )
            else:
                largest = part.weight.data.abs().amax(dim=1, keepdim=True)
                weights = torch.round(part.weight.data * 127 / largest) * largest / 127
            part.weight.data = weights.float()
    return model


def one_by_one(model, tokenizer):
    from giccs.models.causal.tokens import Boundary

    for prompt in PROMPTS:
        question = Boundary(tokenizer).encode(prompt.text, prompt.options)
        for ids in question.ids:
            with torch.no_grad():
                result = torch.log_softmax(model(torch.tensor([ids])).logits[0], -1)
            rows = range(question.start - 1, len(ids) - 1)
            yield float(result[rows, ids[question.start :]].sum())


@pytest.mark.parametrize(("how", "tolerance"), [("4bit", 1e-3), ("8bit", 2.0)])
def test_numbers_are_those_of_rounded_weights(llama, how, tolerance):
    """LLM.int8() rounds the inputs of each matrix as well, which is left out of what is expected."""
    pytest.importorskip("bitsandbytes")
    model = open_model(f"causal:{llama}", ModelOptions(quantise=how))
    tokenizer = transformers.AutoTokenizer.from_pretrained(llama)
    expected = list(one_by_one(rounded(llama, how), tokenizer))
    plain = numbers(open_model(f"causal:{llama}"))
    result = numbers(model)
    assert result == pytest.approx(expected, abs=tolerance)
    assert not np.allclose(result, plain, atol=1e-2)
    size = model._loaded.model.get_memory_footprint()
    assert size < open_model(f"causal:{llama}")._loaded.model.get_memory_footprint()
    assert numbers(model) == result


def test_the_way_through_the_model_is_one_that_gives_its_own_numbers(llama):
    """4 bits change no way; with 8 bits, what stands beside a text changes how it is rounded, and shows."""
    pytest.importorskip("bitsandbytes")
    four = open_model(f"causal:{llama}", ModelOptions(quantise="4bit"))
    numbers(four)
    environment = four.environment()
    assert environment["forward"] == "token tree"
    assert environment["self_check_deviation"] < 1e-4
    assert environment["bitsandbytes"] == importlib.metadata.version("bitsandbytes")
    eight = open_model(f"causal:{llama}", ModelOptions(quantise="8bit"))
    result = numbers(eight)
    alone = list(one_by_one(eight._loaded.model, eight._loaded.tokenizer))
    if eight.environment()["forward"] == "one by one":
        assert result == pytest.approx(alone, abs=1e-6)
    else:
        assert eight.environment()["self_check_deviation"] <= 1.0
        assert result == pytest.approx(alone, abs=0.03 * 25)


@pytest.mark.parametrize("how", ["4bit", "8bit"])
def test_a_quantised_model_is_another_one(llama, how):
    pytest.importorskip("bitsandbytes")
    plain = open_model(f"causal:{llama}").identity
    identity = open_model(f"causal:{llama}", ModelOptions(quantise=how)).identity
    assert identity == {**plain, "quantised": quantisation.KINDS[how]}
    assert "quantised" not in plain


def test_models_of_other_kinds_are_quantised_too(tmp_path, plain_encoder):
    pytest.importorskip("bitsandbytes")
    transformers.T5ForConditionalGeneration(transformers.T5Config(**T5)).save_pretrained(
        tmp_path / "t5"
    )
    transformers.AutoTokenizer.from_pretrained(make_model(tmp_path / "x")).save_pretrained(
        tmp_path / "t5"
    )
    gpt2 = make_model(tmp_path / "gpt2", "gpt2", n_embd=64)
    options = ModelOptions(quantise="4bit")
    t5 = open_model(f"seq2seq:{tmp_path / 't5'}", options)
    assert len(t5.generate(["Ja", "Nein, danke"], 3)) == 2
    assert t5.identity["quantised"] == quantisation.KINDS["4bit"]
    assert len(open_model(f"causal:{gpt2}", options).generate(["Ja"], 3)) == 1
    eight = ModelOptions(quantise="8bit")
    scores = open_model(f"encoder:{plain_encoder}", eight).pair_scores(*TEXTS, silent)
    plain = open_model(f"encoder:{plain_encoder}").pair_scores(*TEXTS, silent)
    assert scores == pytest.approx(plain, abs=0.05)
    assert not np.array_equal(scores, plain)


def test_what_cannot_be_quantised_is_refused(tmp_path, llama, static_encoder, monkeypatch):
    pytest.importorskip("bitsandbytes")
    for name in ("baseline:char-ngram", "static:x.txt", "chat:gpt", "completions:gpt"):
        assert "has no weights to quantise; omit --quantise" in refusal(name, quantise="4bit")
        assert "omit --device-map" in refusal(name, device_map="auto")
    with pytest.raises(InputError, match="has no weights to quantise"):
        open_model(f"encoder:{static_encoder}", ModelOptions(quantise="8bit")).vectors(
            ["Ja"], silent
        )
    if importlib.util.find_spec("gguf"):
        (tmp_path / "model.gguf").write_bytes(b"GGUF")
        message = refusal(tmp_path / "model.gguf", quantise="4bit")
        assert "comes from a GGUF file; omit --quantise" in message
    with pytest.raises(ValueError, match="quantise is '3bit'; expected one of 4bit, 8bit"):
        ModelOptions(quantise="3bit")
    monkeypatch.setattr(quantisation, "find_spec", lambda name: None)
    message = refusal(llama, quantise="4bit")
    assert "requires bitsandbytes; install it with: pip install 'giccs[quantised]'" in message


def test_a_checkpoint_of_4_bits_is_read_as_it_was_saved(tmp_path, llama, monkeypatch):
    pytest.importorskip("bitsandbytes")
    made = open_model(f"causal:{llama}", ModelOptions(quantise="4bit"))
    expected = numbers(made)
    folder = shutil.copytree(llama, tmp_path / "saved")
    (folder / "model.safetensors").unlink()
    made._loaded.model.save_pretrained(folder)
    saved = open_model(f"causal:{folder}")
    assert numbers(saved) == pytest.approx(expected, abs=1e-4)
    assert "already quantised by bitsandbytes; omit --quantise" in refusal(folder, quantise="8bit")
    monkeypatch.setattr(quantisation, "find_spec", lambda name: None)
    said = "its weights are quantised by bitsandbytes, which requires bitsandbytes"
    assert said in refusal(folder)


@pytest.mark.parametrize(
    ("method", "package"), [("gptq", "gptqmodel"), ("awq", "gptqmodel"), ("hqq", "hqq")]
)
def test_what_a_quantised_checkpoint_needs_is_said(tmp_path, llama, method, package):
    if importlib.util.find_spec(package):
        pytest.skip(f"{package} is installed")
    folder = shutil.copytree(llama, tmp_path / "saved")
    edit_json(folder / "config.json", quantization_config={"quant_method": method, "bits": 4})
    message = refusal(folder)
    assert f"its weights are quantised by {method}, which requires {package}" in message


# Weights on several devices


PARTS = {
    "all in main memory": {"": "cpu"},
    "layers on disk": {
        "model.embed_tokens": "cpu", "model.layers.0": "disk", "model.layers.1": "cpu",
        "model.layers.2": "disk", "model.norm": "cpu", "model.rotary_emb": "cpu", "lm_head": "cpu",
    },
    "all on disk": {"model": "disk", "lm_head": "disk"},
    "all but a layer on disk": {
        "model.embed_tokens": "disk", "model.layers.0": "cpu", "model.layers.1": "disk",
        "model.layers.2": "disk", "model.norm": "disk", "model.rotary_emb": "cpu", "lm_head": "disk",
    },
}  # fmt: skip


@pytest.mark.parametrize(
    "where", others_nightly(PARTS, "all in main memory", "all but a layer on disk")
)
def test_where_weights_lie_changes_no_number(tmp_path, llama, where):
    """What lies on disk is brought by Accelerate's hooks, in each pass and for each of the model's halves."""
    expected = numbers(open_model(f"causal:{llama}"))
    model = open_model(f"causal:{llama}", ModelOptions(device_map=placed(tmp_path, PARTS[where])))
    for _ in range(2):
        assert numbers(model) == pytest.approx(expected, abs=1e-6)
    assert model.environment()["forward"] == "token tree"
    places = dict.fromkeys(PARTS[where].values())
    assert model.environment()["device"] == ", ".join(places)
    hooked = hasattr(model._loaded.model.model.layers[0], "_hf_hook")
    assert hooked == ("disk" in places)
    answers = open_model(f"causal:{llama}").generate(["Ja", "Nein"], 4)
    assert model.generate(["Ja", "Nein"], 4) == answers
    assert model.identity == open_model(f"causal:{llama}").identity


@pytest.mark.parametrize("word", others_nightly(["auto", "balanced", "sequential"], "auto"))
def test_words_of_accelerate(llama, word):
    expected = numbers(open_model(f"causal:{llama}"))
    model = open_model(f"causal:{llama}", ModelOptions(device_map=word))
    assert numbers(model) == pytest.approx(expected, abs=1e-6)


def test_encoders_and_encoder_decoders_are_spread_too(tmp_path, plain_encoder):
    expected = open_model(f"encoder:{plain_encoder}").pair_scores(*TEXTS, silent)
    parts = placed(tmp_path, {"embeddings": "cpu", "encoder": "disk", "pooler": "cpu"})
    model = open_model(f"encoder:{plain_encoder}", ModelOptions(device_map=parts))
    assert model.pair_scores(*TEXTS, silent) == pytest.approx(expected, abs=1e-6)
    assert model.environment()["device"] == "cpu, disk"
    folder = make_model(tmp_path / "t5")
    for file in folder.glob("*model*"):
        file.unlink()
    transformers.T5ForConditionalGeneration(transformers.T5Config(**T5)).save_pretrained(folder)
    own = ("shared", "encoder.embed_tokens", "decoder", "lm_head")  # what is shared stays in memory
    parts = dict.fromkeys(own, "cpu") | {
        "encoder.block": "disk",
        "encoder.final_layer_norm": "disk",
    }
    torn = ModelOptions(device_map=placed(tmp_path, {**parts, "encoder.embed_tokens": "disk"}))
    with pytest.raises(InputError, match="share one matrix and cannot be partly on disk"):
        open_model(f"seq2seq:{folder}", torn).generate(["Ja"], 3)
    spread = open_model(f"seq2seq:{folder}", ModelOptions(device_map=placed(tmp_path, parts)))
    assert spread.generate(["Ja"], 3) == open_model(f"seq2seq:{folder}").generate(["Ja"], 3)


def test_4_bits_and_a_device_map_go_together(tmp_path, llama):
    pytest.importorskip("bitsandbytes")
    expected = numbers(open_model(f"causal:{llama}", ModelOptions(quantise="4bit")))
    options = ModelOptions(quantise="4bit", device_map=placed(tmp_path, {"": "cpu"}))
    assert numbers(open_model(f"causal:{llama}", options)) == pytest.approx(expected, abs=1e-6)


def test_maps_that_are_none(tmp_path, llama):
    message = refusal(llama, device_map="evenly")
    assert (
        "invalid --device-map 'evenly'; expected auto, balanced, balanced_low_0, sequential or a JSON file"
        in message
    )
    for wrong in ([], {}, {"model": None}, {"model": True}):
        said = refusal(llama, device_map=placed(tmp_path, wrong))
        assert "is no device map; an object is expected" in said
    (tmp_path / "map.json").write_text("{")
    assert "not valid JSON" in refusal(llama, device_map=str(tmp_path / "map.json"))
    assert "mutually exclusive" in refusal(llama, device_map="auto", device="cpu")
    for parts, said in (
        ({"modell": "cpu", "": "cpu"}, "unknown part 'modell' in the device map"),
        ({"model": "cpu"}, "missing part 'lm_head.weight'"),
    ):
        options = ModelOptions(device_map=placed(tmp_path, parts))
        with pytest.raises(InputError, match=f"cannot be loaded: {said}"):
            open_model(str(llama), options).score(PROMPTS)
