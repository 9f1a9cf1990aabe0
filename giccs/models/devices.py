"""Where do a model's weights lie: on one device, or each part on one of several, in memory or on disk?"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bws.problems import InputError, Problem
from giccs.models.checkpoint import read_json

if TYPE_CHECKING:
    from torch import device

    from giccs.models import ModelOptions

__all__ = [
    "MAPS",
    "check_device",
    "device_map",
    "devices",
    "input_device",
    "must_cover",
    "refuse_map",
    "single_device",
]

MAPS = ("auto", "balanced", "balanced_low_0", "sequential")
"""How Accelerate spreads weights over GPUs, then main memory, then the disk, in its own words."""
FULL = 0.8
"""Share of a GPU's free memory that weights may take; beyond it they are spread over all devices."""


def device_map(name: str, options: ModelOptions) -> str | dict[str, Any] | None:
    """Return the device map that was asked for: one of `MAPS`, or parts of the model by a JSON file.

    None where none was. InputError where it is no map, or cannot be followed.
    """
    wanted = options.device_map
    if wanted is None:
        return None

    def refused(message: str) -> InputError:
        return InputError(Problem(name, None, message))

    if options.device != "auto":
        raise refused("--device is for one device and --device-map for several; leave one out")
    if find_spec("accelerate") is None:
        message = "--device-map needs accelerate; install it with: pip install 'giccs[models]'"
        raise refused(message)
    logging.getLogger("accelerate.big_modeling").setLevel(
        logging.ERROR
    )  # what is offloaded was asked for
    if wanted in MAPS:
        return wanted
    parts = read_json(Path(wanted))
    if parts is None:
        raise refused(f"--device-map is {wanted!r}; {', '.join(MAPS)} or a JSON file are allowed")
    if not isinstance(parts, dict) or not parts or not all(map(_is_place, parts.values())):
        message = (
            "is no device map; an object is expected that gives parts of the model a GPU's number, "
            '"cpu" or "disk": {"model.layers.0": 0, "lm_head": "cpu", ...}'
        )
        raise InputError(Problem(wanted, None, message))
    return parts


def refuse_map(name: str, options: ModelOptions) -> None:
    """Raise InputError where a device map is asked for, of a model that has no parts to be spread."""
    if options.device_map is not None:
        message = "has no parts to be spread over devices; leave --device-map out"
        raise InputError(Problem(name, None, message))


def must_cover(model: Any, parts: Mapping[str, Any]) -> None:
    """Raise ValueError where a map names parts that a model has not, leaves some out, or tears one apart."""
    if unknown := sorted(set(parts) - {name for name, _ in model.named_modules()}):
        raise ValueError(f"the device map names {unknown[0]!r}, which is no part of the model")
    left_out = (
        name for name, _ in model.named_parameters()
        if not any(not part or f"{name}.".startswith(f"{part}.") for part in parts)
    )  # fmt: skip
    if (first := next(left_out, None)) is not None:
        raise ValueError(f"the device map leaves out {first!r}")
    for one, other in getattr(model, "all_tied_weights_keys", {}).items():
        places = {_place(one, parts), _place(other, parts)}
        if len(places) > 1 and "disk" in places:
            raise ValueError(
                f"{one!r} and {other!r} are one matrix, of which a half cannot be on disk"
            )


def _place(name: str, parts: Mapping[str, Any]) -> Any:
    """Return where a map puts a parameter: what it says of the smallest part that has it."""
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


def single_device(wanted: str, folder: Path, share: float = 1.0) -> str:
    """Return where the weights go; ``spread`` is over all devices, where one GPU has not enough memory.

    `share` is how much of their size on disk they take in memory.
    """
    import torch

    if wanted != "auto":
        return wanted
    if not torch.cuda.is_available():
        return "cpu"
    weights = share * sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    free, _ = torch.cuda.mem_get_info()
    return "spread" if weights > FULL * free and find_spec("accelerate") else "cuda"


def input_device(model: Any) -> device:
    """Return where a model wants its tokens: with its embeddings, or where they are computed with.

    What is offloaded to main memory or disk has no device of its own; Accelerate's hook says where it goes.
    """
    import torch

    embeddings = model.get_input_embeddings()
    own: torch.device = embeddings.weight.device
    if own.type != "meta":
        return own
    hook = getattr(embeddings, "_hf_hook", None)
    place = getattr(hook, "execution_device", None)
    return torch.device("cpu" if place is None else place)


def devices(model: Any) -> str:
    """Return in words where a model's weights lie."""
    parts = getattr(model, "hf_device_map", None)
    if not parts:
        return str(input_device(model))
    places = (f"cuda:{one}" if isinstance(one, int) else str(one) for one in parts.values())
    return ", ".join(dict.fromkeys(places))
