"""Settings, inputs and the scorer: what an encoder reads, what is computed from it, what is refused."""

import itertools

import numpy as np
import pytest

from bws.base.problems import InputError
from giccs.csts.data import Instance, read_csts
from giccs.csts.encoders.base import base_folder, load_encoder, load_tokens
from giccs.csts.encoders.settings import SHORTEST, Settings, why_impossible

from ..deferred import Deferred, requires
from . import tiny_bert

pytestmark = requires("torch")
torch = Deferred("torch")
inputs = Deferred("giccs.csts.encoders.inputs")
scorers = Deferred("giccs.csts.encoders.scorer")

ROWS = read_csts("csts-sample", "train").instances[:6]
SHAPES = [
    *(("cross", "hadamard"), ("bi", "hadamard"), ("tri", "hadamard"), ("tri", "concatenation"))
]
POOLERS = [("cls", False), ("cls", True), ("mean", False), ("mean", True)]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return tiny_bert.make(tmp_path_factory.mktemp("tiny-bert"))


@pytest.fixture
def tokens(tiny):
    return load_tokens("tiny", tiny, 128)


def scorer_of(tiny, settings):
    torch.manual_seed(1)
    return scorers.Scorer(load_encoder("tiny", tiny), settings)


def row(uid, label, pair, one="A red kite.", two="A red bus.", condition="The color."):
    return Instance(uid, one, two, condition, label, pair)


# What is read


def test_parts_stand_between_separators(tokens):
    encoded = tokens.encode(["the season.", "the bus"])
    written = tokens.tokenizer.convert_ids_to_tokens(encoded.ids)
    assert written == ["[CLS]", "the", "season", ".", "[SEP]", "the", "bus", "[SEP]"]
    assert encoded.types == (0, 0, 0, 0, 0, 1, 1, 1)
    assert not encoded.truncated


def test_of_a_text_that_is_too_long_the_longest_part_is_cut(tiny):
    tokens = load_tokens("tiny", tiny, 9)  # [CLS] and two [SEP] leave six tokens
    encoded = tokens.encode(["a man and a woman and a boy", "the season"])
    assert encoded.truncated
    assert tokens.tokenizer.convert_ids_to_tokens(encoded.ids) == [
        "[CLS]", "a", "man", "and", "a", "[SEP]", "the", "season", "[SEP]",
    ]  # fmt: skip


def test_the_shortest_texts_keep_a_token_of_each_part(tiny):
    tokens = load_tokens("tiny", tiny, SHORTEST)
    encoded = tokens.encode(["a man and a woman", "a boy and a man", "the season"], joined=True)
    words = tokens.tokenizer.convert_ids_to_tokens(encoded.ids)
    assert words == ["[CLS]", "a", "[SEP]", "a", "[SEP]", "the", "season", "[SEP]"]


def test_texts_may_not_be_longer_than_the_model_allows(tiny):
    assert load_tokens("tiny", tiny, 512).limit == 126


@pytest.mark.parametrize(
    ("encoding", "shown", "expected"),
    [
        ("cross", {}, [["A red kite.", "A red bus.", "The color."]]),
        ("cross", {"condition": False}, [["A red kite.", "A red bus."]]),
        ("cross", {"sentences": False}, [["The color."]]),
        ("bi", {}, [["A red kite.", "The color."], ["A red bus.", "The color."]]),
        ("bi", {"condition": False}, [["A red kite."], ["A red bus."]]),
        ("tri", {}, [["A red kite."], ["A red bus."], ["The color."]]),
    ],
)
def test_what_each_encoding_reads(encoding, shown, expected):
    settings = Settings("m", encoding=encoding, **shown)
    assert inputs.row_texts(row("0", 5, 0), settings) == expected
    assert len(expected) == scorers.PARTS[encoding]


def test_the_two_rows_of_a_pair_are_one_unit_and_what_has_no_partner_is_alone():
    rows = [
        row("0", 1, 0), row("1", 5, 0),  # a pair, written the other way round
        row("2", 3, 1), row("3", 3, 1),  # equal labels: none is the higher one
        row("4", 2, 2),  # alone
        row("5", 1, 3), row("6", 4, 3), row("7", 5, 3),  # three
    ]  # fmt: skip
    names = lambda found: [[one.uid for one in unit] for unit in found]  # noqa: E731
    assert names(inputs.units(rows, "quad")) == [["1", "0"]]
    assert names(inputs.units(rows, "mse")) == [[str(n)] for n in range(8)]
    both = names(inputs.units(rows, "quad+mse"))
    assert both == [["1", "0"], ["2"], ["3"], ["4"], ["5"], ["6"], ["7"]]


