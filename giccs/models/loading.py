"""Language models of transformers: location, validation and loading."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bws.base.problems import InputError, Problem
from giccs.models.adapters import Adapter, find_adapter
from giccs.models.checkpoint import (
    check_has_weights,
    check_shards,
    first_line,
    located,
    read_json,
    revision,
    weights_dtype,
)
from giccs.models.devices import check_device, device_map, must_cover, single_device
from giccs.models.input_limits import position_limit
from giccs.models.quantisation import SHARES, check_quantised, quantisation, settle
from giccs.models.vocabulary import TokenCounter, check_tokenizer
from giccs.models.weights import check_weights, recorded_loading

if TYPE_CHECKING:
    from giccs.models import ModelOptions

ENCODER_DECODER = (
    "is an encoder-decoder, whose encoder reads the whole prompt at once; expected a causal language "
    "model (GPT, Llama, Qwen, ...)"
)


@dataclass(frozen=True, slots=True)
class Source:
    """Location of a model."""

    folder: Path
    gguf: str = ""
    """Name of the GGUF file in the folder; empty for a folder of transformers."""
    adapter: Adapter | None = None
    """Adapter in the folder."""

    @property
    def base(self) -> Path:
        """Folder of the model, which an adapter may change."""
        return self.adapter.base if self.adapter else self.folder

    @property
    def identity(self) -> dict[str, str]:
        """Signature entries: the hub's commit, or a digest of the content; and the adapter."""
        content = revision(self.folder / self.gguf if self.gguf else self.folder)
        return {"revision": content, **(self.adapter.identity() if self.adapter else {})}

    def dtype(self, requested_dtype: str) -> str:
        """Return the data type of the weights: the requested one, or that of the saved weights."""
        if self.gguf and requested_dtype == "auto":
            return "float32"
        return weights_dtype(self.base, requested_dtype)


def find_causal(name: str, location: str, options: ModelOptions) -> Source:
    """Return the location of the model, downloading it from the hub if `location` is not a path.

    Raises InputError if it is not a causal language model, or requires other packages.
    """
    path = located(location, options.revision, offline=options.offline)
    if path.suffix.lower() == ".gguf" and path.is_file():
        return _gguf(name, path, options)
    if not path.is_dir():
        raise _refused(name, "is a file; expected a folder, a .gguf file or a hub id")
    if not (path / "config.json").is_file() and (files := sorted(path.glob("*.gguf"))):
        if len(files) > 1:
            names = ", ".join(file.name for file in files)
            raise _refused(name, f"contains several GGUF files ({names}); specify one of them")
        return _gguf(name, files[0], options)
    source, config = checked_source(name, path, options)
    if config.get("is_encoder_decoder"):
        raise _refused(name, ENCODER_DECODER)
    return source


def _gguf(name: str, file: Path, options: ModelOptions) -> Source:
    missing = [part for part in ("gguf", "accelerate") if find_spec(part) is None]
    if missing:
        raise _refused(
            name, f"needs {' and '.join(missing)}; install them with: pip install 'giccs[gguf]'"
        )
    check_quantised(name, None, options, gguf=True)
    device_map(name, options)
    return Source(file.parent, file.name)


def checked_source(name: str, folder: Path, options: ModelOptions) -> tuple[Source, dict[str, Any]]:
    """Return the model in a folder, and its configuration; raise InputError if it cannot be loaded."""
    source = Source(folder, adapter=find_adapter(name, folder, offline=options.offline))
    config = read_json(source.base / "config.json")
    if not isinstance(config, dict):
        raise _refused(name, "contains no model: no config.json and no .gguf file")
    for path in dict.fromkeys([folder, source.base]):
        check_has_weights(name, path)
        check_shards(name, path)
    files = (path / "tokenizer_config.json" for path in (folder, source.base))
    documents = [config, *(read_json(file) or {} for file in files)]
    if any("auto_map" in document for document in documents) and not options.trust_remote_code:
        raise _refused(
            name, "requires its own code; review it, then allow it with --trust-remote-code"
        )
    check_quantised(name, config, options)
    device_map(name, options)
    return source, config


@dataclass(frozen=True)
class Loaded:
    """A model in memory with its tokenizer."""

    model: Any
    tokenizer: Any
    unused: str = ""
    """Description of ignored heads of the checkpoint."""

    @cached_property
    def counter(self) -> TokenCounter:
        """Counter of tokens in texts."""
        return TokenCounter(self.tokenizer)

    @cached_property
    def context(self) -> int | None:
        """Maximum number of tokens; None if unlimited."""
        return position_limit(self.model)

    @property
    def vocabulary(self) -> int:
        """Size of the vocabulary of the model."""
        return int(self.model.get_input_embeddings().weight.shape[0])


