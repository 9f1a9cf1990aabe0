"""Every kind of model has exactly the abilities that it declares, with the signatures of their protocols."""

import inspect

import numpy as np
import pytest

from giccs.models import KINDS, ModelOptions, abilities, open_model
from giccs.models.objects import model_of_object
from giccs.models.postprocess import wrapped

from ..model_kinds import open_each_kind, open_trained

ABILITIES = {
    name: protocol
    for name, protocol in vars(abilities).items()
    if getattr(protocol, "_is_runtime_protocol", False)
}
ENCODER = {"PairModel", "VectorModel"}
LIMITED_ENCODER = {*ENCODER, "LimitedModel", "TextPairModel"}
PROMPTED_ENCODER = {*LIMITED_ENCODER, "SidedModel", "PromptedModel"}
PAIRS = {"PairModel", "OrderedPairModel", "LimitedModel"}
CAUSAL = {
    "ChatTemplateModel",
    "EncodableModel",
    "GeneratingModel",
    "LikelihoodModel",
    "LimitedRespondingModel",
    "RespondingModel",
}
EXPECTED = {
    "baseline": {"PairModel"},
    "encoder": PROMPTED_ENCODER,
    "cross-encoder": PAIRS,
    "late-interaction": PAIRS,
    "static": ENCODER,
    "package": PROMPTED_ENCODER,
    "causal": CAUSAL,
    "gguf": CAUSAL,
    "completions": {"LikelihoodModel", "ServedModel"},
    "python": {"PairModel"},
    "seq2seq": {"GeneratingModel"},
    "chat": {"GeneratingModel", "LetterModel", "RespondingModel", "ServedModel"},
    "embeddings": {
        *ENCODER,
        "LimitedModel",
        "SidedModel",
        "PromptedModel",
        "ResizableModel",
        "ServedModel",
    },
    "overlap": {"PairModel"},
    "trained": {"DescribedModel"},
    "dimensions": {*LIMITED_ENCODER, "SidedModel"},
    "first-last": LIMITED_ENCODER,
    "whitening": LIMITED_ENCODER,
}


@pytest.fixture(scope="module")
def models(tmp_path_factory, plain_encoder, tiny_gpt):
    result = open_each_kind(tmp_path_factory.mktemp("models"), plain_encoder, tiny_gpt)
    return result | {
        "overlap": open_model("baseline:char-ngram"),
        "python": model_of_object(lambda left, right: [0.0] * len(left), "none"),
        "trained": open_trained(tmp_path_factory.mktemp("trained")),
        "dimensions": open_model(str(plain_encoder), ModelOptions(dimensions=8)),
        "first-last": open_model(f"{plain_encoder}+first-last"),
        "whitening": open_model(f"{plain_encoder}+whitening:2"),
    }


def abilities_of(model):
    return {name for name, protocol in ABILITIES.items() if isinstance(model, protocol)}


def methods_of(protocol):
    return {
        name: one for name, one in vars(protocol).items() if name in protocol.__abstractmethods__
    }


def test_every_kind_is_here():
    assert EXPECTED.keys() >= KINDS.keys()


@pytest.mark.parametrize("kind", EXPECTED)
def test_a_model_has_the_abilities_that_it_declares_and_no_others(models, kind):
    model = models[kind]
    assert abilities_of(model) == EXPECTED[kind]
    assert {one.__name__ for one in type(model).__mro__} & ABILITIES.keys() == EXPECTED[kind]
    assert isinstance(model.name, str)
    assert callable(model.environment)


@pytest.mark.parametrize("kind", EXPECTED)
def test_a_method_takes_what_its_protocol_says(models, kind):
    for name in EXPECTED[kind]:
        for method, declared in methods_of(ABILITIES[name]).items():
            own = inspect.signature(getattr(type(models[kind]), method))
            assert list(own.parameters) == list(inspect.signature(declared).parameters)


@pytest.mark.parametrize("name", ABILITIES)
def test_a_declared_ability_without_its_method_is_no_class_to_be_instantiated(name):
    incomplete = type("Incomplete", (ABILITIES[name],), {})
    with pytest.raises(TypeError, match="abstract"):
        incomplete()


class Plain:
    """A model of another package: it inherits nothing."""

    name = "other:plain"

    @property
    def identity(self):
        raise AssertionError("asking for an ability computes no identity")

    def vectors(self, texts, progress):
        return np.zeros((len(texts), 2), np.float32)


def test_a_model_that_inherits_nothing_has_the_abilities_of_its_methods():
    assert abilities_of(Plain()) == {"VectorModel"}


def test_a_step_passes_on_whether_pairs_are_separated(models):
    assert wrapped(models["encoder"], "abtt:1").separates_pairs()
    assert not wrapped(models["static"], "abtt:1").separates_pairs()
    assert not wrapped(Plain(), "abtt:1").separates_pairs()
    assert not isinstance(wrapped(models["static"], "words"), abilities.TextPairModel)
