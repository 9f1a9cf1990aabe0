"""A random RoBERTa, two layers of 32, with a byte-level BPE tokenizer of the words of csts-sample."""

from giccs.csts.data import read_csts

from ..deferred import Deferred

torch = Deferred("torch")
transformers = Deferred("transformers")

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def make(folder, **changes):
    """Save the model and its tokenizer as transformers does; return the folder."""
    from tokenizers import ByteLevelBPETokenizer

    rows = read_csts("csts-sample").instances
    text = [" ".join((row.sentence1, row.sentence2, row.condition)) for row in rows]
    folder.mkdir(parents=True, exist_ok=True)
    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator(text, vocab_size=1000, special_tokens=SPECIAL, show_progress=False)
    bpe.save_model(str(folder))
    tokenizer = transformers.RobertaTokenizerFast(
        vocab=str(folder / "vocab.json"), merges=str(folder / "merges.txt")
    )
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    values = {
        "vocab_size": len(tokenizer), "hidden_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 2, "intermediate_size": 64, "max_position_embeddings": 130,
        "type_vocab_size": 1, "initializer_range": 0.3,  # cosines well apart
    }  # fmt: skip
    config = transformers.RobertaConfig(**(values | changes))
    transformers.RobertaModel(config).save_pretrained(folder)
    return folder
