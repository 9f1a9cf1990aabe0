"""Names, folders and files to causal models, and what is refused with a sentence."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from bws.base.problems import InputError
from giccs.models import ModelOptions, devices, loading, open_model
from giccs.models.abilities import Prompt
from giccs.models.causal import open_causal
from giccs.progress import silent

from ..causal_models import GERMAN, TOKENIZERS, edit_json, make_model, naive, torch, transformers

PROMPTS = [Prompt(GERMAN[0], (" Ja", " Nein, danke"))]


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("llama"), "llama", "pieces")


def refusal(name, **options):
    with pytest.raises(InputError) as caught:
        open_model(str(name), ModelOptions(**options)).score(PROMPTS)
    return str(caught.value)


def test_an_encoder_decoder_is_refused(tmp_path):
    config = transformers.T5Config(
        vocab_size=384, d_model=16, d_ff=16, d_kv=4, num_layers=1, num_heads=4
    )
    transformers.T5ForConditionalGeneration(config).save_pretrained(tmp_path)
    TOKENIZERS["bytes"]().save_pretrained(tmp_path)
    assert "is an encoder-decoder" in refusal(f"causal:{tmp_path}")


def test_folders_that_are_no_models(tmp_path, llama):
    assert "no config.json and no .gguf file" in refusal(f"causal:{tmp_path}")
    file = tmp_path / "notes.txt"
    file.write_text("x")
    assert "is a file; expected a folder, a .gguf file or a hub id" in refusal(f"causal:{file}")
    assert "expected causal:FOLDER or causal:HUB-ID" in refusal("causal:")
    broken = shutil.copytree(llama, tmp_path / "broken")
    (broken / "model.safetensors").write_bytes(b"truncated")
    assert "cannot be loaded: " in refusal(broken)
    (broken / "model.safetensors").unlink()
    assert "contains no weights" in refusal(broken)
    edit_json(broken / "config.json", auto_map={"AutoModelForCausalLM": "code.Model"})
    (broken / "model.safetensors").write_bytes(b"x")
    assert "allow it with --trust-remote-code" in refusal(broken)


def test_a_masked_model_is_no_causal_one(tmp_path, plain_encoder):
    assert f"{plain_encoder}: " in refusal(f"causal:{plain_encoder}")


def test_a_model_without_its_head_is_not_given_a_random_one(tmp_path, llama):
    whole = transformers.AutoModelForCausalLM.from_pretrained(llama)
    whole.model.save_pretrained(tmp_path)
    TOKENIZERS["pieces"]().save_pretrained(tmp_path)
    assert "1 tensor is missing and would be random (lm_head.weight)" in refusal(
        f"causal:{tmp_path}"
    )
    whole.lm_head.weight = whole.model.embed_tokens.weight
    whole.save_pretrained(tmp_path)
    edit_json(tmp_path / "config.json", tie_word_embeddings=True)
    open_causal(str(tmp_path)).score(
        PROMPTS
    )  # one matrix for both is saved once, and nothing is missing


def test_a_model_that_cannot_be_opened_is_one_error_and_not_one_per_prompt(llama, monkeypatch):
    calls = []
    monkeypatch.setattr(loading, "_load", lambda *args: calls.append(args) or 1 / 0)
    with pytest.raises(InputError) as caught:
        open_causal(str(llama)).score(PROMPTS * 5)
    assert str(caught.value) == f"{llama}: cannot be loaded: division by zero"
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("cuda:2", "--device cuda:2 is not available; PyTorch has 1 cuda device here"),
        ("mps", "--device mps is not available; PyTorch has 0 mps devices here"),
    ],
)
def test_a_device_that_is_absent(llama, plain_encoder, monkeypatch, device, message):
    pytest.importorskip("sentence_transformers")  # it imports packages that look for a device
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert refusal(llama, device=device) == f"{llama}: {message}"
    with pytest.raises(InputError, match=message):
        open_model(str(plain_encoder), ModelOptions(device=device)).vectors(["Ja"], silent)


@pytest.mark.parametrize("device", ["gpu", "cuda:x"])
def test_a_device_that_is_unknown(device):
    message = f"device is '{device}'; expected auto, cpu, cuda, cuda:N or mps"
    with pytest.raises(ValueError, match=message):
        ModelOptions(device=device)


def test_dtype_is_what_was_saved_or_asked_for(tmp_path, llama):
    half = shutil.copytree(llama, tmp_path / "half")
    edit_json(half / "config.json", dtype="bfloat16")
    assert open_causal(str(llama)).identity["dtype"] == "float32"
    assert open_causal(str(half)).identity["dtype"] == "bfloat16"
    assert (
        open_causal(str(half), options=ModelOptions(dtype="float32")).identity["dtype"] == "float32"
    )


def test_weights_too_large_for_one_gpu_are_spread(llama, monkeypatch):
    """No machine for tests has a GPU: that there is one, and how much memory it has, is said here."""
    weights = sum(file.stat().st_size for file in llama.glob("*.safetensors"))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for free, expected in ((weights, "spread"), (2 * weights, "cuda")):
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda free=free: (free, free))
        assert devices.single_device("auto", llama) == expected
    assert devices.single_device("cpu", llama) == "cpu"


def test_a_device_map_changes_no_number(llama, monkeypatch):
    """On one device it adds no hooks; so those that move tensors between devices are forced as well."""
    accelerate = pytest.importorskip("accelerate")
    expected = [ln for ln, _ in naive(llama, PROMPTS)[0]]
    monkeypatch.setattr(loading, "single_device", lambda wanted, folder, share: "spread")
    model = open_causal(str(llama))
    for _ in range(2):
        (result,) = model.score(PROMPTS).options
        assert [one.logprob for one in result] == pytest.approx(expected, abs=1e-4)
        assert model.environment()["forward"] == "token tree"
        model = open_causal(str(llama))
        parts = {"model": "cpu", "lm_head": "cpu"}
        accelerate.dispatch_model(model._loaded.model, parts, force_hooks=True)
    assert "forward" in model._loaded.model.model.__dict__  # hooked, and still so after scoring


def test_a_gguf_file_needs_its_readers(tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "find_spec", lambda name: None)
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF")
    for name in (file, tmp_path, f"causal:{file}"):
        assert "needs gguf and accelerate; install them with: pip install 'giccs[gguf]'" in refusal(
            name
        )


def test_a_folder_with_several_gguf_files_is_a_question(tmp_path):
    pytest.importorskip("gguf")
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).write_bytes(b"GGUF")
    assert "contains several GGUF files (a.gguf, b.gguf); specify one of them" in refusal(tmp_path)


def test_a_gguf_file_that_is_broken(tmp_path):
    pytest.importorskip("gguf")
    pytest.importorskip("accelerate")
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    assert "a.gguf: cannot be loaded: " in refusal(tmp_path / "a.gguf")


def test_a_gguf_file_is_the_model_that_was_written_into_it(tmp_path):
    """A small Llama, written by the format's own library in float32 and read back."""
    gguf = pytest.importorskip("gguf")
    pytest.importorskip("accelerate")
    folder = make_model(tmp_path / "hf", "llama", "bytes")
    write_gguf(gguf, folder, tmp_path / "small.gguf")
    expected = [ln for ln, _ in naive(folder, PROMPTS)[0]]
    model = open_model(str(tmp_path / "small.gguf"))
    (result,) = model.score(PROMPTS).options
    assert [one.logprob for one in result] == pytest.approx(expected, abs=1e-4)
    assert model.identity["dtype"] == "float32"
    assert model.identity["revision"].startswith("sha256:")
    assert model.context == 256


