"""The folder of a model: where it is, what its configuration says, and a name for its content."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from bws.problems import InputError, Problem

__all__ = [
    "DTYPES",
    "WEIGHTS",
    "first_line",
    "located",
    "read_json",
    "revision",
    "saved_dtype",
    "stated_kind",
]

DTYPES = ("float32", "bfloat16", "float16")
WEIGHTS = ("*.safetensors", "*.bin")


def read_json(path: Path) -> Any:
    """Return what a JSON file holds; None where there is no such file."""
    if not path.is_file():
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(Problem(str(path), None, f"is not JSON ({error})")) from None


def located(name: str, revision: str | None, *, offline: bool) -> Path:
    """Return the path that `name` is, or else the folder of that hub id."""
    path = Path(name).expanduser()
    if path.exists():
        return path
    from giccs.benchmark.hub import model_folder

    return model_folder(name, revision, offline=offline)


def stated_kind(path: Path) -> str:
    """Return the kind that a GGUF file, or the configuration in a folder, states.

    It is ``causal``, ``seq2seq`` (an encoder-decoder that writes text) or else ``encoder``. A folder of
    sentence-transformers is an encoder, whatever it is built of.
    """
    if path.suffix.lower() == ".gguf":
        return "causal"
    config = read_json(path / "config.json")
    if (path / "modules.json").is_file():
        return "encoder"
    if not isinstance(config, dict):
        return "causal" if any(path.glob("*.gguf")) else "encoder"
    names = config.get("architectures") or []
    if any(name.endswith(("ForCausalLM", "LMHeadModel")) for name in names):
        return "causal"
    # a causal model that also sees images generates "conditionally", too
    writes = any(name.endswith(("ForConditionalGeneration", "ForSeq2SeqLM")) for name in names)
    return "seq2seq" if writes and config.get("is_encoder_decoder") else "encoder"


def saved_dtype(config: Any) -> str:
    """Return the type in which weights were saved; float32 where the configuration does not tell."""
    config = config or {}
    text = config.get("text_config") or {}
    saved = [part.get(key) for part in (config, text) for key in ("dtype", "torch_dtype")]
    return next((dtype for dtype in saved if dtype in DTYPES), "float32")


def revision(path: Path) -> str:
    """Return the hub's commit, or a digest of the files where `path` is no snapshot of the hub."""
    if path.parent.name == "snapshots":
        return path.name
    whole = hashlib.sha256()
    files = [path] if path.is_file() else sorted(one for one in path.rglob("*") if one.is_file())
    for one in files:
        with one.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        name = one.name if one == path else one.relative_to(path).as_posix()
        whole.update(f"{name}\n{content}\n".encode())
    return f"sha256:{whole.hexdigest()[:16]}"


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or its class where it has none.

    A line that ends with a colon is followed by the next one.

    >>> first_line(RuntimeError("Error(s) in loading state_dict:\\n    Missing key(s): a\\n    more"))
    'Error(s) in loading state_dict: Missing key(s): a'
    """
    lines = [line.strip() for line in str(error).strip().splitlines()]
    if len(lines) > 1 and lines[0].endswith(":"):
        return f"{lines[0]} {lines[1]}"
    return lines[0] if lines else type(error).__name__
