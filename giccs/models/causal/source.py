"""Where does a causal model lie: in a folder, in a GGUF file, on the hub? And is it one?"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bws.problems import InputError, Problem
from giccs.models.folder import WEIGHTS, located, read_json, revision, saved_dtype
from giccs.models.placing import device_map
from giccs.models.quantising import check_quantised

if TYPE_CHECKING:
    from giccs.models import ModelOptions

__all__ = ["Source", "checked_config", "find"]

ENCODER_DECODER = (
    "is an encoder-decoder, whose encoder reads the whole prompt at once; "
    "a causal language model (GPT, Llama, Qwen, ...) is needed"
)


@dataclass(frozen=True, slots=True)
class Source:
    """Where a model lies."""

    folder: Path
    gguf: str = ""
    """Name of the GGUF file in the folder; empty for a folder of transformers."""

    @property
    def revision(self) -> str:
        """The hub's commit, or a digest of the content."""
        return revision(self.folder / self.gguf if self.gguf else self.folder)

    def dtype(self, wanted: str) -> str:
        """Return the type of the weights: what is wanted, or what they were saved in."""
        if wanted != "auto":
            return wanted
        return "float32" if self.gguf else saved_dtype(read_json(self.folder / "config.json"))


def find(name: str, place: str, options: ModelOptions) -> Source:
    """Return where the model lies, fetched from the hub where `place` is no path.

    InputError where it is no causal language model, or cannot be opened without more.
    """
    path = located(place, options.revision, offline=options.offline)
    if path.suffix.lower() == ".gguf" and path.is_file():
        return _gguf(name, path, options)
    if not path.is_dir():
        raise _refused(name, "is a file; a model is a folder, a .gguf file or a hub id")
    if not (path / "config.json").is_file() and (files := sorted(path.glob("*.gguf"))):
        if len(files) > 1:
            names = ", ".join(file.name for file in files)
            raise _refused(name, f"holds several GGUF files ({names}); name one of them")
        return _gguf(name, files[0], options)
    if checked_config(name, path, options).get("is_encoder_decoder"):
        raise _refused(name, ENCODER_DECODER)
    return Source(path)


def _gguf(name: str, file: Path, options: ModelOptions) -> Source:
    missing = [part for part in ("gguf", "accelerate") if find_spec(part) is None]
    if missing:
        raise _refused(
            name, f"needs {' and '.join(missing)}; install them with: pip install 'giccs[gguf]'"
        )
    check_quantised(name, None, options, gguf=True)
    device_map(name, options)
    return Source(file.parent, file.name)


def checked_config(name: str, folder: Path, options: ModelOptions) -> dict[str, Any]:
    """Return the configuration in a folder; InputError where no model can be opened from it."""
    config = read_json(folder / "config.json")
    if not isinstance(config, dict):
        raise _refused(name, "holds no model: there is neither config.json nor a .gguf file in it")
    if not any(any(folder.rglob(pattern)) for pattern in WEIGHTS):
        raise _refused(name, f"holds no weights; a file {' or '.join(WEIGHTS)} is expected")
    if "auto_map" in config and not options.trust_remote_code:
        raise _refused(
            name, "brings code of its own; read it, then allow it with --trust-remote-code"
        )
    check_quantised(name, config, options)
    device_map(name, options)
    return config


def _refused(name: str, message: str) -> InputError:
    return InputError(Problem(name, None, message))