def test_a_gguf_file_is_read_once(tmp_path, monkeypatch):
    """For configuration, tokenizer and weights, in slices of an array; and the package is as before."""
    gguf = pytest.importorskip("gguf")
    pytest.importorskip("accelerate")
    write_gguf(gguf, make_model(tmp_path / "hf", "llama", "bytes"), tmp_path / "small.gguf")
    read, kinds, name_map = [], set(), gguf.get_tensor_name_map

    class Reader(gguf.GGUFReader):
        def __init__(self, path, *arguments):
            read.append(Path(path).name)
            super().__init__(path, *arguments)
            kinds.add(type(self.data[:1]))

    monkeypatch.setattr(gguf, "GGUFReader", Reader)
    assert open_model(str(tmp_path / "small.gguf")).context == 256
    assert (read, kinds) == (["small.gguf"], {np.ndarray})
    assert (gguf.GGUFReader, gguf.get_tensor_name_map) == (Reader, name_map)


def test_a_gguf_file_that_lacks_a_tensor(tmp_path):
    gguf = pytest.importorskip("gguf")
    pytest.importorskip("accelerate")
    folder = make_model(tmp_path / "hf", "llama", "bytes")
    write_gguf(gguf, folder, tmp_path / "small.gguf", without="blk.1.attn_k.weight")
    message = refusal(tmp_path / "small.gguf")
    assert "1 tensor is missing and would be random (model.layers.1.self_attn.k_proj" in message


NAMES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "model.layers": "blk",
}  # fmt: skip


def write_gguf(gguf, folder, path, without=""):
    """Write a Llama with a byte-level tokenizer as llama.cpp's converter does, one tensor left out."""
    config = transformers.AutoConfig.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    vocabulary = sorted(tokenizer.get_vocab().items(), key=lambda entry: entry[1])
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list([token for token, _ in vocabulary])
    writer.add_token_types([3 if token == "<end>" else 1 for token, _ in vocabulary])
    writer.add_token_merges(
        [
            " ".join(pair)
            for pair in json.loads(tokenizer.backend_tokenizer.to_str())["model"]["merges"]
        ]
    )
    writer.add_eos_token_id(tokenizer.eos_token_id)
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    for name, weight in model.state_dict().items():
        for theirs, ours in NAMES.items():
            name = name.replace(theirs, ours)
        kind = name.split(".")[-2]
        if kind in heads:  # the format interleaves what transformers keeps in halves
            n = heads[kind]
            weight = weight.reshape(n, 2, -1, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)
        if name != without:
            writer.add_tensor(name, weight.numpy().copy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
