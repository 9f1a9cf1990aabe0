"""Folders of models of different structure: honoured as by their own library, or refused with a sentence."""

import itertools
import json
import re

import numpy as np
import pytest

import giccs
from bws.base.problems import InputError
from giccs.evaluation.task_results import evaluate_task
from giccs.models import ModelOptions, open_model
from giccs.models.abilities import Prompt
from giccs.models.checkpoint import stated_kind
from giccs.models.encoder_prompts import Routes
from giccs.models.objects import model_of_object
from giccs.models.vocabulary import counted_tokens
from giccs.progress import silent
from giccs.tasks.pairwise import PairwiseSTS
from tests.nightly import others_nightly

from ..causal_models import edit_json, make_model
from ..deferred import Deferred, requires
from ..saved_models import (
    LEFT,
    RIGHT,
    WORDS,
    Folders,
    adapter,
    cosine,
    library,
    parts,
    routers,
    saved,
    torch,
    transformers,
    word_vectors,
)

pytestmark = requires("sentence_transformers")

needs_peft = requires("peft")
peft = Deferred("peft")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return Folders(tmp_path_factory.mktemp("saved"))


def opened(folder, **options):
    return open_model(str(folder), ModelOptions(**options))


def scores(folder, **options):
    return opened(folder, **options).pair_scores(LEFT, RIGHT, silent)


def refusal(name, **options):
    with pytest.raises(InputError) as caught:
        open_model(str(name), ModelOptions(**options)).pair_scores(LEFT, RIGHT, silent)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def own_scores(folder, left="encode", right="encode", cls="SentenceTransformer", **arguments):
    """Similarities by the library's own calls, with the similarity that the folder was saved with."""
    model = getattr(library, cls)(str(folder), device="cpu")
    vectors = (
        getattr(model, method)(texts, **arguments)
        for method, texts in ((left, LEFT), (right, RIGHT))
    )
    return np.asarray(model.similarity_pairwise(*vectors))


# Modules


@pytest.mark.parametrize(
    "name",
    ["pooled", "several-poolings", "dense-layer-norm", "weighted-layers", "convolution", "lstm",
     "word-weights", "bag-of-words", "bag-of-words-dense", "static", "static-normalised-truncated",
     "static-mapped", "clip", "subfolder"],
)  # fmt: skip
def test_modules_give_the_librarys_numbers(folders, name):
    model = opened(folders(name))
    own = own_scores(folders(name), batch_size=1)
    assert model.pair_scores(LEFT, RIGHT, silent) == pytest.approx(own, abs=1e-5)
    given = model_of_object(library.SentenceTransformer(str(folders(name)), device="cpu"))
    assert given.pair_scores(LEFT, RIGHT, silent) == pytest.approx(own, abs=1e-5)
    assert np.ptp(own) > 1e-3  # Otherwise this shows nothing.
    assert (model.identity["kind"], model.identity["similarity"]) == ("encoder", "cosine")
    assert model.identity["pooling"] == "the model's own"
    assert model.environment()["device"] == "cpu"


def test_a_sharded_folder_is_read_completely_or_refused(folders, tmp_path):
    folder = folders("sharded")
    assert scores(folder) == pytest.approx(scores(folders("plain")), abs=1e-6)
    folder = folders.copy("sharded", tmp_path / "part")
    shards = sorted(folder.glob("model-*.safetensors"))
    shards[1].unlink()
    message = f"lacks 1 of its {len(shards)} files of weights ({shards[1].name}); copy"
    for kind in ("encoder", "causal", "cross-encoder"):
        assert message in refusal(f"{kind}:{folder}")


def test_the_dtype_is_that_of_the_transformer_in_its_folder(folders, tmp_path):
    folder = folders.copy("subfolder", tmp_path / "half")
    assert opened(folder).identity["dtype"] == "float32"
    edit_json(folder / "0_Transformer/config.json", dtype="bfloat16")
    assert opened(folder).identity["dtype"] == "bfloat16"


def test_static_embeddings_run_in_the_stated_dtype(folders, tmp_path):
    from safetensors.torch import load_file, save_file

    folder = folders.copy("static", tmp_path / "half")
    tensors = load_file(folder / "model.safetensors")
    tensors = {name: tensor.half() for name, tensor in tensors.items()}
    save_file(tensors, folder / "model.safetensors")
    model = opened(folder)
    assert model.identity["dtype"] == "float32"
    rounded = scores(folder, dtype="bfloat16")
    exact = model.pair_scores(LEFT, RIGHT, silent)
    assert exact == pytest.approx(scores(folders("static")), abs=1e-3)
    assert np.abs(rounded - exact).max() > 1e-4


