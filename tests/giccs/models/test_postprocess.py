"""Steps behind a model: each does what its paper says, on which texts it is fitted, how it is spelled."""

import numpy as np
import pytest

from bws.base.problems import InputError
from giccs.models import ModelOptions, open_model
from giccs.models.postprocess import wrapped
from giccs.models.postprocess.steps import (
    canonical_name,
    family_of,
    is_postprocessed,
    parse_step,
    split_steps,
)
from giccs.models.postprocess.transforms import all_but_the_top, moments, pc_removal, whitening
from giccs.models.static import open_static
from giccs.progress import silent

WIDTH = 12
WORDS = [f"wort{n}" for n in range(400)]


def cloud(n=500, width=WIDTH, seed=0):
    """Return correlated vectors around a point that is not 0."""
    draw = np.random.default_rng(seed)
    mixing = draw.normal(size=(width, width)) * np.linspace(3, 0.3, width)
    return draw.normal(size=(n, width)) @ mixing + draw.normal(size=width)


@pytest.fixture
def words(tmp_path, monkeypatch):
    """Word vectors, real ones but for their numbers."""
    monkeypatch.setenv("GICCS_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "words.txt"
    lines = zip(WORDS, cloud(len(WORDS)), strict=True)
    path.write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in lines), "utf-8")
    return open_static(f"static:{path}", path, ModelOptions())


# what the linear steps do


@pytest.mark.parametrize("k", [None, 1, 5, WIDTH])
def test_whitened_vectors_are_uncorrelated_with_variance_one(k):
    vectors = cloud()
    image = whitening(moments(vectors), k)(vectors)
    assert image.shape == (500, k or WIDTH)
    assert np.abs(image.mean(axis=0)).max() < 1e-10
    assert np.abs(np.cov(image.T).reshape(k or WIDTH, -1) - np.eye(k or WIDTH)).max() < 1e-10


def test_whitening_keeps_the_directions_of_most_variance():
    vectors = cloud()
    whole = whitening(moments(vectors))(vectors)
    assert np.array_equal(whitening(moments(vectors), 3)(vectors), whole[:, :3])
    first = np.linalg.svd(vectors - vectors.mean(axis=0))[2][0]
    assert abs(np.corrcoef(whole[:, 0], vectors @ first)[0, 1]) == pytest.approx(1)


@pytest.mark.parametrize("k", [None, 1, 3])
def test_all_but_the_top_leaves_no_mean_and_no_variance_along_the_top(k):
    vectors = cloud()
    image = all_but_the_top(moments(vectors), k)(vectors)
    assert np.abs(image.mean(axis=0)).max() < 1e-10
    axes = np.linalg.svd(vectors - vectors.mean(axis=0))[2]
    along = (image @ axes.T).var(axis=0)
    before = ((vectors - vectors.mean(axis=0)) @ axes.T).var(axis=0)
    assert along[: k or 2].max() < 1e-20
    assert along[k or 2 :] == pytest.approx(before[k or 2 :])


@pytest.mark.parametrize("step", [all_but_the_top, pc_removal])
def test_two_components_are_removed_by_default_whatever_the_width(step):
    for width in (12, 300):
        matrix = step(moments(cloud(600, width))).matrix
        assert np.linalg.matrix_rank(matrix) == width - 2
    with pytest.raises(ValueError, match="K is 2; expected an integer from 1 to 1"):
        step(moments(cloud(20, 2)))


@pytest.mark.parametrize("step", ["abtt", "pcr"])
def test_names_and_signatures_state_the_default_number_of_components(words, step):
    model = wrapped(words, step)
    assert model.name == open_model(f"{words.name}+{step}").name == f"{words.name}+{step}:2"
    assert model.identity["postprocess"] == [f"{step}:2"]
    explicit = wrapped(words, f"{step}:2")
    assert np.array_equal(model.vectors(WORDS, silent), explicit.vectors(WORDS, silent))
    assert canonical_name(f"{words.name}+words+{step}") == f"{words.name}+words+{step}:2"
    assert canonical_name(words.name) == words.name


@pytest.mark.parametrize("k", [None, 1])
def test_principal_component_removal_does_not_centre(k):
    vectors = cloud()
    image = pc_removal(moments(vectors), k)(vectors)
    axes = np.linalg.svd(vectors)[2][: k or 2]
    assert np.abs(image @ axes.T).max() < 1e-10
    assert image == pytest.approx(vectors - vectors @ axes.T @ axes)
    assert np.abs(image.mean(axis=0)).max() > 1e-3