def test_a_batch_knows_where_its_pairs_are(tokens):
    rows = [row("0", 1, 0), row("1", 4, 0, condition="The size of the thing."), row("2", 3, 1)]
    settings = Settings("m", objective="quad+mse")
    made = inputs.Units(inputs.units(rows, "quad+mse")[::-1], tokens, settings)
    batch = inputs.Batches(tokens.tokenizer.pad_token_id)([made[0], made[1]])
    assert batch["labels"].tolist() == [3, 4, 1]
    assert batch["pairs"].tolist() == [[1, 2]]
    assert batch["input_ids"].shape[0] == batch["attention_mask"].shape[0] == 6
    lengths = batch["attention_mask"].sum(dim=1).tolist()
    assert lengths[0] < lengths[1]
    assert (batch["input_ids"][0, lengths[0] :] == tokens.tokenizer.pad_token_id).all()


# What is computed


@pytest.mark.parametrize(("encoding", "operation"), SHAPES)
@pytest.mark.parametrize(("pooling", "transform"), POOLERS)
def test_every_weight_is_used_so_that_several_devices_can_share_it(
    tiny, tokens, encoding, operation, pooling, transform
):
    settings = Settings(
        "m", encoding=encoding, operation=operation, pooling=pooling, transform=transform
    )
    scorer = scorer_of(tiny, settings)
    made = inputs.Units([(row,) for row in ROWS], tokens, settings)
    batch = inputs.Batches(0)([made[n] for n in range(len(made))])
    scores = scorer(batch["input_ids"], batch["attention_mask"])
    assert scores.shape == (6,)
    scores.square().sum().backward()
    assert [name for name, one in scorer.named_parameters() if one.grad is None] == []


@pytest.mark.parametrize(("encoding", "operation"), SHAPES)
@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_a_row_s_score_does_not_depend_on_the_rest_of_its_batch(
    tiny, tokens, encoding, operation, pooling
):
    settings = Settings("m", encoding=encoding, operation=operation, pooling=pooling)
    trained = scorers.TrainedScorer(settings, scorer_of(tiny, settings), tokens)
    alone = np.concatenate([trained.predict([row]) for row in ROWS])
    assert np.abs(alone - trained.predict(ROWS)).max() < 1e-5
    assert np.ptp(alone) > 1e-3


def test_a_bi_encoder_is_the_cosine_of_two_texts_and_does_not_mind_their_order(tiny, tokens):
    settings = Settings("m", pooling="mean")
    scorer = scorer_of(tiny, settings)
    swapped = [row("0", 5, 0, one.sentence2, one.sentence1, one.condition) for one in ROWS]
    trained = scorers.TrainedScorer(settings, scorer, tokens)
    assert trained.predict(ROWS) == pytest.approx(trained.predict(swapped), abs=1e-6)
    sides = [pooled(scorer, tokens, [side, ROWS[0].condition]) for side in sides_of(ROWS[0])]
    assert trained.predict(ROWS[:1])[0] == pytest.approx(cosine(*sides), abs=1e-6)


@pytest.mark.parametrize("operation", ["hadamard", "concatenation"])
def test_a_tri_encoder_joins_condition_and_sentence(tiny, tokens, operation):
    settings = Settings("m", encoding="tri", operation=operation, pooling="mean", transform=True)
    scorer = scorer_of(tiny, settings)
    trained = scorers.TrainedScorer(settings, scorer, tokens)
    result = trained.predict(ROWS[:1])[0]  # also takes the model out of training
    with torch.no_grad():
        about = scorer.condition(pooled(scorer, tokens, [ROWS[0].condition]))
        sides = [scorer.transform(pooled(scorer, tokens, [one])) for one in sides_of(ROWS[0])]
        if operation == "hadamard":
            joined = [side * about for side in sides]
        else:
            joined = [scorer.joined(torch.cat([side, about])) for side in sides]
    assert result == pytest.approx(cosine(*joined), abs=1e-6)


def sides_of(one):
    return one.sentence1, one.sentence2


def pooled(scorer, tokens, parts):
    """The mean over the tokens of one text, without a batch around it."""
    encoded = tokens.encode(parts)
    ids, types = torch.tensor([encoded.ids]), torch.tensor([encoded.types])
    with torch.no_grad():
        hidden = scorer.encoder(input_ids=ids, token_type_ids=types).last_hidden_state
    return hidden[0].mean(dim=0)


def cosine(a, b):
    return (a @ b / (a.norm() * b.norm())).item()