# Classes of sentence-transformers


@pytest.mark.parametrize("name", ["splade", "sparse-autoencoder"])
def test_sparse_encoders_are_not_converted(folders, name):
    model = opened(folders(name))
    own = own_scores(folders(name), cls="SparseEncoder")
    assert model.pair_scores(LEFT, RIGHT, silent) == pytest.approx(own, rel=1e-5)
    assert (
        np.abs(own - cosine(model.vectors(LEFT, silent), model.vectors(RIGHT, silent))).max() > 0.1
    )
    identity = model.identity
    assert (identity["class"], identity["similarity"]) == ("SparseEncoder", "dot")


@pytest.mark.parametrize("similarity", ["dot", "euclidean", "manhattan"])
def test_the_similarity_is_the_saved_one(folders, similarity, benchmark_file):
    folder = folders(similarity)
    own = own_scores(folder)
    assert scores(folder) == pytest.approx(own, rel=1e-5)
    assert opened(folder).identity["similarity"] == similarity
    given = library.SentenceTransformer(str(folder), device="cpu")
    of_object = model_of_object(given)
    assert of_object.pair_scores(LEFT, RIGHT, silent) == pytest.approx(own, rel=1e-5)
    assert of_object.identity["similarity"] == similarity
    # Also of shortened vectors and of means of turns; the cosine only on request.
    short = opened(folder, dimensions=8)
    vectors = [given.encode(texts)[:, :8] for texts in (LEFT, RIGHT)]
    expected = np.asarray(given.similarity_pairwise(*vectors))
    assert short.pair_scores(LEFT, RIGHT, silent) == pytest.approx(expected, rel=1e-5)
    assert short.identity["similarity"] == similarity
    data = giccs.load_benchmark(str(benchmark_file)).first(2)
    results = {
        (history, requested): evaluate_task(
            PairwiseSTS(history, resamples=0, similarity=requested, history_encoding="mean"),
            opened(folder),
            data,
        )
        for history in ("without", "with")
        for requested in (None, "cos")
    }
    for (_, requested), result in results.items():
        assert result.signature["similarity"] == (requested or similarity)
        predictions = result.predictions["prediction"].to_numpy()
        assert (np.abs(predictions) <= 1).all() == (requested == "cos")


def test_an_unknown_similarity_is_refused(folders, tmp_path):
    folder = folders.copy("dot", tmp_path / "other")
    edit_json(folder / "config_sentence_transformers.json", similarity_fn_name="maxsim")
    message = "states the similarity 'maxsim'; expected one of cosine, dot, euclidean, manhattan"
    assert message in refusal(folder)


@pytest.mark.parametrize(
    ("prefix", "name", "message"),
    [
        ("encoder", "cross", "was saved as a CrossEncoder; expected cross-encoder: before its name"),
        ("encoder", "multi-vector", "was saved as a MultiVectorEncoder; expected late-interaction: "),
        ("cross-encoder", "pooled", "was saved as a SentenceTransformer; expected encoder: before"),
        ("cross-encoder", "splade", "was saved as a SparseEncoder; expected encoder: before its name"),
        ("cross-encoder", "multi-vector", "was saved as a MultiVectorEncoder"),
        ("late-interaction", "splade", "was saved as a SparseEncoder; expected encoder: before its"),
        ("late-interaction", "cross", "was saved as a CrossEncoder; expected cross-encoder: before"),
    ],
)  # fmt: skip
def test_no_folder_is_converted_to_another_class(folders, prefix, name, message):
    assert message in refusal(f"{prefix}:{folders(name)}")
    assert open_model(str(folders(name))).identity["kind"] != prefix


@pytest.mark.parametrize("model_type", ["FutureEncoder", None, ""])
def test_an_unknown_class_is_refused(folders, tmp_path, model_type):
    folder = folders.copy("pooled", tmp_path / "other")
    edit_json(folder / "config_sentence_transformers.json", model_type=model_type)
    message = f"was saved as the class {model_type}; expected one of SentenceTransformer, SparseEn"
    assert message in refusal(folder)


