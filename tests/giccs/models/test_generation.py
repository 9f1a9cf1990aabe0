"""What models write: transformers' own greedy answers, whatever shares the batch."""

import json

import pytest

from bws.base.problems import InputError
from giccs.models import ModelOptions, generation, open_model
from giccs.models.causal import open_causal
from giccs.models.checkpoint import stated_kind
from giccs.models.generation import Greedy
from giccs.models.seq2seq import open_seq2seq
from tests.nightly import others_nightly

from ..causal_models import CONFIGS, GERMAN, TOKENIZERS, edit_json, make_model, torch, transformers

PROMPTS = [
    *GERMAN,
    "Ja",
    GERMAN[0][:40],
    "Ja",
    GERMAN[1][:41],
    f"{GERMAN[2]} {GERMAN[0]}",
    "Wie weit ist es? ",
    "Ein Tisch für vier",
]
T5 = {
    "vocab_size": 384, "d_model": 32, "d_ff": 64, "d_kv": 8, "num_layers": 2, "num_heads": 4,
    "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0, "initializer_factor": 4.0,
}  # fmt: skip
BART = {
    "vocab_size": 384, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64, "max_position_embeddings": 96, "init_std": 0.3, "pad_token_id": 2,
    "eos_token_id": 1, "bos_token_id": 1, "decoder_start_token_id": 1, "forced_eos_token_id": None,
}  # fmt: skip


def make_seq2seq(folder, kind="T5", values=T5, tokenizer="closing"):
    torch.manual_seed(0)
    model = getattr(transformers, f"{kind}ForConditionalGeneration")
    model(getattr(transformers, f"{kind}Config")(**values)).save_pretrained(folder)
    TOKENIZERS[tokenizer]().save_pretrained(folder)
    return folder


def alone(folder, prompts, max_tokens, auto="AutoModelForCausalLM"):
    """transformers' own: a prompt at a time, no sampling, no padding."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = getattr(transformers, auto).from_pretrained(folder).eval()
    answers = []
    for prompt in prompts:
        ids = torch.tensor([tokenizer(prompt)["input_ids"]])
        written = model.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=max_tokens
        )
        start = 1 if model.config.is_encoder_decoder else ids.shape[1]
        answers.append(tokenizer.decode(written[0, start:], skip_special_tokens=True))
    return answers


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("llama"), "llama", "pieces")


@pytest.fixture(scope="module")
def t5(tmp_path_factory):
    return make_seq2seq(tmp_path_factory.mktemp("t5"))


@pytest.mark.parametrize(
    "architecture",
    others_nightly(
        sorted({*CONFIGS} - {"mgpt", "qwen2", "cohere"}), "llama", "gemma3", "mamba", "bloom"
    ),
)
def test_answers_are_those_of_a_prompt_alone(tmp_path, architecture):
    folder = make_model(tmp_path, architecture, "bytes", eos_token_id=0)
    expected = alone(folder, PROMPTS, 12)
    assert len(set(expected)) > 4
    for batch_size in (None, 1, 3):
        model = open_causal(str(folder), options=ModelOptions(batch_size=batch_size))
        assert model.generate(PROMPTS, 12) == expected
        assert batch_size is not None or model.environment()["batch_size"] > 1


@pytest.mark.parametrize("tokenizer", ["pieces", "closing"])
def test_nothing_is_read_behind_the_prompt(tmp_path, tokenizer):
    """A tokenizer may set an end behind every text; an answer would follow that end."""
    folder = make_model(tmp_path, "llama", tokenizer)
    plain = make_model(tmp_path / "plain", "llama", "pieces")
    assert open_causal(str(folder)).generate(PROMPTS, 6) == alone(plain, PROMPTS, 6)


@pytest.mark.parametrize(("kind", "values"), [("T5", T5), ("Bart", BART)])
def test_an_encoder_decoder_writes_what_it_writes_alone(tmp_path, kind, values):
    folder = make_seq2seq(tmp_path, kind, values)
    expected = alone(folder, PROMPTS, 12, "AutoModelForSeq2SeqLM")
    assert len(set(expected)) > 4
    for batch_size in (None, 1, 3):
        model = open_seq2seq(str(folder), folder, ModelOptions(batch_size=batch_size))
        assert model.generate(PROMPTS, 12) == expected
    assert model.identity["kind"] == "seq2seq"
    assert model.environment()["batch_size"] == 3


def test_padding_is_left_out_where_it_shows(tmp_path, monkeypatch):
    """A model that counts positions from the row's beginning: padding shifts what it reads."""
    folder = make_model(tmp_path, "gpt2", "bytes", eos_token_id=0)
    expected = alone(folder, PROMPTS, 12)
    original = transformers.GPT2LMHeadModel.forward

    def counting(self, input_ids, attention_mask=None, position_ids=None, **rest):
        return original(self, input_ids, attention_mask=attention_mask, **rest)

    monkeypatch.setattr(transformers.GPT2LMHeadModel, "forward", counting)
    model = open_causal(str(folder))
    assert model.generate(PROMPTS, 12) == expected
    assert model._greedy.padding is False
    monkeypatch.setattr(generation, "TOLERANCE", {"float32": 1e9})
    assert open_causal(str(folder)).generate(PROMPTS, 12) != expected  # what the trial spared us


