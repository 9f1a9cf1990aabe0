"""Folders of encoders and of models of pairs: what sentence-transformers saved in them, and its checks.

The library replaces what it does not find, or what belongs to another class of model, by a default, such as a
transformer with mean pooling. Such folders are refused here.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bws.base.problems import InputError, Problem
from giccs.models.adapters import Adapter, find_adapter
from giccs.models.checkpoint import (
    CLASS_KINDS,
    check_has_weights,
    check_shards,
    read_json,
    revision,
    weights_dtype,
)
from giccs.models.devices import device_map
from giccs.models.encoder_prompts import Routes
from giccs.models.encoding import SIMILARITIES
from giccs.models.pooling import check_pooling
from giccs.models.quantisation import check_quantised

if TYPE_CHECKING:
    from giccs.models import ModelOptions

ENCODERS = ("SentenceTransformer", "SparseEncoder")
"""Classes of encoders with a vector per text."""
LIBRARY = ("sentence_transformers.",)
"""Beginning of the names of classes in modules.json that are not the model's own code."""

DEFAULT_SIMILARITIES = {"SentenceTransformer": "cosine", "SparseEncoder": "dot"}
"""Class -> similarity of vectors, if the folder states none."""
STATIC_TENSORS = ("embedding.weight", "embeddings")
"""Names of the vectors of a StaticEmbedding, the second in files of model2vec."""
WEIGHTLESS = frozenset(
    {"BoW", "Dropout", "MultiVectorMask", "Normalize", "Pooling", "SpladePooling"}
)
"""Modules whose folders contain no weights."""


@dataclass(frozen=True, slots=True)
class Module:
    """A module of a saved model."""

    type: str
    """Its class with the Python module, such as ``sentence_transformers.models.Pooling``."""
    folder: Path

    @property
    def name(self) -> str:
        """The name of the class."""
        return self.type.rpartition(".")[2]


class SavedModel:
    """A folder of sentence-transformers, or another one, which has no modules."""

    def __init__(self, folder: Path, adapters: Sequence[Adapter] = ()) -> None:
        self.folder = folder
        self.adapters = adapters

    @cached_property
    def modules(self) -> list[Module] | None:
        """Modules in order, each Router followed by those of its routes; None without ``modules.json``."""
        saved = read_json(self.folder / "modules.json")
        return None if saved is None else [*_with_inner(self._listed(saved))]

    def _listed(self, saved: Any) -> Iterator[Module]:
        is_list = isinstance(saved, list) and all(isinstance(part, dict) for part in saved)
        if not is_list or not saved:
            message = "expected a list of modules, each with type and path"
            raise InputError(Problem(str(self.folder / "modules.json"), None, message))
        for part in saved:
            yield Module(str(part.get("type")), self.folder / str(part.get("path", "")))

    @cached_property
    def settings(self) -> Mapping[str, Any]:
        """Content of ``config_sentence_transformers.json``; empty if there is none."""
        settings = read_json(self.folder / "config_sentence_transformers.json")
        return settings if isinstance(settings, dict) else {}

    @property
    def class_name(self) -> str:
        """Class of sentence-transformers; earlier versions do not state it, and have only one."""
        return str(self.settings.get("model_type", "SentenceTransformer"))

    @property
    def similarity(self) -> str:
        """Similarity of the vectors of an encoder."""
        default = DEFAULT_SIMILARITIES.get(self.class_name, "cosine")
        return (
            default if self.modules is None else self.settings.get("similarity_fn_name") or default
        )

    @cached_property
    def routes(self) -> Routes | None:
        """Routes of the first Router; None without one."""
        routers = (module for module in self.modules or () if module.name in ("Router", "Asym"))
        return next(map(_routes, routers), None)

    @property
    def needs_weights(self) -> bool:
        """Whether any module has weights."""
        return self.modules is None or any(part.name not in WEIGHTLESS for part in self.modules)

    @property
    def folders(self) -> list[Path]:
        """The folder and those of its modules, without repetitions."""
        return list(dict.fromkeys([self.folder, *(part.folder for part in self.modules or ())]))

    @property
    def transformer_folder(self) -> Path:
        """The first folder with the configuration of a transformer, which may be that of an adapter's base;
        the folder itself if there is none."""
        folders = [*(adapter.base for adapter in self.adapters), *self.folders]
        configs = ((path, read_json(path / "config.json")) for path in folders)
        has_type = (path for path, config in configs if "model_type" in (config or {}))
        return next(has_type, self.folder)

    def dtype(self, requested_dtype: str) -> str:
        """Return the data type of the weights: the requested one, or that of the saved weights."""
        return weights_dtype(self.transformer_folder, requested_dtype)

    @cached_property
    def identity(self) -> Mapping[str, str]:
        """Signature entries: the content of the folder, and the adapters with the weights they change."""
        adapters = [adapter.identity() for adapter in self.adapters]
        keys = dict.fromkeys(key for entry in adapters for key in entry)
        joined = {
            key: ", ".join(dict.fromkeys(entry[key] for entry in adapters if key in entry))
            for key in keys
        }
        return {"revision": revision(self.folder), **joined}


