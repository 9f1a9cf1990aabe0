"""A random BERT, two layers of 32, with a WordPiece tokenizer of the words of csts-sample."""

import re

from giccs.csts.data import read_csts

from ..deferred import Deferred

torch = Deferred("torch")
transformers = Deferred("transformers")

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def make(folder, **changes):
    """Save the model and its tokenizer as transformers does; return the folder."""
    rows = read_csts("csts-sample").instances
    text = " ".join(" ".join((row.sentence1, row.sentence2, row.condition)) for row in rows)
    words = sorted(set(re.findall(r"[a-z]+|[^\sa-z]", text.lower())))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join([*SPECIAL, *words]), "utf-8")
    torch.manual_seed(0)
    values = {
        "vocab_size": len(SPECIAL) + len(words), "hidden_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 2, "intermediate_size": 64, "max_position_embeddings": 128,
        "initializer_range": 0.3,  # cosines well apart
    }  # fmt: skip
    config = transformers.BertConfig(**(values | changes))
    transformers.BertModel(config).save_pretrained(folder)
    tokenizer = transformers.BertTokenizerFast(str(folder / "vocab.txt"), do_lower_case=True)
    tokenizer.save_pretrained(folder)
    return folder
