"""A tiny model, trained here on the turns of giccs-sample: the scorer's numbers mean something."""

import random

import pytest

from giccs.benchmark import read_benchmark
from giccs.models.abilities import Prompt
from giccs.models.causal import open_causal

from ..causal_models import torch, transformers

STEPS, ROWS, TOKENS, HELD_OUT = 150, 16, 64, 100
END = "<|end|>"


def tokenizer(texts):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    result = Tokenizer(models.BPE())
    result.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    result.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=[END], initial_alphabet=alphabet, show_progress=False
    )
    result.train_from_iterator(texts, trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=result, eos_token=END, bos_token=END
    )


def trained(texts, folder):
    """Train a GPT-2 of 280,000 weights for some seconds; save it as transformers does."""
    tokens = tokenizer(texts)
    torch.manual_seed(0)
    size = {"n_positions": 256, "n_embd": 96, "n_layer": 2, "n_head": 4}
    still = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    model = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(vocab_size=len(tokens), **size, **still)
    )
    ids = torch.tensor(tokens(f" {END}".join(texts))["input_ids"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(STEPS):
        starts = torch.randint(0, len(ids) - TOKENS, (ROWS,))
        rows = torch.stack([ids[start : start + TOKENS] for start in starts])
        optimizer.zero_grad()
        model(input_ids=rows, labels=rows).loss.backward()
        optimizer.step()
    model.save_pretrained(folder)
    tokens.save_pretrained(folder)


def shuffled(text, order):
    words = text.split()
    while " ".join(words) == text:
        order.shuffle(words)
    return " ".join(words)


@pytest.mark.nightly
def test_natural_word_order_is_likelier_than_shuffled(tmp_path):
    items = read_benchmark("giccs-sample").items
    turns = dict.fromkeys(turn.text for item in items for turn in item.turns)
    utterances = [item.utterance for item in items]
    trained([*turns, *utterances[:-HELD_OUT]], tmp_path)

    order = random.Random(0)
    held_out = [" ".join(text.split()) for text in utterances[-HELD_OUT:]]
    prompts = [Prompt(END, (text, shuffled(text, order))) for text in held_out]
    scored = open_causal(str(tmp_path)).score(prompts).options
    assert sum(natural.logprob > other.logprob for natural, other in scored) >= 95