def test_a_folder_without_its_modules_is_refused(folders, tmp_path):
    folder = folders.copy("pooled", tmp_path / "part")
    (folder / "modules.json").unlink()
    assert "was saved as a SentenceTransformer, but lacks modules.json" in refusal(folder)
    (folder / "modules.json").write_text("{}")
    assert "modules.json: expected a list of modules" in refusal(folder)


@pytest.mark.parametrize(
    ("name", "kind"), [("cross", "cross-encoder"), ("multi-vector", "late-interaction")]
)
def test_models_of_pairs_keep_their_class(folders, name, kind):
    model = opened(folders(name))
    assert model.identity["kind"] == kind
    if kind == "cross-encoder":
        own = library.CrossEncoder(str(folders(name)), device="cpu")
        pairs = (zip(LEFT, RIGHT, strict=True), zip(RIGHT, LEFT, strict=True))
        expected = np.stack([own.predict([*each]) for each in pairs], axis=1)
        orders = model.order_scores(LEFT, RIGHT, silent)
        assert orders == pytest.approx(expected, abs=1e-6)


# Routes


ROUTED = ["towers", "towers-strict", "towers-first", "towers-mapped", "splade-towers"]


@pytest.mark.parametrize(
    ("name", "given"),
    others_nightly(
        itertools.product(ROUTED, ["name", "object"]),
        ("towers", "name"),
        ("towers-mapped", "object"),
        ("splade-towers", "name"),
    ),
)
def test_prompts_choose_the_routes_of_the_library(folders, name, given):
    cls = "SparseEncoder" if name.startswith("splade") else "SentenceTransformer"
    own = getattr(library, cls)(str(folders(name)), device="cpu")
    encode = {"query": own.encode_query, "document": own.encode_document}
    options = ModelOptions(prompt=("query||document",))
    sided = opened(folders(name), prompt=options.prompt)
    if given == "object":
        sided = model_of_object(own, options=options)
    prompts = [("query", "document"), ("document", "query"), ("query",), ("document",)]
    found, expected = {}, {}
    for names in prompts:
        prompt, (left, right) = "||".join(names), (names * 2)[:2]
        found[prompt] = sided.with_prompt(prompt).pair_scores(LEFT, RIGHT, silent)
        vectors = encode[left](LEFT), encode[right](RIGHT)
        expected[prompt] = np.asarray(own.similarity_pairwise(*vectors))
    for prompt, similarities in expected.items():
        assert found[prompt] == pytest.approx(similarities, rel=1e-5, abs=1e-6)
    assert np.abs(found["query||document"] - found["document"]).max() > 1e-3
    assert not sided.is_symmetric()
    assert sided.fits(LEFT, RIGHT, silent).all()
    routes = {"target": "query", "candidate": "document"}
    if name == "towers-mapped":
        routes = {"target": "short", "candidate": "long"}
    assert sided.identity["routes"] == routes
    with pytest.raises(InputError, match="expected one prompt for all texts"):
        sided.vectors(LEFT, silent)


def test_texts_without_a_task_have_the_default_route(folders):
    for name, route in {"towers": "document", "towers-mapped": "other", "asym": "query"}.items():
        model = opened(folders(name))
        assert model.pair_scores(LEFT, RIGHT, silent) == pytest.approx(own_scores(folders(name)))
        assert model.identity["routes"] == {"target": route, "candidate": route}
        assert "prompt" not in model.identity
    model = opened(folders("towers"), prompt=("x=heute ||am ",))
    own = own_scores(folders("towers"), prompt="heute ")
    assert model.identity["routes"] == {"target": "document", "candidate": "document"}
    left, right = model.side_vectors(LEFT, LEFT, silent)
    assert cosine(left, right).min() < 0.999 and own is not None  # noqa: PT018


@pytest.mark.parametrize("name", ["towers-strict", "splade-towers"])
def test_a_model_without_default_route_needs_a_prompt(folders, name):
    message = (
        "has the routes query, document and no default route; expected one or two, as in --prom"
    )
    assert message in refusal(folders(name))
    assert message in refusal(folders(name), prompt=("none",))
    assert message in refusal(folders(name), prompt=("x=Satz: ",))
    assert "'query||document'" in refusal(folders(name))