def test_moments_in_pieces_are_numpys(monkeypatch):
    vectors = cloud().astype(np.float32)
    monkeypatch.setattr("giccs.models.postprocess.transforms.ROWS", 7)
    result = moments(vectors)
    assert result.mean == pytest.approx(vectors.astype(np.float64).mean(axis=0))
    assert result.covariance == pytest.approx(np.cov(vectors.astype(np.float64).T))


def test_directions_without_variance_are_left_out_not_blown_up():
    flat = cloud(300)[:, :8].astype(np.float32)
    flat = np.hstack([flat, flat[:, :1] * 2, np.ones((300, 1), np.float32)])
    fit = whitening(moments(flat))
    assert fit.warning == "8 of 10 dimensions: the vectors vary in no others"
    assert np.cov(fit(flat).T) == pytest.approx(np.eye(8), abs=1e-9)
    few = all_but_the_top(moments(cloud(3)), 5)
    assert few.warning == "2 of 5 components: the vectors vary in no others"
    assert np.isfinite(few(cloud(3))).all()


@pytest.mark.parametrize(
    ("fit", "vectors", "k", "message"),
    [
        (
            whitening,
            cloud(10),
            None,
            "10 texts are too few for 12 dimensions: all pairs would be equally",
        ),
        (whitening, cloud(10), 9, "use K below 9 or more texts"),
        (whitening, cloud(), 13, "K is 13; expected an integer from 1 to 12"),
        (all_but_the_top, cloud(), 12, "K is 12; expected an integer from 1 to 11"),
        (pc_removal, cloud(), 0, "K is 0; expected an integer from 1 to 11"),
        (all_but_the_top, np.ones((5, 3)), None, "the vectors are all equal"),
        (whitening, cloud(1), None, "1 vectors; expected at least 2 different ones"),
    ],
)
def test_what_cannot_be_fitted_is_said(fit, vectors, k, message):
    with pytest.raises(ValueError, match=message):
        fit(moments(vectors), k)


# the flow


@pytest.fixture(scope="module")
def flow():
    pytest.importorskip("zuko")
    from giccs.models.postprocess.transforms import fit_flow

    return fit_flow(curved(), seed=1)


def curved():
    """Return vectors on a bent surface, which no linear map makes Gaussian."""
    draw = np.random.default_rng(0).normal(size=(400, 4))
    return np.column_stack([draw, draw[:, 0] ** 2 + 0.1 * draw[:, 1], np.sin(draw[:, 2])]) * 3 + 1


def test_a_flows_likelihood_rises_and_is_that_of_a_density(flow):
    before, after = flow.likelihoods
    standard = (curved() - curved().mean(axis=0)) / curved().std(axis=0)
    gaussian = (
        -0.5 * (standard**2 + np.log(2 * np.pi)).sum(axis=1) - np.log(curved().std(axis=0)).sum()
    )
    assert before == pytest.approx(gaussian.mean())  # training starts from the identity
    assert after > before + 0.5
    assert after == pytest.approx(flow.log_likelihood(curved()))
    latent = flow(curved())
    volume = [np.linalg.slogdet(_jacobian(flow, row))[1] for row in curved()[:20]]
    direct = -0.5 * (latent[:20] ** 2 + np.log(2 * np.pi)).sum(axis=1) + volume
    assert direct.mean() == pytest.approx(flow.log_likelihood(curved()[:20]), abs=1e-4)


def _jacobian(flow, row, step=1e-6):
    moves = np.eye(len(row)) * step
    return (flow(row + moves) - flow(row - moves)).T / (2 * step)


def test_a_flow_can_be_turned_back(flow):
    assert flow.inverse(flow(curved())) == pytest.approx(curved(), abs=1e-8)
    strangers = cloud(50, 6, seed=9)
    assert flow.inverse(flow(strangers)) == pytest.approx(strangers, abs=1e-6)


def test_a_flow_is_the_same_for_a_seed_in_any_order(flow):
    import torch

    from giccs.models.postprocess.transforms import fit_flow

    state = torch.get_rng_state()
    again, other = fit_flow(curved()[::-1], seed=1), fit_flow(curved(), seed=2)
    assert np.array_equal(flow(curved()), again(curved()))
    assert not np.array_equal(flow(curved()), other(curved()))
    assert torch.equal(torch.get_rng_state(), state)


