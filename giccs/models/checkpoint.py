"""Folder of a model: its location, configuration, and a digest of its content."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from bws.base.problems import InputError, Problem

DTYPES = ("float32", "bfloat16", "float16")
WEIGHTS = ("*.safetensors", "*.bin")
PACKAGED_EQUALS = {"sentence-transformers/all-minilm-l6-v2": "package:minilm"}
"""Hub id in lower case -> the packaged model with the same files."""
CLASS_KINDS = {
    "SentenceTransformer": "encoder",
    "SparseEncoder": "encoder",
    "CrossEncoder": "cross-encoder",
    "MultiVectorEncoder": "late-interaction",
    "ColBERT": "late-interaction",
}
"""Class of a model in ``config_sentence_transformers.json`` (``ColBERT``: of PyLate) -> its kind."""
ADAPTER = "adapter_config.json"
ADAPTER_KINDS = {"CAUSAL_LM": "causal", "SEQ_2_SEQ_LM": "seq2seq", "SEQ_CLS": "cross-encoder"}
"""Task of an adapter of PEFT -> kind of model; others are encoders."""


def read_json(path: Path) -> Any:
    """Return the content of a JSON file, or None if it does not exist."""
    if not path.is_file():
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(Problem(str(path), None, f"not valid JSON ({error})")) from None


def located(name: str, revision: str | None, *, offline: bool) -> Path:
    """Return `name` as a path if it exists, or else the local folder of that hub id."""
    path = Path(name).expanduser()
    if path.exists():
        return path
    from giccs.benchmark.hub import model_folder

    packaged = PACKAGED_EQUALS.get(name.lower(), "")
    return model_folder(name, revision, offline=offline, packaged=packaged)


def stated_kind(path: Path) -> str:
    """Return the kind of model stated by a GGUF file or by the configuration in a folder.

    It is ``causal``, ``seq2seq`` (an encoder-decoder for text generation), ``cross-encoder`` (one saved by
    sentence-transformers, or a sequence classifier with one label), ``late-interaction`` (a checkpoint of
    sentence-transformers, PyLate or ColBERT) or else ``encoder``.
    """
    if path.suffix.lower() == ".gguf":
        return "causal"
    config = read_json(path / "config.json")
    has_modules = (path / "modules.json").is_file()
    library_config = read_json(path / "config_sentence_transformers.json")
    if kind := _pair_kind(library_config, None if has_modules else config):
        return kind
    if has_modules:
        return "encoder"
    if not isinstance(config, dict):
        task = (adapter_settings(path) or {}).get("task_type")
        return "causal" if any(path.glob("*.gguf")) else ADAPTER_KINDS.get(str(task), "encoder")
    names = architectures(config)
    if is_causal(config):
        return "causal"
    # Causal models with image input are also named "ForConditionalGeneration".
    writes = any(name.endswith(("ForConditionalGeneration", "ForSeq2SeqLM")) for name in names)
    return "seq2seq" if writes and config.get("is_encoder_decoder") else "encoder"


def _pair_kind(library_config: Any, config: Any) -> str:
    """Return the kind of a model of pairs of texts, or an empty string for other models.

    library_config: content of ``config_sentence_transformers.json``, which states the class of the model in
    recent versions. Earlier cross-encoders state their activation function in ``config.json``.
    """
    model_type = library_config.get("model_type") if isinstance(library_config, dict) else None
    if model_type is not None:
        kind = CLASS_KINDS.get(str(model_type), "")
        return "" if kind == "encoder" else kind
    if not isinstance(config, dict) or library_config is not None:
        return ""
    names = architectures(config)
    if "HF_ColBERT" in names:
        return "late-interaction"
    is_classifier = any(name.endswith("ForSequenceClassification") for name in names)
    is_saved = "sentence_transformers" in config or "sbert_ce_default_activation_function" in config
    return "cross-encoder" if is_classifier and (is_saved or label_count(config) == 1) else ""


def adapter_settings(folder: Path) -> dict[str, Any] | None:
    """Return the configuration of an adapter of PEFT in a folder, or None if there is none."""
    settings = read_json(folder / ADAPTER)
    if settings is not None and not isinstance(settings, dict):
        raise InputError(Problem(str(folder / ADAPTER), None, "expected a JSON object"))
    return settings


def check_has_weights(name: str, folder: Path) -> None:
    """Raise InputError if no file in a folder or below contains weights."""
    if not any(any(folder.rglob(pattern)) for pattern in WEIGHTS):
        message = f"contains no weights; expected a file {' or '.join(WEIGHTS)}"
        raise InputError(Problem(name, None, message))


def check_shards(name: str, folder: Path) -> None:
    """Raise InputError if a folder lacks a file of weights that its index names."""
    for whole in ("model.safetensors", "pytorch_model.bin"):
        index = read_json(folder / f"{whole}.index.json")
        if (folder / whole).is_file() or (index is None and not any(folder.glob("*.safetensors"))):
            continue
        shards = index.get("weight_map") if isinstance(index, dict) else None
        files = sorted(set(map(str, shards.values()))) if isinstance(shards, dict) else []
        if absent := [file for file in files if not (folder / file).is_file()]:
            message = f"lacks {len(absent)} of its {len(files)} files of weights ({absent[0]})"
            raise InputError(Problem(name, None, f"{message}; copy or download it completely"))
        return


def is_causal(config: Any) -> bool:
    """Return whether the configuration states a causal language model."""
    return any(name.endswith(("ForCausalLM", "LMHeadModel")) for name in architectures(config))


def architectures(config: Any) -> list[str]:
    """Return the classes that a configuration of transformers states.

    >>> architectures({"architectures": "BertModel"}), architectures({})
    (['BertModel'], [])
    """
    names = config.get("architectures") or []
    return [names] if isinstance(names, str) else list(map(str, names))


def label_count(config: Any) -> int:
    """Return the number of labels of a sequence classifier; 2 if the configuration states none, as in
    transformers."""
    labels = config.get("id2label")
    return len(labels) if isinstance(labels, dict) else int(config.get("num_labels") or 2)


def weights_dtype(folder: Path, requested_dtype: str) -> str:
    """Return the requested data type of the weights, or that of the saved ones for ``auto``.

    float32 if the configuration does not state it.
    """
    if requested_dtype != "auto":
        return requested_dtype
    config = read_json(folder / "config.json")
    if not isinstance(config, dict):
        return "float32"
    text = config.get("text_config") or {}
    saved = [part.get(key) for part in (config, text) for key in ("dtype", "torch_dtype")]
    return next((dtype for dtype in saved if dtype in DTYPES), "float32")


def revision(path: Path) -> str:
    """Return the commit of a hub snapshot, or a digest of the files for other paths."""
    if path.parent.name == "snapshots":
        return path.name
    digest = hashlib.sha256()
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    for model_file in files:
        with model_file.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        name = model_file.name if model_file == path else model_file.relative_to(path).as_posix()
        digest.update(f"{name}\n{content}\n".encode())
    return f"sha256:{digest.hexdigest()[:16]}"


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or its class name without a message.

    A line that ends with a colon is joined with the next one.

    >>> first_line(RuntimeError("Error(s) in loading state_dict:\\n    Missing key(s): a\\n    more"))
    'Error(s) in loading state_dict: Missing key(s): a'
    """
    lines = [line.strip() for line in str(error).strip().splitlines()]
    if len(lines) > 1 and lines[0].endswith(":"):
        return f"{lines[0]} {lines[1]}"
    return lines[0] if lines else type(error).__name__