def test_sampling_and_penalties_of_a_model_are_left_out_but_its_ends_are_not(llama, tmp_path):
    model = open_causal(str(llama))
    (plain,) = model.generate(PROMPTS[:1], 12)
    ((_, ids),) = model._greedy.run([model._boundary.prompt(PROMPTS[0])], 12)
    folder = make_model(tmp_path, "llama", "pieces")
    settings = {"do_sample": True, "temperature": 5.0, "repetition_penalty": 3.0, "min_length": 99}
    edit_json(folder / "generation_config.json", **settings)
    assert open_causal(str(folder)).generate(PROMPTS[:1], 12) == [plain]
    end = ids[-1]
    edit_json(folder / "generation_config.json", eos_token_id=[1, end])
    ended = open_causal(str(folder))
    (other,) = ended._greedy.run([model._boundary.prompt(PROMPTS[0])], 12)
    assert 0 < ids.index(end) < 12
    assert other == (0, ids[: ids.index(end)])


def test_equal_prompts_are_answered_once(llama):
    seen = []

    def watched(work, label, total=None):
        seen.append((label, total))
        yield from work

    model = open_causal(str(llama))
    answers = model.generate(["Ja", "Nein", "Ja"], 4, watched)
    assert seen == [("answering", 2)]
    assert answers == [*model.generate(["Ja", "Nein"], 4), answers[0]]
    assert model.generate([], 4) == []


def test_half_precision_has_no_neighbours(llama):
    half = open_causal(str(llama), options=ModelOptions(dtype="bfloat16"))
    half.generate(PROMPTS, 4)
    assert half.environment()["batch_size"] == 1
    asked = open_causal(str(llama), options=ModelOptions(dtype="bfloat16", batch_size=4))
    asked.generate(PROMPTS, 4)
    assert asked.environment()["batch_size"] == 4


def test_batches_in_half_precision_are_compared_with_prompts_alone(llama, monkeypatch):
    options = ModelOptions(dtype="bfloat16")
    alone = open_causal(str(llama), options=options).generate(PROMPTS, 4)
    model = open_causal(str(llama), options=options)
    model._greedy._prompts = None  # as on a GPU
    model.generate(PROMPTS, 4)
    assert model.environment()["batch_size"] > 1
    assert 0 <= model.environment().get("batch_deviation", 0) < 0.25

    changed = open_causal(str(llama), options=options)
    changed._greedy._prompts = None
    of_prompts = Greedy._likelihoods
    monkeypatch.setattr(
        Greedy, "_likelihoods",
        lambda self, batch, width: of_prompts(self, batch, width) - 0.5 * (len(batch) > 1),
    )  # fmt: skip
    assert changed.generate(PROMPTS, 4) == alone
    assert changed.environment()["batch_size"] == 1
    assert "batch_deviation" not in changed.environment()


def test_what_does_not_fit_into_memory_is_halved(llama, monkeypatch):
    expected = open_causal(str(llama)).generate(PROMPTS, 8)
    model = open_causal(str(llama), options=ModelOptions(batch_size=8))
    original, sizes = transformers.LlamaForCausalLM.generate, []

    def small(self, ids, **settings):
        sizes.append(len(ids))
        if len(ids) > 3:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")
        return original(self, ids, **settings)

    monkeypatch.setattr(transformers.LlamaForCausalLM, "generate", small)
    assert model.generate(PROMPTS, 8) == expected
    assert sizes[2:] == [8, 4, 2, 2, 2, 2, 1]  # nine distinct prompts, after the two of the trial
    monkeypatch.setattr(
        transformers.LlamaForCausalLM,
        "generate",
        lambda *_, **__: (_ for _ in ()).throw(MemoryError()),
    )
    with pytest.raises(MemoryError, match="a single prompt does not fit into memory"):
        open_causal(str(llama)).generate(["Ja"], 8)