def test_a_flow_says_what_it_lacks():
    pytest.importorskip("zuko")
    from giccs.models.postprocess.transforms import fit_flow

    still = np.hstack([curved()[:5], np.ones((5, 1))])
    fit = fit_flow(still, seed=0)
    assert fit.warning.startswith("5 texts are few for 7 dimensions")
    assert fit.warning.endswith("1 dimensions are constant")
    assert np.isfinite(fit(still)).all()
    with pytest.raises(ValueError, match="at least 2 different vectors"):
        fit_flow(np.ones((9, 3)), seed=0)


# behind a model


def test_a_step_is_fitted_on_the_distinct_texts_of_the_call(words):
    texts = WORDS[:100]
    white = wrapped(words, "whitening")
    vectors = white.vectors([*texts, *texts[:50]], silent)
    assert vectors.dtype == np.float32
    assert np.cov(vectors[:100].astype(np.float64).T) == pytest.approx(np.eye(WIDTH), abs=1e-5)
    assert np.array_equal(vectors[100:], vectors[:50])
    assert white.environment()["postprocess"] == [
        {"step": "whitening", "fitted_on": "texts", "n": 100}
    ]


def test_pairs_are_scored_in_the_space_of_all_their_texts(words):
    white = wrapped(words, "whitening:5")
    left, right = WORDS[:60], WORDS[60:120]
    vectors = white.vectors([*left, *right], silent).astype(np.float64)
    a, b = vectors[:60], vectors[60:]
    cosines = (a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    assert white.pair_scores(left, right, silent) == pytest.approx(cosines)


def test_all_but_the_top_of_word_vectors_is_fitted_on_the_vocabulary(words):
    step = wrapped(words, "abtt:2")
    sentence = "wort3 wort5 wort5"
    vectors = step.vectors(["wort3", "wort5", sentence], silent)
    whole = words.everything()
    every = all_but_the_top(moments(whole), 2)(whole)
    assert vectors[:2] == pytest.approx(every[[3, 5]], abs=1e-5)
    assert vectors[2] == pytest.approx((every[3] + 2 * every[5]) / 3, abs=1e-5)
    told = step.environment()["postprocess"]
    assert told == [{"step": "abtt:2", "fitted_on": "vocabulary", "n": len(WORDS)}]


def test_unknown_texts_stay_unknown_and_out_of_the_fit(words):
    for step in ("whitening:3", "abtt", "pcr:2"):
        model = wrapped(words, step)
        with_some = model.vectors([*WORDS[:50], "fremd", "?"], silent)
        assert np.isnan(with_some[50:]).all()
        assert np.array_equal(with_some[:50], model.vectors(WORDS[:50], silent))
        assert np.isnan(model.vectors(["fremd"], silent)).all()


def test_steps_in_a_row(words):
    twice = wrapped(wrapped(words, "pcr:2"), "whitening")
    assert twice.name == f"{words.name}+pcr:2+whitening"
    assert twice.identity == {**words.identity, "postprocess": ["pcr:2", "whitening"]}
    vectors = twice.vectors(WORDS, silent).astype(np.float64)
    assert np.cov(vectors.T) == pytest.approx(np.eye(WIDTH - 2), abs=1e-5)
    first, second = twice.environment()["postprocess"]
    assert "warning" not in first
    assert second["warning"] == f"{WIDTH - 2} of {WIDTH} dimensions: the vectors vary in no others"


def test_a_flow_behind_word_vectors(words):
    pytest.importorskip("zuko")
    flow = wrapped(words, "flow", seed=3)
    assert flow.identity["postprocess"] == ["flow seed=3"]
    vectors = flow.vectors(["fremd", *WORDS], silent)
    assert np.isnan(vectors[0]).all()
    assert np.array_equal(vectors[1:], wrapped(words, "flow", seed=3).vectors(WORDS, silent))
    likelihood = flow.environment()["postprocess"][0]["log_likelihood"]
    assert likelihood["after"] > likelihood["before"]


def test_words_may_cling_to_signs(words):
    cut = wrapped(words, "words")
    assert np.isnan(words.vectors(["wort1, wort2!"], silent)).all()
    assert cut.vectors(["wort1, wort2!"], silent) == pytest.approx(
        words.vectors(["wort1 wort2"], silent)
    )
    assert cut.name == f"{words.name}+words"
    assert "postprocess" not in cut.identity
    assert wrapped(cut, "abtt").name == f"{words.name}+words+abtt:2"


def test_the_mean_of_the_first_layer_and_the_last(plain_encoder):
    import torch
    from transformers import AutoModel, AutoTokenizer

    texts = ["Ich möchte heute", "gern", "einen Tisch am Fenster für vier Personen"]
    model = wrapped(open_model(str(plain_encoder), ModelOptions(device="cpu")), "first-last")
    vectors = model.vectors(texts, silent)
    tokenizer = AutoTokenizer.from_pretrained(plain_encoder)
    bert = AutoModel.from_pretrained(plain_encoder).eval()
    for text, vector in zip(texts, vectors, strict=True):  # alone, so that nothing is padded
        with torch.inference_mode():
            states = bert(**tokenizer(text, return_tensors="pt"), output_hidden_states=True)
        direct = (states.hidden_states[1] + states.hidden_states[-1])[0].mean(dim=0) / 2
        assert vector == pytest.approx(direct.numpy(), abs=1e-5)
    assert model.name == f"{plain_encoder}+first-last"
    assert model.identity["pooling"] == "first and last layer"
    scores = model.pair_scores(texts[:2], texts[1:], silent)
    assert scores[0] == pytest.approx(
        vectors[0] @ vectors[1] / np.linalg.norm(vectors[0]) / np.linalg.norm(vectors[1])
    )
    white = wrapped(model, "whitening:1")
    assert white.vectors([*texts, "Tisch"], silent).shape == (4, 1)


# what does not go together


def test_what_does_not_go_together_is_said(words, static_encoder):
    for step, message in [
        ("first-last", "must follow a transformer encoder directly"),
        ("nonsense", "no such step; expected one of whitening"),
        ("whitening:13", "whitening:13: K is 13; expected an integer from 1 to 12"),
    ]:
        with pytest.raises(InputError, match=message):
            wrapped(words, step).vectors(WORDS, silent)
    encoder = open_model(str(static_encoder), ModelOptions(device="cpu"))
    with pytest.raises(InputError, match="has no layers"):
        wrapped(encoder, "first-last").vectors(["a"], silent)
    with pytest.raises(InputError, match="words must follow word vectors"):
        wrapped(encoder, "words")
    with pytest.raises(InputError, match=r"baseline:chance\+pcr:2: returns no vectors"):
        wrapped(open_model("baseline:chance"), "pcr")
    with pytest.raises(InputError, match="2 texts are too few for 12 dimensions"):
        wrapped(words, "whitening").pair_scores(["wort1"], ["wort2"], silent)


@pytest.mark.parametrize(
    ("name", "base", "steps"),
    [
        ("package:minilm", "package:minilm", []),
        ("package:minilm+whitening:256", "package:minilm", ["whitening:256"]),
        ("org/bert+first-last+flow", "org/bert", ["first-last", "flow"]),
        ("static:g.txt+words+abtt:002", "static:g.txt", ["words", "abtt:2"]),
    ],
)
def test_names_are_split(name, base, steps):
    assert split_steps(name) == (base, steps)


def test_a_path_may_have_a_plus(tmp_path):
    for path in (tmp_path / "c++", tmp_path / "a+b"):
        path.mkdir()
        assert split_steps(f"{path}+pcr:3") == (str(path), ["pcr:3"])
        assert split_steps(f"static:{path}") == (f"static:{path}", [])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "package:minilm+whitenin",
            "no such file, and 'whitenin' is not a step; expected one of whitening",
        ),
        ("package:minilm+nonsense+pcr", "'nonsense' is not a step"),
        ("package:minilm+pcr:", "K is ''; expected an integer from 1 to 9999999"),
        ("package:minilm+whitening:-3", "K is '-3'"),
        ("package:minilm+whitening:²", "K is '²'"),
        ("package:minilm+flow:3", r"takes no number; expected \+flow"),
    ],
)
def test_a_wrong_name_says_what_is_allowed(name, message):
    with pytest.raises(InputError, match=message):
        split_steps(name)


def test_a_name_opens_the_model_with_its_steps(words):
    model = open_model(f"{words.name}+words+abtt:2")
    texts = ["wort1, wort2!", "wort3"]
    by_hand = wrapped(wrapped(words, "words"), "abtt:2")
    assert model.name == by_hand.name == f"{words.name}+words+abtt:2"
    assert np.array_equal(model.vectors(texts, silent), by_hand.vectors(texts, silent))


def test_zero_components_are_refused():
    with pytest.raises(InputError, match="K is '0'"):
        parse_step("abtt:0")


def test_steps_in_names():
    assert family_of("static:g.txt+words+abtt:2+pcr") == "static:g.txt"
    assert family_of("encoder:a+b/model+first-last") == "encoder:a+b/model"
    assert is_postprocessed("static:g.txt+abtt:2+words")
    assert not is_postprocessed("package:minilm")