def test_routes_of_earlier_versions_are_prompts(folders):
    model = opened(folders("asym"), prompt=("query||document",))
    own = library.SentenceTransformer(str(folders("asym")), device="cpu")
    vectors = (own.encode(LEFT, task="query"), own.encode(RIGHT, task="document"))
    assert model.pair_scores(LEFT, RIGHT, silent) == pytest.approx(cosine(*vectors), abs=1e-5)
    assert "has no prompt 'passage'; expected query, document, none" in refusal(
        folders("asym"), prompt=("passage",)
    )


def test_long_texts_are_cut_and_counted_in_their_route(folders):
    """The queries have static embeddings without a limit, the documents a transformer of 32 tokens."""
    model = opened(folders("towers-first"), prompt=("query||document",))
    long = ["heute " * 40]
    assert model.fits(long, ["Tisch"], silent).tolist() == [True]
    assert model.fits(["Tisch"], long, silent).tolist() == [False]
    with counted_tokens() as counts:
        model.pair_scores(long, long, silent)
    assert (counts.cut, counts.tokens) == (1, 40 + 30)


def test_words_beyond_the_maximum_of_word_embeddings_are_counted(tmp_path):
    saved(tmp_path / "m", [word_vectors(max_seq_length=3), parts.Pooling(16)])
    model = opened(tmp_path / "m")
    texts = [" ".join(WORDS[:3]), " ".join(WORDS[:4])]
    assert model.fits(texts, WORDS[:2], silent).tolist() == [True, False]
    with counted_tokens() as counts:
        model.pair_scores(texts, WORDS[:2], silent)
    assert counts.cut == 1


@pytest.mark.parametrize(("name", "file", "content"), [
    ("static", "0_StaticEmbedding/model.safetensors", b"\x40" + bytes(7) + b"garbage!" * 40),
    ("pooled", "config_sentence_transformers.json", b'{"similarity_fn_name": ["dot"]}'),
    ("pooled", "config.json", b"[1]"),
    ("plain", "config.json", b'{"architectures": 5}'),
    ("towers", "router", b'{"parameters": [1]}'),
    ("towers", "router", b'{"types": [1]}'),
    ("towers", "router", b'{"parameters": {"route_mappings": [1]}}'),
    ("towers", "router", b"""{"parameters": {"route_mappings": {"([], 'text')": "query"}}}"""),
])  # fmt: skip
def test_files_with_an_unexpected_content_are_refused(folders, tmp_path, name, file, content):
    folder = folders.copy(name, tmp_path / "m")
    if file == "router":
        (path,) = folder.rglob("router_config.json")
        content = json.dumps(json.loads(path.read_bytes()) | json.loads(content)).encode()
    else:
        path = folder / file
        if not path.exists():
            (path,) = folder.rglob(path.name)
    path.write_bytes(content)
    assert refusal(folder).startswith(f"{folder}: ")


def test_a_single_architecture_and_no_number_of_labels(folders, tmp_path):
    folder = folders.copy("plain", tmp_path / "m")
    edit_json(folder / "config.json", architectures="BertForSequenceClassification", num_labels=1)
    assert stated_kind(folder) == "cross-encoder"
    edit_json(folder / "config.json", num_labels=None, id2label=None)
    assert stated_kind(folder) == "encoder"


@pytest.mark.parametrize("name", ["towers", "towers-strict", "towers-mapped"])
def test_routes_are_resolved_as_by_router(folders, name):
    router = next(
        module
        for module in library.SentenceTransformer(str(folders(name)), device="cpu")
        if isinstance(module, routers.Router)
    )
    routes = Routes((*router.sub_modules,), router.default_route, router.route_mappings)
    for task in (None, "query", "document", "short", "unknown"):
        try:
            own = router._resolve_route(task=task, modality="text")
        except ValueError:
            own = None
        assert routes.route(task) == own


def test_pairwise_sts_compares_queries_with_documents(folders, benchmark_file):
    data = giccs.load_benchmark(str(benchmark_file)).first(3)
    model = opened(folders("towers"), prompt=("query||document",))
    result = evaluate_task(PairwiseSTS(resamples=0), model, data)
    own = library.SentenceTransformer(str(folders("towers")), device="cpu")
    targets = own.encode_query([item.last_turn for item in data.items])
    candidates = own.encode_document([item.utterance for item in data.items])
    predictions = result.predictions["prediction"].to_numpy()
    assert predictions == pytest.approx(cosine(targets, candidates), abs=1e-6)
    assert result.signature["routes"] == {"target": "query", "candidate": "document"}


