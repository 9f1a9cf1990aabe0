"""Prompts, pooling, dimensions and precision of encoders, compared with sentence-transformers and scipy."""

import json
import shutil
from typing import ClassVar

import numpy as np
import pytest

from bws.base.problems import InputError
from giccs.models import ModelOptions, UnsupportedOptionError, open_model
from giccs.models.compression import CompressedModel
from giccs.progress import silent

LEFT = ["Ich möchte einen Tisch", "heute gern am Fenster", "für vier", "Tisch"]
RIGHT = ["einen Tisch für vier Personen", "am Fenster", "Tisch", "heute"]
PROMPTS = {"query": "frage ", "passage": "antwort ", "document": None}


def opened(name, **options):
    return open_model(str(name), ModelOptions(**options))


@pytest.fixture(scope="session")
def prompted_encoder(plain_encoder, tmp_path_factory):
    """A sentence-transformers folder with own prompts, cls pooling and normalisation."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    folder = tmp_path_factory.mktemp("prompted-encoder")
    modules = [Transformer(str(plain_encoder)), Pooling(32, "cls"), Normalize()]
    prompts = {name: text or "" for name, text in PROMPTS.items()}
    model = SentenceTransformer(modules=modules, prompts=prompts, default_prompt_name="query")
    model.save(str(folder))
    return folder


@pytest.fixture(scope="session")
def left_padded_gpt(tiny_gpt, tmp_path_factory):
    """GPT-2, with absolute positions, and a tokenizer that pads at the start."""
    from transformers import AutoTokenizer

    folder = tmp_path_factory.mktemp("left-padded") / "gpt"
    shutil.copytree(tiny_gpt, folder)
    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
    tokenizer.pad_token = tokenizer.eos_token
    tokenizer.save_pretrained(folder)
    return folder


def reference(folder, **arguments):
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu")
    return lambda texts: model.encode(texts, **arguments)


@pytest.mark.parametrize(
    ("prompt", "target", "candidate"),
    [
        ((), "frage ", "frage "),
        (("default",), "frage ", "frage "),
        (("none",), "", ""),
        (("document",), "", ""),
        (("passage",), "antwort ", "antwort "),
        (("query||passage",), "frage ", "antwort "),
        (("none||passage",), "", "antwort "),
        (("x=Satz: ",), "Satz: ", "Satz: "),
        (("x=a=b||c: ",), "a=b", "c: "),
        (("x=||c: ",), "", "c: "),
    ],
)
def test_prompts_are_those_of_sentence_transformers(prompted_encoder, prompt, target, candidate):
    model = opened(prompted_encoder, prompt=prompt)
    left = reference(prompted_encoder, prompt=target)(LEFT)
    right = reference(prompted_encoder, prompt=candidate)(RIGHT)
    expected = np.einsum("nd,nd->n", left, right)  # The model normalises.
    np.testing.assert_allclose(model.pair_scores(LEFT, RIGHT, silent), expected, atol=1e-5)
    assert model.is_symmetric() == (target == candidate)
    if target == candidate:
        np.testing.assert_allclose(model.vectors(LEFT, silent), left, atol=1e-5)


def test_the_prompt_is_part_of_the_signature(prompted_encoder, plain_encoder):
    own = opened(prompted_encoder).identity["prompt"]
    assert own == {"name": "query", "target": "frage ", "candidate": "frage "}
    none = opened(prompted_encoder, prompt=("none",)).identity["prompt"]
    assert none == {"name": "none", "target": "", "candidate": ""}
    assert "prompt" not in opened(plain_encoder, prompt=("none",)).identity


def test_prompts_share_the_weights(prompted_encoder, monkeypatch):
    from giccs.evaluation.run import open_models
    from giccs.models.sentence import SentenceModel

    loads = []
    load = SentenceModel._load_weights
    monkeypatch.setattr(SentenceModel, "_load_weights", lambda self: loads.append(1) or load(self))
    models = open_models(
        [str(prompted_encoder)], ModelOptions(prompt=("none", "passage"), dimensions=8)
    )
    first, second = (model.vectors(LEFT, silent) for model in models)
    assert not np.allclose(first, second, atol=1e-3)
    assert loads == [1]


@pytest.mark.parametrize(
    "prompt", ["", "=a", "x=", "x=||", "a||b||c", "x=a||b||c", "none=a", "a|b"]
)
def test_other_forms_of_prompts_are_refused(prompt):
    with pytest.raises(ValueError, match=r"prompt is .* expected a list of NAME"):
        ModelOptions(prompt=(prompt,))


def test_unknown_and_unsupported_prompts_are_refused(prompted_encoder, plain_encoder):
    with pytest.raises(
        InputError, match=r"no prompt 'querry'; did you mean 'query'.*passage, query"
    ):
        opened(prompted_encoder, prompt=("querry",))
    with pytest.raises(InputError, match="the model has none; expected none or NAME=TEXT"):
        opened(plain_encoder, prompt=("query",))
    with pytest.raises(UnsupportedOptionError, match="supports no prompts; omit --prompt"):
        opened("baseline:chance", prompt=("x=a",))
    sided = opened(prompted_encoder, prompt=("query||passage",))
    with pytest.raises(InputError, match="expected one prompt for all texts"):
        sided.vectors(LEFT, silent)
    with pytest.raises(InputError, match="expected one prompt for all texts"):
        opened(f"{prompted_encoder}+whitening:2", prompt=("query||passage",))


def test_instructor_models_exclude_the_prompt_from_the_mean(plain_encoder, tmp_path):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    modules = [Transformer(str(plain_encoder)), Pooling(32, "mean", include_prompt=False)]
    SentenceTransformer(modules=modules).save(str(tmp_path))
    for pooling, arguments in ((None, {}), ("mean", {})):
        vectors = opened(tmp_path, prompt=("x=frage ",), pooling=pooling).vectors(LEFT, silent)
        expected = reference(tmp_path, prompt="frage ", **arguments)(LEFT)
        np.testing.assert_allclose(vectors, expected, atol=1e-5)
    prefixed = reference(tmp_path)([f"frage {text}" for text in LEFT])
    assert not np.allclose(vectors, prefixed, atol=1e-3)


@pytest.mark.parametrize("pooling", ["mean", "cls", "last"])
@pytest.mark.parametrize("encoder", ["plain_encoder", "prompted_encoder", "left_padded_gpt"])
def test_pooling_is_that_of_each_text_alone(pooling, encoder, request):
    """The oracle encodes each text alone, without padding, with transformers."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder = request.getfixturevalue(encoder)
    model = opened(f"encoder:{folder}", pooling=pooling, prompt=("none",))
    tokenizer, network = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
    expected = []
    for text in LEFT:
        with torch.inference_mode():
            states = network(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        expected.append({"mean": states.mean(dim=0), "cls": states[0], "last": states[-1]}[pooling])
    expected = np.stack([vector.numpy() for vector in expected])
    if encoder == "prompted_encoder":  # Its other modules remain.
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(model.vectors(LEFT, silent), expected, atol=1e-4)


def test_the_default_pooling_is_the_models_own_or_the_mean(prompted_encoder, plain_encoder):
    own, default = (
        opened(prompted_encoder, pooling=pooling).identity["pooling"] for pooling in ("model", None)
    )
    assert own == default == "the model's own"
    mean, default = (
        opened(plain_encoder, pooling=pooling).identity["pooling"] for pooling in ("mean", None)
    )
    assert mean == default == "mean"
    assert opened(prompted_encoder, pooling="mean").identity["pooling"] != own


def test_impossible_pooling_is_refused(plain_encoder, static_encoder):
    with pytest.raises(InputError, match="no pooling of its own"):
        opened(plain_encoder, pooling="model")
    with pytest.raises(InputError, match="consists of StaticEmbedding, without pooling"):
        opened(static_encoder, pooling="mean")
    with pytest.raises(UnsupportedOptionError, match="omit --pooling"):
        opened("package:use-multilingual", pooling="mean")


@pytest.mark.parametrize("encoder", ["plain_encoder", "prompted_encoder", "static_encoder"])
@pytest.mark.parametrize("dimensions", [None, 5])
@pytest.mark.parametrize("embeddings", ["float32", "int8", "binary"])
def test_dimensions_and_precision_are_those_of_sentence_transformers(
    encoder, dimensions, embeddings, request
):
    from sentence_transformers.util import quantize_embeddings

    folder = request.getfixturevalue(encoder)
    model = opened(folder, dimensions=dimensions, embeddings=embeddings)
    is_normalised = encoder == "prompted_encoder"
    encode = reference(folder, truncate_dim=dimensions, normalize_embeddings=is_normalised)
    both = encode([*LEFT, *RIGHT])
    if embeddings == "int8":
        both = quantize_embeddings(both, "int8")
    elif embeddings == "binary":
        both = np.unpackbits(quantize_embeddings(both, "ubinary"), axis=1, count=both.shape[1])
    vectors = (
        np.concatenate(model.side_vectors(LEFT, RIGHT, silent))
        if dimensions or (embeddings != "float32")
        else model.vectors([*LEFT, *RIGHT], silent)
    )
    # Rounding in a batch may move a number at the limit of a step of int8 by one step.
    tolerance = 1.001 if embeddings == "int8" else 1e-5
    np.testing.assert_allclose(vectors, both.astype(float), atol=tolerance)
    assert np.mean(np.abs(vectors - both.astype(float)) > 1e-4) < 0.05


def test_binary_vectors_order_pairs_as_hamming_distance(plain_encoder):
    from scipy.spatial.distance import hamming

    model = opened(plain_encoder, embeddings="binary")
    left, right = model.side_vectors(LEFT, RIGHT, silent)
    distance = [hamming(a, b) for a, b in zip(left, right, strict=True)]
    squared = ((left - right) ** 2).sum(axis=1)
    np.testing.assert_allclose(squared, np.array(distance) * left.shape[1])


def test_more_dimensions_than_the_model_has_are_refused(plain_encoder):
    with pytest.raises(InputError, match="has 32 dimensions, fewer than --dimensions 33"):
        opened(plain_encoder, dimensions=33).vectors(LEFT, silent)
    with pytest.raises(UnsupportedOptionError, match="returns no vectors; omit --dimensions"):
        opened("baseline:chance", dimensions=2)
    with pytest.raises(ValueError, match="dimensions is 0; expected an integer from 1"):
        ModelOptions(dimensions=0)


def test_texts_without_a_vector_stay_without_one():
    class Holes:
        name = "holes"
        identity: ClassVar = {"kind": "test"}

        def vectors(self, texts, progress):
            return np.array([[0.5, -1, 2], [np.nan] * 3, [1, 1, 1]], dtype=np.float32)

    for embeddings in ("int8", "binary"):
        vectors = CompressedModel(Holes(), 2, embeddings).vectors(["a", "b", "c"], silent)
        assert np.isnan(vectors).any(axis=1).tolist() == [False, True, False]


def test_settings_of_a_loaded_sentence_transformer(prompted_encoder):
    from sentence_transformers import SentenceTransformer

    import giccs

    model = SentenceTransformer(str(prompted_encoder), device="cpu")
    settings = {"prompt": ("none", "query||passage"), "dimensions": 6, "embeddings": "binary"}
    by_object = giccs.evaluate(model, "giccs-sample", "pairwise-sts", limit=3, **settings)
    by_name = giccs.evaluate(
        str(prompted_encoder), "giccs-sample", "pairwise-sts", limit=3, **settings
    )
    assert len(by_object) == len(by_name) == 2
    for first, second in zip(by_object, by_name, strict=True):
        np.testing.assert_allclose(
            first.predictions["prediction"], second.predictions["prediction"], atol=1e-5
        )
    assert (
        json.loads(json.dumps(by_object[0].signature["prompt"])) == by_name[0].signature["prompt"]
    )
