"""Tokenizers without a vocabulary are refused; the share of unknown tokens is recorded, and warned of."""

import json
import shutil

import pytest
from click.testing import CliRunner

from bws.base.problems import InputError
from giccs.cli.evaluation import evaluate as giccs_eval
from giccs.csts.encoders.base import load_tokens
from giccs.evaluation.task_results import evaluate_task
from giccs.models import open_model
from giccs.models.abilities import Prompt
from giccs.models.vocabulary import check_tokenizer, counted_tokens
from giccs.progress import silent
from giccs.tasks.pairwise import PairwiseSTS

from ..causal_models import edit_json, make_model
from ..conftest import rows, write
from ..csts import tiny_bert
from ..deferred import Deferred, requires

pytestmark = requires("sentence_transformers")
torch = Deferred("torch")
transformers = Deferred("transformers")

TOKENIZER_FILES = (
    "tokenizer.json",
    "vocab.txt",
    "tokenizer_config.json",
    "special_tokens_map.json",
)
CONFIGS = {
    "BertModel": {}, "DistilBertModel": {}, "ElectraModel": {}, "RobertaModel": {},
    "XLMRobertaModel": {}, "CamembertModel": {}, "AlbertModel": {}, "DebertaV2Model": {},
    "GPT2LMHeadModel": {}, "Qwen2ForCausalLM": {}, "OPTForCausalLM": {}, "GPTNeoXForCausalLM": {},
    "T5ForConditionalGeneration": {"num_heads": 4}, "MBartForConditionalGeneration": {"d_model": 16},
}  # fmt: skip


def without_tokenizer(folder, target):
    shutil.copytree(folder, target)
    for name in TOKENIZER_FILES:
        (target / name).unlink(missing_ok=True)
    return target


def refusal(use, *args):
    with pytest.raises(InputError) as caught:
        use(*args)
    return str(caught.value)


@pytest.mark.parametrize("architecture", CONFIGS)
def test_a_tokenizer_that_transformers_makes_of_nothing(tmp_path, architecture):
    """It does so for these; for the others it fails."""
    config = getattr(transformers, architecture).config_class(**CONFIGS[architecture])
    config.architectures = [architecture]
    config.save_pretrained(tmp_path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    with pytest.raises(ValueError, match="its tokenizer has no vocabulary"):
        check_tokenizer(tokenizer)


def test_real_tokenizers_have_a_vocabulary(plain_encoder, tiny_gpt):
    for folder in (plain_encoder, tiny_gpt):
        check_tokenizer(transformers.AutoTokenizer.from_pretrained(folder))
    check_tokenizer(transformers.ByT5Tokenizer())
    check_tokenizer(None)


def test_every_backend_refuses_a_folder_without_tokenizer_files(tmp_path, plain_encoder, tiny_gpt):
    encoder = without_tokenizer(plain_encoder, tmp_path / "encoder")
    causal = without_tokenizer(tiny_gpt, tmp_path / "causal")
    said = "its tokenizer has no vocabulary"
    assert said in refusal(open_model(str(encoder)).vectors, ["Ja"], silent)
    assert said in refusal(open_model(f"{encoder}+first-last").vectors, ["Ja"], silent)
    assert said in refusal(open_model(str(causal)).score, [Prompt("Ja", (" a", " b"))])
    assert said in refusal(load_tokens, "m", encoder, 128)


def test_a_tokenizer_of_a_larger_model(tmp_path, plain_encoder):
    """Nothing is wrong before the model is to read a token that it has no vector for."""
    folder = shutil.copytree(plain_encoder, tmp_path / "encoder")
    small = transformers.BertModel.from_pretrained(folder)
    small.resize_token_embeddings(30)
    small.save_pretrained(folder)
    model = open_model(str(folder))
    assert model.vectors(["a b"], silent).shape == (1, 32)
    message = refusal(model.vectors, ["a b 9"], silent)
    assert (
        "its tokenizer produces token 44, but the vocabulary has 30 entries; the tokenizer may be "
        "that of another model" in message
    )
    edit_json(folder / "config.json", vocab_size=30)
    assert "but the vocabulary has 30 entries; the tokenizer may be" in refusal(
        load_tokens, "m", folder, 99
    )


def counted(model, *texts):
    with counted_tokens() as counts:
        model.vectors(texts, silent)
    return counts.tokens, counts.unknown


def test_unknown_tokens_of_encoders_are_counted(plain_encoder, static_encoder):
    """Padding and the tokens around a text are left out; equal texts are read once."""
    for name in (str(plain_encoder), f"{plain_encoder}+first-last", f"{plain_encoder}+whitening:1"):
        assert counted(open_model(name), "ab 日本", "a", "a b c d e") == (10, 2)
    assert counted(open_model(str(plain_encoder)), "ab", "ab", "日") == (3, 1)
    assert counted(open_model(str(static_encoder)), "ab 日", "c") == (4, 1)


def words_tokenizer():
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = ["[UNK]", "</s>", "ja", "nein", "doch"]
    model = models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="[UNK]")
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", eos_token="</s>"
    )


def test_unknown_tokens_of_causal_models_are_counted(tmp_path):
    """A prompt is counted once, and each of its options."""
    folder = make_model(tmp_path, "gpt2")
    words_tokenizer().save_pretrained(folder)
    with counted_tokens() as counts:
        open_model(str(folder)).score([Prompt("ja hm nein", (" doch", " hm hm"))])
    assert (counts.tokens, counts.unknown) == (6, 3)
    with counted_tokens() as counts:
        open_model(str(folder)).generate(["ja hm", "nein"], 1)
    assert (counts.tokens, counts.unknown) == (3, 1)