# Code of the model


def test_foreign_code_needs_consent_wherever_it_is_stated(folders, tmp_path):
    message = "requires its own code; review it, then allow it with --trust-remote-code"
    changes = {
        "module": ("pooled", "modules.json", None),
        "tokenizer": ("pooled", "tokenizer_config.json", {"AutoTokenizer": ["code.T", None]}),
        "subfolder": ("subfolder", "0_Transformer/config.json", {"AutoModel": "code.Model"}),
    }
    for kind, (name, file, auto_map) in changes.items():
        folder = folders.copy(name, tmp_path / kind)
        if auto_map:
            edit_json(folder / file, auto_map=auto_map)
        else:
            modules = json.loads((folder / file).read_text())
            modules[1]["type"] = "code.Pooling"
            (folder / file).write_text(json.dumps(modules))
        assert message in refusal(folder), kind
    folder = folders.copy("towers", tmp_path / "route")
    (config,) = folder.rglob("router_config.json")
    document = json.loads(config.read_text())
    document["types"] = dict.fromkeys(document["types"], "code.Dense")
    config.write_text(json.dumps(document))
    assert message in refusal(folder)
    causal = folders.copy("gpt", tmp_path / "causal")
    edit_json(causal / "tokenizer_config.json", auto_map={"AutoTokenizer": ["code.T", None]})
    with pytest.raises(InputError, match="requires its own code"):
        open_model(str(causal))


def test_own_modules_run_with_consent(folders, tmp_path):
    folder = folders.copy("pooled", tmp_path / "own-code")
    (folder / "own_code.py").write_text(
        "from sentence_transformers.sentence_transformer.modules import Normalize\n"
        "class Doubled(Normalize):\n"
        "    def forward(self, features, task=None):\n"
        "        factor = -1 if task == 'query' else 1\n"
        "        features['sentence_embedding'] = features['sentence_embedding'] ** 2 * factor\n"
        "        return features\n"
        "    forward_kwargs = {'task'}\n"
    )
    modules = json.loads((folder / "modules.json").read_text())
    modules[2]["type"] = "own_code.Doubled"
    (folder / "modules.json").write_text(json.dumps(modules))
    trusted = {"trust_remote_code": True}
    own = library.SentenceTransformer(str(folder), device="cpu", trust_remote_code=True)
    assert scores(folder, **trusted) == pytest.approx(cosine(own.encode(LEFT), own.encode(RIGHT)))
    sided = scores(folder, **trusted, prompt=("query||document",))
    expected = cosine(own.encode_query(LEFT), own.encode_document(RIGHT))
    assert sided == pytest.approx(expected, abs=1e-6)
    assert (sided < 0).all()


# Quantised weights


def test_weights_that_are_not_computed_as_saved_are_named(tmp_path):
    """transformers dequantises FP8 without a suitable GPU, and its warning is not shown."""
    from safetensors.torch import load_file, save_file

    folder = make_model(tmp_path / "fp8", "llama")
    tensors = {}
    for name, tensor in load_file(folder / "model.safetensors").items():
        is_quantised = name.endswith("proj.weight")
        tensors[name] = (10 * tensor).to(torch.float8_e4m3fn) if is_quantised else tensor
        if is_quantised:
            tensors[f"{name}_scale_inv"] = torch.full((1, 1), 0.1)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    settings = {
        "quant_method": "fp8",
        "activation_scheme": "dynamic",
        "weight_block_size": [128, 128],
    }
    edit_json(folder / "config.json", quantization_config=settings)
    model = open_model(str(folder))
    model.generate(["Ja"], 1, silent)
    note = model.environment().get("unused_weights", "")
    if not torch.cuda.is_available():
        assert note == "dequantised from fp8"


def test_static_embeddings_of_whole_numbers_are_refused(folders):
    message = refusal(folders("static-int8"))
    assert "its static embeddings are whole numbers (I8), which sentence-transformers" in message


