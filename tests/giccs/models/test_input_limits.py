"""How many tokens each architecture reads: long texts are cut and counted, never an index out of range."""

import numpy as np
import pytest

from bws.base.problems import InputError
from giccs.models import open_model
from giccs.models.abilities import Prompt
from giccs.models.input_limits import position_limit
from giccs.models.objects import model_of_object
from giccs.models.vocabulary import counted_tokens
from giccs.progress import silent
from tests.nightly import others_nightly

from ..causal_models import edit_json
from ..deferred import Deferred

torch = Deferred("torch")
transformers = Deferred("transformers")
library = Deferred("sentence_transformers")

LETTERS = "abcdefghijklmnopqrstuvwxyz"
FRAME = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
BERT = {
    "vocab_size": 40, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1,
    "num_attention_heads": 2, "max_position_embeddings": 24, **FRAME,
}  # fmt: skip
GPT = {"vocab_size": 40, "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 24, **FRAME}
XLM = {"vocab_size": 40, "emb_dim": 16, "n_layers": 1, "n_heads": 2, "max_position_embeddings": 24}
BART = {
    "vocab_size": 40, "d_model": 16, "encoder_layers": 1, "decoder_layers": 1,
    "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 16,
    "decoder_ffn_dim": 16, "max_position_embeddings": 24, "decoder_start_token_id": 2, **FRAME,
}  # fmt: skip
T5 = {
    "vocab_size": 40, "d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2,
    "decoder_start_token_id": 1, "pad_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
DEBERTA = {**BERT, "relative_attention": True, "pos_att_type": ["c2p"]}
ARCHITECTURES = {
    # Positions in a table, numbered from 0.
    "Bert": (BERT, 24, True),
    "Electra": ({**BERT, "embedding_size": 16}, 24, True),
    "Albert": ({**BERT, "embedding_size": 8}, 24, True),
    "DistilBert": (
        {"vocab_size": 40, "dim": 16, "hidden_dim": 16, "n_layers": 1, "n_heads": 2,
         "max_position_embeddings": 24, "pad_token_id": 1}, 24, True,
    ),
    "Deberta": (DEBERTA, 24, True),
    "RoFormer": ({**BERT, "embedding_size": 16}, 24, True),
    "XLM": ({**XLM, "pad_index": 1}, 24, True),
    "GPT2": (GPT, 24, True),
    "OpenAIGPT": (GPT, 24, True),
    # From the token after that of padding: RoBERTa and its relatives.
    "Roberta": (BERT, 22, True),
    "XLMRoberta": ({**BERT, "pad_token_id": 3}, 20, True),
    "Camembert": (BERT, 22, True),
    "MPNet": (BERT, 22, True),
    "IBert": (BERT, 22, True),
    "Longformer": ({**BERT, "max_position_embeddings": 26, "attention_window": [4]}, 24, True),
    "Esm": ({**BERT, "position_embedding_type": "absolute", "mask_token_id": 3}, 22, True),
    # In a table with further rows at its beginning.
    "OPT": (
        {"vocab_size": 40, "hidden_size": 16, "ffn_dim": 16, "num_hidden_layers": 1,
         "num_attention_heads": 2, "max_position_embeddings": 24, "word_embed_proj_dim": 16, **FRAME},
        24, True,
    ),
    "Nystromformer": ({**BERT, "num_landmarks": 4, "segment_means_seq_len": 4}, 24, True),
    # Computed up to a stated end: sinusoids, rotary buffers, ALiBi.
    "CTRL": ({**GPT, "dff": 16}, 24, True),
    "GPTJ": ({**GPT, "rotary_dim": 4}, 24, True),
    "Mpt": ({"vocab_size": 40, "d_model": 16, "n_heads": 2, "n_layers": 1, "max_seq_len": 24}, 24, True),
    # Computed without end, but the configuration states the maximum of the training.
    "DebertaV2": ({**DEBERTA, "position_biased_input": False}, 24, False),
    "ModernBert": ({**BERT, "cls_token_id": 0, "sep_token_id": 2}, 24, False),
    "Llama": (BERT, 24, False),
    "Mistral": ({**BERT, "num_key_value_heads": 2, "sliding_window": 8}, 24, False),
    # No maximum: relative positions, ALiBi, states.
    "XLNet": ({"vocab_size": 40, "d_model": 16, "n_layer": 1, "n_head": 2, "d_inner": 16}, None, False),
    "T5": (T5, None, False),
    "Bloom": ({"vocab_size": 40, "hidden_size": 16, "n_layer": 1, "n_head": 2}, None, False),
    "Mamba": ({"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 1}, None, False),
}  # fmt: skip
"""Architecture -> settings, maximum number of tokens, whether it fails with one more."""
FOR_EACH_KIND = ("Bert", "Roberta", "OPT", "GPTJ", "Llama", "XLNet", "T5")
"""One of each kind of positions."""


def config_of(architecture):
    torch.manual_seed(0)
    return getattr(transformers, f"{architecture}Config")(**ARCHITECTURES[architecture][0])


def tokenizer_without_limit(**options):
    """A letter is a token; 2 special tokens are added."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = ["<s>", "<pad>", "</s>", "<unk>", *LETTERS]
    tokenizer = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, "<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        "<s> $A </s>", "<s> $A </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", cls_token="<s>",
        sep_token="</s>", pad_token="<pad>", unk_token="<unk>", **options,
    )  # fmt: skip


def saved(folder, model, **options):
    model.save_pretrained(folder)
    tokenizer_without_limit(**options).save_pretrained(folder)
    return folder


def letters(n):
    return " ".join(LETTERS[index % len(LETTERS)] for index in range(n))


def check_long_texts(model, limit):
    """The longest text that fits is read completely; with one more letter, one is cut and counted."""
    n_letters = (limit or 70) - 2
    texts = [letters(n_letters), letters(n_letters + 1), letters(n_letters + 60)]
    is_cut = [False, limit is not None, limit is not None]
    assert model.fits(texts, ["a"] * 3, silent).tolist() == [not cut for cut in is_cut]
    with counted_tokens() as counts:
        similarities = model.pair_scores(texts, ["a"] * 3, silent)
    assert np.isfinite(similarities).all()
    assert counts.cut == sum(is_cut)


@pytest.mark.parametrize("architecture", others_nightly(ARCHITECTURES, *FOR_EACH_KIND))
def test_the_limit_is_the_number_of_usable_positions(architecture):
    _, limit, is_end = ARCHITECTURES[architecture]
    model = transformers.AutoModel.from_config(config_of(architecture)).eval()
    encoder = model.get_encoder() if architecture == "T5" else model
    assert position_limit(encoder) == limit

    def run(n_tokens):
        with torch.inference_mode():
            return encoder(input_ids=torch.full((1, n_tokens), 7))

    run(limit or 70)
    if is_end:
        with pytest.raises((IndexError, RuntimeError)):
            run(limit + 1)


@pytest.mark.parametrize("architecture", others_nightly(ARCHITECTURES, *FOR_EACH_KIND))
def test_long_texts_are_cut_where_the_tokenizer_states_no_limit(architecture, tmp_path):
    """By name, as a SentenceTransformer and, unless it generates text, as a model of transformers."""
    limit = ARCHITECTURES[architecture][1]
    folder = saved(tmp_path / "m", transformers.AutoModel.from_config(config_of(architecture)))
    assert transformers.AutoTokenizer.from_pretrained(folder).model_max_length > 1e29
    check_long_texts(open_model(f"encoder:{folder}"), limit)
    own = library.SentenceTransformer(str(folder), device="cpu")
    check_long_texts(model_of_object(own), limit)
    loaded = transformers.AutoModel.from_pretrained(folder)
    if architecture != "T5" and not loaded.can_generate():
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        check_long_texts(model_of_object((loaded, tokenizer)), limit)


def test_a_stated_maximum_beyond_the_positions_is_reduced(tmp_path):
    """It is kept where positions have no end."""
    for architecture, limit in (("Roberta", 22), ("XLNet", 40), ("ModernBert", 40)):
        base = transformers.AutoModel.from_config(config_of(architecture))
        library.SentenceTransformer(str(saved(tmp_path / "b", base)), device="cpu").save(
            str(tmp_path / architecture)
        )
        for path in (tmp_path / architecture).rglob("tokenizer_config.json"):
            edit_json(path, model_max_length=40)
        edit_json(tmp_path / architecture / "sentence_bert_config.json", max_seq_length=40)
        check_long_texts(open_model(str(tmp_path / architecture)), limit)


def test_the_layers_of_a_model_without_a_maximum(tmp_path):
    for architecture in ("XLNet", "Roberta"):
        base = transformers.AutoModel.from_config(config_of(architecture))
        model = open_model(f"{saved(tmp_path / architecture, base)}+first-last")
        assert np.isfinite(model.vectors([letters(90), "a b"], silent)).all()


def test_pairs_are_cut_at_the_positions(tmp_path):
    """RoBERTa as a cross-encoder, with 3 special tokens per pair, and as late interaction."""
    config = config_of("Roberta")
    config.num_labels = 1
    classifier = transformers.RobertaForSequenceClassification(config)
    folder = saved(tmp_path / "cross", classifier)
    own = library.CrossEncoder(str(folder), device="cpu")
    for model in (open_model(f"cross-encoder:{folder}"), model_of_object(own)):
        texts = [letters(18), letters(19), letters(90)]
        assert model.fits(texts, ["a"] * 3, silent).tolist() == [True, False, False]
        assert np.isfinite(model.pair_scores(texts, ["a"] * 3, silent)).all()
    plain = saved(tmp_path / "plain", transformers.AutoModel.from_config(config))
    check_long_texts(open_model(f"late-interaction:{plain}"), 22)
    multi = library.MultiVectorEncoder(str(plain), device="cpu")
    multi[0].document_length = 40
    check_long_texts(model_of_object(multi), 22)


@pytest.mark.parametrize(
    ("kind", "limit"), others_nightly([("Roberta", 22), ("OPT", 24), ("Llama", 24)], ("OPT", 24))
)
def test_a_causal_model_with_positions_after_padding(tmp_path, kind, limit):
    """The last token of an option is only predicted; one beginning token is added."""
    config = config_of(kind)
    config.is_decoder = True
    causal = transformers.AutoModelForCausalLM.from_config(config)
    model = open_model(f"causal:{saved(tmp_path, causal)}")
    assert model.context == limit
    (options,) = model.score([Prompt(letters(limit - 1), (" b", " c"))]).options
    assert all(np.isfinite(option.logprob) for option in options)
    with pytest.raises(InputError, match=f"has {limit + 1} tokens .* the maximum is {limit}"):
        model.score([Prompt(letters(limit), (" b", " c"))])
    (cut,) = model.score([Prompt(letters(limit), (" b",), (letters(4),))]).prompts
    assert cut == letters(4)
    assert model.generate([letters(limit - 3)], 3)
    with pytest.raises(InputError, match=f"the maximum is {limit}, 2 of them for the answer"):
        model.generate([letters(limit - 2)], 3)


def of_config(kind, **values):
    config = getattr(transformers, f"{kind}Config")(**values)
    return transformers.AutoModelForSeq2SeqLM.from_config(config)


LED = {**BART, "max_encoder_position_embeddings": 32, "max_decoder_position_embeddings": 24,
       "attention_window": [4]}  # fmt: skip
SEQ2SEQ = {
    "bart": (lambda: of_config("Bart", **BART), 24, 24),
    "blenderbot": (lambda: of_config("Blenderbot", **BART), 24, 24),
    "led": (lambda: of_config("LED", **LED), 32, 24),
    "pegasus": (lambda: of_config("Pegasus", **BART), 24, 24),
    "mbart": (lambda: of_config("MBart", **BART), 24, 24),
    "t5": (lambda: of_config("T5", **T5), None, None),
}
"""Kind -> function that returns a model, maximum number of tokens of its encoder, and of its decoder."""


@pytest.mark.parametrize("kind", others_nightly(SEQ2SEQ, "led", "t5"))
def test_encoder_decoders_have_a_limit_on_each_side(kind, tmp_path):
    torch.manual_seed(0)
    build, prompt_limit, answer_limit = SEQ2SEQ[kind]
    model = open_model(f"seq2seq:{saved(tmp_path, build())}")
    assert model.context == prompt_limit
    n_letters = (prompt_limit or 90) - 2
    assert model.generate([letters(n_letters)], answer_limit or 90)
    if prompt_limit:
        with pytest.raises(InputError, match=f"the maximum is {prompt_limit}$"):
            model.generate([letters(n_letters + 1)], 3)
        with pytest.raises(
            InputError, match=f"generates at most {answer_limit} tokens; 25 requested"
        ):
            model.generate(["a"], answer_limit + 1)