def test_a_byte_level_tokenizer_knows_everything(tiny_gpt):
    """GPT-2 calls the end of a text its unknown token, too."""
    model = open_model(str(tiny_gpt))
    model._loaded.tokenizer.unk_token = model._loaded.tokenizer.eos_token
    with counted_tokens() as counts:
        model.score([Prompt("日 ab", (" c", " de"))])
    assert (counts.tokens, counts.unknown) == (len("日 ab c de".encode()), 0)


def test_unknown_tokens_of_encoder_decoders_are_counted(tmp_path):
    config = transformers.T5Config(
        vocab_size=8, d_model=16, d_ff=16, d_kv=4, num_layers=1, num_heads=4,
        decoder_start_token_id=0,
    )  # fmt: skip
    transformers.T5ForConditionalGeneration(config).save_pretrained(tmp_path)
    words_tokenizer().save_pretrained(tmp_path)
    with counted_tokens() as counts:
        open_model(f"seq2seq:{tmp_path}").generate(["ja hm", "nein"], 1)
    assert (counts.tokens, counts.unknown) == (3, 1)


def test_unknown_words_of_word_vectors_are_counted(tmp_path):
    file = tmp_path / "vectors.txt"
    file.write_text("ja 1 2\nnein 2 1\n")
    model = open_model(f"static:{file}")
    assert counted(model, "ja nein doch", "doch", "ja") == (5, 2)


def test_nested_blocks_count_the_same_tokens(static_encoder):
    model = open_model(str(static_encoder))
    with counted_tokens() as outer:
        assert counted(model, "ab") == (2, 0)
        assert counted(model, "日") == (1, 1)
    assert (outer.tokens, outer.unknown) == (3, 1)


def strange(path, every):
    """Write a benchmark in which some utterances are of signs that no tokenizer here knows."""
    lines = [*rows()]
    for n, line in enumerate(lines):
        if n % every == 0:
            line["utterance"] = f"日 本 語 {n}"
    return write(path, lines)


def test_the_share_is_recorded_for_each_data_set(tmp_path, plain_encoder, benchmark_file):
    from giccs.benchmark import read_benchmark

    model, task = open_model(str(plain_encoder)), PairwiseSTS(resamples=10)
    clean = evaluate_task(task, model, read_benchmark(str(benchmark_file)), silent)
    assert clean.environment["tokens"]["unknown"] == 0
    assert clean.environment["tokens"]["tokens"] > 100
    other = read_benchmark(str(strange(tmp_path / "other.jsonl", 3)))
    assert evaluate_task(task, model, other, silent).environment["tokens"]["unknown"] == 30
    known = evaluate_task(task, open_model("baseline:char-ngram"), other, silent)
    assert "tokens" not in known.environment


def test_vectors_that_are_kept_tell_of_their_tokens(static_encoder, tmp_path, monkeypatch):
    from giccs.evalrank.vector_cache import cached_vectors

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for _ in range(2):
        with counted_tokens() as counts:
            cached_vectors(open_model(str(static_encoder)), ["ab 日", "c"], silent)
        assert (counts.tokens, counts.unknown) == (4, 1)


def test_the_command_warns_once_per_model_and_data_set(tmp_path, plain_encoder, benchmark_file):
    def run(data, *more):
        arguments = [
            str(plain_encoder),
            "--data",
            str(data),
            "-o",
            str(tmp_path / "results"),
            *more,
        ]
        result = CliRunner().invoke(giccs_eval, arguments)
        assert result.exit_code == 0, result.stderr
        return result.stderr

    other = strange(tmp_path / "other.jsonl", 1)
    said = "% of the tokens (90 of "
    for stderr in (run(other, "--history", "both"), run(other, "--history", "both", "--quiet")):
        assert stderr.count(f"warning: {plain_encoder}: {other}: ") == 1  # also when kept
        assert stderr.count(said) == 1
        assert "are unknown to the model; does it support this language?" in stderr
    assert "unknown to the model" not in run(benchmark_file)


def test_the_command_names_weights_that_are_not_used(tmp_path, plain_encoder, benchmark_file):
    folder = shutil.copytree(plain_encoder, tmp_path / "model")
    transformers.BertForMaskedLM(transformers.BertConfig.from_pretrained(folder)).save_pretrained(
        folder
    )
    arguments = [str(folder), "--data", str(benchmark_file), "-o", str(tmp_path / "results")]
    result = CliRunner().invoke(giccs_eval, [*arguments, "--history", "both"])
    said = f"{folder}: weights: cls (5 tensors) ignored; pooler (2 tensors) missing and not used"
    assert result.stderr.count(said) == 1


def test_a_training_records_and_warns(tmp_path):
    pytest.importorskip("accelerate")
    from giccs.csts.cli import main

    folder = tiny_bert.make(tmp_path / "bert")
    vocabulary = (folder / "vocab.txt").read_text("utf-8").splitlines()
    changed = [
        f"{word}日" if n % 2 and word.isalpha() else word for n, word in enumerate(vocabulary)
    ]
    (folder / "vocab.txt").write_text("\n".join(changed), "utf-8")
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    arguments = [
        "train", "csts-sample", "--model", str(folder), "--epochs", "1", "--rows", "8",
        "--device", "cpu", "--no-models", "-o", str(tmp_path / "results"), "--json",
    ]  # fmt: skip
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.stderr
    assert result.stderr.count(f"warning: {folder}: csts-sample: ") == 1
    assert "are unknown to the model; does it support this language?" in result.stderr
    (document,) = json.loads(result.stdout)["results"]
    counts = document["environment"]["tokens"]
    assert 0.1 < counts["unknown"] / counts["tokens"] < 0.9