@pytest.mark.parametrize("kind", ["encoder", "causal"])
def test_an_unknown_quantisation_is_refused(folders, tmp_path, kind):
    name = "gpt" if kind == "causal" else "plain"
    folder = folders.copy(name, tmp_path / "quantised")
    edit_json(folder / "config.json", quantization_config={"quant_method": "own-bits", "bits": 3})
    message = "its weights are quantised by own-bits, which transformers does not know; expected"
    assert message in refusal(folder)
    edit_json(folder / "config.json", quantization_config={"quant_method": "gptq", "bits": 4})
    assert "quantised by gptq, which requires gptqmodel; install it" in refusal(folder)


def test_quantised_weights_in_a_folder_of_modules_are_refused(folders, tmp_path):
    folder = folders.copy("subfolder", tmp_path / "quantised")
    config = folder / "0_Transformer/config.json"
    edit_json(config, quantization_config={"quant_method": "gptq", "bits": 4})
    assert "quantised by gptq, which requires gptqmodel; install it" in refusal(folder)


# Adapters


@pytest.mark.parametrize("task", [None, "CAUSAL_LM", "SEQ_CLS"])
@pytest.mark.parametrize("beside", [True, False])
def test_an_adapter_names_its_package(folders, tmp_path, monkeypatch, task, beside):
    monkeypatch.setattr("giccs.models.adapters.find_spec", lambda name: None)
    name = {None: "plain", "CAUSAL_LM": "gpt", "SEQ_CLS": "plain"}[task]
    folder = tmp_path / "adapter"
    if beside:
        folders.copy(name, folder)
    adapter(folder, folders(name), task=task)
    expected = "has an adapter (adapter_config.json), which requires peft; install it with: pip"
    assert expected in refusal(folder)


def test_an_adapter_of_a_module_names_its_package(folders, tmp_path, monkeypatch):
    monkeypatch.setattr("giccs.models.adapters.find_spec", lambda name: None)
    folder = folders.copy("subfolder", tmp_path / "inner")
    adapter(folder / "0_Transformer", folders("plain"))
    assert "which requires peft; install it with: pip install 'giccs[models]'" in refusal(folder)
    folder = folders.copy("towers-first", tmp_path / "route")
    (inner,) = folder.rglob("document_0_Transformer")
    adapter(inner, folders("plain"))
    assert "which requires peft; install it with: pip install 'giccs[models]'" in refusal(folder)


def with_tokenizer(folder, base):
    for file in base.glob("tokenizer*"):
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


