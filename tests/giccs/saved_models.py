"""Folders of models of different structure, tiny and with random weights, built from configurations."""

import json
import shutil

import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from .deferred import Deferred

torch = Deferred("torch")
safetensors = Deferred("safetensors.torch")
parts = Deferred("sentence_transformers.sentence_transformer.modules")
sparse_parts = Deferred("sentence_transformers.sparse_encoder.modules")
routers = Deferred("sentence_transformers.base.modules")
library = Deferred("sentence_transformers")
transformers = Deferred("transformers")

LEFT = ["ich möchte einen Tisch", "heute gern am Fenster", "für vier", "Tisch"]
RIGHT = ["einen Tisch für vier Personen", "am Fenster", "Tisch", "heute"]
WORDS = sorted({word for text in LEFT + RIGHT for word in text.split()})
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = [*SPECIAL, *WORDS]
SIZE = {
    "vocab_size": len(VOCABULARY), "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
    "intermediate_size": 32, "max_position_embeddings": 32,
    "initializer_range": 0.5,  # similarities well apart
}  # fmt: skip


def word_tokenizer():
    """Return a tokenizer of the library tokenizers with a token per word."""
    tokenizer = Tokenizer(
        models.WordLevel({word: n for n, word in enumerate(VOCABULARY)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer


def transformer(folder, architecture="BertModel", config="BertConfig", **changes):
    """Save a transformer with random weights and a tokenizer of words; return the folder."""
    tokenizer = word_tokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=32, **names
    )
    torch.manual_seed(0)
    settings = getattr(transformers, config)(**{**SIZE, "pad_token_id": 0, **changes})
    getattr(transformers, architecture)(settings).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


def saved(folder, modules, cls="SentenceTransformer", **settings):
    """Save a model of modules as sentence-transformers does; return the folder."""
    getattr(library, cls)(modules=modules, device="cpu", **settings).save(str(folder))
    return folder


def dense(seed, width=8):
    torch.manual_seed(seed)
    return parts.Dense(16, width)


def router(modules=None, **default):
    modules = modules or ([dense(1)], [dense(2)])
    return routers.Router.for_query_document(*modules, **default)


def word_vectors(max_seq_length=100):
    tokenizer = parts.tokenizer.WhitespaceTokenizer(WORDS, stop_words=())
    torch.manual_seed(3)
    return parts.WordEmbeddings(
        tokenizer, torch.randn(len(WORDS), 16), max_seq_length=max_seq_length
    )


def static(width=16):
    torch.manual_seed(4)
    return parts.StaticEmbedding(word_tokenizer(), embedding_dim=width)


class Folders:
    """Builds each folder on first use, in one temporary folder."""

    def __init__(self, root):
        self.root = root

    def __call__(self, name):
        folder = self.root / name
        if not folder.exists():
            getattr(self, name.replace("-", "_"))(folder)
        return folder

    def copy(self, name, folder):
        return shutil.copytree(self(name), folder)

    def base(self):
        return parts.Transformer(str(self("plain")))

    def plain(self, folder):
        transformer(folder)

    def pooled(self, folder):
        saved(folder, [self.base(), parts.Pooling(16, "cls"), parts.Normalize()])

    def several_poolings(self, folder):
        saved(folder, [self.base(), parts.Pooling(16, ("mean", "max"))])

    def dense_layer_norm(self, folder):
        torch.manual_seed(5)
        norm = parts.LayerNorm(8)
        torch.nn.init.normal_(norm.norm.weight)
        saved(folder, [self.base(), parts.Pooling(16), dense(1), norm, parts.Dropout(0.5)])

    def weighted_layers(self, folder):
        layers = parts.WeightedLayerPooling(16, num_hidden_layers=2, layer_start=1)
        torch.nn.init.normal_(layers.layer_weights)
        plain = parts.Transformer(str(self("plain")), config_kwargs={"output_hidden_states": True})
        saved(folder, [plain, layers, parts.Pooling(16)])

    def convolution(self, folder):
        torch.manual_seed(6)
        cnn = parts.CNN(16, out_channels=4, kernel_sizes=[1, 3])
        saved(folder, [word_vectors(), cnn, parts.Pooling(8)])

    def lstm(self, folder):
        torch.manual_seed(7)
        saved(folder, [word_vectors(), parts.LSTM(16, 4), parts.Pooling(8, "max")])

    def word_weights(self, folder):
        weights = parts.WordWeights(WORDS, {"Tisch": 3.0}, unknown_word_weight=0.5)
        saved(folder, [word_vectors(), weights, parts.Pooling(16)])

    def bag_of_words(self, folder):
        saved(folder, [parts.BoW(WORDS, {"Tisch": 2.0}, unknown_word_weight=1)])

    def bag_of_words_dense(self, folder):
        torch.manual_seed(8)
        saved(folder, [parts.BoW(WORDS, {}, unknown_word_weight=1), parts.Dense(len(WORDS), 4)])

    def static(self, folder):
        saved(folder, [static()])

    def static_normalised_truncated(self, folder):
        saved(folder, [static(), parts.Normalize()], truncate_dim=6)

    def static_int8(self, folder):
        """As model2vec saves quantised vectors: whole numbers, which are not scaled."""
        saved(folder, [static()])
        matrix = torch.randint(-127, 127, (len(VOCABULARY), 16), dtype=torch.int8)
        safetensors.save_file({"embeddings": matrix}, folder / "model.safetensors")

    def static_mapped(self, folder):
        """As model2vec saves a reduced vocabulary: a row and a weight of each token."""
        saved(folder, [static()])
        torch.manual_seed(9)
        rows = torch.arange(len(VOCABULARY)) % 7
        tensors = {"embeddings": torch.randn(7, 16), "mapping": rows}
        tensors["weights"] = torch.rand(len(VOCABULARY), dtype=torch.float64)
        safetensors.save_file(tensors, folder / "model.safetensors")

    def clip(self, folder):
        clip_base(self.root / "clip-base")
        saved(folder, [parts.CLIPModel(str(self.root / "clip-base"))])

    def towers(self, folder):
        modules = [self.base(), parts.Pooling(16), router()]
        saved(folder, modules, prompts={"query": "heute ", "document": "am "})

    def towers_strict(self, folder):
        strict = router(default_route=None, allow_empty_key=False)
        saved(folder, [self.base(), parts.Pooling(16), strict])

    def towers_first(self, folder):
        """Another encoder for queries than for documents."""
        document = [self.base(), parts.Pooling(16)]
        saved(folder, [router(([static()], document)), parts.Normalize()])

    def towers_mapped(self, folder):
        """Routes of other names, chosen by a mapping; texts without a task have their own."""
        routes = {"short": [dense(1)], "long": [dense(2)], "other": [dense(3)]}
        mappings = {("query", "text"): "short", ("document", None): "long", (None, None): "other"}
        mapped = routers.Router(routes, route_mappings=mappings)
        saved(folder, [self.base(), parts.Pooling(16), mapped])

    def asym(self, folder):
        """As versions before 5 saved a routers.Router."""
        saved(folder, [self.base(), parts.Pooling(16), router()])
        (folder / "config_sentence_transformers.json").unlink()
        modules = json.loads((folder / "modules.json").read_text())
        modules[2] |= {"type": "sentence_transformers.models.Asym"}
        (folder / "modules.json").write_text(json.dumps(modules))
        (inner,) = folder.glob("2_*")
        config = json.loads((inner / "router_config.json").read_text())
        config["parameters"] = {"allow_empty_key": True}
        (inner / "router_config.json").unlink()
        (inner / "config.json").write_text(json.dumps(config))

    def dot(self, folder):
        saved(folder, [self.base(), parts.Pooling(16)], similarity_fn_name="dot")

    def euclidean(self, folder):
        saved(folder, [self.base(), parts.Pooling(16)], similarity_fn_name="euclidean")

    def manhattan(self, folder):
        saved(folder, [self.base(), parts.Pooling(16)], similarity_fn_name="manhattan")

    def splade(self, folder):
        transformer(self.root / "masked", "BertForMaskedLM")
        masked = sparse_parts.MLMTransformer(str(self.root / "masked"))
        saved(folder, [masked, sparse_parts.SpladePooling("max")], "SparseEncoder")

    def splade_towers(self, folder):
        """Queries without inference, by a weight per token; documents by SPLADE; the cosine."""
        self("splade")
        masked = sparse_parts.MLMTransformer(str(self.root / "masked"))
        document = [masked, sparse_parts.SpladePooling("max")]
        torch.manual_seed(10)
        weight = torch.rand(len(VOCABULARY))
        query = [sparse_parts.SparseStaticEmbedding(tokenizer=masked.tokenizer, weight=weight)]
        towers = router((query, document), default_route=None, allow_empty_key=False)
        saved(folder, [towers], "SparseEncoder", similarity_fn_name="cosine")

    def sparse_autoencoder(self, folder):
        torch.manual_seed(11)
        coder = sparse_parts.SparseAutoEncoder(16, hidden_dim=32, k=4)
        saved(folder, [self.base(), parts.Pooling(16), coder], "SparseEncoder", max_active_dims=3)

    def cross(self, folder):
        transformer(self.root / "classifier", "BertForSequenceClassification", num_labels=1)
        model = library.CrossEncoder(str(self.root / "classifier"), device="cpu")
        model.save_pretrained(str(folder))

    def multi_vector(self, folder):
        torch.manual_seed(12)
        model = library.MultiVectorEncoder(str(self("plain")), device="cpu")
        model.save_pretrained(str(folder))

    def subfolder(self, folder):
        """As the first versions saved: the transformer in a folder of its own, in half precision."""
        saved(folder, [self.base(), parts.Pooling(16)])
        inner = folder / "0_Transformer"
        inner.mkdir()
        for file in [*folder.glob("*.json"), *folder.glob("*.safetensors")]:
            if file.name not in ("modules.json", "config_sentence_transformers.json"):
                file.rename(inner / file.name)
        modules = json.loads((folder / "modules.json").read_text())
        modules[0] |= {"path": "0_Transformer", "type": "sentence_transformers.models.Transformer"}
        modules[1] |= {"type": "sentence_transformers.models.Pooling"}
        (folder / "modules.json").write_text(json.dumps(modules))

    def sharded(self, folder):
        self.copy("plain", folder)
        (folder / "model.safetensors").unlink()
        model = transformers.BertModel.from_pretrained(self("plain"))
        model.save_pretrained(folder, max_shard_size="5KB")

    def gpt(self, folder):
        transformer(
            folder, "GPT2LMHeadModel", "GPT2Config", n_embd=16, n_layer=2, n_head=2, n_positions=64,
            bos_token_id=2, eos_token_id=3,
        )  # fmt: skip


def clip_base(folder):
    """Save a CLIP with random weights."""
    text = {**SIZE, "eos_token_id": 3, "bos_token_id": 2, "projection_dim": 8}
    image = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1,
             "num_attention_heads": 2, "image_size": 8, "patch_size": 4, "projection_dim": 8}  # fmt: skip
    transformer(
        folder, "CLIPModel", "CLIPConfig", text_config=text, vision_config=image, projection_dim=8
    )
    transformers.CLIPImageProcessorPil(size=8, crop_size=8).save_pretrained(folder)


def adapter(folder, base, method="LORA", task=None, seed=0, targets=("query",), **changes):
    """Write an adapter of low rank for a BERT, or a GPT-2 with other targets, into a folder."""
    folder.mkdir(exist_ok=True)
    is_gpt = task == "CAUSAL_LM"
    settings = {
        "peft_type": method, "base_model_name_or_path": str(base), "r": 2, "lora_alpha": 8,
        "target_modules": ["c_attn"] if is_gpt else list(targets), "task_type": task,
        "fan_in_fan_out": is_gpt, **changes,
    }  # fmt: skip
    (folder / "adapter_config.json").write_text(json.dumps(settings))
    layer = "transformer.h.{}.attn.c_attn" if is_gpt else "encoder.layer.{}.attention.self.query"
    torch.manual_seed(seed)
    tensors = {}
    for n in (0, 1):
        prefix = f"base_model.model.{layer.format(n)}.lora_"
        tensors[f"{prefix}A.weight"] = torch.randn(2, 16)
        tensors[f"{prefix}B.weight"] = torch.randn(48 if is_gpt else 16, 2)
    safetensors.save_file(tensors, folder / "adapter_model.safetensors")
    return folder


def cosine(a, b):
    return np.sum(a * b, axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