def test_no_prompt_is_cut(llama, tmp_path):
    long = " ".join(GERMAN * 4)
    with pytest.raises(InputError) as caught:
        open_causal(str(llama)).generate(["Ja", long, "Nein", long + "!"], 20)
    first, second = caught.value.problems
    assert first.message.startswith("prompt 2 has ")
    assert first.message.endswith(" tokens; the maximum is 256, 19 of them for the answer")
    assert second.message.startswith("prompt 4 has ")
    bart = make_seq2seq(tmp_path, "Bart", BART)
    with pytest.raises(InputError, match=r"prompt 1 has \d+ tokens; the maximum is 96$"):
        open_seq2seq("bart", bart, ModelOptions()).generate([long], 20)


def test_the_last_token_that_fits_is_written(llama):
    tokenizer = transformers.AutoTokenizer.from_pretrained(llama)
    prompt = next(
        text for n in range(1, 999) if len(tokenizer(text := "Ja" * n)["input_ids"]) == 247
    )
    model = open_causal(str(llama))
    assert model.generate([prompt], 10) == alone(llama, [prompt], 10)
    with pytest.raises(InputError, match="prompt 1 has 247 tokens; the maximum is 256, 10 of them"):
        model.generate([prompt], 11)


def test_t5_reads_prompts_of_any_length(t5):
    """Its n_positions say how it was trained; its distances have no end."""
    edit_json(t5 / "config.json", n_positions=16)
    long = " ".join(GERMAN * 4)
    model = open_seq2seq("t5", t5, ModelOptions())
    assert model.generate([long], 5) == alone(t5, [long], 5, "AutoModelForSeq2SeqLM")


def test_what_cannot_be_asked(llama, tmp_path):
    folder = make_model(tmp_path, "llama", "bytes")
    with pytest.raises(ValueError, match="max_tokens is 0; expected 1 or more"):
        open_causal(str(llama)).generate(["Ja"], 0)
    tokenizer = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(
        json.dumps({key: value for key, value in tokenizer.items() if key != "eos_token"})
    )
    with pytest.raises(
        InputError, match="prompt 2 is empty, and the tokenizer has no beginning-of-sequence token"
    ):
        open_causal(str(folder)).generate(["Ja", ""], 3)
    small = make_model(tmp_path / "small", "llama", "pieces", vocab_size=100)
    with pytest.raises(
        InputError, match=r"prompt 1 has token \d+, but the vocabulary of the model"
    ):
        open_causal(str(small)).generate(["Ja"], 3)


def test_no_numbers_are_no_answer(tmp_path):
    folder = make_model(tmp_path, "llama", "pieces")
    model = open_causal(str(folder))
    with torch.no_grad():
        model._loaded.model.lm_head.weight[0, 0] = float("nan")
    with pytest.raises(InputError, match=r"returns NaN; float16 may overflow"):
        model.generate(["Ja"], 3)


def test_identity_of_a_causal_model_does_not_change_with_what_it_is_asked(llama):
    model = open_causal(str(llama))
    before = dict(model.identity)
    model.generate(["Ja"], 3)
    assert model.identity == before
    assert model.environment()["forward"] == "written, greedy"


def test_what_is_no_encoder_decoder_is_refused(t5, llama, tmp_path):
    def refusal(path, **options):
        with pytest.raises(InputError) as caught:
            open_seq2seq("seq2seq:x", path, ModelOptions(**options)).generate(["Ja"], 3)
        return str(caught.value)

    assert stated_kind(t5) == "seq2seq"
    assert open_model(str(t5)).identity == open_model(f"seq2seq:{t5}").identity
    assert stated_kind(llama) == "causal"
    assert "seq2seq:x: not an encoder-decoder" in refusal(llama)
    assert "contains no model" in refusal(tmp_path)
    assert "is a file" in refusal(t5 / "config.json")
    torch.manual_seed(0)
    transformers.T5Model(transformers.T5Config(**T5)).save_pretrained(tmp_path)
    TOKENIZERS["closing"]().save_pretrained(tmp_path)
    assert "has no text generation head (architecture: T5Model)" in refusal(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"cut")
    edit_json(tmp_path / "config.json", architectures=["T5ForConditionalGeneration"])
    assert "cannot be loaded: " in refusal(tmp_path)
    edit_json(tmp_path / "config.json", auto_map={"AutoModelForSeq2SeqLM": "code.Model"})
    assert "allow it with --trust-remote-code" in refusal(tmp_path)
