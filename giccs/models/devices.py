"""Placement of a model's weights: on one device, or distributed over several, in memory or on disk."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bws.base.problems import InputError, Problem
from giccs.models.checkpoint import read_json
from giccs.models.model_errors import UnsupportedOptionError, out_of_memory

if TYPE_CHECKING:
    from torch import device

    from giccs.models import ModelOptions

MAPS = ("auto", "balanced", "balanced_low_0", "sequential")
"""Accelerate's strategies for distributing weights over GPUs, then main memory, then disk."""
FULL = 0.8
"""Maximum share of a GPU's free memory for weights; larger models are distributed over all devices."""


def device_map(name: str, options: ModelOptions) -> str | dict[str, Any] | None:
    """Return the requested device map: one of `MAPS`, or a mapping from parts of the model read from JSON.

    None if no map is requested. Raises InputError for an invalid or unsupported map.
    """
    requested_map = options.device_map
    if requested_map is None:
        return None

    def refused(message: str) -> InputError:
        return InputError(Problem(name, None, message))

    if options.device != "auto":
        raise refused("--device and --device-map are mutually exclusive")
    if find_spec("accelerate") is None:
        message = "--device-map requires accelerate; install it with: pip install 'giccs[models]'"
        raise refused(message)
    logging.getLogger("accelerate.big_modeling").setLevel(
        logging.ERROR
    )  # Offloading was requested explicitly.
    if requested_map in MAPS:
        return requested_map
    parts = read_json(Path(requested_map))
    if parts is None:
        raise refused(
            f"invalid --device-map {requested_map!r}; expected {', '.join(MAPS)} or a JSON file"
        )
    if not isinstance(parts, dict) or not parts or not all(map(_is_place, parts.values())):
        message = (
            "is no device map; an object is expected that gives parts of the model a GPU's number, "
            '"cpu" or "disk": {"model.layers.0": 0, "lm_head": "cpu", ...}'
        )
        raise InputError(Problem(requested_map, None, message))
    return parts


def refuse_map(name: str, options: ModelOptions) -> None:
    """Raise UnsupportedOptionError for a device map if the model cannot be distributed."""
    if options.device_map is not None:
        raise UnsupportedOptionError(name, "cannot be distributed over devices", "device_map")


def must_cover(model: Any, parts: Mapping[str, Any]) -> None:
    """Raise ValueError for a map with unknown or missing parts, or one that separates tied weights."""
    if unknown := sorted(set(parts) - {name for name, _ in model.named_modules()}):
        raise ValueError(f"unknown part {unknown[0]!r} in the device map")
    left_out = (
        name for name, _ in model.named_parameters()
        if not any(not part or f"{name}.".startswith(f"{part}.") for part in parts)
    )  # fmt: skip
    if (first := next(left_out, None)) is not None:
        raise ValueError(f"missing part {first!r} in the device map")
    for parameter, tied_parameter in getattr(model, "all_tied_weights_keys", {}).items():
        devices = {_device_of(parameter, parts), _device_of(tied_parameter, parts)}
        if len(devices) > 1 and "disk" in devices:
            raise ValueError(
                f"{parameter!r} and {tied_parameter!r} share one matrix and cannot be partly on disk"
            )


def _device_of(name: str, parts: Mapping[str, Any]) -> Any:
    """Return the device of a parameter: that of the smallest mapped part that contains it."""
    around = [part for part in parts if not part or f"{name}.".startswith(f"{part}.")]
    return parts[max(around, key=len)]


def _is_place(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def check_device(name: str, device: str) -> None:
    """Raise InputError unless PyTorch has the device: ``auto``, ``cpu``, ``cuda``, ``cuda:N`` or ``mps``."""
    import torch

    kind, _, index = device.partition(":")
    counts = {
        "auto": 1,
        "cpu": 1,
        "cuda": torch.cuda.device_count() if torch.cuda.is_available() else 0,
        "mps": int(torch.backends.mps.is_available()),
    }
    if int(index or 0) >= counts[kind]:
        count = f"{counts[kind]} {kind} {'device' if counts[kind] == 1 else 'devices'}"
        message = f"--device {device} is not available; PyTorch has {count} here"
        raise InputError(Problem(name, None, message))


def single_device(requested_device: str, folder: Path, share: float = 1.0) -> str:
    """Return the device of the weights, or ``spread`` if they do not fit into the memory of one GPU.

    `share` is the ratio of their size in memory to that on disk.
    """
    import torch

    if requested_device != "auto":
        return requested_device
    if not torch.cuda.is_available():
        return "cpu"
    weights = share * sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    free, _ = torch.cuda.mem_get_info()
    return "spread" if weights > FULL * free and find_spec("accelerate") else "cuda"


def input_device(model: Any) -> device:
    """Return the device for input tokens: that of the embeddings, or the execution device of offloaded ones.

    Weights offloaded to main memory or disk have no device; Accelerate's hook has it.
    """
    import torch

    embeddings = model.get_input_embeddings()
    embedding_device: torch.device = embeddings.weight.device
    if embedding_device.type != "meta":
        return embedding_device
    hook = getattr(embeddings, "_hf_hook", None)
    hook_device = getattr(hook, "execution_device", None)
    return torch.device("cpu" if hook_device is None else hook_device)


def devices(model: Any) -> str:
    """Return a description of the devices of a model's weights."""
    parts = getattr(model, "hf_device_map", None)
    if not parts:
        return str(input_device(model))
    device_names = (
        f"cuda:{device}" if isinstance(device, int) else str(device) for device in parts.values()
    )
    return ", ".join(dict.fromkeys(device_names))


def retry_out_of_memory(compute: Callable[[], Any]) -> Any:
    """Return the result of a function; if it runs out of memory, free the memory and call it once more."""
    try:
        return compute()
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
    free_memory()
    return compute()


def free_memory() -> None:
    """Free the memory of GPUs that torch keeps for later."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()