@pytest.mark.parametrize(("encoding", "operation"), SHAPES)
def test_a_saved_model_comes_back_with_the_same_scores(tiny, tokens, tmp_path, encoding, operation):
    settings = Settings("m", encoding=encoding, operation=operation, transform=True, seeds=(7,))
    before = scorers.TrainedScorer(settings, scorer_of(tiny, settings), tokens)
    scorers.save_trained(before.scorer, tokens, settings, tmp_path / "model")
    after = scorers.load_trained(tmp_path / "model")
    assert after.settings == settings
    assert after.predict(ROWS).tolist() == before.predict(ROWS).tolist()
    assert not [*tmp_path.rglob("*.bin"), *tmp_path.rglob("*.pt"), *tmp_path.rglob("*.pkl")]


def test_what_is_no_trained_model_is_refused(tiny):
    with pytest.raises(InputError, match="contains no trained model"):
        scorers.load_trained(tiny)


# What is refused


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"encoding": "cross", "objective": "quad"}, "a cross-encoder has none"),
        ({"encoding": "cross", "objective": "quad+mse"}, "a cross-encoder has none"),
        ({"condition": False, "sentences": False}, "neither"),
        ({"sentences": False}, "every cosine is 1"),
        ({"encoding": "tri", "condition": False}, "requires a condition"),
        ({"condition": False, "objective": "quad"}, "loss is constant"),
        ({"objective": "quad", "batch": 31}, "expected an even number"),
        ({"encoding": "cross", "sentences": False, "texts": "answers"}, "omit one of the options"),
    ],
)
def test_what_does_not_go_together(changes, why):
    assert why in why_impossible(Settings("m", **changes))


def test_without_a_condition_answers_still_differ_between_the_rows_of_a_pair():
    assert why_impossible(Settings("m", condition=False, objective="quad", texts="answers")) == ""


@pytest.mark.parametrize(
    "changes",
    [
        {"encoding": "quad"}, {"objective": "cosine"}, {"pooling": "max"}, {"operation": "sum"},
        {"learning_rate": 0.0}, {"epochs": 0}, {"batch": 0}, {"warmup": 1.0}, {"margin": -1.0},
        {"weight_decay": -0.1}, {"train_rows": 1}, {"seeds": ()}, {"seeds": (1, 1)}, {"seeds": (-1,)},
        {"max_length": 7},
    ],
)  # fmt: skip
def test_values_that_are_not_allowed(changes):
    with pytest.raises(ValueError, match=next(iter(changes)).replace("seeds", "seeds are")):
        Settings("m", **changes)


def test_what_has_no_effect_does_not_make_two_trainings_of_one():
    one = Settings("m", operation="concatenation", margin=2.0).canonical()
    assert one == Settings("m").canonical()
    tri = Settings("m", encoding="tri", operation="concatenation").canonical()
    assert tri.operation == "concatenation"


def test_settings_are_described_by_what_is_special_about_them():
    settings = Settings(
        "m", encoding="tri", objective="quad", transform=True, weight_decay=0.0, train_rows=500
    )
    assert settings.described() == (
        "tri (hadamard), quad, lr 3e-5, cls with MLP, weight decay 0, 500 rows"
    )
    answers = Settings("m", texts="answers", condition=False, pooling="mean")
    assert answers.described() == "bi, mse, lr 3e-5, mean, QA answers, no condition"


@pytest.mark.parametrize("name", ["package:smollm2", "package:nothing"])
def test_packages_that_are_no_encoder_are_refused(name):
    with pytest.raises(InputError, match="cannot be trained"):
        base_folder(name)


def test_folders_that_are_no_encoder_are_refused(tmp_path, tiny_gpt):
    with pytest.raises(InputError, match=r"config\.json"):
        base_folder(str(tmp_path))
    (tmp_path / "config.json").write_text('{"is_encoder_decoder": true}')
    with pytest.raises(InputError, match="encoder-decoder"):
        base_folder(str(tmp_path))
    (tmp_path / "config.json").write_text('{"auto_map": {}}')
    with pytest.raises(InputError, match="its own code"):
        base_folder(str(tmp_path))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match="no weights"):
        base_folder(str(tmp_path))
    with pytest.raises(InputError, match="no cls"):
        load_tokens("gpt", base_folder(str(tiny_gpt)), 128)


def test_folders_and_packages_have_no_revisions(tiny):
    for name in (str(tiny), f"encoder:{tiny}", "package:minilm"):
        with pytest.raises(InputError, match="is no hub id; omit --revision"):
            base_folder(name, "v1")


def test_every_pooler_and_shape_is_tested():
    assert {encoding for encoding, _ in SHAPES} == set(scorers.PARTS)
    assert set(POOLERS) == set(itertools.product(("cls", "mean"), (False, True)))
