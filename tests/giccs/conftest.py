"""A small benchmark on disk, and a small real encoder made on the spot."""

import json
import random

import pytest

WORDS = [
    "Ich",
    "möchte",
    "heute",
    "gern",
    "einen",
    "Tisch",
    "am",
    "Fenster",
    "für",
    "vier",
    "Personen",
]


def rows(dialogues=6, candidates=5, seed=0):
    draw = random.Random(seed)
    sentence = lambda: " ".join(draw.sample(WORDS, draw.randint(4, 9)))  # noqa: E731
    for d in range(dialogues):
        n_turns = 3 if d % 2 else 5
        turns = [
            {"speaker": "user" if t % 2 else "system", "text": sentence()} for t in range(n_turns)
        ]
        for c in range(candidates):
            yield {
                "item_id": f"d{d}-{c}",
                "dialogue_id": f"d{d}",
                "source": "chat" if d < dialogues // 2 else "phone",
                "domain": ["hotel", "cinema", "tv"][d % 3],
                "language": "de",
                "n_turns": n_turns,
                "turns": turns,
                "utterance_id": f"d{d}-{c}",
                "utterance": f"{sentence()} {c}",
                "score": round(draw.random(), 3),
            }


def write(path, lines):
    path.write_text("".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines), "utf-8")
    return path


@pytest.fixture
def benchmark_file(tmp_path):
    return write(tmp_path / "benchmark.jsonl", rows())


def without_language(lines):
    return [{key: value for key, value in line.items() if key != "language"} for line in lines]


@pytest.fixture
def unstated_file(tmp_path):
    """A benchmark that states no language."""
    return write(tmp_path / "benchmark.jsonl", without_language(rows()))


@pytest.fixture(scope="session")
def static_encoder(tmp_path_factory):
    """A sentence-transformers model with random static embeddings: the real code path, no download."""
    torch = pytest.importorskip("torch")
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    letters = {
        letter: n for n, letter in enumerate("[UNK]abcdefghijklmnopqrstuvwxyzäöüß0123456789")
    }
    tokenizer = Tokenizer(models.BPE({"[UNK]": len(letters), **letters}, [], unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("static-encoder")
    SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=16)]).save(str(folder))
    return folder


@pytest.fixture(scope="session")
def plain_encoder(tmp_path_factory):
    """A tiny BERT without a sentence-transformers configuration, so that pooling is ours to state."""
    torch = pytest.importorskip("torch")
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("plain-encoder")
    pieces = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *"abcdefghijklmnopqrstuvwxyzäöüß0123456789",
    ]
    pieces += [f"##{piece}" for piece in pieces[5:]]
    (folder / "vocab.txt").write_text("\n".join(pieces), "utf-8")
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(pieces), hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=128,
        initializer_range=0.5,  # cosines well apart, so that rounding decides no rank
    )  # fmt: skip
    BertModel(config).save_pretrained(folder)
    BertTokenizerFast(str(folder / "vocab.txt"), do_lower_case=True).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_gpt(tmp_path_factory):
    """A GPT-2 with random weights and a token a byte: the real code path, no download."""
    torch = pytest.importorskip("torch")
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("tiny-gpt")
    end = "<|endoftext|>"
    letters = [end, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = Tokenizer(models.BPE({letter: n for n, letter in enumerate(letters)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(letters), n_embd=32, n_layer=2, n_head=2, n_positions=1024,
        bos_token_id=0, eos_token_id=0,
        initializer_range=0.3,  # likelihoods well apart, so that rounding decides no choice
    )  # fmt: skip
    GPT2LMHeadModel(config).save_pretrained(folder)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=end, eos_token=end)
    fast.save_pretrained(folder)
    return folder