@needs_peft
@pytest.mark.parametrize("beside", [True, False])
def test_an_adapter_changes_an_encoder_as_by_peft(folders, tmp_path, beside):
    base, folder = folders("plain"), tmp_path / "adapter"
    if beside:
        folders.copy("plain", folder)
    with_tokenizer(adapter(folder, base), base)
    changed = peft.PeftModel.from_pretrained(transformers.AutoModel.from_pretrained(base), folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(base)

    def means(texts):
        tokens = tokenizer(texts, padding=True, return_tensors="pt")
        with torch.inference_mode():
            states = changed.eval()(**tokens).last_hidden_state
        mask = tokens["attention_mask"].unsqueeze(-1)
        return ((states * mask).sum(1) / mask.sum(1)).numpy()

    model = opened(folder)
    expected = cosine(means(LEFT), means(RIGHT))
    assert model.pair_scores(LEFT, RIGHT, silent) == pytest.approx(expected, abs=1e-5)
    assert np.abs(expected - scores(base)).max() > 0.01
    assert model.identity["adapter"] == "LORA"
    base_revision = None if beside else opened(base).identity["revision"]
    assert model.identity.get("base_revision") == base_revision


@needs_peft
def test_an_adapter_in_a_folder_of_sentence_transformers(folders, tmp_path):
    folder = folders.copy("pooled", tmp_path / "adapter")
    for file in ("config.json", "model.safetensors"):
        (folder / file).unlink()
    adapter(folder, folders("plain"))
    assert scores(folder) == pytest.approx(own_scores(folder), abs=1e-5)
    assert np.abs(scores(folder) - scores(folders("pooled"))).max() > 0.01
    assert opened(folder).identity["adapter"] == "LORA"


@needs_peft
@pytest.mark.parametrize("beside", [True, False])
def test_an_adapter_changes_a_causal_model_as_by_peft(folders, tmp_path, beside):
    base, folder = folders("gpt"), tmp_path / "adapter"
    if beside:
        folders.copy("gpt", folder)
    adapter(folder, base, task="CAUSAL_LM")
    prompt = Prompt("ich möchte", (" einen Tisch", " am Fenster"))

    def logprobs(model):
        return [option.logprob for option in model.score([prompt]).options[0]]

    loaded = transformers.AutoModelForCausalLM.from_pretrained(base)
    merged = peft.PeftModel.from_pretrained(loaded, folder).merge_and_unload()
    tokenizer = transformers.AutoTokenizer.from_pretrained(base)
    expected = logprobs(model_of_object((merged, tokenizer)))
    model = opened(folder)
    assert model.identity["kind"] == "causal"
    assert model.identity["adapter"] == "LORA"
    assert logprobs(model) == pytest.approx(expected, abs=1e-5)
    assert np.abs(np.subtract(expected, logprobs(opened(base)))).max() > 0.1


@needs_peft
def test_adapters_that_would_change_nothing_or_another_model_are_refused(folders, tmp_path):
    from safetensors.torch import load_file, save_file

    base = folders("plain")
    folder = with_tokenizer(adapter(tmp_path / "absent", "no/where"), base)
    assert "its adapter changes no/where, which is not available: no such" in refusal(folder)
    folder = with_tokenizer(adapter(tmp_path / "unstated", ""), base)
    assert "has an adapter without a model" in refusal(folder)
    folder = with_tokenizer(adapter(tmp_path / "prompt", base, method="PROMPT_TUNING"), base)
    assert "its adapter is a learned prompt (PROMPT_TUNING), which transformers" in refusal(folder)
    folder = with_tokenizer(adapter(tmp_path / "revision", "a/b", revision="v2"), base)
    assert "its adapter changes revision v2 of a/b, which transformers ignores" in refusal(folder)
    folder = with_tokenizer(adapter(tmp_path / "targets", base, targets=["nothing"]), base)
    assert "cannot be loaded: Target modules" in refusal(folder)
    assert "has an adapter without tokenizer" in refusal(adapter(tmp_path / "bare", base))
    folder = with_tokenizer(adapter(tmp_path / "part", base), base)
    tensors = load_file(folder / "adapter_model.safetensors")
    tensors.pop(min(tensors))
    save_file(tensors, folder / "adapter_model.safetensors")
    assert "its weights do not match BertModel: 1 tensor is missing" in refusal(folder)
    damaged = folders.copy("plain", tmp_path / "damaged-base")
    tensors = load_file(damaged / "model.safetensors")
    tensors.pop("embeddings.word_embeddings.weight")
    save_file(tensors, damaged / "model.safetensors", metadata={"format": "pt"})
    folder = with_tokenizer(adapter(tmp_path / "changed", damaged), base)
    assert "its weights do not match BertModel: 1 tensor is missing" in refusal(folder)
    folder = with_tokenizer(adapter(tmp_path / "pairs", base, task="SEQ_CLS"), base)
    message = "is an adapter alone, which sentence-transformers does not read as a CrossEncoder"
    assert message in refusal(folder)


def test_an_adapter_is_not_lost_in_training(folders, tmp_path):
    from giccs.csts.encoders.base import base_folder

    folder = folders.copy("plain", tmp_path / "adapter")
    adapter(folder, folders("plain"))
    with pytest.raises(InputError, match="has an adapter, which would not be trained; merge it"):
        base_folder(str(folder))


# Objects


def test_sparse_encoders_are_objects_as_well(folders):
    given = library.SparseEncoder(str(folders("splade")), device="cpu")
    model = model_of_object(given)
    own = own_scores(folders("splade"), cls="SparseEncoder")
    assert model.pair_scores(LEFT, RIGHT, silent) == pytest.approx(own, rel=1e-5)
    assert (model.identity["class"], model.identity["similarity"]) == ("SparseEncoder", "dot")


class NeedsTask:
    """A model whose method encode has a required argument."""

    def encode(self, texts, task):
        raise AssertionError


def test_an_object_whose_encode_needs_more_is_refused():
    message = (
        "the method encode of of type NeedsTask requires (texts, task); expected (texts); pass a "
        "function, such as lambda texts: model.encode(texts, task=...)"
    ).replace("of of", "of an object of")
    with pytest.raises(TypeError, match=re.escape(message)):
        model_of_object(NeedsTask())