def saved_model(
    name: str,
    folder: Path,
    options: ModelOptions,
    classes: tuple[str, ...] = ENCODERS,
    known_modules: tuple[str, ...] = LIBRARY,
) -> SavedModel:
    """Return the model in a folder; raise InputError if there is none, or one of another class.

    known_modules: beginnings of the names of classes in modules.json that are not the model's own code.
    """

    def refused(message: str) -> InputError:
        return InputError(Problem(name, None, message))

    if not folder.is_dir():
        raise refused("is a file; expected a folder or a hub id")
    folders = SavedModel(folder).folders
    offline = options.offline
    adapters = (find_adapter(name, path, offline=offline, needs_base=True) for path in folders)
    saved = SavedModel(folder, [adapter for adapter in adapters if adapter])
    is_model = saved.modules is not None or (folder / "config.json").is_file() or saved.adapters
    if not is_model:
        raise refused("contains no model: neither modules.json nor config.json")
    _check_class(name, saved, classes)
    if saved.needs_weights:
        check_has_weights(name, folder)
    if _has_own_code(saved, known_modules) and not options.trust_remote_code:
        raise refused("requires its own code; review it, then allow it with --trust-remote-code")
    bases = [adapter.base for adapter in saved.adapters]
    for path in dict.fromkeys([*saved.folders, *bases]):
        check_shards(name, path)
        check_quantised(name, read_json(path / "config.json"), options)
    for adapter in saved.adapters:
        if adapter.base != adapter.folder and not any(adapter.folder.glob("tokenizer*")):
            message = (
                f"has an adapter without tokenizer; copy that of {adapter.base} into its folder"
            )
            raise refused(message)
    for module in saved.modules or ():
        if module.name == "StaticEmbedding":
            _check_static(name, module.folder / "model.safetensors")
    device_map(name, options)
    check_pooling(name, read_json(folder / "modules.json"), options)
    return saved


def _check_class(name: str, saved: SavedModel, classes: tuple[str, ...]) -> None:
    """Raise InputError unless sentence-transformers saved a folder as a model of one of the classes.

    The library converts other classes: it replaces their modules by a transformer with mean pooling, or by
    layers with random weights.
    """

    def refused(message: str) -> InputError:
        return InputError(Problem(name, None, message))

    if saved.modules is None and "model_type" not in saved.settings:
        return
    kind = CLASS_KINDS.get(saved.class_name)
    if kind is None:
        known = ", ".join(CLASS_KINDS)
        raise refused(f"was saved as the class {saved.class_name}; expected one of {known}")
    if saved.class_name not in classes:
        raise refused(f"was saved as a {saved.class_name}; expected {kind}: before its name")
    if kind == "encoder" and saved.modules is None:
        message = (
            f"was saved as a {saved.class_name}, but lacks modules.json, which names its modules"
        )
        raise refused(message)
    if saved.similarity not in SIMILARITIES and kind == "encoder":
        expected = ", ".join(SIMILARITIES)
        raise refused(f"states the similarity {saved.similarity!r}; expected one of {expected}")


def _has_own_code(saved: SavedModel, known_modules: tuple[str, ...]) -> bool:
    """Return whether a model requires code outside of the libraries, which some of their versions import
    without consent, and others replace by their own."""
    if any(not part.type.startswith(known_modules) for part in saved.modules or ()):
        return True
    folders = [*saved.folders, *(adapter.base for adapter in saved.adapters)]
    files = (path / file for path in folders for file in ("config.json", "tokenizer_config.json"))
    return any("auto_map" in (read_json(file) or {}) for file in files)


def _check_static(name: str, file: Path) -> None:
    """Raise InputError for static embeddings of whole numbers, which sentence-transformers cannot average."""
    if not file.is_file():
        return
    with file.open("rb") as stream:  # The header of safetensors: its length, and JSON.
        length = int.from_bytes(stream.read(8), "little")
        header = stream.read(length) if length < file.stat().st_size else b"{}"
    try:
        tensors = json.loads(header)
    except (ValueError, RecursionError) as error:
        raise InputError(Problem(name, None, f"{file.name} is no file of safetensors")) from error
    dtype = next((tensors[key]["dtype"] for key in STATIC_TENSORS if key in tensors), "F32")
    if dtype not in ("F64", "F32", "F16", "BF16"):
        message = f"its static embeddings are whole numbers ({dtype}), which sentence-transformers rejects"
        remedy = "expected float32 or float16 (quantize_to of model2vec)"
        raise InputError(Problem(name, None, f"{message}; {remedy}"))


def _with_inner(modules: Iterator[Module]) -> Iterator[Module]:
    """Yield modules, each Router followed by the modules of its routes."""
    for module in modules:
        yield module
        if module.name in ("Router", "Asym"):
            types = _router_config(module).get("types") or {}
            inner = (Module(str(kind), module.folder / path) for path, kind in types.items())
            yield from _with_inner(inner)


def _router_config(module: Module) -> Mapping[str, Any]:
    """Return the configuration of a Router, in ``config.json`` in folders of earlier versions."""
    files = (module.folder / name for name in ("router_config.json", "config.json"))
    configs = (read_json(file) for file in files)
    found = next((config for config in configs if isinstance(config, dict)), None)
    if found is None or not isinstance(found.get("structure"), dict) or not found["structure"]:
        message = "expected the modules of each route in router_config.json"
        raise InputError(Problem(str(module.folder), None, message))
    return found


def _routes(module: Module) -> Routes:
    config = _router_config(module)
    names = tuple(map(str, config["structure"]))
    parameters = config.get("parameters") or {}
    default = parameters.get("default_route")
    if default is None and parameters.get("allow_empty_key", True):
        default = names[0]
    mappings = {}
    for key, route in (parameters.get("route_mappings") or {}).items():
        try:
            task, modality = ast.literal_eval(key)
        except (ValueError, SyntaxError, TypeError):  # The library would ignore it.
            message = f"the route mapping {key!r} is not a pair of task and modality"
            raise InputError(Problem(str(module.folder), None, message)) from None
        mappings[task, modality] = str(route)
    return Routes(names, default, mappings)
