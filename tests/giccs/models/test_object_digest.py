"""Digests of loaded models: any setting that changes predictions changes them, a computation does not."""

import copy
from datetime import date

import pytest

from giccs.models import open_model
from giccs.models.object_digest import model_digest
from giccs.models.objects import model_of_object
from giccs.progress import silent
from giccs.tasks.refusals import chat_parameters

from ..causal_models import make_model
from ..deferred import requires
from ..saved_models import LEFT, RIGHT, Folders, library, transformers

pytestmark = requires("sentence_transformers")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return Folders(tmp_path_factory.mktemp("digests"))


@pytest.fixture
def encoder(folders):
    return library.SentenceTransformer(str(folders("pooled")), device="cpu")


@pytest.mark.parametrize("setting", [
    {"truncate_dim": 4}, {"max_seq_length": 7}, {"similarity_fn_name": "dot"},
    {"default_prompt_name": "query", "prompts": {"query": "Search: "}},
])  # fmt: skip
def test_settings_of_sentence_transformers(encoder, setting):
    other = copy.deepcopy(encoder)
    for name, value in reversed(setting.items()):
        setattr(other, name, value)
    assert model_digest(other) != model_digest(encoder)


@pytest.mark.parametrize("change", [
    lambda tokenizer: setattr(tokenizer, "model_max_length", 12),
    lambda tokenizer: setattr(tokenizer, "chat_template", "{{ messages[0]['content'] }}!"),
    lambda tokenizer: setattr(tokenizer, "padding_side", "left"),
    lambda tokenizer: setattr(
        tokenizer.backend_tokenizer, "normalizer", __import__("tokenizers").normalizers.Lowercase()
    ),
])  # fmt: skip
def test_settings_of_tokenizers(folders, change):
    folder = str(folders("plain"))
    model = transformers.BertModel.from_pretrained(folder)
    one, other = (transformers.AutoTokenizer.from_pretrained(folder) for _ in range(2))
    assert model_digest(model, one) == model_digest(model, other)
    change(other)
    assert model_digest(model, one) != model_digest(model, other)


def test_settings_of_the_configuration(folders):
    model = transformers.BertModel.from_pretrained(str(folders("plain")))
    other = copy.deepcopy(model)
    other.config.layer_norm_eps = 0.1
    assert model_digest(other) != model_digest(model)
    other = copy.deepcopy(model)
    other.config._name_or_path = "elsewhere"
    assert model_digest(other) == model_digest(model)


def test_a_computation_changes_no_digest(encoder):
    before = model_digest(encoder)
    model_of_object(encoder, "own").pair_scores(LEFT, RIGHT, silent)
    encoder.encode(["museum " * 50])
    assert model_digest(encoder) == before


def test_words_of_word_embeddings(folders):
    one, other = (
        library.SentenceTransformer(str(folders("word-weights")), device="cpu") for _ in range(2)
    )
    assert model_digest(one) == model_digest(other)
    other[0].tokenizer.set_vocab([*reversed(one[0].tokenizer.get_vocab())])
    assert model_digest(one) != model_digest(other)


def test_a_chat_template_with_the_date_is_in_the_signature(tmp_path):
    folder = make_model(tmp_path)
    (folder / "chat_template.jinja").write_text("{{ messages[0]['content'] }}")
    plain = open_model(f"causal:{folder}")
    assert chat_parameters(plain, chat_template=True) == {"chat_template": True}
    (folder / "chat_template.jinja").write_text(
        "{{ strftime_now('%d %b') }} {{ messages[0]['content'] }}"
    )
    dated = open_model(f"causal:{folder}")
    assert chat_parameters(dated, chat_template=False) == {"chat_template": False}
    days = {date.today().isoformat()}
    found = chat_parameters(dated, chat_template=True)
    days.add(date.today().isoformat())
    assert found["chat_template"]
    assert found["chat_date"] in days
    model = transformers.AutoModelForCausalLM.from_pretrained(str(folder))
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder))
    loaded = model_of_object((model, tokenizer), "own")
    assert chat_parameters(loaded, chat_template=True) == found
