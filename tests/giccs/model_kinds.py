"""A model of every kind, for tests of what each can do."""

import json

import pytest

from giccs.models import ModelOptions, open_model

from .causal_models import edit_json, make_model, transformers


def open_each_kind(folder, plain_encoder, tiny_gpt):
    """Return kind -> a model of it, opened by its name; nothing is loaded."""
    pytest.importorskip("openai")
    pytest.importorskip("gguf")
    (folder / "words.txt").write_text("ja 1 0\nnein 0 1\n")
    (folder / "model.gguf").write_bytes(b"GGUF")
    t5 = make_model(folder / "t5")
    transformers.T5Config(architectures=["T5ForConditionalGeneration"]).save_pretrained(t5)
    classifier = make_model(folder / "classifier")
    edit_json(
        classifier / "config.json", architectures=["BertForSequenceClassification"], num_labels=1
    )
    names = {
        "baseline": "baseline:chance",
        "encoder": f"encoder:{plain_encoder}",
        "cross-encoder": f"{classifier}",
        "late-interaction": f"late-interaction:{plain_encoder}",
        "static": f"static:{folder / 'words.txt'}",
        "package": "package:minilm",
        "causal": f"causal:{tiny_gpt}",
        "gguf": f"causal:{folder / 'model.gguf'}",
        "completions": "completions:tiny",
        "embeddings": "embeddings:tiny",
        "seq2seq": f"seq2seq:{t5}",
        "chat": "chat:tiny",
    }
    options = ModelOptions(base_url="http://127.0.0.1:9/v1")
    return {kind: open_model(name, options) for kind, name in names.items()}


def open_trained(folder):
    """Return the model in a folder that looks like one of giccs csts train."""
    settings = dict.fromkeys(("model", "encoding", "objective", "pooling", "texts"), "bi")
    (folder / "settings.json").write_text(json.dumps(settings))
    return open_model(f"encoder:{folder}")