def load(
    name: str,
    source: Source,
    options: ModelOptions,
    dtype: str,
    head: str = "AutoModelForCausalLM",
) -> Loaded:
    """Load the model with the class of transformers named `head`.

    Raises InputError with a remedy if it cannot be loaded.
    """
    missing = [part for part in ("torch", "transformers") if find_spec(part) is None]
    if missing:
        raise _refused(
            name, f"needs {' and '.join(missing)}; install them with: pip install 'giccs[models]'"
        )
    spread = device_map(name, options)
    with uninterrupted():
        import torch  # noqa: F401
        from transformers.utils import logging

    check_device(name, options.device)
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    try:
        # The progress bar of GGUF files cannot be disabled otherwise.
        with redirect_stderr(StringIO()), _gguf_read_once(source):
            loaded = _load(source, options, dtype, head, spread)
    except Exception as error:  # Frameworks raise many kinds of exceptions, also for damaged files.
        if isinstance(error, InputError):
            raise
        raise _refused(name, f"cannot be loaded: {first_line(error)}") from error
    settle(name, loaded.model, options)
    return loaded


@contextmanager
def _gguf_read_once(source: Source) -> Iterator[None]:
    """Within the block, read the GGUF file once and compute its tensor names once.

    transformers reads it for configuration, tokenizer and weights, and computes the names for every module,
    which takes most of the time of loading a small model.
    """
    if not source.gguf:
        yield
        return
    import gguf

    functions = {
        "GGUFReader": _with_plain_arrays(gguf.GGUFReader),
        "get_tensor_name_map": gguf.get_tensor_name_map,
    }
    with ExitStack() as stack:
        for name, function in functions.items():
            stack.callback(setattr, gguf, name, getattr(gguf, name))
            setattr(gguf, name, cache(function))
        yield


def _with_plain_arrays(reader: Any) -> Any:
    """Return a reader of GGUF files that slices an array: each slice of a np.memmap takes ten times as long.

    A reader makes several slices for each word of the vocabulary.
    """

    class PlainReader(reader):  # type: ignore[misc]
        @property
        def data(self) -> NDArray[np.uint8]:
            """Return the bytes of the file, which remain on disk until they are used."""
            return self._bytes

        @data.setter
        def data(self, mapped: NDArray[np.uint8]) -> None:
            self._bytes = mapped.view(np.ndarray)

    return PlainReader


def _load(
    source: Source,
    options: ModelOptions,
    dtype: str,
    head: str,
    spread: str | dict[str, Any] | None,
) -> Loaded:
    import torch
    import transformers

    shared: dict[str, Any] = {
        "trust_remote_code": options.trust_remote_code,
        "local_files_only": options.offline,
    }
    if source.gguf:
        shared["gguf_file"] = source.gguf
    tokenizer = transformers.AutoTokenizer.from_pretrained(_tokenizer_folder(source), **shared)
    check_tokenizer(tokenizer)
    shared |= quantisation(options, dtype)
    device, spread = _target_device(source, options, spread)
    if spread is not None:
        shared["device_map"] = spread
    with recorded_loading() as reports:
        model: Any = getattr(transformers, head).from_pretrained(
            source.folder, dtype=getattr(torch, dtype), **shared
        )
    unused = check_weights(reports)
    if isinstance(spread, dict):
        must_cover(model, spread)
    _fuse(model)
    return Loaded((model if spread is not None else model.to(device)).eval(), tokenizer, unused)


def _tokenizer_folder(source: Source) -> Path:
    """Return the folder of the tokenizer, which may be beside an adapter or beside its base."""
    is_beside = any(source.folder.glob("tokenizer*"))
    return source.folder if source.adapter is None or is_beside else source.base


def _target_device(
    source: Source, options: ModelOptions, spread: str | dict[str, Any] | None
) -> tuple[str, str | dict[str, Any] | None]:
    """Return the target device of the model, and the device map for loading, if required."""
    if spread is not None:
        return "", spread
    share = SHARES.get(str(options.quantise), 1.0)
    device = single_device(options.device, source.base, share)
    if device == "spread":
        return "", "auto"
    # Quantised weights are created on their device and cannot be moved.
    return device, {"": device} if options.quantise else None


def _fuse(model: Any) -> None:
    """Compute GPT-2's GELU in one pass over memory instead of eight, with the same result."""
    from torch.nn import GELU
    from transformers.activations import NewGELUActivation

    for module in model.modules():
        for name, part in module.named_children():
            if isinstance(part, NewGELUActivation):
                setattr(module, name, GELU(approximate="tanh"))


def _refused(name: str, message: str) -> InputError:
    return InputError(Problem(name, None, message))


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay Ctrl-C until the end of the block (where signals can be blocked).

    Compiled libraries abort if their import is interrupted.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
