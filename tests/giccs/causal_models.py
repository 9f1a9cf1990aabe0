"""Tiny causal models with random weights, tokenizers of several kinds, and the plainest scorer there is."""

import functools
import json

from .deferred import Deferred

torch = Deferred("torch")
transformers = Deferred("transformers")

GERMAN = [
    "Dialog: Äußerung 1: Ich möchte heute einen Tisch am Fenster für vier Personen.",
    "Frage: Welche Äußerung ist der letzten am ähnlichsten? Auswahl: A. Nein B. Ja Antwort:",
    "Wie weit ist das Hotel vom Bahnhof entfernt? Zehn Minuten zu Fuß, glaube ich.",
]
VOCABULARY = 384
SIZE = {
    "vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3,
    "num_attention_heads": 4, "max_position_embeddings": 256, "initializer_range": 0.3,
}  # fmt: skip
"""Wide enough initial weights, so that the models have opinions and a wrong mask shows."""
GROUPED = {**SIZE, "num_key_value_heads": 2}
GPT2 = {
    "vocab_size": VOCABULARY, "n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 256,
    "initializer_range": 0.3, "bos_token_id": 1, "eos_token_id": 1,
}  # fmt: skip
SPECIAL = {"bos_token_id": 1, "eos_token_id": 1, "pad_token_id": None}
CONFIGS = {
    "gpt2": ("GPT2Config", GPT2),
    # mGPT is a GPT-2 that was trained with Megatron: its own context and its own order of scaling
    "mgpt": ("GPT2Config", {**GPT2, "n_ctx": 2048, "n_positions": 2048, "scale_attn_weights": True,
                            "reorder_and_upcast_attn": True}),
    "llama": ("LlamaConfig", GROUPED),
    "qwen2": ("Qwen2Config", GROUPED),
    "qwen3": ("Qwen3Config", {**GROUPED, "head_dim": 8}),
    "gemma2": ("Gemma2Config", {**GROUPED, "head_dim": 8, "sliding_window": 24,
                                "final_logit_softcapping": 3.0, "attn_logit_softcapping": 5.0}),
    "gemma3": ("Gemma3TextConfig", {**GROUPED, "head_dim": 8, "sliding_window": 24,
               "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}),
    "neox": ("GPTNeoXConfig", SIZE),
    "bloom": ("BloomConfig", {"vocab_size": VOCABULARY, "hidden_size": 32, "n_layer": 3,
                              "n_head": 4, "initializer_range": 0.3}),
    "mistral": ("MistralConfig", {**GROUPED, "sliding_window": 24}),
    "gpt-neo": ("GPTNeoConfig", {"vocab_size": VOCABULARY, "hidden_size": 32, "num_layers": 2,
                "num_heads": 4, "attention_types": [[["global", "local"], 1]], "window_size": 24,
                "max_position_embeddings": 256, "initializer_range": 0.3}),
    "cohere": ("CohereConfig", {**GROUPED, "logit_scale": 0.2}),
    "granite": ("GraniteConfig", {**GROUPED, "logits_scaling": 5.0}),
    "opt": ("OPTConfig", {"vocab_size": VOCABULARY, "hidden_size": 32, "ffn_dim": 64,
            "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 256,
            "word_embed_proj_dim": 16, "init_std": 0.3}),
    "mamba": ("MambaConfig", {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2,
                              "initializer_range": 0.3}),
}  # fmt: skip


def make_model(folder, architecture="gpt2", tokenizer="bytes", **changes):
    """Save a model and a tokenizer as transformers does; return the folder."""
    kind, values = CONFIGS[architecture]
    torch.manual_seed(0)
    config = getattr(transformers, kind)(**{**SPECIAL, **values, **changes})
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    TOKENIZERS[tokenizer]().save_pretrained(folder)
    return folder


def trained(model, pre_tokenizer, **options):
    from tokenizers import Tokenizer, trainers

    tokenizer = Tokenizer(model)
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, show_progress=False, **options)
    tokenizer.train_from_iterator(GERMAN * 4, trainer)
    return tokenizer


@functools.cache
def bytes_tokenizer():
    """GPT-2's kind: bytes, nothing before a text, no padding token."""
    from tokenizers import decoders, models, pre_tokenizers

    kind = pre_tokenizers.ByteLevel(add_prefix_space=False)
    options = {"special_tokens": ["<end>"], "initial_alphabet": kind.alphabet()}
    tokenizer = trained(models.BPE(), kind, **options)
    tokenizer.decoder = decoders.ByteLevel()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>")


@functools.cache
def pieces_tokenizer():
    """SentencePiece's kind, Llama's: a mark for spaces, bytes for the unknown, <s> before a text."""
    from tokenizers import models, pre_tokenizers, processors

    special = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    tokenizer = trained(
        models.BPE(unk_token="<unk>", byte_fallback=True),
        pre_tokenizers.Metaspace(prepend_scheme="first"),
        special_tokens=special,
    )
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", 1)])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )


@functools.cache
def merging_tokenizer():
    """One that merges across words, as some for languages without spaces do."""
    from tokenizers import models

    letters = sorted(set("".join(GERMAN)))
    tokenizer = trained(
        models.BPE(unk_token="?"), None, special_tokens=["?"], initial_alphabet=letters
    )
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="?")


@functools.cache
def closing_tokenizer():
    """One that sets a token before and behind every text."""
    from tokenizers import processors

    tokenizer = pieces_tokenizer().backend_tokenizer.from_str(
        pieces_tokenizer().backend_tokenizer.to_str()
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        "<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )


TOKENIZERS = {
    "bytes": bytes_tokenizer, "pieces": pieces_tokenizer, "merging": merging_tokenizer,
    "closing": closing_tokenizer,
}  # fmt: skip


def naive(folder, prompts, dtype="float32"):
    """Return [[(ln p, tokens)]]: each option by itself with its prompt, log-softmax over all in float64."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()

    def option(prompt, text):
        whole = tokenizer(prompt + text)["input_ids"]
        start = len(tokenizer(prompt.rstrip())["input_ids"])
        with torch.no_grad():
            logits = model(torch.tensor([whole])).logits[0].double()
        chosen = torch.log_softmax(logits, -1)[range(start - 1, len(whole) - 1), whole[start:]]
        return float(chosen.sum()), len(whole) - start

    return [[option(prompt.text, text) for text in prompt.options] for prompt in prompts]


def edit_json(path, **changes):
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | changes))
